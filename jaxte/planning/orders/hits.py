"""Extrema and the places that attain them: what is known of an extremum, and the terms of a sum that count where a window attains it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from jaxte.algebra.product import is_zero
from jaxte.algebra.simplify import simplify_reads
from jaxte.lang import dtypes
from jaxte.lang.expr import TRUE, Axis, Call, Const, Expr, Read, Reduce, as_expr, call, conjuncts
from jaxte.lang.graphs import reached
from jaxte.lang.operators import EQUAL, GREATER, GREATER_EQUAL, LESS, NOT, SELECT
from jaxte.lang.walk import all_of, depends_on, postorder, rewrite, substitute
from jaxte.sets.affine import from_linear
from jaxte.sets.domain import IntegerSet
from jaxte.sets.index_forms import linear_or_none
from jaxte.sets.intervals import extent
from jaxte.sets.isl_text import is_decidable
from jaxte.sets.linear import Linear
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
    node = extremum.tensor.element(extremum.indices)
    if not isinstance(node, Reduce) or not node.is_extremum:
        return None
    one, where = node.exprs[0], node.where
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


@dataclass(frozen=True)
class Hits:
    """The terms of a sum that count where a window attains its extremum.

    Attributes:
        moving: what is compared, an element of the window.
        still: what it is compared with.
        value: what is added where both are equal.
        name: ``min`` or ``max``, which of them the window attains.
        spreads: whether a NaN among the elements makes the sum NaN, as where what is not behind counts.
        passes: whether a NaN among the elements leaves the others as they are.
        comparison: of ``moving`` and ``still``.
    """

    moving: Expr
    still: Expr
    value: Expr
    name: str
    spreads: bool
    passes: bool
    comparison: Call


def choice_around(node: Reduce, axes: Sequence[Axis]) -> tuple[tuple[Expr, Expr] | None, Expr]:
    """A choice around the term that is the same for all of them: its condition and what else the sum is; and what is left."""
    match node.exprs[0]:
        case Call(op, (test, term, other)) if op is SELECT:
            if depends_on(test, node.axes) or depends_on(other, node.axes):
                return None, node.exprs[0]
            if node.where is TRUE:
                return (test, other * prod(map(extent, node.axes))), term
            if test is call(EQUAL, other, other) and _has_points(node, axes):
                return (test, other), term  # NaN, however many there are
    return None, node.exprs[0]


def _has_points(node: Reduce, axes: Sequence[Axis]) -> bool:
    """Whether there surely is a term, wherever on ``axes`` the sum stands."""
    conditions = conjuncts(node.where)
    outer = tuple(a for a in axes if depends_on(node.where, (a,)))
    return all(map(is_decidable, conditions)) and IntegerSet((*outer, *node.axes), conditions).covers(outer)


def hits_of(node: Reduce, body: Expr, axes: Sequence[Axis]) -> Hits | None:
    """The comparison of ``node``, a sum of ``body``, that says which of its terms count."""
    found = [n for n in all_of(Call, body, node.where) if _compares(n, node.axes)]
    if len(found) != 1:
        return None
    (comparison,) = found
    hit = comparison if comparison.op is EQUAL else call(NOT, comparison)
    guards = [c for c in conjuncts(node.where) if c is not hit]
    if any(n is comparison for c in guards for n in postorder(c)):
        return None
    value, otherwise = body, as_expr(0)
    if len(guards) == len(conjuncts(node.where)):
        value, otherwise = (
            _decided(body, comparison, hit is comparison),
            _decided(body, comparison, hit is not comparison),
        )
    for read, element in (comparison.args[::-1], comparison.args):
        if comparison.op is not EQUAL and read is not comparison.args[1]:
            continue
        name = attains(read, element, (*axes, *node.axes), [c for c in guards if is_decidable(c)])
        if name is None or comparison.op is (GREATER if name == "max" else LESS):
            continue
        moves = depends_on(read, node.axes)
        moving, still = (read, element) if moves else (element, read)
        carries = _is_nan_or_zero(otherwise, moving)
        if depends_on(still, node.axes) or not (carries or is_zero(otherwise)):
            continue
        own = ("max" if name == "min" else "min") if moves else name
        spreads = carries or comparison.op is not EQUAL
        return Hits(moving, still, value, own, spreads, moves and not spreads, comparison)
    return None


def _compares(node: Call, axes: Sequence[Axis]) -> bool:
    """Whether ``node`` compares two different numbers, one of them over ``axes``."""
    if node.op not in (EQUAL, LESS, GREATER):
        return False
    return node.args[0] is not node.args[1] and dtypes.is_float(node.args[0].dtype) and depends_on(node, axes)


def _decided(body: Expr, comparison: Expr, truth: bool) -> Expr:
    """``body`` where ``comparison`` is known."""
    value = TRUE if truth else call(NOT, TRUE)

    def rule(node: Expr) -> Expr:
        match node:
            case Call() if node is comparison:
                return value
            case Call(op, (test, a, b)) if op is SELECT and isinstance(test, Const):
                return a if test.value else b
            case Call(op, (test,)) if op is NOT and isinstance(test, Const):
                return Const(not test.value)
            case Call(op, (test,)) if op.name == "cast" and isinstance(test, Const) and test.dtype == "bool":
                return Const(float(bool(test.value)), node.dtype)
        return node

    return rewrite(body, rule)


def _is_nan_or_zero(expr: Expr, element: Expr) -> bool:
    """Whether ``expr`` is zero, or ``element`` where that is NaN."""
    match expr:
        case Call(op, (Call(inner, (a, b)), zero, other)) if op is SELECT and inner is EQUAL:
            return a is element and b is element and other is element and is_zero(zero)
    return False
