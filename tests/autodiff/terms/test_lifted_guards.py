"""What guards all terms of a value is a condition on the points that are summed over."""

from __future__ import annotations

import jaxte as te
from jaxte.autodiff.terms.zeros import lift_guards
from jaxte.lang.expr import Axis, Expr
from jaxte.lang.graphs import among, identical
from jaxte.lang.text import text

N = 16


def test_guards_that_all_terms_have_are_lifted() -> None:
    i, j = Axis("i", 0, N), Axis("j", 0, N)
    x = te.placeholder((N, N), name="x")
    whole, first, second = i < 5, i >= 2, j < 7
    terms: list[Expr] = [
        te.select(whole & first, x[i, j], 0.0),
        te.select(whole, te.select(second, x[j, i], 0.0), 0.0),
        te.select(whole, 0.0, x[i, i]),
    ]
    value, guards = lift_guards(terms[0] + terms[1])
    assert identical(guards, [whole])
    assert text(value) == text(te.select(first, x[i, j], 0.0) + te.select(second, x[j, i], 0.0))
    inside, outside = lift_guards(te.select(i > 1, terms[0] + terms[1], 0.0))
    assert inside is value
    assert among(whole, outside)
    for other in (terms[0] + x[i, j], terms[0] + terms[2]):
        value, guards = lift_guards(other)
        assert value is other
        assert not guards
