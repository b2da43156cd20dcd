"""Many periodic reads of one array: one copy with its ends continued, and each body written once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import jaxte as te
from tests.agreement import QUICKEST
from tests.lowered import check, text_of

AROUND = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if (a, b) != (0, 0)]
LINE = [k for k in range(-5, 6) if k]


def lattice(x: Any) -> Any:
    """Angles on a lattice, each turned by its eight neighbours."""
    n, m = x.shape
    turn = lambda i, j, a, b: te.sin(x[(i + a) % n, (j + b) % m] - x[i, j])  # noqa: E731
    return te.compute((n, m), lambda i, j: sum(turn(i, j, a, b) for a, b in AROUND), "Y")


def ring(x: Any) -> Any:
    """Distances along rings, in several features."""
    b, n, c = x.shape
    apart = lambda p, i, f, k: te.exp(-((x[p, (i + k) % n, f] - x[p, i, f]) ** 2))  # noqa: E731
    return te.compute((b, n, c), lambda p, i, f: sum(apart(p, i, f, k) for k in LINE), "Y")


def products(x: Any) -> Any:
    """What a volume has in common with itself at ten distances."""
    n, m, d = x.shape
    shifts = [(k, 0, 0) for k in LINE[::2]] + [(0, k, k // 2) for k in LINE[1::2]]
    body = lambda i, j, k: sum(x[(i + a) % n, (j + b) % m, (k + c) % d] * x[i, j, k] for a, b, c in shifts)  # noqa: E731
    return te.compute((n, m, d), body, "Y")


FUNCTIONS: list[tuple[Callable[[Any], Any], tuple[int, ...]]] = [
    (lattice, (24, 30)),
    (ring, (3, 40, 5)),
    (products, (30, 32, 34)),
]


@pytest.mark.parametrize(("function", "shape"), FUNCTIONS)
def test_one_copy_and_no_edges(function: Callable[[Any], Any], shape: tuple[int, ...]) -> None:
    source = te.source(te.function(function), jax.ShapeDtypeStruct(shape, "float32"))
    assert "x_extended" in source and "edge" not in source and "jnp.roll" not in source
    assert source.count("concatenate([x[") <= 2  # of x, in each pass


@pytest.mark.parametrize(("function", "shape"), FUNCTIONS)
def test_values_are_those_of_rolls(
    function: Callable[[Any], Any], shape: tuple[int, ...], rng: np.random.Generator
) -> None:
    x = rng.standard_normal(shape).astype("float32")
    placed = te.placeholder(shape, name="x")
    check(function(placed), tolerance=1e-4)
    own = te.function(function)
    head = rng.standard_normal(shape).astype("float32")

    def loss(x: Any) -> Any:
        return (own(x) * head).sum()

    found = jax.jit(jax.grad(loss)).lower(x).compile(compiler_options=QUICKEST)(x)
    at = tuple(n // 3 for n in shape)
    step = np.zeros(shape, "float64")
    step[at] = 1e-2
    slope = (loss((x + step).astype("float32")) - loss((x - step).astype("float32"))) / 2e-2
    np.testing.assert_allclose(found[at], slope, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("count", [4, 7])
def test_few_reads_have_no_copy(count: int) -> None:
    x = te.placeholder((40, 50), name="x")
    body = lambda i, j: sum(te.exp(x[(i + k) % 40, j]) for k in LINE[:count])  # noqa: E731
    assert "extended" not in text_of(te.compute((40, 50), body, "Y"))


def test_no_copy_that_is_larger_than_twice_the_array() -> None:
    x = te.placeholder((6, 6, 6), name="x")
    shifts = [(a, b, c) for a in (-2, 2) for b in (-2, 2) for c in (-2, 2)]
    body = lambda i, j, k: sum(te.exp(x[(i + a) % 6, (j + b) % 6, (k + c) % 6]) for a, b, c in shifts)  # noqa: E731
    Y = te.compute((6, 6, 6), body, "Y")
    assert "extended" not in text_of(Y)
    check(Y, tolerance=1e-4)


def test_sizes_that_are_given_later_and_positions_that_are_data() -> None:
    n = te.var("n")
    x, at = te.placeholder((n, 12), name="x"), te.placeholder((12,), "int32", name="at")
    around = te.compute(
        (n, 12), lambda i, j: sum(te.exp(-((x[i, j] - x[i, (j + s) % 12]) ** 2)) for s in range(-5, 6)), "Y"
    )
    given = np.random.default_rng(0).standard_normal((7, 12)).astype("float32")
    expected = sum(np.exp(-((given - np.roll(given, -s, 1)) ** 2)) for s in range(-5, 6))
    np.testing.assert_allclose(te.evaluate(around, {x: given}), expected, rtol=1e-5)
    chosen = te.compute(
        (12,), lambda j: te.sin(x[at[j], j]) * x[te.clip(te.cast(x[0, j], "int32"), 0, 1), j], "Z"
    )
    feeds = {x: given, at: (np.arange(12, dtype="int32") * 5) % 7}
    np.testing.assert_allclose(te.evaluate(chosen, feeds), te.interpret(chosen, feeds), rtol=1e-5)
