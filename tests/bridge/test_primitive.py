"""Forward mode, transposes, batches and higher orders of te.function beside those of plain JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.networks import normal

pytestmark = pytest.mark.usefixtures("compiled_quickly")


@te.function
def dense(x, w):
    k = te.reduce_axis((0, x.shape[1]), "k")
    y = te.compute((x.shape[0], w.shape[1]), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), "y")
    return te.compute(y.shape, lambda i, j: te.tanh(y[i, j]), "z")


@te.function
def pool(x):
    p = te.reduce_axis((0, 2), "p")
    shape = x.shape[0], x.shape[1] // 2
    return te.compute(shape, lambda i, j: te.max(x[i, 2 * j + p], axis=p, ties="first"), "y")


def dense_jax(x, w):
    return jnp.tanh(x @ w)


def pool_jax(x):
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2), (1, 2), "VALID")


def squared(f):
    return lambda *args: (f(*args) ** 2).sum()


def close(found, expected, rtol=1e-4) -> None:
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol, rtol * (1 + np.abs(b).max()))


TRANSFORMATIONS = {
    "jvp": lambda f, args, dots: jax.jvp(f, args, dots),
    "jvp of one": lambda f, args, dots: jax.jvp(lambda a: f(a, *args[1:]), args[:1], dots[:1]),
    "linearize": lambda f, args, dots: jax.linearize(f, *args)[1](*dots),
    "transpose": lambda f, args, dots: jax.linear_transpose(jax.linearize(f, *args)[1], *args)(f(*args)),
    "forward over reverse": lambda f, args, dots: jax.jacfwd(jax.jacrev(squared(f)))(*args),
    "reverse over forward": lambda f, args, dots: jax.jacrev(jax.jacfwd(squared(f)))(*args),
    "forward twice": lambda f, args, dots: jax.jvp(
        lambda *a: jax.jvp(f, a, dots)[1], args, jax.tree.map(jnp.sin, dots)
    ),
    "grad of vmap": lambda f, args, dots: jax.grad(squared(jax.vmap(f, (1, None)[: len(args)])), 0)(
        jnp.stack([args[0], dots[0]], 1), *args[1:]
    ),
    "vmap of grad": lambda f, args, dots: jax.vmap(
        jax.grad(squared(f), len(args) - 1), (-1, 0)[: len(args)], out_axes=1
    )(jnp.stack([args[0], dots[0]], -1), *(jnp.stack([a, 2 * a]) for a in args[1:])),
}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
@pytest.mark.parametrize(("f", "reference", "shapes"), [(dense, dense_jax, [(3, 4), (4, 2)]), (pool, pool_jax, [(3, 6)])])  # fmt: skip
def test_as_plain_jax(rng, f, reference, shapes, name: str) -> None:
    args = tuple(normal(rng, *shape) for shape in shapes)
    dots = tuple(normal(rng, *shape) for shape in shapes)
    transformed = TRANSFORMATIONS[name]
    close(transformed(f, args, dots), transformed(reference, args, dots))


def test_forward_mode_through_a_loop_of_unknown_length(rng) -> None:
    x, w = normal(rng, 3, 4), normal(rng, 4, 4)

    def iterated(f):
        return lambda x: jax.lax.while_loop(
            lambda s: s[0] < 3, lambda s: (s[0] + 1, f(s[1], w) + s[1]), (0, x)
        )[1]

    close(jax.jvp(iterated(dense), (x,), (x,)), jax.jvp(iterated(dense_jax), (x,), (x,)))


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
