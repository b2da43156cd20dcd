"""Choices without reduced axes leave a sum whose branches are multiples of one sum."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import jaxte as te
from jaxte.lang.expr import Axis, Expr
from jaxte.lang.graphs import among
from jaxte.tensors.tensor import Compute
from tests.lowered import check, sources

X = te.placeholder((5, 6), name="X")
N = te.placeholder((5,), name="N")
C = te.placeholder((5,), "int32", name="C")
K = te.reduce_axis((0, 6), "k")


def over(make: Callable[[Expr, Axis], Expr], where: Callable[[Expr, Axis], Expr] | None = None) -> Compute:
    k = te.reduce_axis((0, 6), "k")

    def body(i: Expr) -> Expr:
        return te.sum(make(i, k), k, where(i, k)) if where else te.sum(make(i, k), k)

    return te.compute((5,), body, "Y")


def nested(i: Expr, k: Axis) -> Expr:
    taken = X[i, k] * X[i, k] / N[i]
    return te.select(C[i] > 2, taken, te.select(C[i] == 2, 0.5 * taken, 0))


LEAVE = {
    "nested": over(nested),
    "no zero": over(lambda i, k: te.select(C[i] > 2, X[i, k] * N[i], -X[i, k])),
    "factors beside it": over(lambda i, k: X[i, k] * te.select(C[i] > 2, X[i, k], X[i, k] * N[i]) / N[i]),
    "signs": over(lambda i, k: te.select(N[i] > 0, X[i, k] / N[i], te.select(N[i] < 0, -X[i, k] / N[i], 0))),
}


@pytest.mark.parametrize("case", LEAVE)
def test_one_sum_without_choices(case: str) -> None:
    code = check(LEAVE[case])
    assert sum(source.count("jnp.sum(") for source in sources(LEAVE[case])) == 1, code
    assert not any("jnp.where(" in source.split("jnp.sum(")[1] for source in code if "jnp.sum(" in source)


STAY = {
    "two sums": over(lambda i, k: te.select(C[i] > 2, X[i, k], te.exp(X[i, k]))),
    "a constant beside": over(lambda i, k: te.select(C[i] > 2, X[i, k], 1)),
    "choice by element": over(
        lambda i, k: te.select(X[i, k] > 0, X[i, k], te.select(C[i] > 2, 2 * X[i, k], 0))
    ),
    "maxima": te.compute((5,), lambda i: te.max(te.select(C[i] > 2, X[i, K], -X[i, K]), K), "Y"),
}


@pytest.mark.parametrize("case", STAY)
def test_other_choices_stay(case: str) -> None:
    code = check(STAY[case])
    assert "jnp.where(" in "".join(code[: 1 + next(n for n, c in enumerate(code) if "axis=1" in c)])


@pytest.mark.parametrize("make", [nested, lambda i, k: te.select(N[i] > 0, X[i, k], -X[i, k])])
def test_what_is_not_taken_counts_for_nothing(make: Callable[[Expr, Axis], Expr]) -> None:
    x = np.full((5, 6), np.inf, np.float32)
    x[3:] = 1
    feeds = {X: x, N: np.array([0, 0, np.nan, 0, 2], np.float32), C: np.array([0, 1, 1, 3, 2], np.int32)}
    Y = over(make)
    given = {t: feeds[t] for t in feeds if among(t, Y.inputs)}
    np.testing.assert_array_equal(np.asarray(te.evaluate(Y, given)), te.interpret(Y, given))


def test_the_condition_of_the_sum_stays_in_it() -> None:
    Y = over(
        lambda i, k: te.select(C[i] > 2, X[i, k] * N[i], te.select(C[i] == 2, 2 * X[i, k], 0)),
        lambda i, k: X[i, k] > N[i],
    )
    (summed,) = (source for source in check(Y) if "jnp.sum(" in source)
    assert "C" not in summed


def test_choices_by_position_sum_their_own_part() -> None:
    Y = over(lambda i, k: te.select(i < 2, X[i, k] * N[i], te.select(i == 2, 2 * X[i, k], 0)))
    assert check(Y)[:2] == ["jnp.sum(X[:2], axis=1)", "jnp.sum(X[2:3], axis=1)"]


def test_a_sum_without_points_is_zero_whatever_its_factors_are() -> None:
    Y = over(nested, lambda i, k: X[i, k] > 10)
    feeds = {
        X: np.ones((5, 6), np.float32),
        N: np.zeros(5, np.float32),
        C: np.array([0, 1, 2, 3, 4], np.int32),
    }
    np.testing.assert_array_equal(np.asarray(te.evaluate(Y, feeds)), np.zeros(5))
    assert (te.interpret(Y, feeds) == 0).all()


def test_gradient_of_a_norm_bounded_below_reads_its_operands_once() -> None:
    text = te.function(te.ops.l2_normalize).source(np.ones((4, 8), np.float32))
    backward = text[text.index("def backward") : text.index("def _fwd")]
    summed = [line for line in backward.splitlines() if "jnp.sum(" in line]
    assert len(summed) == 1 and "where" not in summed[0]
