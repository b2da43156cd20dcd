"""Gradients of what is zero beside a band of a matrix that exists: products under a mask, not sums along its diagonals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.xla_counts import Fused

N, D = 64, 8


def within(i: Any, j: Any, width: int) -> Any:
    """The last ``width`` positions up to ``i``, by two conditions."""
    return te.logical_and(j <= i, i - j < width)


def band(width: int) -> Any:
    i = np.arange(N)
    return (i[None] <= i[:, None]) & (i[:, None] - i[None] < width)


def attended(width: int) -> Callable[..., te.Tensor]:
    def build(q: te.Tensor, k: te.Tensor, v: te.Tensor) -> te.Tensor:
        d, j = te.reduce_axis((0, D), "d"), te.reduce_axis((0, N), "j")
        score = lambda i, j: te.tanh(te.sum(q[i, d] * k[j, d], axis=d))  # noqa: E731
        s = te.compute((N, N), lambda i, j: te.select(within(i, j, width), score(i, j), 0.0), "s")
        return te.compute((N, D), lambda i, o: te.sum(s[i, j] * v[j, o], axis=j), "y")

    return build


def filtered(width: int) -> Callable[..., te.Tensor]:
    def build(a: te.Tensor, x: te.Tensor) -> te.Tensor:
        j = te.reduce_axis((0, N), "j")
        own = te.compute((N, N), lambda i, j: te.select(within(i, j, width), te.exp(a[i, j]), 0.0), "own")
        return te.compute((D, N), lambda b, i: te.sum(own[i, j] * x[b, j], axis=j), "y")

    return build


def in_two_heads(width: int) -> Callable[..., te.Tensor]:
    def build(p: te.Tensor, v: te.Tensor) -> te.Tensor:
        d, j = te.reduce_axis((0, D), "d"), te.reduce_axis((0, N), "j")
        score = lambda h, i, j: te.sum(p[i, 8 * h + d] * p[j, 16 + 8 * h + d], axis=d)  # noqa: E731
        s = te.compute((2, N, N), lambda h, i, j: te.select(within(i, j, width), score(h, i, j), 0.0), "s")
        return te.compute((2, N, D), lambda h, i, o: te.sum(s[h, i, j] * v[h, j, o], axis=j), "y")

    return build


def heads_by_jax(p: Any, v: Any, width: int) -> Any:
    q, k = p[:, :16].reshape(N, 2, D), p[:, 16:].reshape(N, 2, D)
    return jnp.where(band(width), jnp.einsum("ihd,jhd->hij", q, k), 0.0) @ v


CASES: dict[str, tuple[Any, Any, tuple[tuple[int, ...], ...]]] = {
    "attended": (
        attended,
        lambda q, k, v, width: jnp.where(band(width), jnp.tanh(q @ k.T), 0.0) @ v,
        ((N, D), (N, D), (N, D)),
    ),
    "filtered": (
        filtered,
        lambda a, x, width: x @ jnp.where(band(width), jnp.exp(a), 0.0).T,
        ((N, N), (D, N)),
    ),
    "heads": (in_two_heads, heads_by_jax, ((N, 32), (2, N, D))),
}


def both(f: Any) -> Any:
    def run(h: Any, *arrays: Any) -> Any:
        y, pull = jax.vjp(f, *arrays)
        return y, *pull(h)

    return jax.jit(run)


@pytest.mark.parametrize("width", [16, 2])
@pytest.mark.parametrize("name", CASES)
def test_values_and_bytes(name: str, width: int, rng: np.random.Generator) -> None:
    build, reference, shapes = CASES[name]
    arrays = [rng.standard_normal(s).astype("float32") for s in shapes]
    by_jax = lambda *a: reference(*a, width=width)  # noqa: E731
    head = rng.standard_normal(jax.eval_shape(by_jax, *arrays).shape).astype("float32")
    own, theirs = (Fused(both(f).lower(head, *arrays)) for f in (te.function(build(width)), by_jax))
    for found, expected in zip(own(head, *arrays), theirs(head, *arrays), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    if width == 16:  # a quarter of the matrix: as many bytes as a product takes
        accessed = [c.cost_analysis()["bytes accessed"] for c in (own, theirs)]
        assert accessed[0] <= 1.5 * accessed[1]
