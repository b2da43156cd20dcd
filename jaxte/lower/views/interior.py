"""Where the interior of a tensor is: the part of its axes at which no read leaves its tensor or wraps around.

``u[i - 1] + u[(i + 1) % n]`` has an interior from 1 up to ``n - 1``, ``u[max((i - 1) // 2, 0)]`` one from 1 on. It ends where an index of one
axis becomes negative or too large, wraps around or meets another end of a minimum, and where a condition on one axis changes. A
quotient that takes its next value all the time has no end there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jaxte.lang.divisions import Division, Quotient, Remainder, division
from jaxte.lang.expr import Axis, Call, Expr, Read, as_expr
from jaxte.lang.graphs import among
from jaxte.lang.operators import MAXIMUM, MINIMUM, SELECT
from jaxte.lang.walk import free_axes, postorder
from jaxte.lower.views.condition_box import box_of, split_conditions
from jaxte.lower.views.scope import Scope
from jaxte.sets.affine import Linear, from_linear, linear
from jaxte.sets.conditions import narrowed
from jaxte.sets.intervals import constant, known
from jaxte.sets.tabulate import evaluate_index

_LEAST_INTERIOR = 0.5  # the share of an axis that has to be left of it
_REPEATED = (2, 4)  # divisors of quotients whose ends are worth a piece of their own, as _takes_steps says

Cuts = Mapping[Axis, tuple[int, int]]  # positions before and after the interior of an axis
Interval = tuple[Axis, int, int]  # an axis, and the first and the last of its positions


def interior_cuts(root: Expr, reads: Sequence[Read], axes: Sequence[Axis], scope: Scope) -> Cuts:
    """What to take off each axis so that reads are in range and conditions the same throughout; empty where that is much."""
    found: dict[Axis, tuple[int, int]] = {}
    for axis, first, last in (*_of_reads(reads), *_of_conditions(root, scope)):
        extent = known(axis.hi) or 0
        if not among(axis, axes) or last - first + 1 < _LEAST_INTERIOR * extent:
            return {}
        before, after = found.get(axis, (0, 0))
        found[axis] = max(before, first), max(after, extent - 1 - last)
    for axis, (before, after) in found.items():
        if before + after > (1 - _LEAST_INTERIOR) * (known(axis.hi) or 0):
            return {}
    return {axis: found[axis] for axis in axes if axis in found and any(found[axis])}


def _of_reads(reads: Sequence[Read]) -> Iterator[Interval]:
    """Where each index of one axis is in range, and where it is a plain multiple of the axis: does not wrap, is not held at an end."""
    for read in reads:
        for index, extent in zip(read.indices, read.tensor.shape, strict=True):
            forms: list[Linear] = []
            form, size = _straight(index, forms), known(as_expr(extent))
            if form is not None and size is not None:
                yield from filter(None, map(_interval, (*forms, form, constant(size - 1) - form)))


def _straight(index: Expr, forms: list[Linear]) -> Linear | None:
    """``index`` as it is in the middle of its axis, and ``forms`` that are at least 0 where it is so; None for other indices."""
    total = constant(linear(index).constant)
    for atom, factor in linear(index).terms.items():
        own = linear(atom) if isinstance(atom, Axis) else _in_the_middle(atom, forms)
        if own is None:
            return None
        total = total + own * factor
    return total if len(total.terms) < 2 else None


def _in_the_middle(atom: Expr, forms: list[Linear]) -> Linear | None:
    match division(atom):
        case Quotient(number, int() as divisor) if _takes_steps(number, divisor):
            return Linear({atom: 1})
        case Division(number, int() as divisor) as divided:
            inner = _straight(number, forms)
            if inner is None or (middle := _value(inner)) is None:
                return None
            quotient = middle // divisor
            rest = inner - constant(quotient * divisor)
            forms += [rest, constant(divisor - 1) - rest]
            return rest if isinstance(divided, Remainder) else constant(quotient)
    match atom:
        case Call(op, (a, b)) if op is MINIMUM or op is MAXIMUM:
            first, second = _straight(a, forms), _straight(b, forms)
            if first is None or second is None or (middle := _value(first - second)) is None:
                return None
            if (middle < 0) == (op is MINIMUM):
                first, second = second, first
            forms.append((first - second) * (1 if op is MINIMUM else -1))
            return second
    return None


def _takes_steps(number: Expr, divisor: int) -> bool:
    """Whether the quotient of ``number``, a multiple of one axis, is the same on no half of the axis.

    Only those by 2 and 4: slices repeated three times, or eight, are written no faster without their ends.
    """
    match list(linear(number).terms.items()):
        case [(Axis() as axis, factor)] if (extent := known(axis.hi)) is not None:
            return abs(factor) * extent > 2 * divisor and divisor in _REPEATED
    return False


def _value(form: Linear) -> int | None:
    """``form`` in the middle of its axes."""
    index = from_linear(form)
    extents = {axis: known(axis.hi) for axis in free_axes(index)}
    if None in extents.values():
        return None
    return evaluate_index(
        index, {axis: extent // 2 for axis, extent in extents.items() if extent is not None}
    )


def _interval(form: Linear) -> Interval | None:
    """The positions of its axis at which ``form`` is at least 0; None where that is everywhere."""
    if len(form.terms) != 1:
        return None
    ((atom, factor),) = form.terms.items()
    match division(atom):
        case Quotient(number, int() as divisor):
            # q >= m where the number is at least d * m, q <= m where it is at most d * m + d - 1
            least = -(form.constant // factor) if factor > 0 else form.constant // -factor
            own = linear(number) - constant(least * divisor)
            return _interval(own if factor > 0 else constant(divisor - 1) - own)
    extent = known(atom.hi) if isinstance(atom, Axis) else None
    if not isinstance(atom, Axis) or extent is None:
        return None
    ends = narrowed((0, extent - 1), factor, form.constant)
    return None if ends == (0, extent - 1) else (atom, *ends)


def _of_conditions(root: Expr, scope: Scope) -> Iterator[Interval]:
    """Where each condition on one axis holds, if that is most of it, or fails."""
    for node in postorder(root):
        if isinstance(node, Call) and node.op is SELECT:
            for part in split_conditions(node.args[0], scope) or ():
                box = box_of(part, scope)
                if box is None or box.step != 1:
                    continue
                first, last = box.start, box.stop - constant(1)
                if first.is_constant and last.is_constant and known(box.dim.hi) is not None:
                    yield _larger_part(box.dim, first.constant, last.constant)


def _larger_part(axis: Axis, first: int, last: int) -> Interval:
    """The interval itself, or what is before or after it, whichever is the longest."""
    extent = known(axis.hi) or 0
    parts = [(first, last), (0, first - 1), (last + 1, extent - 1)]
    return (axis, *max(parts, key=lambda part: part[1] - part[0]))
