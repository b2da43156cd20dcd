"""Gradients through what is divided by a sum of itself: softmax, and its relatives, read their result alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.networks import normal


def softmax(x: te.Tensor, scale: float = 1.0, others: bool = False) -> te.Tensor:
    """Along the last axis, without a maximum; ``others`` adds to the sum below."""
    k = te.reduce_axis((0, x.shape[1]), "k")
    e = te.compute(x.shape, lambda i, j: te.exp(scale * x[i, j]), "e")
    s = te.compute((x.shape[0],), lambda i: te.sum(e[i, k], axis=k) + (x[i, 0] ** 2 if others else 0.0), "s")
    return te.compute(x.shape, lambda i, j: e[i, j] / s[i], "y")


def plain(x, scale=1.0, others=False):
    e = jnp.exp(scale * x)
    return e / (e.sum(1) + (x[:, 0] ** 2 if others else 0.0))[:, None]


def test_the_gradient_of_softmax_reads_its_result_alone() -> None:
    x = np.ones((4, 6), "f")
    for fn in (te.ops.softmax, softmax):
        assert [s.tensor.ndim for s in te.explain(te.function(fn), x).saved] == [2]
        source = te.source(te.function(fn), x)
        backward = source[source.index("def backward") :]
        assert "exp(" not in backward and "/" not in backward


@pytest.mark.parametrize("kind", ["softmax", "scaled", "others", "two of them"])
def test_it_is_the_derivative_to_the_second_order(kind: str) -> None:
    """Where something else is in the sum below, or reads what is divided, it is derived as everything else."""

    def build(x):
        y = softmax(x, 0.5 if kind == "scaled" else 1.0, kind == "others")
        if kind != "two of them":
            return y
        (e, s) = y.inputs
        return te.compute(x.shape, lambda i, j: y[i, j] * e[i, j] + s[i], "z")

    def reference(x):
        y = plain(x, 0.5 if kind == "scaled" else 1.0, kind == "others")
        return y if kind != "two of them" else y * jnp.exp(x) + jnp.exp(x).sum(1)[:, None]

    x = normal(np.random.default_rng(0), 3, 4)
    w = normal(np.random.default_rng(1), 3, 4)
    fn = te.function(build)
    for transform in (jax.grad, jax.hessian):
        found, expected = (transform(lambda x, f=f: (f(x) ** 2 * w).sum())(x) for f in (fn, reference))
        np.testing.assert_allclose(found, expected, 1e-4, 1e-4 * np.abs(expected).max())
    found, expected = (jax.jvp(f, (x,), (w,))[1] for f in (fn, reference))
    np.testing.assert_allclose(found, expected, 1e-4, 1e-5)


def test_what_overflows_has_the_gradient_of_its_value() -> None:
    """A sum that is infinite: the quotient is zero there, and so is its gradient."""
    x = np.full((1, 20), 88.0, "f")
    found = jax.grad(lambda x: (te.function(softmax)(x) * jnp.arange(20.0)).sum())(x)
    np.testing.assert_array_equal(found, np.zeros((1, 20)))


def test_a_jacobian_has_it_as_definition() -> None:
    X = te.placeholder((2, 3), name="X")
    x = normal(np.random.default_rng(0), 2, 3)
    (found,) = te.evaluate(list(te.differentiate(softmax(X), [X])), {X: x})
    np.testing.assert_allclose(found, jax.jacrev(plain)(x), 1e-4, 1e-6)
