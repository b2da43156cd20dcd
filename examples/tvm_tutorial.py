"""Differentiation of tensor expressions, step by step, for readers who come from TVM."""

import jax
import jax.numpy as jnp
import numpy as np

import jaxte as te

BATCH, INPUTS, OUTPUTS = 4, 6, 5
rng = np.random.default_rng(0)


def normal(*shape):
    return rng.normal(size=shape).astype("float32")


def check(what, found, expected):
    """Compares with JAX, and says so."""
    found, expected = np.asarray(found), np.asarray(expected)
    difference = np.linalg.norm(found - expected) / max(np.linalg.norm(expected), 1e-30)
    print(f"    {what}: {found.shape}, relative difference from JAX {difference:.1e}")
    assert found.shape == expected.shape and difference < 1e-5


def show(*tensors):
    for tensor in tensors:
        print("   ", te.formula(tensor))


def dense_layer():
    """A dense layer, its loss, and the gradients of all its inputs."""
    print("1. A dense layer and its loss")
    X, W = te.placeholder((BATCH, INPUTS), name="X"), te.placeholder((OUTPUTS, INPUTS), name="W")
    b, T = te.placeholder((OUTPUTS,), name="b"), te.placeholder((BATCH, OUTPUTS), name="T")
    k = te.reduce_axis((0, INPUTS), "k")
    Z = te.compute((BATCH, OUTPUTS), lambda i, j: te.sum(X[i, k] * W[j, k], axis=k), name="Z")
    Y = te.compute((BATCH, OUTPUTS), lambda i, j: te.tanh(Z[i, j] + b[j]), name="Y")
    i, j = te.reduce_axis((0, BATCH), "i"), te.reduce_axis((0, OUTPUTS), "j")
    loss = te.compute((), lambda: te.sum((Y[i, j] - T[i, j]) ** 2, axis=[i, j]), name="loss")

    dX, dW, db = te.gradient(loss, [X, W, b])
    show(loss, dX, dW, db)
    feeds = {
        X: normal(BATCH, INPUTS),
        W: normal(OUTPUTS, INPUTS),
        b: normal(OUTPUTS),
        T: normal(BATCH, OUTPUTS),
    }

    def plain(X, W, b):
        return jnp.sum((jnp.tanh(X @ W.T + b) - feeds[T]) ** 2)

    expected = jax.grad(plain, (0, 1, 2))(feeds[X], feeds[W], feeds[b])
    for name, found, wanted in zip("XWb", te.evaluate([dX, dW, db], feeds), expected, strict=True):
        check(f"d loss / d {name}", found, wanted)

    print("  The Jacobian of Y with respect to W, without a head:")
    (jacobian,) = te.differentiate(Y, [W])
    show(jacobian)
    at = {tensor: feeds[tensor] for tensor in (X, W, b)}
    full = jax.jacobian(lambda W: jnp.tanh(feeds[X] @ W.T + feeds[b]))(feeds[W])
    check("d Y / d W", te.evaluate(jacobian, at), full)

    print("  A head of ones sums the Jacobian over the outputs:")
    ones = te.ops.ones(Y.shape)
    (summed,) = te.differentiate(Y, [W], head=ones)
    show(summed)
    check("sum of d Y / d W", te.evaluate(summed, at), full.sum((0, 1)))

    print("  All adjoints, and which reader passes on what:")
    everything = te.differentiate(loss)
    for tensor in (Z, Y, b):
        readers = ", ".join(reader.name for reader in everything.adjoint_summands[tensor])
        print(f"    the adjoint of {tensor.name} comes from {readers}:")
        show(everything.adjoints[tensor])


def matmul_with_a_head():
    """The adjoints of a matrix product for a given adjoint of the result."""
    print("\n2. A matrix product with a head")
    A, B = te.placeholder((3, 4), name="A"), te.placeholder((4, 5), name="B")
    H = te.placeholder((3, 5), name="H")
    k = te.reduce_axis((0, 4), "k")
    C = te.compute((3, 5), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    result = te.differentiate(C, [A, B], head=H)
    show(*result)
    feeds = {A: normal(3, 4), B: normal(4, 5), H: normal(3, 5)}
    dA, dB = (
        te.evaluate(d, {t: feeds[t] for t in needed})
        for d, needed in zip(result, ((B, H), (A, H)), strict=True)
    )
    check("dA", dA, feeds[H] @ feeds[B].T)
    check("dB", dB, feeds[A].T @ feeds[H])


def max_pooling():
    """Pooling: each element of the adjoint looks at the windows that contain it."""
    print("\n3. Max-pooling")
    X = te.placeholder((1, 2, 6, 6), name="X")
    p, q = te.reduce_axis((0, 2), "p"), te.reduce_axis((0, 2), "q")
    P = te.compute(
        (1, 2, 3, 3),
        lambda n, c, y, x: te.max(X[n, c, 2 * y + p, 2 * x + q], axis=[p, q], ties="first"),
        name="P",
    )
    H = te.placeholder(P.shape, name="H")
    (dX,) = te.differentiate(P, [X], head=H)
    show(P, dX)
    x, h = normal(1, 2, 6, 6), normal(1, 2, 3, 3)

    def plain(x):
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

    check("dX", te.evaluate(dX, {X: x, H: h}), jax.vjp(plain, x)[1](h)[0])


def naive_fdiff():
    """The building block can be replaced: here by the Jacobian, multiplied by the head."""
    print("\n4. A naive fdiff: the Jacobian and tensordot")

    def naive(output, input, head):
        return te.ops.tensordot(head, te.jacobian(output, input), axes=output.ndim)

    X, W = te.placeholder((BATCH, INPUTS), name="X"), te.placeholder((OUTPUTS, INPUTS), name="W")
    Y = te.ops.sum(te.ops.tanh(te.ops.dense(X, W)))
    (fast,), (slow,) = te.differentiate(Y, [W]), te.differentiate(Y, [W], fdiff=naive)
    feeds = {X: normal(BATCH, INPUTS), W: normal(OUTPUTS, INPUTS)}
    expected = jax.grad(lambda w: jnp.sum(jnp.tanh(feeds[X] @ w.T)))(feeds[W])
    check("dW", te.evaluate(fast, feeds), expected)
    check("dW, naive", te.evaluate(slow, feeds), expected)
    print(
        f"    iterations: {te.cost(fast).iterations} with the building block, {te.cost(slow).iterations} naive"
    )


def blocking_override():
    """An override for a tensor and dependencies of one's choice, here two layers up: none flows into W."""
    print("\n5. An override that blocks the gradient into one input")
    X, W = te.placeholder((BATCH, INPUTS), name="X"), te.placeholder((OUTPUTS, INPUTS), name="W")
    hidden = te.ops.dense(X, W)
    Y = te.ops.tanh(hidden)
    loss = te.ops.sum(Y * Y)

    def block_second(output, inputs, head):
        first, second = inputs
        prefix = head.shape[: head.ndim - output.ndim]
        (adjoint,) = te.differentiate(output, [first], head)
        return [adjoint, te.ops.zeros((*prefix, *second.shape))]

    result = te.differentiate(loss, [X, W], override={Y: ([X, W], block_second)})
    show(*result)
    feeds = {X: normal(BATCH, INPUTS), W: normal(OUTPUTS, INPUTS)}
    expected = jax.grad(lambda x: jnp.sum(jnp.tanh(x @ feeds[W].T) ** 2))(feeds[X])
    check("dX", te.evaluate(result[0], feeds), expected)
    check("dW", te.evaluate(result[1], {}), np.zeros((OUTPUTS, INPUTS)))
    assert hidden not in result.adjoints, "no adjoint flows through the layer in between"


if __name__ == "__main__":
    dense_layer()
    matmul_with_a_head()
    max_pooling()
    naive_fdiff()
    blocking_override()
    print("\nAll numbers agree with JAX.")
