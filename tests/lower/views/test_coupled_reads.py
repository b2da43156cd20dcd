"""Reads whose indices share axes, and axes read in two halves: slices of few elements, or gathers, never n**3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.xla_counts import Fused

N = 48

READS: dict[str, tuple[tuple[int, ...], Callable[..., Any], bool]] = {
    "sheared": ((2 * N, N), lambda h: lambda i, j: h[i + j, i], False),
    "sheared the other way": ((N, 2 * N), lambda h: lambda i, j: h[i, i + j], False),
    "sheared backwards": ((2 * N, N), lambda h: lambda i, j: h[N + i - j, i], False),
    "two shears": ((2 * N, 2 * N), lambda h: lambda i, j: h[i + j, N + i - j], True),
    "a bound": ((2 * N, N + 1, 37), lambda h: lambda i, j: h[i + j, N - j, te.minimum(i + j, 36)], True),
    "a diagonal": ((N, N, N), lambda h: lambda i, j: h[i, j, i], False),
}


@pytest.mark.parametrize("name", READS)
def test_what_is_copied_is_a_few_times_what_is_read(name: str, rng: np.random.Generator) -> None:
    shape, body, gathers = READS[name]
    h = te.placeholder(shape, name="h")
    y = te.compute((N, N), body(h), "y")
    x = rng.standard_normal(shape).astype("float32")
    run = te.function([h], y)
    np.testing.assert_array_equal(run(x), te.interpret(y, {h: x}))
    source = te.source(y)
    assert ("arange" in source) == gathers, source
    compiled = Fused(run.lower(x))
    assert compiled.memory_analysis().temp_size_in_bytes <= 4 * 8 * max(x.size, N * N)


def test_a_sheared_read_is_rows_of_the_flat_tensor() -> None:
    h = te.placeholder((80, 80), name="h")
    source = te.source(te.compute((40, 40), lambda i, j: h[i + j, i], "T"))
    assert "T = h.T.reshape(6400)[:3240].reshape(40, 81)[:, :40]" in source


def test_gradient_of_a_read_with_coupled_strides(rng: np.random.Generator) -> None:
    x = te.placeholder((30, 40), name="x")
    f = te.function([x], te.compute((3, 4), lambda i, j: te.exp(x[2 * j + 1, 3 * i - 2 * j + 6]), "y"))
    array = jnp.asarray(rng.standard_normal((30, 40)), "float32")
    i, j = np.arange(3)[:, None], np.arange(4)
    expected = jax.grad(lambda a: jnp.sum(jnp.exp(a[2 * j + 1, 3 * i - 2 * j + 6])))(array)
    np.testing.assert_allclose(jax.grad(lambda a: jnp.sum(f(a)))(array), expected, rtol=1e-5)


OUTSIDE: dict[str, Callable[..., Any]] = {
    "antidiagonals": lambda h, d, k: (k, d - k),
    "diagonals": lambda h, d, k: (k, d + k - N),
    "knight's moves": lambda h, d, k: (k, d - 2 * k),
    "from the end": lambda h, d, k: (N - 1 - k, d - k),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_sums_along_lines_that_leave_a_matrix(name: str, rng: np.random.Generator) -> None:
    """Zeros around the matrix and rows of another length, not a gather of each line."""
    h, k = te.placeholder((N, N + 9), name="h"), te.reduce_axis((0, N), "k")

    def element(d: Any) -> Any:
        i, j = OUTSIDE[name](h, d, k)
        return te.sum(h[i, j], k, where=(j >= 0) & (j < N + 9))

    y = te.compute((2 * N + 8,), element, "y")
    x = rng.standard_normal((N, N + 9)).astype("float32")
    run = te.function([h], y)
    np.testing.assert_allclose(run(x), te.interpret(y, {h: x}), rtol=1e-5, atol=1e-5)
    assert "arange" not in te.source(y), te.source(y)
    assert Fused(run.lower(x)).memory_analysis().temp_size_in_bytes <= 4 * 8 * x.size
    (gradient,) = jax.vjp(run, x)[1](jnp.arange(2.0 * N + 8))
    lines = np.arange(2 * N + 8)[:, None]
    i, j = OUTSIDE[name](h, lines, np.arange(N))
    expected = np.zeros_like(x)
    inside = (j >= 0) & (j < N + 9)
    np.add.at(
        expected, (np.broadcast_to(i, j.shape)[inside], j[inside]), np.broadcast_to(lines, j.shape)[inside]
    )
    np.testing.assert_allclose(gradient, expected, rtol=1e-6)


# --- halves of an axis


def half_products(y: Any) -> te.Tensor:
    n = y.shape[1] // 2
    return te.compute((y.shape[0], n), lambda i, j: y[i, j] * y[i, j + n])


def half_scores(y: Any) -> te.Tensor:
    n = y.shape[1] // 2
    k = te.reduce_axis((0, n), "k")
    return te.compute((y.shape[0], y.shape[0]), lambda i, j: te.sum(y[i, k] * y[j, k + n], axis=k))


def heads(y: Any) -> te.Tensor:
    n = y.shape[1] // 2
    e = te.reduce_axis((0, n // 4), "e")
    return te.compute(
        (4, y.shape[0], y.shape[0]),
        lambda h, i, j: te.sum(y[i, h * (n // 4) + e] * y[j, n + h * (n // 4) + e], axis=e),
    )


def rotated(y: Any) -> te.Tensor:
    n = y.shape[1] // 2
    return te.compute(y.shape, lambda i, j: te.select(j < n, -y[i, j + n], y[i, j - n]))


HALVES: dict[str, tuple[Callable[..., te.Tensor], Callable[..., Any]]] = {
    "products": (half_products, lambda y: y[:, :16] * y[:, 16:]),
    "scores": (half_scores, lambda y: y[:, :16] @ y[:, 16:].T),
    "heads": (
        heads,
        lambda y: jnp.einsum("ihe,jhe->hij", y[:, :16].reshape(-1, 4, 4), y[:, 16:].reshape(-1, 4, 4)),
    ),
    "rotated": (rotated, lambda y: jnp.concatenate([-y[:, 16:], y[:, :16]], axis=1)),
}


@pytest.mark.parametrize("name", HALVES)
def test_halves_of_an_axis_are_slices(name: str, rng: np.random.Generator) -> None:
    build, reference = HALVES[name]
    f = te.function(build)
    y = jnp.asarray(rng.standard_normal((24, 32)), "float32")
    weights = jnp.asarray(rng.standard_normal(f(y).shape), "float32")
    np.testing.assert_allclose(f(y), reference(y), rtol=1e-5, atol=1e-5)
    own, expected = (jax.grad(lambda y, g=g: jnp.sum(g(y) ** 2 * weights))(y) for g in (f, reference))
    np.testing.assert_allclose(own, expected, rtol=1e-4, atol=1e-4)
    source = te.source(f, y)
    assert "pad" not in source and "repeat" not in source and "tile" not in source, source
