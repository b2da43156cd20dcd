"""Sums over what overlaps with a few positions of the result: one sum for each of these, where terms of a sum would be kernels of their own."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
import pytest

import jaxte as te

BLOCKS, SIZE, C = 32, 4, 5


def taps_of_phases(d: te.Tensor, u: te.Tensor) -> te.Tensor:
    """w[x, p] = sum over q, c of d[4 q + x, c] u[q + p, c]: the gradient of a filter for each phase"""
    q, c = te.reduce_axis((0, BLOCKS), "q"), te.reduce_axis((0, C), "c")
    return te.compute((SIZE, 3), lambda x, p: te.sum(d[SIZE * q + x, c] * u[q + p, c], axis=(q, c)), "w")


def lags(d: te.Tensor, u: te.Tensor) -> te.Tensor:
    """w[b, c, p] = sum over q of d[q, b] u[q + p, c]: correlations of all channels at a few lags"""
    q = te.reduce_axis((0, BLOCKS), "q")
    return te.compute((C, C, 3), lambda b, c, p: te.sum(d[q, b] * u[q + p, c], axis=q), "w")


def taps_of_images(d: te.Tensor, u: te.Tensor) -> te.Tensor:
    """w[b, c, p, r] = sum over i, j of d[b, i, j] u[c, i + p, j + r]: gradients of the filters of an image"""
    i, j = te.reduce_axis((0, BLOCKS), "i"), te.reduce_axis((0, BLOCKS), "j")
    return te.compute(
        (2, C, 3, 3), lambda b, c, p, r: te.sum(d[b, i, j] * u[c, i + p, j + r], axis=(i, j)), "w"
    )


CASES: list[tuple[Callable[..., te.Tensor], tuple[int, ...], tuple[int, ...]]] = [
    (taps_of_phases, (BLOCKS * SIZE, C), (BLOCKS + 2, C)),
    (lags, (BLOCKS, C), (BLOCKS + 2, C)),
    (taps_of_images, (2, BLOCKS, BLOCKS), (C, BLOCKS + 2, BLOCKS + 2)),
]


def _general(define: Callable[..., te.Tensor], platform: str) -> te.Function:
    return te.function(define, platform=platform, forms={"w": "general"})


def _sums(text: str) -> int:
    """Products of matrices, sums and terms of sums in a forward pass."""
    forward = text.split("def backward")[0]
    return sum(forward.count(what) for what in ("jnp.einsum(", "jnp.sum(", " * "))


@pytest.mark.parametrize("platform", ["gpu", "tpu"])
@pytest.mark.parametrize("define, left, right", CASES)
def test_a_sum_for_each_of_a_few_positions(
    define: Callable[..., te.Tensor], left: tuple[int, ...], right: tuple[int, ...], platform: str
) -> None:
    rng = np.random.default_rng(0)
    d, u = rng.normal(size=left), rng.normal(size=right)
    with jax.enable_x64(True):
        fn = _general(define, platform)
        text = str(fn.source(d, u))
        assert _sums(text) <= 9
        tensors = [te.placeholder(a.shape, "float64", name) for a, name in ((d, "d"), (u, "u"))]
        expected = te.interpret(define(*tensors), dict(zip(tensors, (d, u), strict=True)))
        np.testing.assert_allclose(fn(d, u), expected, rtol=1e-12)


@pytest.mark.parametrize("define, left, right", CASES)
def test_a_cpu_adds_the_terms(
    define: Callable[..., te.Tensor], left: tuple[int, ...], right: tuple[int, ...]
) -> None:
    d, u = (jax.ShapeDtypeStruct(shape, "float32") for shape in (left, right))
    assert _sums(str(_general(define, "cpu").source(d, u))) >= BLOCKS


def test_as_many_positions_as_terms_stay_terms() -> None:
    """w[x, p] of 16 positions p and 32 terms: not far fewer."""
    q = te.reduce_axis((0, BLOCKS), "q")

    def many(d: te.Tensor, u: te.Tensor) -> te.Tensor:
        return te.compute((C, C, 16), lambda b, c, p: te.sum(d[q, b] * u[q + p, c], axis=q), "w")

    d, u = (jax.ShapeDtypeStruct(shape, "float32") for shape in ((BLOCKS, C), (BLOCKS + 15, C)))
    assert _sums(str(_general(many, "gpu").source(d, u))) >= BLOCKS


def test_symbolic_extents() -> None:
    n = te.var("n")
    q = te.reduce_axis((0, n), "q")
    d, u = te.placeholder((n, C), name="d"), te.placeholder((n + 2, C), name="u")
    w = te.compute((C, C, 3), lambda b, c, p: te.sum(d[q, b] * u[q + p, c], axis=q), "w")
    fn = te.function([d, u], w, platform="gpu")
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(7, C)).astype("float32"), rng.normal(size=(9, C)).astype("float32")
    expected = np.stack([a.T @ b[p : p + 7] for p in range(3)], axis=2)
    np.testing.assert_allclose(fn(a, b), expected, rtol=2e-5, atol=1e-5)
