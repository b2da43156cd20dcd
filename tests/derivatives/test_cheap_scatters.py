"""Positions of data plus a tap: adjoints add up at the points of the definition, not at every pair of points and positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.agreement import QUICKEST

N = 24


def grid_sample(img: Any, y0: Any, x0: Any, f: Any) -> te.Tensor:
    k, m = te.reduce_axis((0, 2), "k"), te.reduce_axis((0, 2), "m")

    def element(b: te.Expr, i: te.Expr, c: te.Expr) -> te.Expr:
        y, x = y0[b, i] + k, x0[b, i] + m
        weight = te.select(k == 0, 1 - f[b, i, 0], f[b, i, 0]) * te.select(m == 0, 1 - f[b, i, 1], f[b, i, 1])
        return te.sum(img[b, y, x, c] * weight, axis=(k, m), where=(y >= 0) & (y < N) & (x >= 0) & (x < N))

    return te.compute((2, 7, 3), element, "out")


def grid_sample_jax(img: Any, y0: Any, x0: Any, f: Any) -> Any:
    total = 0.0
    for k in (0, 1):
        for l in (0, 1):  # noqa: E741
            y, x = y0 + k, x0 + l
            weight = (f[..., 0] if k else 1 - f[..., 0]) * (f[..., 1] if l else 1 - f[..., 1])
            inside = (y >= 0) & (y < N) & (x >= 0) & (x < N)
            corner = img[jnp.arange(2)[:, None], y.clip(0, N - 1), x.clip(0, N - 1)]
            total += jnp.where(inside[..., None], weight[..., None] * corner, 0.0)
    return total


def windows_at(x: Any, i: Any, w: Any) -> te.Tensor:
    """A window of taps from each of several positions."""
    k = te.reduce_axis((0, 3), "k")
    return te.compute(
        (9,), lambda n: te.sum(x[i[n] + k] * w[k], axis=k, where=(i[n] + k >= 0) & (i[n] + k < N)), "y"
    )


def windows_at_jax(x: Any, i: Any, w: Any) -> Any:
    at = i[:, None] + jnp.arange(3)
    return jnp.sum(jnp.where((at >= 0) & (at < N), x[at.clip(0, N - 1)], 0.0) * w, axis=1)


def strided_rows(x: Any, i: Any, w: Any) -> te.Tensor:
    """Every other row from a position on."""
    k = te.reduce_axis((0, 4), "k")
    return te.compute((9, 2), lambda n, c: te.sum(x[i[n] + 2 * k, c] * w[k, n], axis=k), "y")


def strided_rows_jax(x: Any, i: Any, w: Any) -> Any:
    return jnp.einsum("nkc,kn->nc", x[i[:, None] + 2 * jnp.arange(4)], w)


def before(x: Any, i: Any, w: Any) -> te.Tensor:
    """Taps counted backwards, through a function."""
    k = te.reduce_axis((0, 3), "k")
    return te.compute((9,), lambda n: te.sum(te.tanh(x[i[n] - k + 2] * w[k]), axis=k), "y")


def before_jax(x: Any, i: Any, w: Any) -> Any:
    return jnp.sum(jnp.tanh(x[i[:, None] - jnp.arange(3) + 2] * w), axis=1)


Build = Callable[..., Any]
CASES: dict[str, tuple[Build, Build, tuple[tuple[int, ...], ...], tuple[int, int]]] = {
    "grid sample": (grid_sample, grid_sample_jax, ((2, N, N, 3), (2, 7), (2, 7), (2, 7, 2)), (-2, N)),
    "windows at": (windows_at, windows_at_jax, ((N,), (9,), (3,)), (-1, N)),
    "strided rows": (strided_rows, strided_rows_jax, ((N, 2), (9,), (4, 9)), (0, N - 6)),
    "before": (before, before_jax, ((N,), (9,), (3,)), (0, N - 2)),
}


@pytest.mark.parametrize("name", CASES)
def test_points_and_values(name: str, rng: np.random.Generator) -> None:
    build, reference, shapes, (low, high) = CASES[name]
    whole = [n for n in range(len(shapes)) if (n == 1 or (n == 2 and name == "grid sample"))]
    arrays = [
        rng.integers(low, high, s).astype("int32") if n in whole else rng.random(s).astype("float32")
        for n, s in enumerate(shapes)
    ]
    inputs = [te.placeholder(a.shape, str(a.dtype), f"x{n}") for n, a in enumerate(arrays)]
    y = build(*inputs)
    real = [t for n, t in enumerate(inputs) if n not in whole]
    adjoints = te.differentiate(y, real, te.placeholder(y.shape, name="H"))
    for adjoint in adjoints:
        assert te.cost([adjoint]).iterations <= 5 * te.cost([y]).iterations + np.prod(adjoint.shape), (
            te.definitions(adjoint)
        )
    fn = te.function(inputs, y)
    argnums = [n for n in range(len(inputs)) if n not in whole]
    for derive in (fn, reference):
        value = jax.jit(lambda *a, f=derive: jax.value_and_grad(lambda *b: jnp.sum(f(*b) ** 2), argnums)(*a))
        found = value.lower(*arrays).compile(compiler_options=QUICKEST)(*arrays)
        if derive is fn:
            own = found
    for a, b in zip(jax.tree.leaves(own), jax.tree.leaves(found), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_few_positions_are_compared_with() -> None:
    """A table of few rows is read by comparisons still: a product of matrices, and no scatter."""
    x, i = te.placeholder((4, 8), name="x"), te.placeholder((50,), "int32", "i")
    k = te.reduce_axis((0, 2), "k")
    inside = lambda n: (i[n] + k >= 0) & (i[n] + k < 4)  # noqa: E731
    y = te.compute((50, 8), lambda n, c: te.sum(x[i[n] + k, c], axis=k, where=inside(n)), "y")
    (dx,) = te.differentiate(y, [x], te.placeholder(y.shape, name="H"))
    assert te.cost([dx]).iterations <= 4 * te.cost([y]).iterations
