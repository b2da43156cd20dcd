"""Arrays that are made anew within a loop or an ``if``, under a name that has one: written in place where no other name stands for it."""

from __future__ import annotations

import numpy as np
import pytest

import jaxte as te
from tests.loops.agreement import assert_nodes_agree

pytestmark = pytest.mark.usefixtures("x64")


def every_other_step(x):
    total, out = np.zeros(3), np.zeros(3)
    for t in range(5):
        if t % 2 == 0:
            total = np.zeros(3)
        for k in range(3):
            total[k] += x[t] * (k + 1)
            out[k] += total[k] ** 2
    return out


def where_data_say(x):
    total, out = np.ones(3), np.zeros(5)
    for t in range(5):
        if x[t] > 0.2:
            total = np.full(3, 2.0)
        else:
            total[1] += x[t]
        out[t] = total[0] * total[1] * x[t]
    return out


def in_both_branches(x):
    u, out = np.zeros(3), np.zeros(5)
    for t in range(5):
        if x[t] > 0:
            u = np.zeros_like(u)
            u[2] = x[t]
        else:
            u = np.ones(3)
        out[t] = u[2] + u[0] * x[t]
    return out


@pytest.mark.parametrize("fn", [every_other_step, where_data_say, in_both_branches])
def test_they_agree_with_numpy_and_with_differences(fn) -> None:
    assert_nodes_agree(fn, [np.random.default_rng(0).normal(size=5)])


def seen_by_another_name(x):
    u = np.zeros(3)
    v = u
    for t in range(3):
        if t > 1:
            u = np.zeros(3)
        u[t] = x[t]
    return u + v


def seen_by_a_view(x):
    u = np.zeros(3)
    v = u[1:]
    for t in range(3):
        u = np.zeros(3)
        u[t] = x[t]
    return u[1:] + v


def of_another_shape(x):
    u = np.zeros(3)
    for t in range(3):
        if t > 1:
            u = np.zeros(4)
        u[t] = x[t]
    return u


def of_another_dtype(x):
    u = np.zeros(3, "int32")
    for t in range(3):
        if t > 1:
            u = np.zeros(3)
        u[t] = x[t]
    return u


def of_nothing(x):
    u = np.zeros(3)
    for t in range(3):
        if t > 1:
            u = np.empty(3)
        u[t] = x[t]
    return u


def an_argument(x):
    for t in range(3):
        if t > 1:
            x = np.zeros(5)
        x[t] = 2.0
    return x


@pytest.mark.parametrize(
    "fn", [seen_by_another_name, seen_by_a_view, of_another_shape, of_another_dtype, of_nothing, an_argument]
)
def test_others_are_refused(fn) -> None:
    with pytest.raises(te.DefinitionError, match="stands for another array within a loop or an if"):
        te.loops(fn)(np.ones(5))


def element_of_a_number(x):
    total = 0.0
    for v in x:
        total += v
    return total[0]


def element_of_an_element(x):
    return x[0][1]


def too_many(x):
    return x[0, 1]


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (element_of_a_number, "total is a number, which has no elements; leave the index out"),
        (element_of_an_element, r"x\[0\] is no array, and only arrays, lists and shapes have elements"),
        (too_many, "2 indices for the 1 axis of x; give one for each axis"),
    ],
)
def test_elements_of_what_has_none(fn, message: str) -> None:
    with pytest.raises(te.DefinitionError, match=message):
        te.loops(fn)(np.ones(5))
