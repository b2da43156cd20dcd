"""Axes without a range, and the range that the reads of bodies give them.

Every axis begins at 0 and goes as far as all reads that it stands in stay inside of their tensors. isl answers for each read where it leaves
its tensor first; what is left is the order in which axes become known: ``x[t + k] * w[k]`` says what k is, and then what t is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from jaxte.lang.checks import one_of_type, wants_arguments
from jaxte.lang.errors import ArgumentError, IndexExpressionError
from jaxte.lang.expr import ZERO, Axis, Call, Expr, Reduce
from jaxte.lang.graphs import among
from jaxte.lang.interning import new_node
from jaxte.lang.operators import MINIMUM
from jaxte.lang.text import text
from jaxte.lang.walk import free_axes, postorder, reductions, substitute
from jaxte.sets.affine import linear, normal
from jaxte.sets.domain import IntegerSet
from jaxte.sets.intervals import nonnegative
from jaxte.tensors.bodies.open_uses import (
    OpenAxis,
    OpenRangeError,
    Use,
    contradiction,
    falls_from_zero,
    joined_otherwise,
    towards_zero,
    undetermined,
    uses_of,
)
from jaxte.tensors.shapes import same_extent, shape_text


class RangeAgain(Axis):
    """An axis to reduce over with the range that ``of``, an open axis, will have."""

    __slots__ = ("of",)
    of: OpenAxis
    is_open = True

    def __new__(cls, of: OpenAxis) -> RangeAgain:
        like = Axis(of.name, ZERO, of.hi, reduction=True)
        fields = {name: getattr(like, name) for name in (*Axis.__slots__, "dtype", "weak")}
        made: RangeAgain = new_node(cls, {**fields, "of": of})
        return made

    def __reduce__(self) -> Any:
        return RangeAgain, (self.of,)


def renamed(own: Axis, table: Mapping[Expr, Expr]) -> Axis:
    found = table.get(own, own)
    assert isinstance(found, Axis)
    return found


def repeated(bodies: Sequence[Expr]) -> list[RangeAgain]:
    """The axes that have the range of an open one."""
    reduced = [a for node in reductions(*bodies) for a in node.axes]
    return [a for a in dict.fromkeys(reduced) if isinstance(a, RangeAgain)]


def with_ranges(body: Expr, table: Mapping[Expr, Expr]) -> Expr:
    """``body`` with other axes, those that it reduces over too."""
    memo: dict[Expr, Expr] = dict(table)
    for node in postorder(body):
        if node in memo:
            continue
        children = [memo[child] for child in node.children]
        if isinstance(node, Reduce):
            own = [renamed(a, table) for a in node.axes]
            memo[node] = node.changed(exprs=children[:-1], axes=own, where=children[-1])
        else:
            same = all(new is old for new, old in zip(children, node.children, strict=True))
            memo[node] = node if same else node.rebuild(children)
    return memo[body]


def extents_of(axes: Sequence[Axis], bodies: Sequence[Expr], padded: bool = False) -> dict[OpenAxis, Expr]:
    """The extent of each open axis of ``bodies`` over ``axes``.

    Args:
        padded: whether reads may leave their tensors: then what an index adds to an axis does not count, and ``x[2 * t + k]`` has a t
            for every second element.

    Raises:
        OpenRangeError: an axis whose extent does not follow.
    """
    # these have the range of the axis that they repeat, and say as much about it
    if again := repeated(bodies):
        bodies = [with_ranges(body, {a: a.of for a in again}) for body in bodies]
    reduced = [a for node in reductions(*bodies) for a in node.axes]
    unknown = [a for a in dict.fromkeys((*axes, *reduced)) if isinstance(a, OpenAxis)]
    if not unknown:
        return {}
    uses = [use for body in bodies for use in uses_of(axes, body, unknown)]
    # Points that where= leaves out count for nothing, and a choice of x[i] or another value is as long as x.
    masks = {node.where for body in bodies for node in reductions(body)}
    unmasked = [replace(u, conditions=tuple(c for c in u.conditions if c not in masks)) for u in uses]
    whole = [replace(u, conditions=()) for u in uses if isinstance(u.index, OpenAxis)]
    known = _joined(unknown, bodies, uses)
    unknown = [a for a in unknown if a not in known]
    while unknown:
        reduced_over = [a for a in unknown if a.reduction]
        found = _next(unknown, uses, known, padded) or _next(reduced_over, unmasked, known, padded)
        found = found or _next(unknown, whole, known, padded)
        if not found:
            raise undetermined(unknown, uses)
        known |= found
        unknown = [a for a in unknown if a not in known]
    return known


def _joined(unknown: Sequence[OpenAxis], bodies: Sequence[Expr], uses: Sequence[Use]) -> dict[OpenAxis, Expr]:
    """The extents of axes along which ``bodies`` join as many parts."""
    known: dict[OpenAxis, Expr] = {}
    for own, joined, extent in [(a, at(), extent) for a in unknown for at, extent in a.stated]:
        if joined is None or not any(node is joined for node in postorder(*bodies)):
            continue
        known[own] = extent
        parts = set(postorder(joined))
        for use in uses:
            if (
                use.index is own
                and use.is_plain
                and use.read not in parts
                and not same_extent(use.extent, extent)
            ):
                raise joined_otherwise(own, extent, use)
    return known


def _next(
    unknown: Sequence[OpenAxis], uses: Sequence[Use], known: Mapping[OpenAxis, Expr], padded: bool
) -> dict[OpenAxis, Expr]:
    """The extents that are to be known next: of axes that are an index themselves; of those all of whose reads tell; of any other."""
    ready = {
        a: [u for u in uses if among(a, u.axes) and all(b is a or b in known for b in u.axes)]
        for a in unknown
    }
    plain = [a for a in unknown if any(isinstance(u.index, OpenAxis) for u in ready[a])]
    whole = [a for a in unknown if len(ready[a]) == sum(among(a, u.axes) for u in uses)]
    for group in (plain, whole, unknown):
        found = {}
        for own in group:
            extent = _extent(own, ready[own], known, padded)
            if extent is not None:
                found[own] = extent
        if found:
            return found
    return {}


def _extent(own: OpenAxis, uses: Sequence[Use], known: Mapping[OpenAxis, Expr], padded: bool) -> Expr | None:
    """The number of values of an axis by the reads of ``uses``, None where none of them ends it."""
    exact = [u for u in uses if u.is_plain]
    for use in exact[1:]:
        if not same_extent(use.extent, exact[0].extent):
            raise contradiction(own, exact[0], use)
    result = exact[0].extent if exact else None
    for use in uses:
        if use.is_plain:
            continue
        found = _first_outside(own, use, known, padded)
        if found is None:
            continue
        if found is ZERO and use.extent is not ZERO:
            raise OpenRangeError(
                own,
                [(use.read, use.position)],
                f"`{text(use.read)}` leaves axis {use.position} of {use.read.tensor.name} "
                f"{shape_text(use.read.tensor.shape)} at {own.name} = 0, where every axis begins",
                towards_zero(own, use),
            )
        if falls_from_zero(own, use):
            raise OpenRangeError(
                own,
                [(use.read, use.position)],
                f"`{text(use.read)}` is outside of {use.read.tensor.name} {shape_text(use.read.tensor.shape)} from {own.name} = 1 on",
                f"positions are counted from 0; in reverse they are {text(use.extent - 1 - own)}",
            )
        result = found if result is None else _smaller(own, use, result, found)
    return result


def _smaller(own: OpenAxis, use: Use, a: Expr, b: Expr) -> Expr:
    for one, other in ((a, b), (b, a)):
        if nonnegative(linear(other) - linear(one)):
            return one
    raise OpenRangeError(
        own,
        [(use.read, use.position)],
        f"the range of {own.name} ends at {text(a)} or at {text(b)}, and which of them is smaller depends on sizes",
    )


def _first_outside(own: OpenAxis, use: Use, known: Mapping[OpenAxis, Expr], padded: bool) -> Expr | None:
    """The first value of an axis at which the index of ``use`` may be outside of its tensor."""
    index, variables = use.index, use.scope
    if padded:
        index = index - substitute(index, {own: ZERO})
        index = substitute(index, {a: ZERO for a in free_axes(index) if a is not own})
        variables = (own,)
    conditions = [] if padded else list(use.conditions)
    ranges: dict[Expr, Any] = {
        a: (ZERO, known[a]) for a in variables if isinstance(a, OpenAxis) and a in known
    }
    open_ones = [a for a in variables if isinstance(a, OpenAxis) and a not in known]
    ranges |= dict.fromkeys(open_ones, None)
    conditions += [a >= 0 for a in open_ones]
    ends = [index >= use.extent, index <= -use.extent if padded else index < 0]
    try:
        linear(index)
        sets = [IntegerSet(variables, [*conditions, outside], ranges) for outside in ends]
    except IndexExpressionError:
        return None
    result: Expr | None = None
    for points in sets:
        if points.is_empty():
            continue
        least = points.maximum(-own)
        if least is None:
            return None
        end = _positive(least)
        result = end if result is None else _smaller(own, use, result, end)
    return result


def _positive(least: Expr) -> Expr:
    """``-least``, without the 0 that it is at least: whether a size is large enough is asked where it is known."""
    if isinstance(least, Call) and least.op is MINIMUM and among(ZERO, least.args):
        least = next((a for a in least.args if a is not ZERO), ZERO)
    return normal(-least)


def axis_again(own: Axis) -> Axis:
    """Another axis to reduce over with the range of ``own``."""
    if isinstance(own, OpenAxis):
        return RangeAgain(own)
    return Axis(own.name, own.lo, own.hi, True, own.given, own.ends)


@wants_arguments
def axis(name: str = "k") -> Axis:
    """An axis to reduce over, whose range follows from the reads that it stands in.

    It begins at 0 and goes as far as every read with it stays inside of its tensor. One axis may stand in several bodies, and has a
    range of its own in each. ``te.reduce_axis`` makes an axis with a range that you give.

    Raises:
        ShapeError: by ``te.compute``, where the reads do not determine the range, or contradict each other.

    Example:
        >>> k = te.axis("k")
        >>> y = te.compute(lambda i: te.sum(x[i + k] * w[k], over=k), "y")
    """
    remedy = "a string; an axis with a range is te.reduce_axis((0, 3), 'k')"
    return OpenAxis(one_of_type(name, str, "the name of a te.axis", remedy))


@wants_arguments
def indices(names: str) -> tuple[Axis, ...]:
    """Several axes, as :func:`axis` makes them, from their names with spaces or commas in between.

    Raises:
        ArgumentError: no name, or a name that stands twice.

    Example:
        >>> k, c = te.indices("k c")
    """
    listed = (
        one_of_type(names, str, "the names of te.indices", "a string such as 'k c'").replace(",", " ").split()
    )
    if not listed:
        raise ArgumentError("te.indices of no names; give a string such as 'k c'")
    twice = [name for n, name in enumerate(listed) if name in listed[:n]]
    if twice:
        raise ArgumentError(
            f"te.indices: {twice[0]} stands twice in {names!r}; give each axis a name of its own"
        )
    return tuple(OpenAxis(name) for name in listed)


def closed(axes: Sequence[Axis], bodies: Sequence[Expr]) -> tuple[tuple[Axis, ...], list[Expr]]:
    """``axes`` and ``bodies`` with a range for every axis that is open."""
    extents = extents_of(axes, bodies)
    if not extents:
        return tuple(axes), list(bodies)
    table: dict[Expr, Expr] = {}
    for own, extent in extents.items():
        table[own] = Axis(own.name, ZERO, extent, own.reduction)
        table[own.hi] = extent
    table |= {a: Axis(a.name, ZERO, extents[a.of], True) for a in repeated(bodies)}
    return tuple(renamed(a, table) for a in axes), [with_ranges(body, table) for body in bodies]
