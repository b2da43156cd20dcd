"""Conditions on one dimension: the slice of the dimension at which they hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import gcd

from jaxte.lang.divisions import Quotient, Remainder, division
from jaxte.lang.expr import FALSE, TRUE, Axis, Call, Const, Expr, alternatives, call, conjunction, conjuncts
from jaxte.lang.graphs import among
from jaxte.lang.operators import AND, COMPARISONS, EQUAL, NOT, NOT_EQUAL, OR, SELECT
from jaxte.lower.views.scope import Scope
from jaxte.sets.affine import floor_divide, from_linear, linear
from jaxte.sets.conditions import positive
from jaxte.sets.index_forms import is_index, nonnegative_forms
from jaxte.sets.intervals import at_most, constant, decide, dims_of, known, nonnegative
from jaxte.sets.linear import Linear


@dataclass(frozen=True, slots=True)
class Box:
    """The values ``start + step * p`` of ``dim`` below ``stop``."""

    dim: Axis
    start: Linear
    stop: Linear
    step: int = 1

    @property
    def count(self) -> Expr:
        return from_linear(floor_divide(self.stop - self.start + constant(self.step - 1), self.step))


def split_conditions(condition: Expr, scope: Scope) -> list[Expr] | None:
    """The conjuncts of ``condition`` that are not the same at every point of ``scope``; None if one never holds."""
    kept = scope.once(("conditions", condition), lambda: _split(condition, scope))
    return None if kept is None else [*kept]


def _split(condition: Expr, scope: Scope) -> Sequence[Expr] | None:
    kept: list[Expr] = []
    for part in conjuncts(condition):
        left = _left(part, scope)
        if left is FALSE:
            return None
        kept += conjuncts(left)
    return kept


def _left(condition: Expr, scope: Scope) -> Expr:
    """What of ``condition`` varies in ``scope``: without the alternatives that never hold, and what always does."""
    match condition:
        case Call(op) if op is OR:
            parts = [_left(part, scope) for part in alternatives(condition)]
            varying = [part for part in parts if part is not FALSE]
            return (
                TRUE
                if any(part is TRUE for part in parts)
                else reduce(_either, varying)
                if varying
                else FALSE
            )
        case Call(op) if op is AND:
            parts = [_left(part, scope) for part in conjuncts(condition)]
            return (
                FALSE
                if any(part is FALSE for part in parts)
                else conjunction([p for p in parts if p is not TRUE])
            )
    part = positive(condition)
    truth = truth_of(part, scope)
    return part if truth is None else TRUE if truth else FALSE


def _either(a: Expr, b: Expr) -> Expr:
    return call(OR, a, b)


def truth_of(condition: Expr, scope: Scope) -> bool | None:
    """Whether a condition on indices holds everywhere, or nowhere; None where it varies or depends on data."""
    if isinstance(condition, Const):
        return bool(condition.value)
    sides = _sides(condition, scope)
    if sides is not None:
        return decide(condition.op, *sides)  # type: ignore[attr-defined]
    match condition:
        case Call(op, (a, b)) if (
            op in COMPARISONS
        ):  # of a choice that is none here, as of a read that is out of range
            chosen = call(op, _chosen(a, scope), _chosen(b, scope))
            return bool(chosen.value) if isinstance(chosen, Const) else None
    return None


def _chosen(node: Expr, scope: Scope) -> Expr:
    """The branch of a choice that is taken everywhere in ``scope``; the choice itself where it varies."""
    while (
        isinstance(node, Call)
        and node.op is SELECT
        and all(
            isinstance(c, Const) or _sides(positive(c), scope) is not None for c in conjuncts(node.args[0])
        )
    ):
        parts = split_conditions(node.args[0], scope)
        if parts:
            break
        node = node.args[2] if parts is None else node.args[1]
    return node


def _sides(condition: Expr, scope: Scope) -> tuple[Expr, Expr] | None:
    match condition:
        case Call(op, (a, b)) if op in COMPARISONS and a.weak and b.weak and is_index(a) and is_index(b):
            return scope.index(a), scope.index(b)
    return None


def condition_dims(condition: Expr, scope: Scope) -> list[Axis]:
    """The dimensions that a condition on indices depends on."""
    sides = _sides(condition, scope)
    return [] if sides is None else list(dict.fromkeys(dims_of(sides[0]) + dims_of(sides[1])))


def forms_of_condition(condition: Expr, scope: Scope) -> list[Linear]:
    """Forms over ``scope`` whose being at least 0 is the condition; none for conditions of another kind."""
    sides = _sides(condition, scope)
    return [] if sides is None else [*nonnegative_forms(call(condition.op, *sides))]  # type: ignore[attr-defined]


def box_of(condition: Expr, scope: Scope) -> Box | None:
    """The slice of one dimension at which ``condition`` holds; None where it is no such condition."""
    return scope.once(("box", condition), lambda: _box_of(condition, scope))


def _box_of(condition: Expr, scope: Scope) -> Box | None:
    sides = _sides(condition, scope)
    if sides is None:
        return None
    difference = linear(sides[0]) - linear(sides[1])
    dims = [a for a in difference.terms if dims_of(a)]
    if len(dims) != 1:
        return None
    forms = forms_of_condition(condition, scope)
    if not isinstance(dims[0], Axis):
        found = _quotients(dims[0], forms) if forms else None
        return found or _congruence(condition, dims[0], difference)
    return _interval(dims[0], forms) if forms else None


def _quotients(atom: Expr, forms: list[Linear]) -> Box | None:
    """Bounds on ``(dim + s) // c`` as bounds on ``dim``."""
    match division(atom):
        case Quotient(numerator, int() as divisor):
            inner = linear(numerator)
        case _:
            return None
    dims = [a for a in inner.terms if dims_of(a)]
    if len(dims) != 1 or not isinstance(dims[0], Axis) or abs(inner.coefficient(dims[0])) != 1:
        return None
    whole: list[Linear] = []
    for form in forms:
        # q >= m where c * q + c - 1 >= n >= c * q means n >= c * m; q <= m means n <= c * m + c - 1
        coefficient, rest = form.coefficient(atom), form.without(atom)
        if coefficient == 1:
            whole.append(inner + rest * divisor)
        elif coefficient == -1:
            whole.append(rest * divisor + constant(divisor - 1) - inner)
        else:
            return None
    return _interval(dims[0], whole)


def _interval(dim: Axis, forms: list[Linear]) -> Box | None:
    box = Box(dim, constant(0), linear(dim.hi))
    for form in forms:
        coefficient, rest = form.coefficient(dim), form.without(dim)
        if coefficient > 0:  # dim >= ceil(-rest / coefficient)
            start = floor_divide(rest * -1 + constant(coefficient - 1), coefficient)
            tight = Box(dim, start, linear(dim.hi))
        else:
            tight = Box(dim, constant(0), floor_divide(rest, -coefficient) + constant(1))
        met = intersect(box, tight)
        if met is None:
            return None
        box = met
    return box


def _congruence(condition: Expr, atom: Expr, difference: Linear) -> Box | None:
    """``(u * dim + s) % m == r`` for numbers: one value in every so many."""
    match condition, division(atom):
        case Call(op, _), Remainder(numerator, int() as modulus) if op is EQUAL:
            pass
        case _:
            return None
    form, factor = linear(numerator), difference.coefficient(atom)
    dims = list(form.terms)
    if (
        len(dims) != 1
        or not isinstance(dims[0], Axis)
        or abs(factor) != 1
        or not difference.without(atom).is_constant
    ):
        return None
    dim, wanted = dims[0], -difference.constant * factor
    period = modulus // gcd(modulus, form.coefficient(dim))
    hits = [p for p in range(period) if (form.coefficient(dim) * p + form.constant) % modulus == wanted]
    return Box(dim, constant(hits[0]), linear(dim.hi), period) if len(hits) == 1 else None


def residue_of(condition: Expr, scope: Scope) -> tuple[Axis, int, int] | None:
    """A dimension, a base and the one remainder by it at which ``condition`` holds, at all positions that have it; where it is not even it is odd."""
    found = _one_residue(condition, scope)
    match condition:
        case Call(op, (negated,)) if op is NOT and found is None:
            other = _one_residue(positive(negated), scope)
        case Call(op, args) if op is NOT_EQUAL and found is None:
            other = _one_residue(call(EQUAL, *args), scope)
        case _:
            return found
    return (other[0], 2, 1 - other[2]) if other is not None and other[1] == 2 else None


def _one_residue(condition: Expr, scope: Scope) -> tuple[Axis, int, int] | None:
    box = box_of(condition, scope)
    if box is None or box.step == 1 or not box.start.is_constant:
        return None
    start = box.start.constant
    return (box.dim, box.step, start) if start < box.step and at_most(box.dim.hi, box.stop) else None


def intersect(a: Box, b: Box) -> Box | None:
    """Both of two conditions on one dimension; None where the sizes leave it open."""
    if a.step != 1 and b.step != 1:
        return None
    start = _larger(a.start, b.start)
    stop = _larger(a.stop * -1, b.stop * -1)
    if start is None or stop is None:
        return None
    step = max(a.step, b.step)
    if step != 1:
        strided = a if a.step != 1 else b
        ahead = start - strided.start
        if not ahead.is_constant:
            return None
        start = start + constant(-ahead.constant % step)
    return Box(a.dim, start, stop * -1, step)


def _larger(a: Linear, b: Linear) -> Linear | None:
    return a if at_most(b, a) else b if at_most(a, b) else None


def is_empty(box: Box) -> bool:
    return nonnegative(box.start - box.stop)


def usable(box: Box) -> bool:
    """Whether it is known, whatever the sizes are, that the slice lies within the dimension."""
    count = known(box.count)
    return count is not None or (
        nonnegative(box.start) and nonnegative(box.stop - box.start) and at_most(box.stop, box.dim.hi)
    )


@dataclass(frozen=True, slots=True)
class Cut:
    """What is left of dimensions and conditions where one of these holds; no dimensions where that is nowhere."""

    scope: Scope
    dims: tuple[Axis, ...] | None
    conditions: tuple[Expr, ...]


def cut(conditions: Sequence[Expr], dims: Sequence[Axis], scope: Scope) -> Cut | None:
    """The first of ``conditions`` that is a slice of one of ``dims``, carried out; None where none is."""
    for condition in conditions:
        box = box_of(condition, scope)
        if box is None or not among(box.dim, dims) or not usable(box):
            continue
        if is_empty(box):
            return Cut(scope, None, ())
        inner, part = scope.restrict(box.dim, from_linear(box.start), box.step, box.count)
        left = tuple(c for c in conditions if c is not condition)
        return Cut(inner, tuple(part if d is box.dim else d for d in dims), left)
    return None
