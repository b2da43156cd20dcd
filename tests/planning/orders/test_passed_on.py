"""Sums of what is passed on, where it is not zero: partial sums first, although the rest may be infinite, since a partial sum that is zero passes nothing on either."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.agreement import compiled_run
from tests.xla_counts import Fused


def graph_layer(a: te.Tensor, x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """A layer of a graph's neighbours, scaled by the roots of how many there are, which may be zero."""
    j, k = te.reduce_axis((0, a.shape[0]), "j"), te.reduce_axis((0, a.shape[0]), "k")
    c = te.reduce_axis((0, w.shape[0]), "c")
    d = te.compute((a.shape[0],), lambda i: te.sum(a[i, j], axis=j), "d")
    at = lambda i, o: a[i, k] / te.sqrt(d[i]) / te.sqrt(d[k]) * x[k, c] * w[c, o]  # noqa: E731
    return te.compute((a.shape[0], w.shape[1]), lambda i, o: te.relu(te.sum(at(i, o), axis=[k, c])), "y")


def by_jax(a: jax.Array, x: jax.Array, w: jax.Array) -> jax.Array:
    s = 1 / jnp.sqrt(a.sum(1))
    return jax.nn.relu((s[:, None] * a * s) @ (x @ w))


def scaled_votes(a: te.Tensor, u: te.Tensor, w: te.Tensor) -> te.Tensor:
    """Votes by powers of weights, which are infinite at zero."""
    i, c = te.reduce_axis((0, u.shape[0]), "i"), te.reduce_axis((0, u.shape[1]), "c")
    at = lambda j, o: te.log(a[i, j]) * te.reciprocal(u[i, c]) * w[c, o]  # noqa: E731
    return te.compute((a.shape[1], w.shape[1]), lambda j, o: te.relu(te.sum(at(j, o), axis=[i, c])), "y")


def votes_by_jax(a: jax.Array, u: jax.Array, w: jax.Array) -> jax.Array:
    return jax.nn.relu(jnp.log(a).T @ (1 / u) @ w)


CASES = [
    (graph_layer, by_jax, ((60, 60), (60, 12), (12, 8))),
    (scaled_votes, votes_by_jax, ((50, 40), (50, 12), (12, 8))),
]


@pytest.mark.parametrize(("build", "plain", "shapes"), CASES)
def test_gradients_are_products_of_matrices(build, plain, shapes) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(0.5, 1.5, s).astype("float32") for s in shapes]
    head = rng.standard_normal(plain(*arrays).shape).astype("float32")

    def both(fn):  # type: ignore[no-untyped-def]
        return lambda *given: (lambda out: (out[0], *out[1](head)))(jax.vjp(fn, *given))

    flops = [
        Fused(jax.jit(both(fn)).lower(*arrays)).cost_analysis()["flops"] for fn in (te.function(build), plain)
    ]
    assert flops[0] < 2.5 * flops[1]
    found, expected = (compiled_run(both(fn), arrays, optimised=False) for fn in (te.function(build), plain))
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, other, rtol=2e-4, atol=2e-4 * np.abs(other).max())


def test_what_passes_nothing_on_stays_zero_beside_what_is_infinite() -> None:
    a, u, w = np.ones((3, 4), "float32"), np.ones((3, 5), "float32"), np.ones((5, 2), "float32")
    a[1], u[1] = 2, 0  # log(1) = 0 beside 1 / 0, in rows apart
    a[1, :] = 1.5
    head = np.zeros((4, 2), "float32")
    grads = jax.vjp(te.function(scaled_votes), a, u, w)[1](head)
    assert all(np.all(g == 0) for g in grads)
