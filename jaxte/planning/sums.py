"""The steps of planning for the sums in one definition, and the order in which they are asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from jaxte.algebra.data_conditions import with_conditions_around
from jaxte.algebra.idle_conditions import without_idle_conditions
from jaxte.lang.expr import TRUE, Expr, Read, Reduce, call, conjuncts
from jaxte.lang.limits import MARGIN
from jaxte.lang.operators import AND, DIVIDE, SELECT
from jaxte.lang.rules import Rule, applied
from jaxte.lang.walk import outermost, substitute
from jaxte.meaning.points import points
from jaxte.planning.asked import Asked
from jaxte.planning.conditions.plain_conditions import with_plain_conditions
from jaxte.planning.indices.digit_choices import by_digit_values
from jaxte.planning.indices.digits import over_digits, with_digit_axes, with_whole_axes
from jaxte.planning.indices.shaped import with_flat_windows, with_shapes
from jaxte.planning.orders.distribution import added
from jaxte.planning.sum_steps import (
    COUNTED,
    DIVISORS,
    FACTORS,
    SOLVED,
    TERMS,
    TERMS_APART,
    WHOLE_TERMS,
    WHOLE_VALUES,
    Sum,
)
from jaxte.tensors.bodies.contexts import guards_of
from jaxte.tensors.copies import Extended, with_copies
from jaxte.tensors.structure import PartialSum, mark_parts, topological_order
from jaxte.tensors.tensor import Compute, Tensor


@dataclass(frozen=True)
class Definition(Asked):
    """Where a step for a whole definition is asked.

    Attributes:
        copies: those with continued ends that exist, which grow; None where the plan may not count on others.
        parts: partial sums that exist.
    """

    copies: dict[object, Extended] | None = None
    parts: Sequence[PartialSum] = ()


CONDITIONS = Rule[Expr, Asked](
    "plain conditions",
    lambda body, at: with_plain_conditions(without_idle_conditions(body)),
    "conditions are ranges of positions, and none that a factor says",
)
SHAPES = Rule[Compute, Definition](
    "shapes of flat tensors",
    lambda own, at: renewed(own, with_shapes(own.axes, own.body)),
    "a flat tensor that is read at digits of its positions has the shape of the digits",
)

FLAT = Rule[Compute, Definition](
    "flat windows",
    lambda own, at: renewed(own, with_flat_windows(own.body)),
    "a tensor of which the digits of a window's positions are read is a flat one, read at the positions",
)


def _at_digits(own: Compute, at: Definition) -> Compute:
    summed = renewed(own, with_digit_axes(own.body))
    found = over_digits(summed) or by_digit_values(summed)
    if found is None:
        return own if summed is own else renewed(own, _better_body(SHAPES.at(summed, at), at))
    part, element = found
    better = _better_body(SHAPES.at(part, at), at)
    return renewed(
        own, element if better is part.body else Read(part.over(part.axes, better), element.indices)
    )


OVER_DIGITS = Rule(
    "over digits", _at_digits, "definitions, and sums, over flat positions are those over their digits"
)


def _on_copies(own: Compute, at: Definition) -> Compute:
    sums = outermost(own.body)
    if not sums:
        return own
    exist = {} if at.copies is None else at.copies
    grown = dict(exist)
    # a remainder that is a digit of a sum's own axes does not wrap
    digits = substitute(own.body, {n: with_whole_axes(n) for n in sums if n.is_sum})
    straight = with_copies(digits, lambda read: True, grown)
    if straight is None:
        return own
    tried = replace(at, fired=[])
    body = _planned(own, straight.body, outermost(straight.body), tried)
    if body is straight.body or not _is_worth(own, body, exist.values()):
        return own
    exist |= grown
    at.fired.extend(name for name in tried.fired if name not in at.fired)
    return renewed(own, body)


CONTINUED_ENDS = Rule(
    "continued ends", _on_copies, "sums that read around or beyond the ends are planned over copies with continued ends"
)  # fmt: skip
DEFINITIONS: tuple[Rule, ...] = (OVER_DIGITS, SHAPES, FLAT, CONTINUED_ENDS)


def planned_body(tensor: Compute, at: Definition) -> Expr:
    """The body of ``tensor`` with each of its sums planned; the same node where that gains nothing.

    A sum with reads that wrap, or are held or reflected at the ends of a tensor, is planned where these are reads of a copy with continued ends,
    ``x_extended[i + k]`` for ``x[(i + k) % n]``.
    """
    over = OVER_DIGITS.at(tensor, at)
    body = over.body if over is not tensor else _better_body(SHAPES.at(tensor, at), at)
    mark_parts(tensor, tensor.body, body)
    return body


def planned_adjoint(adjoint: Compute, at: Definition) -> Expr:
    """The body of ``adjoint`` planned, with its conditions, in which other positions were put in, as plain as can be."""
    own = renewed(adjoint, CONDITIONS.at(adjoint.body, at))
    return planned_body(own, at)


def _better_body(own: Compute, at: Definition) -> Expr:
    """The body of ``own`` with its sums planned, over copies with continued ends where that is worth it."""
    own = FLAT.at(own, at)
    straight = CONTINUED_ENDS.at(own, at)
    return straight.body if straight is not own else _planned(own, own.body, outermost(own.body), at)


def _is_worth(tensor: Compute, body: Expr, exist: Iterable[Tensor]) -> bool:
    """Whether ``tensor`` takes about as many points as before with another ``body``, the copies that this reads included."""
    known = {*tensor.inputs, *exist}
    new = Compute(tensor.name, tensor.axes, body)
    order = topological_order([new], lambda t: () if t in known else t.inputs)
    found = sum(points(t) for t in order if isinstance(t, Compute) and t not in known)
    return found <= MARGIN * points(tensor)


def _planned(tensor: Compute, body: Expr, sums: Sequence[Reduce], at: Definition) -> Expr:
    """``body``, of the elements of ``tensor``, with ``sums`` planned."""
    guards = {} if isinstance(body, Reduce) else guards_of(body, set(sums))
    table: dict[Expr, Expr] = {}
    for node in sums:
        own = tuple(guards.get(node, ()))
        counted = with_conditions_around(node, own)
        new = _sum_planned(counted, Sum(at.without, at.fired, tensor.axes, tensor.name, own, at.parts))
        if new is not node:
            table[node] = new
    return substitute(body, table)


def _sum_planned(node: Reduce, at: Sum) -> Expr:
    """``node``, a reduction where the guards of ``at`` hold, or the same by fewer points or partial sums."""
    outside, value = SOLVED.at((TRUE, node), at)
    if value is not node:
        return _where(outside, value, node)
    outside, value = COUNTED.at((TRUE, node), at)
    if not isinstance(value, Reduce):
        return _where(outside, value, node)
    value, divisors = DIVISORS.at((value, ()), at)
    if divisors:
        inner = _sum_planned(value, at)
        return _where(outside, reduce(lambda above, below: call(DIVIDE, above, below), divisors, inner), node)
    for rule in WHOLE_VALUES:
        found = rule.at(value, at)
        if found is not value:
            return _where(outside, found, node)
    within = replace(at, guards=(*at.guards, *conjuncts(outside)))
    terms = TERMS_APART.at((applied(value, FACTORS, at),), within)
    new = added([applied(term, TERMS, within) for term in terms])
    if isinstance(new, Reduce) and not within.guards:
        new = WHOLE_TERMS.at(new, within)
    return _where(outside, new, node)


def _where(condition: Expr, value: Expr, node: Reduce) -> Expr:
    """``value`` where ``condition`` holds, and what ``node`` is of no points elsewhere.

    A sum is differentiated wherever it stands; other reductions are where they are all of a body, so that their condition goes inside.
    """
    if condition is TRUE:
        return value
    if isinstance(value, Reduce) and value.reducer is node.reducer and not value.is_sum:
        where = call(AND, condition, value.where)
        return value.changed(where=where)
    return call(SELECT, condition, value, node.reducer.identity[0])


def renewed(tensor: Compute, body: Expr) -> Compute:
    """``tensor``, or the same with another body of the same values."""
    if body is tensor.body:
        return tensor
    made = tensor.renewed(body)
    made.with_override(tensor.override)
    return made
