"""Boundaries written as choices among reads: the same definitions, forms and values as those with bent indices."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
import pytest

import jaxte as te
from jaxte.lang.expr import Expr
from jaxte.tensors.tensor import Compute, Tensor

SIZE, TAPS, REACH = 12, 5, 2
At = Callable[[Tensor, Expr, Expr], Expr]


def reflected(x: Tensor, j: Expr, at: Expr) -> Expr:
    return te.select(at < 0, x[j, -at], te.select(at > SIZE - 1, x[j, 2 * SIZE - 2 - at], x[j, at]))


def reflected_from_inside(x: Tensor, j: Expr, at: Expr) -> Expr:
    inside = te.logical_and(at >= 0, at <= SIZE - 1)
    return te.select(inside, x[j, at], te.select(at < SIZE // 2, x[j, -at], x[j, 2 * SIZE - 2 - at]))


def held(x: Tensor, j: Expr, at: Expr) -> Expr:
    return te.select(at < 0, x[j, 0], te.select(at >= SIZE, x[j, SIZE - 1], x[j, at]))


def wrapped(x: Tensor, j: Expr, at: Expr) -> Expr:
    return te.select(at >= SIZE, x[j, at - SIZE], te.select(at < 0, x[j, at + SIZE], x[j, at]))


BENT: dict[str, At] = {
    "reflected": lambda x, j, at: x[j, SIZE - 1 - te.abs(SIZE - 1 - te.abs(at))],
    "reflected_from_inside": lambda x, j, at: x[j, SIZE - 1 - te.abs(SIZE - 1 - te.abs(at))],
    "held": lambda x, j, at: x[j, te.minimum(te.maximum(at, 0), SIZE - 1)],
    "wrapped": lambda x, j, at: x[j, at % SIZE],
}
CHOICES: dict[str, At] = {f.__name__: f for f in (reflected, reflected_from_inside, held, wrapped)}


def filtered(read: At) -> Callable[[Tensor, Tensor], Compute]:
    k = te.reduce_axis((0, TAPS), "k")

    def build(x: Tensor, g: Tensor) -> Compute:
        element = lambda j, i: te.sum(g[k] * read(x, j, i + k - REACH), k)  # noqa: E731
        return te.compute((3, SIZE), element, "y")

    return build


@pytest.mark.parametrize("name", CHOICES)
def test_both_spellings_are_one_program(name: str) -> None:
    x, g = jax.ShapeDtypeStruct((3, SIZE), "float32"), jax.ShapeDtypeStruct((TAPS,), "float32")
    own, other = (str(te.function(filtered(f[name])).source(x, g)) for f in (CHOICES, BENT))
    assert own == other


@pytest.mark.parametrize("name", CHOICES)
def test_values(name: str, rng: np.random.Generator) -> None:
    x, g = rng.standard_normal((3, SIZE)).astype("float32"), rng.standard_normal(TAPS).astype("float32")
    mode = {"reflected": "reflect", "reflected_from_inside": "reflect", "held": "edge", "wrapped": "wrap"}[
        name
    ]
    padded = np.pad(x, ((0, 0), (REACH, REACH)), mode=mode)  # type: ignore[call-overload]
    expected = sum(g[k] * padded[:, k : k + SIZE] for k in range(TAPS))
    np.testing.assert_allclose(te.function(filtered(CHOICES[name]))(x, g), expected, rtol=1e-5, atol=1e-5)


def test_one_axis_after_the_other(rng: np.random.Generator) -> None:
    a, b = te.reduce_axis((0, 3), "a"), te.reduce_axis((0, 3), "b")

    def read(x: Tensor, i: Expr, j: Expr) -> Expr:
        row = lambda i: te.select(j < 0, x[i, -j], te.select(j > 8, x[i, 16 - j], x[i, j]))  # noqa: E731
        return te.select(i < 0, row(-i), te.select(i > 6, row(12 - i), row(i)))

    fn = te.function(lambda x: te.compute((7, 9), lambda i, j: te.sum(read(x, i + a - 1, j + b - 1), [a, b])))
    x = rng.standard_normal((7, 9)).astype("float32")
    padded = np.pad(x, 1, mode="reflect")
    expected = sum(padded[u : u + 7, v : v + 9] for u in range(3) for v in range(3))
    np.testing.assert_allclose(fn(x), expected, rtol=1e-5, atol=1e-5)
    assert "select" not in str(fn.source(x)).split('"""')[3]


def test_what_bends_otherwise_stays(rng: np.random.Generator) -> None:
    """One end reflected and the other one held: no form of one read."""

    def mixed(x: Tensor, j: Expr, at: Expr) -> Expr:
        return te.select(at < 0, x[j, -at], te.select(at >= SIZE, x[j, SIZE - 1], x[j, at]))

    x, g = rng.standard_normal((3, SIZE)).astype("float32"), rng.standard_normal(TAPS).astype("float32")
    padded = np.pad(np.pad(x, ((0, 0), (2, 0)), mode="reflect"), ((0, 0), (0, 2)), mode="edge")
    expected = sum(g[k] * padded[:, k : k + SIZE] for k in range(TAPS))
    np.testing.assert_allclose(te.function(filtered(mixed))(x, g), expected, rtol=1e-5, atol=1e-5)
