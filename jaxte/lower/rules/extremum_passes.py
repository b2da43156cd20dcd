"""What comes with an extremum, one pass for each value: its first and last places, how many there are, sums of what stands beside.

    least = min over k of x[k],   first = min over k of (k if x[k] == least),   count = sum over k of (1 if x[k] == least)

A reducer of several values says the same as one ``lax.reduce``, which XLA runs on the CPU element by element, with a branch for each value: two
nanoseconds an element, and so does ``lax.argmax``. The passes are loops over vectors, five of them take a fifth of that. They need elements that exist: one that
is computed again in a second loop may be rounded in another way, and would miss its own extremum, so it stands behind a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from jaxte.lang import dtypes
from jaxte.lang.expr import Axis, Call, Const, Expr, Read, Reduce, Reducer, call, conjunction
from jaxte.lang.graphs import among, place_of
from jaxte.lang.limits import NARROW, SMALLEST
from jaxte.lang.operators import ADD, EQUAL, GREATER, LESS, MAXIMUM, MINIMUM, NOT_EQUAL, SELECT
from jaxte.lower.arrays.elementwise import Apply, Kept, number
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.products import Reduced, identity_of
from jaxte.lower.body.assignment import Task
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.broadcasting import broadcast
from jaxte.lower.code.vocabulary import Value
from jaxte.lower.cost.work import points
from jaxte.lower.rules.operand_order import natural_order
from jaxte.lower.views.scope import Scope
from jaxte.sets.affine import linear
from jaxte.sets.intervals import constant, known, nonnegative
from jaxte.tensors.inputs import Placeholder

EACH = "a pass for each value"
_ARRAYS = 4  # as large as the elements, which the passes hold: what is in no cache is read faster once
_JOINED = {MINIMUM: "min", MAXIMUM: "max", ADD: "sum"}


@dataclass(frozen=True, slots=True)
class Pass:
    """How a value of equal elements is joined, and what a NaN among the elements makes of it; None where that does not matter."""

    function: str
    spoilt: Const | None


@dataclass(frozen=True, slots=True)
class Passes:
    """A reducer as the extremum ``function`` of its first value and what comes with it."""

    function: str
    others: tuple[Pass, ...]


def passes_of(reducer: Reducer) -> Passes | None:
    """The passes that ``reducer`` is; None where it combines in another way, or where a NaN leaves no trace in it."""
    x, y = reducer.lhs[0], reducer.rhs[0]
    if reducer.arity < 2 or not dtypes.is_float(x.dtype):
        return None
    for function, (first, second) in {"min": (LESS, GREATER), "max": (GREATER, LESS)}.items():
        ahead, behind = call(first, x, y), call(second, x, y)
        joined = [
            _joined(result, ahead, a, behind, b)
            for result, a, b in zip(reducer.results, reducer.lhs, reducer.rhs, strict=True)
        ]
        own, *rest = joined
        if own is None or not _carries_nan(own, x, y):
            continue
        others = [
            None if value is None else _pass(value, call(EQUAL, x, y), a, b)
            for value, a, b in zip(rest, reducer.lhs[1:], reducer.rhs[1:], strict=True)
        ]
        if all(others):
            return Passes(function, tuple(p for p in others if p is not None))
    return None


def _joined(result: Expr, ahead: Expr, a: Expr, behind: Expr, b: Expr) -> Expr | None:
    """What ``result`` is of elements of which none is ahead; None where it is not of the one that is ahead otherwise."""
    match result:
        case Call(op, (first, own, Call(inner, (second, other, rest)))) if op is SELECT and inner is SELECT:
            if first is ahead and own is a and second is behind and other is b:
                return rest
    return None


def _carries_nan(value: Expr, x: Expr, y: Expr) -> bool:
    match value:
        case Call(op, (equal, own, Const(spoilt))) if op is SELECT:
            return equal is call(EQUAL, x, y) and own is x and spoilt != spoilt
    return False


def _pass(value: Expr, equal: Expr, a: Expr, b: Expr) -> Pass | None:
    spoilt = None
    if isinstance(value, Call) and value.op is SELECT and value.args[0] is equal:
        _, value, other = value.args
        if not isinstance(other, Const):
            return None
        spoilt = other
    return next((Pass(name, spoilt) for op, name in _JOINED.items() if value is call(op, a, b)), None)


def passes_for(body: Body, node: Reduce, scope: Scope, dims: Sequence[Axis]) -> Passes | None:
    """The passes of the reducer of ``node``, where they gain: None where it has none, or dimensions may have no position."""
    if not _are_worth(body, node, scope, dims):
        return None
    return passes_of(node.reducer)


def _are_worth(body: Body, node: Reduce, scope: Scope, dims: Sequence[Axis]) -> bool:
    """Whether passes over the elements of ``node`` take less time than one reduction of several arrays, and none is without positions."""
    held = _ARRAYS * dtypes.width(node.exprs[0].dtype) * points(scope.order)
    facts = body.policy.facts
    if EACH in body.policy.without or not facts.combines_singly:
        return False
    if held > facts.rates.cache and not facts.fuses_products:
        return False
    return all(nonnegative(linear(d.hi) - constant(1)) for d in dims)


def by_passes(
    body: Body, node: Reduce, passes: Passes, parts: Sequence[Expr], scope: Scope, dims: Sequence[Axis]
) -> Task:
    """The value of ``node``, one of those of its reducer, by ``passes``."""
    wanted = scope
    scope = scope.arranged(natural_order(node.exprs[0], scope))  # no copy in another order
    order = scope.order
    axes = tuple(place_of(d, order) for d in dims)
    elements = yield from _operand(body, node, 0, parts, scope)
    x = body.shared(Kept(body.full(elements, order), "apart"))
    body.report.note("a pass for each value")
    out, kind = tuple(d for d in order if not among(d, dims)), (node.dtype, False)
    if not node.position:
        return body.in_order(Value(Reduced(passes.function, x, axes), out, kind), wanted)
    own = passes.others[node.position - 1]
    beside = yield from _operand(body, node, node.position, parts, scope)
    extremum = body.shared(Reduced(passes.function, x, axes, keep=True))
    nothing = identity_of(node.reducer, node.position)
    chosen = Apply(SELECT, (Apply(EQUAL, (x, extremum)), broadcast(beside, order), nothing))
    result: Node = Reduced(own.function, chosen, axes, node.dtype if own.function == "sum" else "")
    if own.spoilt is not None:
        # jnp.min loses a NaN in some loops
        nan = body.shared(Reduced("any", Apply(NOT_EQUAL, (x, x)), axes))
        result = Apply(SELECT, (nan, number(own.spoilt.value), result))
    return body.in_order(Value(result, out, kind), wanted)


def is_found_by_passes(body: Body, node: Reduce, scope: Scope, dims: Sequence[Axis]) -> bool:
    """Whether the position that ``node`` asks for, of an argmax or argmin, is found by passes: of few elements one reduction takes no longer."""
    many = points(scope.order) >= SMALLEST and prod(known(d.hi) or NARROW for d in dims) >= NARROW
    return (
        node.position == 0 and many and body.policy.facts.finds_singly and _are_worth(body, node, scope, dims)
    )


def position_by_passes(
    body: Body, node: Reduce, parts: Sequence[Expr], scope: Scope, dims: Sequence[Axis]
) -> Task:
    """The first position of ``node``, an argmax or argmin, whose element is the extremum, or the first that is NaN if one is."""
    wanted = scope
    scope = scope.arranged(natural_order(node.exprs[1], scope))
    order = scope.order
    axes = tuple(place_of(d, order) for d in dims)
    elements = body.full((yield from _operand(body, node, 1, parts, scope)), order)
    source = node.exprs[1]
    is_there = isinstance(source, Read) and isinstance(source.tensor, Placeholder)
    x = body.shared(elements if is_there else Kept(elements, "apart"))
    positions = yield from _operand(body, node, 0, parts, scope)
    extremum = Reduced("max" if node.reducer.name == "argmax" else "min", x, axes, keep=True)
    wins: Node = Apply(EQUAL, (x, extremum))
    if dtypes.is_inexact(source.dtype):
        unequal = Apply(NOT_EQUAL, (x, x))  # jnp.max loses a NaN in some loops
        wins = Apply(SELECT, (Reduced("any", unequal, axes, keep=True), unequal, wins))
    body.report.note("a pass for each value")
    chosen = Apply(SELECT, (wins, broadcast(positions, order), identity_of(node.reducer, 0)))
    out = tuple(d for d in order if not among(d, dims))
    return body.in_order(Value(Reduced("min", chosen, axes), out, (node.dtype, False)), wanted)


def _operand(body: Body, node: Reduce, position: int, parts: Sequence[Expr], scope: Scope) -> Task:
    """A value that is reduced, with the identity where the conditions do not hold."""
    expr, identity = node.exprs[position], node.reducer.identity[position]
    value = yield (call(SELECT, conjunction(list(parts)), expr, identity) if parts else expr), scope
    return body.cast(value, expr.dtype, always=value.kind[1])
