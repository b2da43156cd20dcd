"""Positions that are rounded numbers: arrays of their own where a gather would compute them in its loop, one element after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

N, M, K = 9, 11, 7
Define = Callable[..., te.Tensor]


def corners(x: te.Tensor, p: te.Expr, q: te.Expr) -> te.Expr:
    """Between four elements of ``x``."""
    n, m = x.shape
    fp, fq = te.floor(te.clip(p, 0.0, n - 1.001)), te.floor(te.clip(q, 0.0, m - 1.001))
    k, l, s, t = te.cast(fp, "int32"), te.cast(fq, "int32"), p - fp, q - fq  # noqa: E741
    first = x[k, l] * (1 - s) * (1 - t) + x[k + 1, l] * s * (1 - t)
    return first + x[k, l + 1] * (1 - s) * t + x[k + 1, l + 1] * s * t


def plain_corners(x: Any, p: Any, q: Any) -> Any:
    fp, fq = (jnp.floor(jnp.clip(v, 0.0, e - 1.001)) for v, e in zip((p, q), x.shape, strict=True))
    k, l, s, t = fp.astype(int), fq.astype(int), p - fp, q - fq  # noqa: E741
    first = x[k, l] * (1 - s) * (1 - t) + x[k + 1, l] * s * (1 - t)
    return first + x[k, l + 1] * (1 - s) * t + x[k + 1, l + 1] * s * t


def warped(x: te.Tensor, u: te.Tensor) -> te.Tensor:
    return te.compute(x.shape, lambda i, j: corners(x, i + u[i, j], j - u[i, j] * u[i, j]), "y")


def projected(x: te.Tensor, u: te.Tensor) -> te.Tensor:
    """Sums along lines."""
    j = te.reduce_axis((0, M), "j")
    line = lambda a, i: corners(x, i * te.cos(u[0, a]) + j * te.sin(u[0, a]), j * te.cos(u[0, a]) - i * 0.5)  # noqa: E731
    return te.compute((M, N), lambda a, i: te.sum(line(a, i), axis=j), "y")


def traces(x: te.Tensor, u: te.Tensor, vectors: bool = False) -> te.Tensor:
    """Rows of an array, each between two of its elements, added up along a curve."""
    k = te.reduce_axis((0, N), "k")

    def element(s: te.Expr, i: te.Expr) -> te.Expr:
        at = te.sqrt(te.cast(i * i, u.dtype) + (u[k, 0] * u[s, 1] if vectors else u[k, s]) ** 2)
        down = te.floor(at)
        m = te.cast(te.minimum(down, M - 2.0), "int32")
        return te.sum(x[k, m] * (1 - at + down) + x[k, m + 1] * (at - down), axis=k)

    return te.compute((K, M), element, "y")


def plain_warped(x: Any, u: Any) -> Any:
    return plain_corners(x, jnp.arange(N)[:, None] + u, jnp.arange(M) - u * u)


def plain_projected(x: Any, u: Any) -> Any:
    c, s = jnp.cos(u[0])[:, None, None], jnp.sin(u[0])[:, None, None]
    i, j = jnp.arange(N)[:, None], jnp.arange(M)
    return plain_corners(x, i * c + j * s, j * c - i * 0.5).sum(-1)


def plain_traces(x: Any, u: Any) -> Any:
    at = jnp.sqrt(jnp.arange(M)[:, None] ** 2.0 + u.T[:K, None] ** 2)
    down = jnp.floor(at)
    m, k = jnp.minimum(down, M - 2.0).astype(int), jnp.arange(N)
    return jnp.sum(x[k, m] * (1 - at + down) + x[k, m + 1] * (at - down), -1)


CASES = [(warped, plain_warped, 2), (projected, plain_projected, 2), (traces, plain_traces, 1)]


@pytest.mark.parametrize("define, plain, positions", CASES)
def test_all_corners_read_one_array_for_each_dimension(
    define: Define, plain: Callable[..., Any], positions: int, rng: np.random.Generator
) -> None:
    x, u = rng.normal(size=(N, M)), rng.uniform(-1.5, 1.5, (N, M))
    with jax.enable_x64(True):
        fn = te.function(define)
        forward = str(fn.source(x, u)).split("\ndef backward")[0].split("\ndef forward")[-1]
        elsewhere = str(te.function(define, platform="gpu").source(x, u)).split("\ndef forward")[-1]
        assert forward.count("= _apart(") == positions and "_apart(" not in elsewhere
        np.testing.assert_allclose(fn(x, u), plain(x, u), rtol=1e-9, atol=1e-12)
        weights = rng.normal(size=plain(x, u).shape)
        own, expected = (
            jax.grad(lambda *v, f=f: jnp.sum(weights * f(*v)), (0, 1))(x, u) for f in (fn, plain)
        )
        for one, other in zip(own, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)


def test_what_stands_beside_positions_of_data_is_summed_along_rows(rng: np.random.Generator) -> None:
    """Though a vector, which is read first, has the dimension that is summed over."""
    x, u = rng.normal(size=(N, M)), rng.uniform(-1, 1, (N, M))
    with jax.enable_x64(True):
        for platform in ("cpu", "gpu"):
            fn = te.function(lambda x, u: traces(x, u, vectors=True), platform=platform)
            text = str(fn.source(x, u))
            assert "axis=2)" in text.split("\ndef forward")[-1].split("\ndef backward")[0]
            products = np.pad(u[:, 0, None] * u[:K, 1], ((0, 0), (0, M - K)))
            np.testing.assert_allclose(fn(x, u), plain_traces(x, products), rtol=1e-9)


def test_symbolic_sizes(rng: np.random.Generator) -> None:
    n = te.var("n")
    x, u = te.placeholder((n, M), "float32", "x"), te.placeholder((n, M), "float32", "u")
    fn = te.function([x, u], warped(x, u))
    slope = jax.grad(lambda a, b: jnp.sum(fn(a, b) ** 2), (0, 1))
    (rows,) = jax.export.symbolic_shape("rows")
    shaped = jax.ShapeDtypeStruct((rows, M), "float32")
    exported = jax.export.export(jax.jit(slope))(shaped, shaped)
    a, b = rng.normal(size=(N, M)).astype("float32"), rng.uniform(-1, 1, (N, M)).astype("float32")
    expected = jax.grad(lambda a, b: jnp.sum(plain_warped(a, b) ** 2), (0, 1))(a, b)
    for own, other in zip(exported.call(a, b), expected, strict=True):
        np.testing.assert_allclose(own, other, rtol=2e-4, atol=1e-4)
