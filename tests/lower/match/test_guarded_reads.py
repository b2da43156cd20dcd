"""Reads at data behind guards that keep them in range: the nearest element is read where the guard fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jaxte as te
from jaxte.lang.graphs import among

X = te.placeholder((5, 4), name="X")
I = te.placeholder((9,), "int32", "I")  # noqa: E741
J = te.placeholder((9,), "int32", "J")


def within(index: Any, extent: int) -> te.Expr:
    return (index >= 0) & (index < extent)


CASES: dict[str, tuple[Callable[..., Any], int, int]] = {
    "guarded": (lambda i, j: te.select(within(I[i], 5), X[I[i], j], 0.0), 1, 0),
    "guarded with an offset": (lambda i, j: te.select(within(I[i] + 1, 5), X[I[i] + 1, j], 7.0), 1, 0),
    "both positions": (
        lambda i, j: te.select(within(I[i], 5) & within(J[i], 4), X[I[i], J[i]], 0.0) + te.cast(j, "float32"), 1, 0,
    ),
    "one of two positions": (lambda i, j: te.select(within(I[i], 5), X[I[i], J[i]], 0.0) * 2, 1, 0),
    "half of a range": (lambda i, j: te.select(I[i] < 5, X[I[i], j], 0.0), 0, 1),
    "another extent": (lambda i, j: te.select(within(I[i], 6), X[I[i], j], 0.0), 0, 1),
    "also without a guard": (lambda i, j: te.select(within(I[i], 5), X[I[i], j], 0.0) + X[I[i], j], 0, 1),
    "in the other branch": (lambda i, j: te.select(within(I[i], 5), 0.0, X[I[i], j]), 0, 1),
    "under a condition of a sum": (
        lambda i, j: te.sum(X[I[E], j] * te.cast(i, "float32"), axis=E, where=within(I[E], 5)), 1, 0,
    ),
}  # fmt: skip
E = te.reduce_axis((0, 9), "e")


@pytest.mark.parametrize("name", CASES)
def test_guards_of_gathers(name: str, rng: np.random.Generator) -> None:
    body, clipped, filled = CASES[name]
    y = te.compute((9, 4), body, "Y")
    text = te.source(y)
    assert (text.count('mode="clip"'), text.count('mode="fill"')) == (clipped, filled), text
    feeds = {X: rng.standard_normal((5, 4)).astype("float32")}
    feeds |= {t: rng.integers(-3, 9, 9).astype("int32") for t in (I, J) if among(t, y.inputs)}
    np.testing.assert_allclose(te.evaluate(y, feeds), te.interpret(y, feeds), rtol=1e-6)


def test_what_is_dropped_by_a_scatter_is_a_guard(rng: np.random.Generator) -> None:
    """Values go to row I[e] of five, or nowhere: what they read at I[e] in a tensor of five rows is never outside."""

    def text_of(condition: Callable[[Any, Any], Any]) -> str:
        y = te.compute((5, 4), lambda i, j: te.sum(X[I[E], j] ** 3, axis=E, where=condition(i, E)), "Y")
        feeds = {X: rng.standard_normal((5, 4)).astype("float32"), I: rng.integers(-3, 9, 9).astype("int32")}
        np.testing.assert_allclose(te.evaluate(y, feeds), te.interpret(y, feeds), rtol=1e-5)
        return te.source(y)

    assert "X_I_inside" not in text_of(lambda i, e: I[e] == i)
    assert "X_I_inside / X_I_inside" in text_of(lambda i, e: I[e] + 1 == i)  # 1, and NaN outside


def test_a_read_that_is_guarded_at_one_place_and_not_at_another(rng: np.random.Generator) -> None:
    """Two sums over one axis object: in the second X is read out of range, whatever the first one made of it."""
    y = te.compute(
        (5, 4),
        lambda i, j: (
            te.sum(X[I[E], j] ** 3, axis=E, where=I[E] == i)
            * te.sum(X[I[E], j] ** 3, axis=E, where=J[E] == i)
        ),
        "Y",
    )
    feeds = {X: rng.standard_normal((5, 4)).astype("float32")}
    feeds |= {t: rng.integers(-1, 6, 9).astype("int32") for t in (I, J)}
    expected = te.interpret(y, feeds)
    assert np.isnan(expected).any()
    np.testing.assert_allclose(te.evaluate(y, feeds), expected, rtol=1e-5)


def test_one_gather_for_all_that_read_a_tensor_at_the_same_positions() -> None:
    """In one definition, in several ones of one function, and the clipped ones where there is a filled one already."""
    a = te.compute((9, 4), lambda i, j: te.exp(X[I[i], j]) * X[I[i], j] + X[I[i], j] ** 2, "A")
    b = te.compute((9, 4), lambda i, j: te.select(within(I[i], 5), X[I[i], j] - a[i, j], 0.0), "B")
    c = te.compute((9, 4), lambda i, j: X[J[i], j] * b[i, j] + X[I[i], j], "C")
    text = te.source(c)
    assert text.count("X.at[I]") == text.count("X.at[J]") == 1
    assert "X_I = X.at[I].get(" in text and "X_J = X.at[J].get(" in text
    alone = te.source(te.compute((9, 4), lambda i, j: X[I[i], j], "A"))
    assert "A = X.at[I].get(" in alone


def test_single_elements_that_a_scatter_drops_share_the_gather_of_other_readers() -> None:
    x, index = te.placeholder((5,), name="x"), te.placeholder((9,), "int32", "I")
    w = te.compute((9,), lambda e: te.exp(x[index[e]]), "W")
    y = te.compute((5,), lambda i: te.sum(w[E] * x[index[E]] ** 2, axis=E, where=index[E] == i), "Y")
    assert te.source(y).count("x.at[I]") == 1
    z = te.compute((5,), lambda i: te.sum(w[E] * x[index[E]] ** 2, axis=E, where=J[E] == i), "Z")
    both = te.compute((5,), lambda i: y[i] * z[i], "B")
    assert te.source(both).count("x.at[I]") == 1
