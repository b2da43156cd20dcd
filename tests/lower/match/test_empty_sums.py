"""Sums without points are zero, whatever a factor that has left the sum is there."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import jaxte as te
from jaxte.lang.expr import Axis, Expr
from jaxte.sets.domain import IntegerSet
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute

X = te.placeholder((6,), name="X")
Y = te.placeholder((6,), name="Y")
W = te.placeholder((2,), name="W")
I = te.placeholder((6,), "int32", name="I")  # noqa: E741
C = te.placeholder((1, 2, 6), name="C")
F = te.placeholder((3, 2, 2), name="F")
FEEDS = {
    X: np.arange(1, 7, dtype=np.float32),
    Y: np.zeros(6, np.float32),
    W: np.float32([1, 2]),
    I: np.int32([1, 1, 2, -1, 9, 0]),
    C: np.ones((1, 2, 6), np.float32),
    F: np.ones((3, 2, 2), np.float32),
}


def k(extent: int, name: str = "k") -> Axis:
    return te.reduce_axis((0, extent), name)


def over(extent: int, make: Callable[[Expr, Axis], tuple[Expr, Expr]]) -> Compute:
    """The sum of what ``make`` returns first over its axis, where what it returns second holds."""
    axis = k(extent)

    def body(i: Expr) -> Expr:
        term, where = make(i, axis)
        return te.sum(term, axis, where)

    return te.compute((6,), body, "T")


def convolution() -> Compute:
    c, j = k(2, "c"), k(2)
    return te.compute(
        (1, 3, 6),
        lambda n, o, i: te.sum(C[n, c, i + j - 3] * F[o, c, j] / Y[i], [c, j], where=i + j - 3 >= 0),
    )


def factor_of_its_own_axis() -> Compute:
    m, j = k(6, "m"), k(6)
    return te.compute((6,), lambda i: te.sum(X[j] / Y[m] * X[i], [j, m], where=X[j] > 10))


EMPTY = {
    "data": over(6, lambda i, k: (X[k] / Y[i], X[k] > 10)),
    "data of some": over(6, lambda i, k: (X[k] / Y[i], X[k] > 6 - i)),
    "logarithm": over(6, lambda i, k: (te.log(Y[i]) * X[k], X[k] > 6 - i)),
    "two terms": over(6, lambda i, k: (X[k] / Y[i] + X[k], X[k] > 10)),
    "choice": over(6, lambda i, k: (te.select(I[k] == i, X[k] / Y[i], 0), X[k] > 0)),
    "prefix": over(6, lambda i, k: (X[k] / Y[i], k < i)),
    "scatter": over(6, lambda i, k: (X[k] / Y[i], I[k] == i)),
    "window": over(2, lambda i, k: (X[i + k - 3] / Y[i], i + k - 3 >= 0)),
    "taps": over(2, lambda i, k: (X[i + k - 3] * W[k] / Y[i], i + k - 3 >= 0)),
    "convolution": convolution(),
    "own axis": factor_of_its_own_axis(),
    "positions out of range": over(6, lambda i, k: (X[k] * X[I[i]], k + I[i] < 9)),
}


def agree(tensor: Compute) -> np.ndarray:
    """The value, which the interpreter gives too."""
    feeds = {t: FEEDS[t] for t in topological_order([tensor]) if isinstance(t, Placeholder)}
    with np.errstate(all="ignore"):
        expected = te.interpret(tensor, feeds)
    np.testing.assert_array_equal(np.asarray(te.evaluate(tensor, feeds)), expected)
    return expected


@pytest.mark.parametrize("case", EMPTY)
def test_sum_without_points_is_zero(case: str) -> None:
    assert (agree(EMPTY[case]) == 0).any()


def test_a_choice_in_one_term_is_none_for_the_others() -> None:
    def terms(i: Expr, k: Axis) -> tuple[Expr, Expr]:
        return te.select(X[k] > 10, X[k] / Y[i], 0) + te.select(X[k] > 3, i + X[k], 0), X[k] > 5 - i

    assert (agree(over(6, terms)) > 0).all()


BESIDE = {
    "without a condition": lambda i, k: (te.select(X[k] > 10, X[k], 0) / Y[i], te.const(True)),
    "under a condition": lambda i, k: (te.select(X[k] > 10, X[k], 0) / Y[i], X[k] > 3),
    "a logarithm": lambda i, k: (te.log(Y[i]) * te.select(X[k] > 10, X[k], 0), X[k] > 3),
    "by rows": lambda i, k: (te.select(X[k] > 6 + i, X[k], 0) / Y[i], X[k] > 5 - i),
}


@pytest.mark.parametrize("case", BESIDE)
def test_a_choice_beside_what_is_infinite_leaves_its_points(case: str) -> None:
    """Zero times infinity is NaN as for the interpreter, though the choice takes no point."""
    assert np.isnan(agree(over(6, BESIDE[case]))).any()


POINTS = {
    "prefix with its own element": over(6, lambda i, k: (X[k] / Y[i], k <= i)),
    "window": over(3, lambda i, k: (X[i + k - 1] / Y[i], (i + k >= 1) & (i + k < 7))),
    "product": over(6, lambda i, k: (X[k] * Y[i], X[k] > 10)),
    "number": over(6, lambda i, k: (X[k] * Y[i] / 3, X[k] > 10)),
    "masked where it is infinite": over(6, lambda i, k: (X[k] / Y[k], X[k] > i)),
}


@pytest.mark.parametrize("case", POINTS)
def test_nothing_is_asked_where_there_are_points(case: str) -> None:
    assert "> 0" not in te.source(POINTS[case]).split('"""')[-1]


def test_points_are_counted_without_a_matrix() -> None:
    assert "[:, None] ==" not in te.source(EMPTY["scatter"])
    assert te.source(EMPTY["scatter"]).count(".at[I].add(") == 2
    assert te.source(EMPTY["prefix"]).count("jnp.cumsum(") == 2


def test_covers() -> None:
    n = te.var("n")
    i, j = Axis("i", 0, n), Axis("j", 0, n)
    assert IntegerSet((i, j), [j <= i]).covers((i,))
    assert not IntegerSet((i, j), [j < i]).covers((i,))
    assert IntegerSet((i, j), [j >= i]).covers((i,))
    assert not IntegerSet((i, j), [j < i]).covers((i, j))


@pytest.mark.parametrize(
    "factor",
    [
        lambda x, b, k: te.log(x[k]) * b[k],
        lambda x, b, k: b[k] / x[k],
        lambda x, b, k: te.rsqrt(x[k]) * te.exp(b[k]),
    ],
)
def test_what_planning_computes_once_is_infinite_in_its_own_rows_alone(factor: Callable[..., Expr]) -> None:
    """The factor is a tensor of its own in the program, and stands in the sum in the definition."""
    n = 12
    x, b, c = (te.placeholder(shape, name=name) for shape, name in (((n,), "x"), ((n,), "b"), ((n, n), "c")))
    j = k(n)
    y = te.compute((n,), lambda i: te.sum(factor(x, b, j) * c[i, j], j, where=j <= i), "y")
    feeds = {
        x: np.linspace(1, 2, n, dtype="float32"),
        b: np.ones(n, "float32"),
        c: np.ones((n, n), "float32"),
    }
    feeds[x][-1] = 0
    assert "y_part" in te.source(y)
    np.testing.assert_allclose(te.evaluate(y, feeds), te.interpret(y, feeds), rtol=1e-5)
