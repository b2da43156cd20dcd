"""Reductions of choices, which XLA on the CPU writes out for all points, are computed in tiles where that array is large."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from harness.sides import with_gradients
from jaxte.tensors.tensor import Tensor
from tests.xla_counts import Fused

MOST = 4  # bytes of temporaries for each of inputs and output, which is 1,000 without tiles, and for what a tile holds
TILE = 2.5e6


def axis(extent: Any, name: str) -> te.Axis:
    return te.reduce_axis((0, extent), name)


def lower_values(x: Tensor, y: Tensor) -> Tensor:
    j = axis(x.shape[0], "j")
    return te.compute(x.shape, lambda i: te.sum(te.select(x[j] < x[i], y[j], 0.0), j), "t")


def distances(x: Tensor) -> Tensor:
    n, size = x.shape
    c = axis(size, "c")
    return te.compute((n, n), lambda i, j: te.sum(te.abs(x[i, c] - x[j, c]), c), "t")


def intervals(x: Tensor) -> Tensor:
    (n,) = x.shape
    k = axis(n, "k")
    return te.compute((n, n), lambda i, j: te.sum(x[k] * x[k], k, where=(k >= i) & (k <= j)), "t")


def shares(x: Tensor, s: Tensor) -> Tensor:
    """Of each element among those of its segment."""
    f = axis(x.shape[0], "f")
    return te.compute(
        x.shape,
        lambda i, c: te.exp(x[i, c]) / te.sum(te.select(s[f] == s[i], te.exp(x[f, c]), 0.0), f),
        "t",
    )


def plain_shares(x: jax.Array, s: jax.Array) -> jax.Array:
    return jnp.exp(x) / jax.ops.segment_sum(jnp.exp(x), s, 20)[s]


def plain_intervals(x: jax.Array) -> jax.Array:
    k = jnp.arange(len(x))
    inside = (k[None, None] >= k[:, None, None]) & (k[None, None] <= k[None, :, None])
    return jnp.sum(jnp.where(inside, x * x, 0), axis=2)


CASES: dict[str, tuple[Callable[..., Tensor], Callable[..., jax.Array], tuple[tuple[int, ...], ...]]] = {
    "lower values": (
        lower_values,
        lambda x, y: jnp.sum(jnp.where(x < x[:, None], y, 0), axis=1),
        ((2200,), (2200,)),
    ),
    "distances": (distances, lambda x: jnp.sum(jnp.abs(x[:, None] - x), axis=2), ((300, 60),)),
    "intervals": (intervals, plain_intervals, ((180,),)),
    "segments": (shares, plain_shares, ((1500, 4),)),
}


@pytest.mark.parametrize("name", CASES)
def test_choices_are_not_written_out(name: str, rng: np.random.Generator) -> None:
    define, plain, shapes = CASES[name]
    args = [rng.standard_normal(shape).astype("float32") for shape in shapes]
    numbers = tuple(range(len(args)))
    if name == "segments":
        args.append(rng.integers(0, 20, shapes[0][0]).astype("int32"))
    fn = te.function(define)
    head = rng.standard_normal(jax.eval_shape(fn, *args).shape).astype("float32")
    compiled = Fused(jax.jit(with_gradients(fn, numbers)).lower([head], *args))
    held = compiled.memory_analysis().temp_size_in_bytes
    assert held < MOST * sum(a.nbytes for a in (*args, head)) + TILE
    expected = with_gradients(plain, numbers)([head], *args)
    for found, own in zip(compiled([head], *args), expected, strict=True):
        np.testing.assert_allclose(found, own, rtol=1e-3, atol=1e-3)


def test_what_is_not_written_out_has_no_tiles() -> None:
    x, w = te.placeholder((3000,), name="x"), te.placeholder((3000, 32), name="w")
    k = axis(3000, "k")
    prefix = te.compute((3000,), lambda i: te.max(x[k] ** 2, k, where=k <= i), "t")
    masked = te.compute((3000, 32), lambda i, c: te.sum(te.select(x[k] < x[i], w[k, c], 0.0), k), "t")
    arithmetic = te.compute((3000,), lambda i: te.max(te.abs(x[k] - x[i]), k), "t")
    assert not any("lax.map" in te.source(t) for t in (prefix, masked, arithmetic))
