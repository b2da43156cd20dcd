"""Choices by the values of an axis: what flows back through each branch is one element of the head, and no sum over the axis with a mask for each branch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import jaxte as te
from jaxte.lang.expr import Reduce
from jaxte.lang.walk import postorder
from jaxte.sets.resolved import values_of
from tests.agreement import check_both_passes


def stacked(n: int, order: Callable[[int], int] = lambda q: q) -> Callable[..., te.Tensor]:
    """Functions of three coordinates side by side, chosen one after the other, and their products with weights."""

    def build(u: te.Tensor, w: te.Tensor) -> te.Tensor:
        j = te.reduce_axis((0, n), "j")

        def feature(i: te.Axis, q: int) -> te.Expr:
            return te.tanh(u[i, q % 3]) * float(q + 1) if q % 2 else u[i, q % 3] * u[i, (q + 1) % 3]

        def element(i: te.Axis, c: te.Axis) -> te.Expr:
            found = feature(i, order(n - 1))
            for q in reversed(range(n - 1)):
                found = te.select(c == order(q), feature(i, order(q)), found)
            return found

        features = te.compute((u.shape[0], n), element, "features")
        return te.compute((u.shape[0],), lambda i: te.sum(features[i, j] * w[i, j], axis=j), "y")

    return build


@pytest.mark.parametrize("n", [2, 5, 9, 20])
@pytest.mark.parametrize("turned", [False, True])
def test_nothing_is_summed_over_the_axis(n: int, turned: bool) -> None:
    u, w = te.placeholder((4, 3), name="u"), te.placeholder((4, n), name="w")
    y = stacked(n, (lambda q: n - 1 - q) if turned else (lambda q: q))(u, w)
    (du,) = te.differentiate(y, [u], head=te.placeholder((4,), name="H"))
    assert not any(isinstance(node, Reduce) for node in postorder(du.body))
    check_both_passes(y, np.random.default_rng(0))


def test_branches_in_any_order_have_the_same_gradient() -> None:
    n, rng = 10, np.random.default_rng(0)
    order = [3, 7, 0, 9, 1, 8, 2, 6, 4, 5]
    u, w = rng.standard_normal((5, 3)).astype("float32"), rng.standard_normal((5, n)).astype("float32")
    check_both_passes(
        stacked(n, order.__getitem__)(te.placeholder(u.shape, name="u"), te.placeholder(w.shape, name="w")),
        rng,
    )


@pytest.mark.parametrize(
    ("condition", "values"),
    [
        (lambda c: c == 3, (3, 3)),
        (lambda c: c >= 4, (4, 7)),
        (lambda c: ~(c == 0), (1, 7)),
        (lambda c: c != 7, (0, 6)),
        (lambda c: c != 3, None),
        (lambda c: 2 * c < 5, (0, 2)),
    ],
)
def test_values(condition: Callable[[te.Axis], te.Expr], values: tuple[int, int] | None) -> None:
    c = te.reduce_axis((0, 8), "c")
    found = values_of(condition(c))
    assert (None if found is None else (found.low, found.high)) == values
