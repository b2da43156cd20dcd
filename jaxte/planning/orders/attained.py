"""What is known of an extremum: that it is at least as large, or as small, as each element that it is of."""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.algebra.simplify import simplify_reads
from jaxte.lang.expr import TRUE, Axis, Call, Const, Expr, Read, Reduce, call, conjuncts
from jaxte.lang.graphs import reached
from jaxte.lang.operators import GREATER_EQUAL, LESS, SELECT
from jaxte.lang.walk import substitute
from jaxte.sets.affine import Linear, from_linear
from jaxte.sets.domain import IntegerSet
from jaxte.sets.index_forms import linear_or_none
from jaxte.sets.isl_text import is_decidable
from jaxte.tensors.tensor import Compute


def attains(extremum: Expr, element: Expr, axes: Sequence[Axis], conditions: Sequence[Expr]) -> str | None:
    """Whether ``extremum`` is ``max`` or ``min``, or NaN, of elements one of which is ``element``; None if that is not known.

    Args:
        extremum: a read of a tensor that is a maximum or minimum.
        element: what may be one of its elements.
        axes: what both may depend on.
        conditions: where that is asked.
    """
    if isinstance(extremum, Call) and extremum.op is SELECT and _is_nan(extremum.args[2]):
        extremum = extremum.args[1]
    if not isinstance(extremum, Read) or not isinstance(extremum.tensor, Compute):
        return None
    node = extremum.tensor.body
    if not isinstance(node, Reduce) or node.reducer.name not in ("max", "min"):
        return None
    table: dict[Expr, Expr] = dict(zip(extremum.tensor.axes, extremum.indices, strict=True))
    one, where = substitute(node.exprs[0], table), substitute(node.where, table)
    while isinstance(one, Call) and one.op is SELECT and not isinstance(element, Call):
        if one.args[2] is not node.reducer.identity[0]:
            return None
        where, one = where & one.args[0] if where is not TRUE else one.args[0], one.args[1]
    taps = _taps(one, element, node.axes)
    if taps is None or simplify_reads(substitute(one, taps)) is not simplify_reads(element):
        return None
    needed = [
        bound
        for axis, tap in taps.items()
        for bound in (call(GREATER_EQUAL, tap, axis.lo), call(LESS, tap, axis.hi))
    ]
    needed += [substitute(c, taps) for c in conjuncts(where) if c is not TRUE]
    if not all(map(is_decidable, needed)):
        return None
    known = IntegerSet(tuple(axes), list(conditions))
    return node.reducer.name if all(map(known.implies, needed)) else None


def _taps(one: Expr, element: Expr, reduced: Sequence[Axis]) -> dict[Axis, Expr] | None:
    """What the axes of an extremum are at ``element``, told by where both read the same tensors; None where that is not all of them."""
    found: dict[Axis, Expr] = {}
    reads = [
        [n for n in reached([e], lambda node: node.children) if isinstance(n, Read)] for e in (one, element)
    ]
    for own, other in zip(*reads, strict=False):
        if own.tensor is not other.tensor:
            return None
        for index, wanted in zip(own.indices, other.indices, strict=True):
            form, at = linear_or_none(index), linear_or_none(wanted)
            moving = [a for a in reduced if form is not None and form.coefficient(a) and a not in found]
            if form is None or at is None or len(moving) != 1:
                continue
            (axis,) = moving
            tap = _divided(at - form.without(axis), form.coefficient(axis))
            if tap is not None:
                found[axis] = from_linear(tap)
    return found if len(found) == len(reduced) else None


def _is_nan(expr: Expr) -> bool:
    return isinstance(expr, Const) and expr.value != expr.value


def _divided(form: Linear, factor: int) -> Linear | None:
    """``form / factor``; None where that is no integer for all values of its atoms."""
    if any(c % factor for c in (form.constant, *form.terms.values())):
        return None
    return form // factor
