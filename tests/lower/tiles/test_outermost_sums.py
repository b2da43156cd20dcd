"""The reductions that stand in a body by themselves, of which choices within choices have 2^n paths to each."""

from __future__ import annotations

import jaxte as te
from jaxte.lang.walk import outermost


def test_each_is_found_once_along_whatever_paths() -> None:
    x, k = te.placeholder((8,), name="x"), te.reduce_axis((0, 8), "k")

    def element(i: te.Expr) -> te.Expr:
        value = te.sum(te.sin(x[k] * x[i]), axis=k)
        for step in range(60):
            value = te.select(x[i] > step, te.sin(value), te.cos(value))
        return value

    body = element(te.reduce_axis((0, 8), "i"))
    assert len(outermost(body)) == 1
