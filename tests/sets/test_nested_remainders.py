"""Bounds of remainders of remainders: asked for once each, not once for each way to them."""

from __future__ import annotations

import pytest

import jaxte as te
from jaxte.lang.expr import Expr
from jaxte.sets import intervals
from jaxte.sets.affine import linear
from jaxte.sets.intervals import axis_bounds, interval


def test_each_remainder_is_asked_for_its_ends_once(monkeypatch: pytest.MonkeyPatch) -> None:
    axis = te.reduce_axis((0, 1000), "i")
    index: Expr = axis
    for n in range(14):
        index = (3 * index + 1) % (997 - n)
    asked = []
    find = intervals._end_of

    def counted(atom: Expr, largest: bool, bounds: object) -> object:
        asked.append(atom)
        return find(atom, largest, bounds)  # type: ignore[arg-type]

    monkeypatch.setattr(intervals, "_end_of", counted)
    assert interval(linear(index), axis_bounds([axis])) == (1, 982)  # 3 * e + 1 by 984, which is 3 * 328
    assert len(asked) <= 2 * 14
