"""Names that are given the elements or the rows of an array, loops that count from another number, and other names of None as an index."""

from __future__ import annotations

import numpy as np
import pytest

import jaxte as te
from tests.loops.agreement import assert_agrees

pytestmark = pytest.mark.usefixtures("x64")


def elements(x, A):
    a, b, c = x
    return a * b + c


def elements_that_change_places(x, A):
    x[0], x[1] = x[1::-1]
    return x


def rows_that_are_views(x, A):
    first, second = A[:2]
    first[0] = 7.0
    A[1] = first * x[0]
    return A, A + second


def rows_of_a_loop(x, A):
    total = 0.0
    for a, b, c in A:
        A[0, 0] = 3.0
        total += a * b + c
    for i, (a, b, _c) in enumerate(A, 2):
        total += i * a + b
    return total, A


def counted_from_one(x, A):
    total = 0.0
    for n, v in enumerate(x, start=1):
        total = total * 0.5 + v / n
    for n, (v, w) in enumerate(zip(x, A[0]), 3):  # noqa: B905
        total += n * v * w
    return total + n


def broken_off(x, A):
    found = 0.0
    for n, v in enumerate(x, 1):
        if v > 0:
            found = n * v
            break
    return found


def new_axes(x, A):
    return x[np.newaxis] @ x[:, np.newaxis] + np.sum(A[..., np.newaxis] * A[:, np.newaxis], axis=0)


def axes_one_by_one(x, A):
    B = np.ones((3, 4, 5)) * x[0]
    B[1, 2, 3] = A[0, 0]
    return B.transpose(2, 0, 1)


CASES = [
    elements, elements_that_change_places, rows_that_are_views, rows_of_a_loop, counted_from_one, broken_off, new_axes, axes_one_by_one,
]  # fmt: skip


@pytest.mark.parametrize("fn", CASES)
def test_agrees_with_numpy(fn, rng) -> None:
    assert_agrees(fn, [rng.normal(size=3), rng.normal(size=(3, 3))])


def too_few(x):
    a, b = x
    return a * b


def starred(x):
    a, *_b = x
    return a


def at_positions(x):
    k = np.array([0, 2, 2])
    x[k] += 1
    return x


def of_an_argument(x):
    h = x
    for _ in range(3):
        h = h[::-1] * 2
    return h


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (too_few, "2 names are assigned, and the other side has 4 values"),
        (starred, "take slices, as in a, b = x[0], x[1:]"),
        (at_positions, "for n in range(len(k)): x[k[n]] = ..."),
        (of_an_argument, "begin with a copy, h = h.copy()"),
    ],
)
def test_what_is_refused_has_its_remedy(fn, message) -> None:
    with pytest.raises(te.DefinitionError) as caught:
        te.loops(fn)(np.ones(4))
    assert message in str(caught.value)
