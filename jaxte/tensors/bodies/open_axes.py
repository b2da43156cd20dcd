"""Axes without a range, and the range that the reads of a body give them.

Every axis begins at 0 and goes as far as all reads that it stands in stay inside of their tensors. isl answers for each read where it leaves
its tensor first; what is left is the order in which axes become known: ``x[t + k] * w[k]`` says what k is, and then what t is.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.lang.checks import one_of_type, wants_arguments
from jaxte.lang.errors import ArgumentError
from jaxte.lang.expr import ZERO, Axis, Expr
from jaxte.tensors.bodies.open_ranges import RangeAgain, extents_of, renamed, repeated, with_ranges
from jaxte.tensors.bodies.open_uses import OpenAxis


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
