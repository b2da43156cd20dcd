"""What the primitive does beyond the grid of test_transformations: given derivatives, errors, residuals, what is emitted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.networks import normal
from tests.xla_counts import Fused


@te.function
def dense(x, w):
    k = te.reduce_axis((0, x.shape[1]), "k")
    y = te.compute((x.shape[0], w.shape[1]), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), "y")
    return te.compute(y.shape, lambda i, j: te.tanh(y[i, j]), "z")


def dense_jax(x, w):
    return jnp.tanh(x @ w)


def squared(f):
    return lambda *args: (f(*args) ** 2).sum()


def close(found, expected, rtol=1e-4) -> None:
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol, rtol * (1 + np.abs(b).max()))


def test_what_is_not_linear_has_no_transpose(rng) -> None:
    x, w = normal(rng, 3, 4), normal(rng, 4, 2)
    with pytest.raises(te.DifferentiationError, match="not linear in x"):
        jax.linear_transpose(lambda x: dense(x, w), x)(dense(x, w))


def test_overrides_are_kept_by_batches_and_second_orders(rng) -> None:
    """A straight-through rounding: its derivative is that of the identity, at every order and in every batch."""
    X = te.placeholder((5,), name="X")
    R = te.compute((5,), lambda i: te.round(X[i]), "R")
    Y = te.compute((5,), lambda i: R[i] ** 3, "Y")
    f = te.function([X], Y, override={R: ([X], lambda out, inputs, head: [head])})
    x = normal(rng, 5) * 3
    b = np.stack([x, 2 * x])
    total = lambda x: f(x).sum()  # noqa: E731
    close(jax.grad(total)(x), 3 * np.round(x) ** 2)
    close(jax.jvp(f, (x,), (x,))[1], 3 * np.round(x) ** 2 * x)
    close(jax.vmap(jax.grad(total))(b), 3 * np.round(b) ** 2)
    close(jax.grad(lambda b: jax.vmap(total)(b).sum())(b), 3 * np.round(b) ** 2)
    close(jax.hessian(total)(x), np.diag(6 * np.round(x)))


def test_an_override_that_is_not_linear_has_no_forward_mode(rng) -> None:
    X = te.placeholder((5,), name="X")
    Y = te.compute((5,), lambda i: X[i] * 2, "Y")
    clipped = lambda out, inputs, head: [te.compute((5,), lambda i: te.clip(head[i], -1, 1))]  # noqa: E731
    f = te.function([X], Y, override={Y: ([X], clipped)})
    x = normal(rng, 5)
    close(jax.grad(lambda x: (f(x) * 9).sum())(x), np.ones(5))
    with pytest.raises(te.DifferentiationError, match="defjvp"):
        jax.jvp(f, (x,), (x,))


@pytest.mark.parametrize("transform", [jax.grad, lambda s: jax.grad(lambda x: (jax.grad(s)(x) ** 2).sum())])
def test_no_scatter_gather_or_mask_appears_in_a_batch(transform) -> None:
    """A stencil for each example is a stencil, and so are its adjoints."""

    @te.function
    def smooth(x):
        return te.compute((x.shape[0] - 2,), lambda i: x[i] * x[i + 1] - x[i + 2] ** 2)

    total = squared(smooth)
    for g in (jax.vmap(transform(total)), transform(lambda x: jax.vmap(total)(x).sum())):
        text = jax.jit(g).lower(jnp.ones((4, 40))).as_text()
        assert not any(word in text for word in ("scatter", "gather", "dynamic_update", "dot_general"))


def test_the_residuals_are_those_of_the_emitted_custom_vjp(rng) -> None:
    x, w = normal(rng, 3, 4), normal(rng, 4, 2)

    def saved(fn) -> list[tuple]:
        _, pull = jax.vjp(fn, x, w)
        return sorted(leaf.shape for leaf in jax.tree.leaves(pull) if hasattr(leaf, "shape"))

    assert saved(dense) == saved(dense.custom_vjp_for(x, w))


def test_a_traced_static_argument_is_an_error(rng) -> None:
    power = te.function(
        lambda x, n: te.compute(x.shape, lambda i: x[i] ** n), static_argnames="n", name="power"
    )
    x = normal(rng, 3)
    close(jax.vmap(lambda x: power(x, 2))(x[:, None]), x[:, None] ** 2)
    with pytest.raises(te.FeedError, match="static argument is traced by JAX"):
        jax.vmap(power, (None, 0))(x, jnp.arange(3))
    with pytest.raises(te.FeedError, match="static_argnames"):
        jax.jit(power)(x, 2)


def test_calling_a_function_inside_jit_adds_nothing(rng) -> None:
    """The program is the one of the emitted module."""
    x, w = normal(rng, 3, 4), normal(rng, 4, 2)
    emitted = dense.custom_vjp_for(x, w)

    def operations(fn) -> list[str]:
        text = jax.jit(fn).lower(x, w).as_text()
        return [line.split("=")[1].split()[0] for line in text.splitlines() if "= stablehlo" in line]

    total = lambda fn: lambda x, w: fn(x, w).sum()  # noqa: E731
    assert operations(dense) == operations(emitted)
    assert sorted(operations(jax.grad(total(dense), (0, 1)))) == sorted(
        operations(jax.grad(total(emitted), (0, 1)))
    )


def test_a_budget_of_memory_holds_for_the_batch(rng) -> None:
    """As a loop over the batch would hold it: the program for the batch has the budget of the function."""

    def nearest(x, y):
        k, c = te.reduce_axis((0, y.shape[0]), "k"), te.reduce_axis((0, x.shape[1]), "c")
        d = te.compute((x.shape[0], y.shape[0]), lambda i, j: te.sum((x[i, c] - y[j, c]) ** 2, axis=c), "d")
        return te.compute((x.shape[0],), lambda i: te.sum(te.exp(-d[i, k]), axis=k), "s")

    budget = 64 * 1024
    fn = te.function(nearest, max_memory=budget)
    x, y = normal(rng, 8, 256, 3), normal(rng, 8, 256, 3)

    def temporaries(g, *args) -> int:
        return Fused(jax.jit(g).lower(*args)).memory_analysis().temp_size_in_bytes

    one = temporaries(fn, x[0], y[0])
    assert temporaries(jax.vmap(fn), x, y) <= max(2 * one, 2 * budget)


def test_a_stencil_around_the_end_is_exported_with_a_symbolic_size() -> None:
    @te.function
    def ring(x):
        n = x.shape[0]
        return te.compute((n,), lambda i: x[(i + 1) % n] * x[i] - 2 * x[(i - 1) % n], "y")

    def reference(x):
        return jnp.roll(x, -1) * x - 2 * jnp.roll(x, 1)

    (n,) = jax.export.symbolic_shape("n")
    shape = jax.ShapeDtypeStruct((n,), "float32")
    value = jax.export.export(jax.jit(ring))(shape)
    gradient = jax.export.export(jax.jit(jax.grad(squared(ring))))(shape)
    for size in (1, 2, 7):
        x = jnp.cos(jnp.arange(size, dtype="float32"))
        close(value.call(x), reference(x))
        close(gradient.call(x), jax.grad(squared(reference))(x))
