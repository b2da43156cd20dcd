"""Results whose last dimension is read at digits, on a platform that pads a last dimension of few positions: convolutions, where rows are few."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
import pytest

import jaxte as te

N = 512
CONVOLUTION = "lax.conv_general_dilated("


def splines(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """y[b, z] = sum over k of w[z % 4, k] x[b, z // 4 + k]"""
    k = te.reduce_axis((0, 3), "k")
    size = 4 * (x.shape[1] - 2)
    return te.compute((x.shape[0], size), lambda b, z: te.sum(w[z % 4, k] * x[b, z // 4 + k], axis=k), "y")


def lifted(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """y[b, z] = sum over k of w[k, z % 2] x[b, 2 * (z // 2) + k]: a matrix for each pair"""
    k = te.reduce_axis((0, 2), "k")
    return te.compute(x.shape, lambda b, z: te.sum(w[k, z % 2] * x[b, 2 * (z // 2) + k], axis=k), "y")


def delayed(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """y[b, c, z] = sum over k of w[k, z % 8] x[b, c, z // 8 + 2 * k]: taps two apart"""
    k = te.reduce_axis((0, 4), "k")
    shape = (*x.shape[:2], 8 * (x.shape[2] - 6))
    return te.compute(shape, lambda b, c, z: te.sum(w[k, z % 8] * x[b, c, z // 8 + 2 * k], axis=k), "y")


CASES: list[tuple[Callable[..., te.Tensor], tuple[int, ...], tuple[int, ...]]] = [
    (splines, (6, N + 2), (4, 3)),
    (lifted, (6, 2 * N), (2, 2)),
    (delayed, (2, 3, N + 6), (4, 8)),
]


def _forward(define: Callable[..., te.Tensor], platform: str, *shapes: tuple[int, ...]) -> str:
    args = [jax.ShapeDtypeStruct(shape, "float32") for shape in shapes]
    return str(te.function(define, platform=platform).source(*args)).split("def backward")[0]


@pytest.mark.parametrize("define, left, right", CASES)
def test_few_rows_are_a_convolution_on_a_tpu(
    define: Callable[..., te.Tensor], left: tuple[int, ...], right: tuple[int, ...]
) -> None:
    assert CONVOLUTION in _forward(define, "tpu", left, right)
    assert CONVOLUTION not in _forward(define, "gpu", left, right)
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=left), rng.normal(size=right)
    with jax.enable_x64(True):
        tensors = [te.placeholder(a.shape, "float64", name) for a, name in ((x, "x"), (w, "w"))]
        expected = te.interpret(define(*tensors), dict(zip(tensors, (x, w), strict=True)))
        np.testing.assert_allclose(
            te.function(define, platform="tpu")(x, w), expected, rtol=1e-12, atol=1e-12
        )


@pytest.mark.parametrize("define, left, right", CASES)
def test_as_many_rows_as_lanes_are_the_last_dimension(
    define: Callable[..., te.Tensor], left: tuple[int, ...], right: tuple[int, ...]
) -> None:
    assert CONVOLUTION not in _forward(define, "tpu", (128, *left[1:]), right)


def test_symbolic_extents() -> None:
    n, k = te.var("n"), te.reduce_axis((0, 3), "k")
    x, w = te.placeholder((2, n + 2), name="x"), te.placeholder((4, 3), name="w")
    y = te.compute((2, 4 * n), lambda b, z: te.sum(w[z % 4, k] * x[b, z // 4 + k], axis=k), "y")
    fn = te.function([x, w], y, platform="tpu")
    rng = np.random.default_rng(1)
    a, c = rng.normal(size=(2, 9)).astype("float32"), rng.normal(size=(4, 3)).astype("float32")
    windows = np.stack([a[:, p : p + 7] for p in range(3)], axis=2)
    expected = np.einsum("bik,pk->bip", windows, c).reshape(2, 28)
    np.testing.assert_allclose(fn(a, c), expected, rtol=2e-5, atol=1e-5)
