"""Sums over windows with strides, and what flows back through them, on a platform where each strided slice along rows is an array: one call."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxte as te

Define = Callable[[te.Tensor], te.Tensor]


def pooled(x: te.Tensor) -> te.Tensor:
    """y[b, i, j] = sum over p, q < 3 of x[b, 2 i + p, 2 j + q]"""
    p, q = te.reduce_axis((0, 3), "p"), te.reduce_axis((0, 3), "q")
    shape = (x.shape[0], (x.shape[1] - 1) // 2, (x.shape[2] - 1) // 2)
    return te.compute(shape, lambda b, i, j: te.sum(x[b, 2 * i + p, 2 * j + q], axis=(p, q)), "y")


def frames(x: te.Tensor) -> te.Tensor:
    """y[b, c, t] = sum over k < 5 of x[b, c, 3 t + k], hops of three"""
    k = te.reduce_axis((0, 5), "k")
    shape = (*x.shape[:2], (x.shape[2] - 2) // 3)
    return te.compute(shape, lambda b, c, t: te.sum(x[b, c, 3 * t + k], axis=k), "y")


def rows(x: te.Tensor) -> te.Tensor:
    """y[b, i, j] = sum over p < 4 of x[b, 2 i + p, j]: a stride along the last dimension but one"""
    p = te.reduce_axis((0, 4), "p")
    shape = (x.shape[0], (x.shape[1] - 2) // 2, x.shape[2])
    return te.compute(shape, lambda b, i, j: te.sum(x[b, 2 * i + p, j], axis=p), "y")


def planes(x: te.Tensor) -> te.Tensor:
    """y[a, i, j] = sum over p < 3 of x[2 a + p, i, j]: slices of whole planes"""
    p = te.reduce_axis((0, 3), "p")
    shape = ((x.shape[0] - 1) // 2, *x.shape[1:])
    return te.compute(shape, lambda a, i, j: te.sum(x[2 * a + p, i, j], axis=p), "y")


def dense(x: te.Tensor) -> te.Tensor:
    """y[b, i, j] = sum over q < 3 of x[b, i, j + q]: a window at each position"""
    q = te.reduce_axis((0, 3), "q")
    return te.compute((*x.shape[:2], x.shape[2] - 2), lambda b, i, j: te.sum(x[b, i, j + q], axis=q), "y")


PLAIN: dict[Define, Callable[[jax.Array], jax.Array]] = {
    pooled: lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 3, 3), (1, 2, 2), "VALID"),
    frames: lambda x: sum(x[:, :, k : k + 3 * ((x.shape[2] - 2) // 3) : 3] for k in range(5)),  # type: ignore[misc]
    rows: lambda x: sum(x[:, p : p + 2 * ((x.shape[1] - 2) // 2) : 2] for p in range(4)),  # type: ignore[misc]
}


def _passes(define: Define, platform: str) -> tuple[str, str]:
    text = str(te.function(define, platform=platform).source(jax.ShapeDtypeStruct((8, 41, 44), "float32")))
    forward, backward = text.split("def backward")
    return forward, backward.split("def _fwd")[0]


@pytest.mark.parametrize("define", PLAIN)
def test_strides_along_rows_are_one_call_both_ways(define: Define) -> None:
    for text in _passes(define, "tpu"):
        assert text.count("lax.reduce_window(") == 1
        assert "reshape" not in text and "jnp.where" not in text
    assert "reduce_window" not in "".join(_passes(define, "cpu"))
    x = np.random.default_rng(0).normal(size=(8, 41, 44))
    with jax.enable_x64(True):
        own = te.function(define, platform="tpu")
        tensor = te.placeholder(x.shape, "float64", "x")
        np.testing.assert_allclose(own(x), te.interpret(define(tensor), {tensor: x}), rtol=1e-12, atol=1e-12)
        weights = jnp.cos(jnp.arange(own(x).size)).reshape(own(x).shape)
        grads = [jax.grad(lambda x, f=f: jnp.sum(weights * f(x)))(x) for f in (own, PLAIN[define])]  # type: ignore[misc]
        np.testing.assert_allclose(*grads, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("define", [planes, dense])
def test_other_slices_stay(define: Define) -> None:
    assert "reduce_window" not in "".join(_passes(define, "tpu"))


def test_symbolic_sizes() -> None:
    n = te.var("n")
    x = te.placeholder((2, 4, 3 * n + 2), "float32", "x")
    k = te.reduce_axis((0, 5), "k")
    y = te.compute((2, 4, n), lambda b, c, t: te.sum(x[b, c, 3 * t + k], axis=k), "y")
    fn = te.function([x], y, platform="tpu")
    for size in (3, 11):
        a = np.random.default_rng(size).normal(size=(2, 4, 3 * size + 2)).astype("float32")
        np.testing.assert_allclose(fn(a), PLAIN[frames](jnp.asarray(a)), rtol=1e-5, atol=1e-5)
    sizes = jax.export.symbolic_shape("2, 4, 3 * n + 2")
    exported = jax.export.export(jax.jit(fn))(jax.ShapeDtypeStruct(sizes, "float32"))
    np.testing.assert_allclose(exported.call(a), fn(a), rtol=1e-6, atol=1e-6)
