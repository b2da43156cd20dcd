"""Slices of one array that lie askew, each multiplied by a number: one loop on a GPU, where a copy of them all would be an array for a product."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
import pytest

import jaxte as te

M, T = 20, 64


def delayed(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """y[b, t] = sum over m of w[m] x[b, m, t + 3 m]"""
    m = te.reduce_axis((0, M), "m")
    return te.compute((x.shape[0], T), lambda b, t: te.sum(w[m] * x[b, m, t + 3 * m], axis=m), "y")


def columns(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """y[t, b] = sum over m of w[2 m] x[b, m, t + m] w[m]"""
    m = te.reduce_axis((0, M), "m")
    return te.compute((T, x.shape[0]), lambda t, b: te.sum(w[2 * m] * x[b, m, t + m] * w[m], axis=m), "y")


def strided(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """y[b, t] = sum over m of w[m] x[b, m, 2 t + 3 m]"""
    m = te.reduce_axis((0, M), "m")
    return te.compute((x.shape[0], T), lambda b, t: te.sum(w[m] * x[b, m, 2 * t + 3 * m], axis=m), "y")


def mixed(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """A product of matrices: y[c, t] = sum over m of w[c, m] x[0, m, t + m]"""
    m = te.reduce_axis((0, M), "m")
    return te.compute((6, T), lambda c, t: te.sum(w[c, m] * x[0, m, t + m], axis=m), "y")


def _expected(name: str, x: np.ndarray, w: np.ndarray) -> np.ndarray:
    slices = {
        "delayed": lambda m: w[m] * x[:, m, 3 * m : 3 * m + T],
        "columns": lambda m: w[2 * m] * w[m] * x[:, m, m : m + T].T,
        "strided": lambda m: w[m] * x[:, m, 3 * m : 3 * m + 2 * T - 1 : 2],
    }
    return sum(slices[name](m) for m in range(M))


@pytest.mark.parametrize("define", [delayed, columns, strided])
def test_slices_are_added_in_one_loop(define: Callable[..., te.Tensor]) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(3, M, 190)), rng.normal(size=2 * M)
    with jax.enable_x64(True):
        fn = te.function(define, platform="gpu")
        text = str(fn.source(x, w)).split("def backward")[0]
        assert "reshape" not in text and "einsum" not in text
        np.testing.assert_allclose(fn(x, w), _expected(define.__name__, x, w), rtol=1e-12, atol=1e-12)
        for platform in ("cpu", "tpu"):  # where a slice is a copy, or each is read from memory once more
            other = te.function(define, platform=platform)
            assert str(other.source(x, w)).split("def backward")[0] != text
            np.testing.assert_allclose(other(x, w), fn(x, w), rtol=1e-12, atol=1e-12)


def test_a_product_of_matrices_stays_one() -> None:
    x, w = jax.ShapeDtypeStruct((3, M, 190), "float32"), jax.ShapeDtypeStruct((6, M), "float32")
    assert "einsum" in str(te.function(mixed, platform="gpu").source(x, w)).split("def backward")[0]


def test_symbolic_sizes() -> None:
    n = te.var("n")
    x, w = te.placeholder((n, M, 190), name="x"), te.placeholder((2 * M,), name="w")
    fn = te.function([x, w], delayed(x, w), platform="gpu")
    assert "einsum" not in str(fn.source()).split("def backward")[0]
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(5, M, 190)).astype("float32"), rng.normal(size=2 * M).astype("float32")
    expected = _expected("delayed", a, b)
    np.testing.assert_allclose(fn(a, b), expected, rtol=1e-4, atol=1e-4)
    (rows,) = jax.export.symbolic_shape("rows")
    shaped = [jax.ShapeDtypeStruct((rows, *own.shape[1:]) if own is a else own.shape, "float32") for own in (a, b)]  # fmt: skip
    np.testing.assert_allclose(jax.export.export(jax.jit(fn))(*shaped).call(a, b), expected, rtol=1e-4, atol=1e-4)  # fmt: skip
