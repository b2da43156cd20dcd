"""A sum over the positions of a recurrence as one more state of it, which adds up what belongs to each position, or to the one before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxte.derivatives.rebuilt import Rebuilt
from jaxte.lang.expr import TRUE, Axis, Expr, Read, Reduce, as_expr, call, cast, conjunction
from jaxte.lang.operators import ADD, SELECT
from jaxte.lang.walk import free_axes, substitute
from jaxte.sets.affine import normal
from jaxte.sets.intervals import known
from jaxte.tensors.recurrences.node import Recurrence, State
from jaxte.tensors.shapes import same_extent
from jaxte.tensors.tensor import Compute, Tensor


@dataclass(frozen=True)
class Total:
    """A sum in the body of a tensor, as a state of a recurrence: its last value is the sum, less ``rest``, if that is something."""

    node: Reduce
    state: State
    definition: Compute
    rest: Expr | None


def is_along(axis: Axis, group: Recurrence) -> bool:
    """Whether ``axis`` counts the positions of ``group``, all of them or all but some at the ends."""
    if axis.lo is as_expr(0) and same_extent(axis.hi, group.extent):
        return True
    lo, hi, extent = known(axis.lo), known(axis.hi), known(as_expr(group.extent))
    if lo is None or hi is None or extent is None:
        return False
    return 0 <= lo < hi <= extent and extent < 2 * (hi - lo)


def total_of(tensor: Compute, node: Reduce, axis: Axis, group: Recurrence, is_late: bool) -> Total:
    """``S[t, ..] = S[t - 1, ..] +`` the sum over the other axes at ``t``, or at the position before if it ``is_late``."""
    axes = [a for a in tensor.axes if a in free_axes(node)]
    clock = Axis(axis.name, 0, as_expr(group.extent))
    part = _part(node, axis)
    state = State(f"{tensor.name}_sum", (group.extent, *(a.hi for a in axes)), node.dtype)
    before = normal(clock + (1 if group.reverse else -1))
    inside = (clock < as_expr(group.extent) - 1) if group.reverse else (clock >= 1)
    zero = cast(as_expr(0), node.dtype)
    so_far = call(SELECT, inside, Read(state, (before, *axes)), zero)
    at = before if is_late else clock
    own = substitute(part, {axis: at})
    counts = [*([inside] if is_late else []), *_within(axis, at, clock, group, is_late)]
    more = call(SELECT, conjunction(counts), cast(own, node.dtype), zero) if counts else own
    whole = Compute(state.name, (clock, *axes), cast(call(ADD, so_far, more), node.dtype))
    states: dict[Tensor, Tensor] = dict(zip(group.tensors, group.states, strict=True))
    (definition,) = Rebuilt({**states, **{s: s for s in group.states}, state: state}).parts([whole])
    assert isinstance(definition, Compute)
    last = as_expr(0) if group.reverse else normal(as_expr(group.extent) - 1)
    is_left = is_late and _holds(axis, known(last))
    return Total(node, state, definition, substitute(part, {axis: last}) if is_left else None)


def _within(axis: Axis, at: Expr, clock: Axis, group: Recurrence, is_late: bool) -> list[Expr]:
    """The conditions under which ``at`` is a position of ``axis``, those that do not hold anyway."""
    extent = known(as_expr(group.extent))
    if extent is None:
        return []
    first, last = 0, extent - 1
    if is_late:  # the positions that some step comes to after their own
        first, last = (first + 1, last) if group.reverse else (first, last - 1)
    found = [] if _holds(axis, first) else [at >= axis.lo]
    return found if _holds(axis, last) else [*found, at < axis.hi]


def _holds(axis: Axis, position: int | None) -> bool:
    """Whether ``position`` is one of ``axis``, as far as its ends are known."""
    lo, hi = known(axis.lo), known(axis.hi)
    return position is None or ((lo is None or lo <= position) and (hi is None or position < hi))


def _part(node: Reduce, axis: Axis) -> Expr:
    """``node`` at one position of ``axis``."""
    rest = tuple(a for a in node.axes if a is not axis)
    (expr,), where = node.exprs, node.where
    if rest:
        return node.changed(exprs=(expr,), axes=rest, where=where)
    return expr if where is TRUE else call(SELECT, where, expr, cast(as_expr(0), expr.dtype))


def with_totals(group: Recurrence, sums: Sequence[Total]) -> Recurrence:
    """``group`` with more states."""
    return Recurrence(
        (*group.states, *(s.state for s in sums)),
        (*group.definitions, *(s.definition for s in sums)),
        (*group.places, *(0 for _ in sums)),
        group.reverse,
    )
