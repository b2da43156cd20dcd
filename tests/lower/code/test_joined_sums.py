"""Sums over the same positions that are added, on a platform where a sum is fused with nothing that reads it: the sum of what is added."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

Define = Callable[[te.Tensor, te.Tensor], te.Tensor]
N, M = 70, 50


def moments(a: te.Tensor, x: te.Tensor) -> te.Tensor:
    """f[i] = s[i] t[i], of s[i] = sum over j of w[i, j] and t[i] = sum over j of w[i, j] (x[j] - a[i]), w = exp(-(a[i] - x[j])**2)"""
    j = te.reduce_axis((0, x.shape[0]), "j")
    w = lambda i: te.exp(-((a[i] - x[j]) ** 2))  # noqa: E731
    s = te.compute(a.shape, lambda i: te.sum(w(i), axis=j), "s")
    t = te.compute(a.shape, lambda i: te.sum(w(i) * (x[j] - a[i]), axis=j), "t")
    return te.compute(a.shape, lambda i: s[i] * t[i], "f")


def plain_moments(a: Any, x: Any) -> Any:
    w = jnp.exp(-((a[:, None] - x) ** 2))
    return w.sum(1) * (w * (x - a[:, None])).sum(1)


def scaled(g: te.Tensor, p: te.Tensor) -> te.Tensor:
    """f[i, j] = sum over k of (g[i, k] - 2 p[k]) (g[j, k] - 2 p[k]) / p[k]"""
    k = te.reduce_axis((0, p.shape[0]), "k")
    shape = (g.shape[0], g.shape[0])
    return te.compute(
        shape, lambda i, j: te.sum((g[i, k] - 2 * p[k]) * (g[j, k] - 2 * p[k]) / p[k], axis=k), "f"
    )


def plain_scaled(g: Any, p: Any) -> Any:
    return ((g - 2 * p) / p) @ (g - 2 * p).T


def gates(x: te.Tensor, p: te.Tensor) -> te.Tensor:
    """f[i] = u[i] v[i], of u[i] = sum over c of tanh(x[i, c] p[c]) and v[i] = sum over c of sin(x[i, c] - p[c])"""
    c = te.reduce_axis((0, p.shape[0]), "c")
    u = te.compute((x.shape[0],), lambda i: te.sum(te.tanh(x[i, c] * p[c]), axis=c), "u")
    v = te.compute((x.shape[0],), lambda i: te.sum(te.sin(x[i, c] - p[c]), axis=c), "v")
    return te.compute((x.shape[0],), lambda i: u[i] * v[i], "f")


def plain_gates(x: Any, p: Any) -> Any:
    return jnp.tanh(x * p).sum(1) * jnp.sin(x - p).sum(1)


CASES = [
    (moments, plain_moments, (N,), "dx"),
    (scaled, plain_scaled, (N, M), "dp"),
    (gates, plain_gates, (N, M), "dp"),
]


def _sums(
    define: Define, shape: tuple[int, ...], gradient: str, platform: str, dtype: str = "float32"
) -> int:
    """The sums that the last gradient is made of."""
    args = [jax.ShapeDtypeStruct(s, dtype) for s in (shape, (M,))]
    text = str(te.function(define, platform=platform).source(*args)).split("def backward")[1]
    own = re.search(rf'named_scope\("{gradient}"\):\n((?:        .*\n)+)', text)
    assert own is not None
    return own[1].count("jnp.sum(") + own[1].count("jnp.einsum(")


@pytest.mark.parametrize("define, plain, shape, gradient", CASES)
def test_one_sum(define: Define, plain: Callable[..., Any], shape: tuple[int, ...], gradient: str) -> None:
    assert _sums(define, shape, gradient, "gpu") == 1 < _sums(define, shape, gradient, "tpu")
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        values = [rng.uniform(0.5, 1.5, s) for s in (shape, (M,))]
        own = te.function(define, platform="gpu")
        weights = rng.normal(size=plain(*values).shape)
        found = jax.grad(lambda *v: jnp.sum(weights * own(*v)), (0, 1))(*values)
        expected = jax.grad(lambda *v: jnp.sum(weights * plain(*v)), (0, 1))(*values)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_narrow_elements_are_added_apart() -> None:
    assert _sums(gates, (N, M), "dp", "gpu", "bfloat16") == _sums(gates, (N, M), "dp", "tpu", "bfloat16") > 1


def test_sums_over_other_positions_and_products_of_matrices_stay() -> None:
    """Both gradients of differences of all pairs, along rows and along columns, and a product that is written nowhere."""

    def pairs(x: te.Tensor, y: te.Tensor) -> te.Tensor:
        j, i = te.reduce_axis((0, M), "j"), te.reduce_axis((0, M), "i")
        sines = te.compute((M, M), lambda i, j: te.sin(y[i] * y[j]), "sines")
        rows = te.compute((M,), lambda i: te.sum(sines[i, j] * y[j], axis=j), "rows")
        columns = te.compute((M,), lambda k: te.sum(x[i, k] * x[i, k], axis=i), "columns")
        return te.compute((M,), lambda i: rows[i] * columns[i], "f")

    assert _sums(pairs, (N, M), "dy", "gpu") > 1
    product = lambda x, y: te.compute(  # noqa: E731
        (N,), lambda i: te.sum(x[i, k] * x[j, k] * y[k], axis=(k, j)) + te.sum(x[i, k] * y[k], axis=k), "f"
    )
    j, k = te.reduce_axis((0, N), "j"), te.reduce_axis((0, M), "k")
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(N, M)), rng.normal(size=M)
    with jax.enable_x64(True):
        found = te.function(product, platform="gpu")(x, y)
    np.testing.assert_allclose(found, x @ (x.sum(0) * y) + x @ y, rtol=1e-9)


def test_sums_over_fewer_positions_are_padded() -> None:
    """Pairs that are some places apart."""
    apart, size = 8, M

    def near(s: te.Tensor, y: te.Tensor) -> te.Tensor:
        i, j = te.reduce_axis((0, size), "i"), te.reduce_axis((0, size), "j")
        pairs = lambda b: te.sum(te.softplus(s[b, i] - y[j]), axis=(i, j), where=(j > i) & (j <= i + apart))  # noqa: E731
        return te.compute((s.shape[0],), pairs, "l")

    rng = np.random.default_rng(3)
    s, y = rng.normal(size=(4, size)), rng.normal(size=size)
    expected = sum(np.logaddexp(0, s[:, : size - d] - y[d:]).sum(1) for d in range(1, apart + 1))
    with jax.enable_x64(True):
        np.testing.assert_allclose(te.function(near, platform="gpu")(s, y), expected, rtol=1e-12)
        texts = [
            str(te.function(near, platform=p).source(s, y)).split("def backward")[0] for p in ("gpu", "tpu")
        ]
    assert 1 == texts[0].count("jnp.sum(") < texts[1].count("jnp.sum(") == apart


def test_symbolic_sizes() -> None:
    n = te.var("n")
    x, p = te.placeholder((n, M), "float32", "x"), te.placeholder((M,), "float32", "p")
    fn = te.function([x, p], gates(x, p), platform="gpu")
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(9, M)).astype("float32"), rng.normal(size=M).astype("float32")
    expected = jax.grad(lambda a, b: plain_gates(a, b).sum(), 1)(a, b)
    slope = jax.grad(lambda a, b: fn(a, b).sum(), 1)
    np.testing.assert_allclose(slope(a, b), expected, rtol=2e-4, atol=1e-4)
    (rows,) = jax.export.symbolic_shape("rows")
    shaped = jax.ShapeDtypeStruct((rows, M), "float32"), jax.ShapeDtypeStruct((M,), "float32")
    exported = jax.export.export(jax.jit(slope))(*shaped)
    np.testing.assert_allclose(exported.call(a, b), expected, rtol=2e-4, atol=1e-4)
