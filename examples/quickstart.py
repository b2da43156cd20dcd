"""jaxte in two minutes: an expression with indices, its adjoints, and the code that they become."""

import jax
import jax.numpy as jnp
import numpy as np

import jaxte as te

# One element of a convolution over time: Y[b, t, o] = sum over k, c of X[b, t + k, c] * W[k, c, o].


def convolution(X, W):
    batch, steps, channels = X.shape
    taps, _, outputs = W.shape
    k, c = te.reduce_axis((0, taps), "k"), te.reduce_axis((0, channels), "c")
    return te.compute(
        (batch, steps - taps + 1, outputs),
        lambda b, t, o: te.sum(X[b, t + k, c] * W[k, c, o], axis=[k, c]),
        name="Y",
    )


def derive() -> None:
    """On Tensors, the adjoints are formulas of the same kind."""
    X, W = te.placeholder((8, 34, 16), name="X"), te.placeholder((3, 16, 32), name="W")
    Y = convolution(X, W)
    dY = te.placeholder(Y.shape, name="dY")
    dX, dW = te.differentiate(Y, [X, W], head=dY)

    print("The definition and its adjoints:\n")
    for tensor in (Y, dX, dW):
        print(" ", te.formula(tensor))
    print(
        "\nMultiplications:",
        te.cost(Y).multiplications,
        "forward,",
        te.cost([dX, dW]).multiplications,
        "backward",
    )
    print("\nThe code of dX:\n")
    print(te.source(dX))


def run() -> None:
    """On arrays, the definition is a JAX function like any other."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(8, 34, 16)).astype("float32"), rng.normal(size=(3, 16, 32)).astype("float32")
    conv = te.function(convolution)

    def loss(w, x):
        return jnp.mean(jax.nn.relu(conv(x, w)) ** 2)

    gradient = jax.jit(jax.grad(loss))(w, x)

    def in_plain_jax(w, x):
        windows = jnp.stack([x[:, k : k + 32] for k in range(3)])
        return jnp.mean(jax.nn.relu(jnp.einsum("kbtc,kco->bto", windows, w)) ** 2)

    expected = jax.grad(in_plain_jax)(w, x)
    difference = float(jnp.linalg.norm(gradient - expected) / jnp.linalg.norm(expected))
    print(
        f"Gradient of a loss through it: {gradient.shape}, relative difference from jax.grad {difference:.1e}"
    )
    assert difference < 1e-5

    per_example = jax.vmap(jax.grad(loss), in_axes=(None, 0))(w, x[:, None])
    print(f"One gradient for each example, by vmap: {per_example.shape}")
    print(f"Operators take arrays, too: softmax {te.ops.softmax(np.float32([1, 2, 3]))}")


if __name__ == "__main__":
    derive()
    run()
