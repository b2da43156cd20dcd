"""Sums over long rows of what is computed: a few rows at a time are written to the cache, where a routine adds them in vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.tensors.tensor import Compute, Tensor

ROWS, LONG = 80, 32768
HELD = "_apart("


def over(x: Tensor, k: Tensor, of: Callable[[te.Expr, te.Expr], te.Expr]) -> Compute:
    n = te.reduce_axis((0, x.shape[0]), "n")
    return te.compute(k.shape, lambda i: te.sum(of(x[n], k[i]), axis=n), "y")


def hats(x: Tensor, k: Tensor) -> Compute:
    """How many values are in each bin of a histogram, softly."""
    return over(x, k, lambda x, k: te.maximum(1 - te.abs(x - k) * 4, 0))


def distances(x: Tensor, k: Tensor) -> Compute:
    return over(x, k, lambda x, k: te.sqrt(1 + (x - k) ** 2))


def counts(x: Tensor, k: Tensor) -> Compute:
    """Soft ranks of thresholds."""
    return over(x, k, lambda x, k: te.sigmoid((x - k) * 5))


def kernels(x: Tensor, k: Tensor) -> Compute:
    """The score of a density, a product of two functions of a pair."""
    return over(x, k, lambda x, k: te.exp(-((x - k) ** 2)) * (x - k))


FUNCTIONS: dict[str, tuple[Callable[..., Compute], Callable[..., Any]]] = {
    "hats": (hats, lambda z: jnp.maximum(1 - jnp.abs(z) * 4, 0)),
    "distances": (distances, lambda z: jnp.sqrt(1 + z**2)),
    "counts": (counts, lambda z: jax.nn.sigmoid(z * 5)),
    "kernels": (kernels, lambda z: jnp.exp(-(z**2)) * z),
}


def arguments(rng: np.random.Generator, rows: int = ROWS, long: int = LONG) -> tuple[np.ndarray, np.ndarray]:
    return rng.uniform(-1, 1, long).astype("float32"), np.linspace(-1, 1, rows).astype("float32")


@pytest.mark.parametrize("name", ["hats", "distances", "counts"])
def test_rows_are_written_before_they_are_added(name: str, rng: np.random.Generator) -> None:
    builder, of = FUNCTIONS[name]
    x, k = arguments(rng)
    fn = te.function(builder, platform="cpu")
    forward = fn.source(x, k).partition("def backward")[0]
    assert HELD in forward.partition("def forward")[2] and "lax.map" in forward
    found, expected = fn(x, k), of(np.float64(x)[None] - np.float64(k)[:, None]).sum(1)
    np.testing.assert_allclose(found, expected, rtol=3e-6, atol=1e-3)
    memory = jax.jit(fn).lower(x, k).compile().memory_analysis()
    assert memory.temp_size_in_bytes <= 2**21


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(name: str, rng: np.random.Generator) -> None:
    builder, of = FUNCTIONS[name]
    x, k = arguments(rng)
    plain = lambda x, k: of(x[None] - k[:, None]).sum(1)  # noqa: E731
    own, theirs = (
        jax.grad(lambda x, k, f=f: jnp.sum(f(x, k) ** 2) / LONG, argnums=(0, 1))(x, k)
        for f in (te.function(builder), plain)
    )
    for a, b in zip(own, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3 * np.abs(b).max())


def held(rows: int, long: int, platform: str = "cpu", builder: Callable[..., Compute] = distances) -> bool:
    given = [jax.ShapeDtypeStruct((n,), "float32") for n in (long, rows)]
    source = te.function(builder, platform=platform).source(*given)
    return HELD in source.partition("def forward")[2].partition("def backward")[0]


def test_short_rows_and_few_points_and_other_platforms_are_one_loop() -> None:
    assert held(80, 32768)
    assert not held(4096, 1024)  # a routine adds no row of 1,024
    assert not held(4, 8192)  # all of it takes no time
    assert not held(80, 32768, "gpu") and not held(40, 32768, "tpu")


def test_what_is_read_of_an_array_of_all_points_is_one_loop() -> None:
    def squares(a: Tensor) -> Compute:
        n = te.reduce_axis((0, a.shape[1]), "n")
        return te.compute((a.shape[0],), lambda i: te.sum(te.exp(a[i, n]), axis=n), "y")

    source = te.function(squares, platform="cpu").source(jax.ShapeDtypeStruct((ROWS, LONG), "float32"))
    assert "lax.map" not in source
