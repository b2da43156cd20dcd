"""Sums over what overlaps with a few positions of the result: one sum for each of these, where terms of a sum would be kernels of their own."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
import pytest

import jaxte as te
from jaxte.lower.cost.general import _is_beside_whole
from jaxte.lower.cost.platforms import platform_of
from jaxte.lower.cost.shifted_axes import shifted_axes

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


def wavelets(d: te.Tensor, u: te.Tensor) -> te.Tensor:
    """w[s, k] = sum over b, i of d[b, s, i] u[b, 2 i + k]: the gradient of two filters that are moved by two"""
    b, i = te.reduce_axis((0, 64), "b"), te.reduce_axis((0, 2048), "i")
    return te.compute((2, 4), lambda s, k: te.sum(d[b, s, i] * u[b, 2 * i + k], axis=(b, i)), "w")


def smoothing(d: te.Tensor, u: te.Tensor) -> te.Tensor:
    """w[s, k] = sum over b, i of d[b, s, i] u[b, i + k]"""
    b, i = te.reduce_axis((0, 64), "b"), te.reduce_axis((0, 2048), "i")
    return te.compute((3, 7), lambda s, k: te.sum(d[b, s, i] * u[b, i + k], axis=(b, i)), "w")


def of_rows(d: te.Tensor, u: te.Tensor) -> te.Tensor:
    """w[b, s, k] = sum over i of d[b, s, i] u[b, i + k]: filters of each row"""
    i = te.reduce_axis((0, 2048), "i")
    return te.compute((64, 2, 5), lambda b, s, k: te.sum(d[b, s, i] * u[b, i + k], axis=i), "w")


@pytest.mark.parametrize(
    "define, left, taps, step, rows",
    [(wavelets, 2, 4, 2, "s"), (smoothing, 3, 7, 1, "s"), (of_rows, 2, 5, 1, "bs")],
)
def test_what_is_beside_a_whole_array_is_summed_as_it_is_shifted(
    define: Callable[..., te.Tensor], left: int, taps: int, step: int, rows: str
) -> None:
    """Neither an array of all shifts, for a product of matrices, nor a convolution: XLA fuses slices with the sum."""
    rng = np.random.default_rng(3)
    d, u = rng.normal(size=(64, left, 2048)), rng.normal(size=(64, step * 2047 + taps))
    with jax.enable_x64(True):
        fn = te.function(define, platform="gpu")
        text = str(fn.source(d, u)).split("def backward")[0]
        assert not any(what in text for what in ("conv_general", "reshape", "tile", "concatenate"))
        shifts = [u[:, n : n + step * 2047 + 1 : step] for n in range(taps)]
        expected = np.stack([np.einsum(f"bsi,bi->{rows}", d, x) for x in shifts], -1)
        np.testing.assert_allclose(fn(d, u), expected, rtol=1e-10)


def test_shifts_of_both_sides_are_beside_no_whole_array() -> None:
    """w[k, m] = sum over b, i of d[b, i + m] u[b, i + k]: an array of shifts is read again and again."""
    d, u = te.placeholder((64, 2051), name="d"), te.placeholder((64, 2051), name="u")
    b, i = te.reduce_axis((0, 64), "b"), te.reduce_axis((0, 2048), "i")
    w = te.compute((4, 4), lambda k, m: te.sum(d[b, i + m] * u[b, i + k], axis=(b, i)), "w")
    assert not _is_beside_whole(w.axes, w.body, shifted_axes(w.body, platform_of("gpu")))  # type: ignore[arg-type]


def test_symbolic_rows_beside_a_whole_array() -> None:
    n = te.var("n")
    b, i = te.reduce_axis((0, n), "b"), te.reduce_axis((0, 64), "i")
    d, u = te.placeholder((n, 2, 64), name="d"), te.placeholder((n, 130), name="u")
    w = te.compute((2, 4), lambda s, k: te.sum(d[b, s, i] * u[b, 2 * i + k], axis=(b, i)), "w")
    fn = te.function([d, u], w, platform="gpu")
    rng = np.random.default_rng(1)
    a, x = rng.normal(size=(7, 2, 64)).astype("float32"), rng.normal(size=(7, 130)).astype("float32")
    expected = np.stack([np.einsum("bsi,bi->s", a, x[:, k : k + 127 : 2]) for k in range(4)], 1)
    np.testing.assert_allclose(fn(a, x), expected, rtol=2e-5, atol=1e-5)
    (rows,) = jax.export.symbolic_shape("rows")
    shaped = [jax.ShapeDtypeStruct((rows, *own.shape[1:]), "float32") for own in (a, x)]
    exported = jax.export.export(jax.jit(fn))(*shaped)
    np.testing.assert_allclose(exported.call(a, x), expected, rtol=2e-5, atol=1e-5)
