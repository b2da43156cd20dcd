"""Reads within a recurrence that do not say how many steps ago they are: ``h[1]`` where ``t == 2``, ``h[k]`` for all ``k < t``.

Where the conditions around a read fix that number, the read is written with it. Where they leave none but earlier positions, it is one of all positions
so far, which the loop hands on. A tensor on the way, of which more than one position is read, is what its definition says.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence

from jaxte.lang.dtypes import is_integer
from jaxte.lang.expr import Axis, Call, Const, Expr, Read, Reduce, call
from jaxte.lang.graphs import among
from jaxte.lang.operators import COMPARISONS, EQUAL, SELECT
from jaxte.lang.walk import all_of, free_axes, reads_of, rewrite, rewrite_reads, substitute
from jaxte.sets.affine import normal
from jaxte.sets.domain import IntegerSet
from jaxte.sets.index_forms import linear_or_none
from jaxte.tensors.bodies.contexts import contexts
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.recurrences.node import Position, Recurrence, State
from jaxte.tensors.tensor import Compute, Tensor

_LATEST = 2**30  # position of a loop around
_INTEGERS = -(2**63), 2**63 - 1  # that data may be


def offset_from(clock: Axis, index: Expr) -> Expr | None:
    """How far ``index`` is from the clock; None where that is not the same at every point."""
    form = linear_or_none(index)
    if form is None or form.coefficient(clock) != 1:
        return None
    rest = normal(index - clock)
    return None if free_axes(rest) else rest


def with_bodies(body: Expr, between: Sequence[Tensor], clock: Axis) -> Expr:
    """``body`` with the definitions of those tensors ``between`` states that it does not read at one position for each of its own."""
    for tensor in reversed(between):
        if isinstance(tensor, Compute) and any(r.tensor is tensor for r in reads_of(body)):
            body = _with_body(body, tensor, clock)
    return body


def _with_body(body: Expr, tensor: Compute, clock: Axis) -> Expr:
    def rule(read: Read, over: Read) -> Expr:
        return element_of(tensor, over) if read.tensor is tensor and not _is_at_one(read, clock) else over

    return rewrite_reads(body, rule)


def _is_at_one(read: Read, clock: Axis) -> bool:
    moving = [index for index in read.indices if among(clock, free_axes(index))]
    return len(moving) == 1 and offset_from(clock, moving[0]) is not None


def element_of(tensor: Compute, read: Read) -> Expr:
    """What ``read`` is of, with reduced axes of its own: those of the definition may be around the read."""

    def rule(node: Expr) -> Expr:
        if not isinstance(node, Reduce):
            return node
        axes = tuple(Axis(a.name, a.lo, a.hi, reduction=True) for a in node.axes)
        table: dict[Expr, Expr] = dict(zip(node.axes, axes, strict=True))
        exprs = tuple(substitute(e, table) for e in node.exprs)
        return node.changed(exprs=exprs, axes=axes, where=substitute(node.where, table))

    body = rewrite(tensor.body, rule) if tensor.body.reduces else tensor.body
    return substitute(body, dict(zip(tensor.axes, read.indices, strict=True)))


def at_clock(body: Expr, places: Mapping[Tensor, int], clock: Axis) -> Expr:
    """``body`` where reads of tensors at a number that the conditions around them say the clock is, or is some steps away from, are written so.

    Args:
        places: which axis of each tensor the clock is.
    """
    suspects = {
        r
        for r in reads_of(body)
        if r.tensor in places and offset_from(clock, r.indices[places[r.tensor]]) is None
    }
    found: dict[Read, list[int | None]] = {r: [] for r in suspects}
    axes_of_body = tuple(dict.fromkeys((clock, *free_axes(body))))
    for read, axes, conditions in contexts(axes_of_body, body, suspects) if suspects else ():
        lag = clock - read.indices[places[read.tensor]]
        points = points_around(axes, conditions, lag)
        if not points.is_empty():
            found[read].append(fixed_at(points, lag))
    lags = {r: (own or [0])[0] for r, own in found.items() if len(set(own)) < 2}

    def rule(read: Read, over: Read) -> Expr:
        lag = lags.get(read)
        return over if lag is None else _moved(over, places[read.tensor], normal(clock - lag))

    return rewrite_reads(body, rule)


def with_lags(body: Expr, group: Recurrence, clock: Axis, so_far: Callable[[State], Placeholder]) -> Expr:
    """``body`` where reads of states say how many steps ago they are, or are reads of all positions ``so_far``, where the conditions around them say so.

    The position of a loop around is a number of these, too, and so is data that positions are made of, or compared with.
    """
    around = {r: Axis(r.tensor.name, 0, _LATEST) for r in reads_of(body) if isinstance(r.tensor, Position)}
    places = [i for r in reads_of(body) if r.tensor in group.numbers for i in r.indices]
    compared = [n for n in all_of(Call, body) if n.op in COMPARISONS and _is_of_positions(n)]
    around |= numbers_within([*places, *compared], group.numbers)
    body = substitute(body, around)
    return substitute(_with_known(body, group, clock, so_far), {a: r for r, a in around.items()})


def _is_of_positions(comparison: Call) -> bool:
    return all(linear_or_none(a) is not None for a in comparison.args)


def numbers_within(positions: Iterable[Expr], states: Container[Tensor]) -> dict[Read, Axis]:
    """An axis for each integer that ``positions`` are made of and that is no value of ``states``: conditions may say which it is."""
    data = dict.fromkeys(r for r in reads_of(*positions) if is_integer(r.dtype))
    held = {r: [r.tensor, *(own.tensor for own in reads_of(*r.indices))] for r in data}
    plain = [r for r, tensors in held.items() if not any(t in states for t in tensors)]
    return {r: Axis(r.tensor.name, *_INTEGERS) for r in plain if not isinstance(r.tensor, Position)}


def _with_known(body: Expr, group: Recurrence, clock: Axis, so_far: Callable[[State], Placeholder]) -> Expr:
    suspects = {r for r in reads_of(body) if r.tensor in group.numbers and not _is_fixed(r, group, clock)}
    if not suspects:
        return body
    places: dict[Read, list[tuple[IntegerSet, Expr]]] = {r: [] for r in suspects}
    # the clock is among the axes of a body that does not mention it, as one that is a read of h[0] is
    axes_of_body = tuple(dict.fromkeys((clock, *free_axes(body))))
    for read, axes, conditions in contexts(axes_of_body, body, suspects):
        index = read.indices[group.place_of(read.tensor)]
        lag = (index - clock) if group.reverse else (clock - index)
        points = points_around(axes, conditions, lag)
        if not points.is_empty():
            places[read].append((points, lag))

    def rule(read: Read, over: Read) -> Expr:
        found = _at(over, places[read], group, clock, so_far) if read in places else None
        return over if found is None else found

    return rewrite_reads(body, rule)


def _at(
    read: Read,
    places: list[tuple[IntegerSet, Expr]],
    group: Recurrence,
    clock: Axis,
    so_far: Callable[[State], Placeholder],
) -> Expr | None:
    """What is read at some ``places``, points with the number of steps ago; None where some of them are not known yet."""
    state = read.tensor
    assert isinstance(state, State)
    lags = {fixed_at(points, lag) for points, lag in places} or {1}
    (fixed,) = lags if len(lags) == 1 else (None,)
    if fixed is not None:
        return _moved(read, group.place_of(state), normal(clock + (fixed if group.reverse else -fixed)))
    if not all(points.implies(lag >= 0) for points, lag in places):
        return None
    earlier = Read(so_far(state), read.indices)
    if all(points.implies(lag >= 1) for points, lag in places):
        return earlier
    place = group.place_of(state)
    return call(SELECT, call(EQUAL, read.indices[place], clock), _moved(read, place, clock), earlier)


def _moved(read: Read, place: int, position: Expr) -> Read:
    return Read(read.tensor, [position if n == place else i for n, i in enumerate(read.indices)])


def points_around(axes: Sequence[Axis], conditions: Sequence[Expr], value: Expr) -> IntegerSet:
    """The points that ``conditions`` leave, of those ``axes`` that they or ``value`` mention: a long body has dozens of others."""
    mentioned = {a for e in (value, *conditions) for a in free_axes(e)}
    return IntegerSet([a for a in axes if a in mentioned], conditions)


def fixed_at(points: IntegerSet, value: Expr) -> int | None:
    """The number that ``value`` is at all ``points``, as how many steps ago a read is."""
    ends = points.maximum(value), points.maximum(-value)
    found = [int(e.value) for e in ends if isinstance(e, Const)]  # type: ignore[arg-type]
    return found[0] if len(found) == 2 and found[0] == -found[1] else None


def _is_fixed(read: Read, group: Recurrence, clock: Axis) -> bool:
    index = read.indices[group.place_of(read.tensor)]
    offset = offset_from(clock, index)
    form = None if offset is None else linear_or_none(offset)
    return bool(reads_of(index)) or (form is not None and form.is_constant)
