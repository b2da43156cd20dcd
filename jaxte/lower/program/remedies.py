"""What makes points that do not count, in the user's own spelling, and another way to write it.

A condition that ties an axis of a reduction to the other axes by numbers can be solved by hand where no form does it: the reduction then runs over what is
left of the axis, a distance or a quotient, and the read says where that is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log2, prod

from jaxte.lang.divisions import Quotient, Remainder, division
from jaxte.lang.errors import IndexExpressionError
from jaxte.lang.expr import ZERO, Axis, Call, Expr, Read, Reduce, conjuncts
from jaxte.lang.operators import EQUAL, FLOOR_DIVIDE, MAXIMUM, MINIMUM, MOD, NEGATIVE, SUBTRACT
from jaxte.lang.text import text
from jaxte.lang.walk import depends_on, free_axes, postorder, reads_of, reductions
from jaxte.meaning.cost import told_by_data
from jaxte.meaning.points import share
from jaxte.sets.affine import from_linear, linear
from jaxte.sets.intervals import extent
from jaxte.sets.linear import Linear
from jaxte.tensors.tensor import Compute

IN_TILES = "a budget, te.function(..., max_memory=2**28), which computes it in tiles, or fewer axes at a time"
IN_PARTS = (
    "one axis of few positions written out, as a sum of Python's over it, or a part of the result at a time, as by a map over blocks of "
    "it: overlapping reads that are reduced are written to memory for all points"
)
_PIECEWISE = (MOD, FLOOR_DIVIDE, MINIMUM, MAXIMUM)


def in_tiles_of(budget: int) -> str:
    """The remedy with a budget of ``budget`` bytes, a power of two."""
    return IN_TILES.replace("2**28", f"2**{budget.bit_length() - 1}")


def cause_and_remedy(tensor: Compute) -> tuple[str, str]:
    """The condition or the read by which most points of ``tensor`` do not count, and what to write in its place."""
    found = [
        (_left(condition, node, tensor.axes), condition, node)
        for node in reductions(tensor.body)
        for condition in conjuncts(node.where)
        if reads_of(condition) or len(free_axes(condition)) > 1
    ]
    if found:
        _, condition, owner = min(found, key=lambda own: round(log2(own[0])))  # the first of about equal ones
        return f"where {text(condition)}", _remedy(condition, owner.axes)
    for node in reads_of(tensor.body):
        if any(map(_is_piecewise, node.indices)):
            own = f"a tensor of its own for what is read at {_piecewise(node)}, and a read of that at plain axes"
            return text(node), own
    return "", ""


def _left(condition: Expr, node: Reduce, axes: Sequence[Axis]) -> float:
    """The part of the points of ``node`` that ``condition`` alone leaves: of one that asks data, what it tells of ``axes``."""
    if not reads_of(condition):
        return share([condition])
    told = told_by_data(node.changed(where=condition), axes)
    return 1 / max(prod(map(extent, told)), 1)


def _is_piecewise(index: Expr) -> bool:
    return any(isinstance(node, Call) and node.op in _PIECEWISE for node in postorder(index))


def _piecewise(read: Read) -> str:
    return " and ".join(text(index) for index in read.indices if _is_piecewise(index))


def _remedy(condition: Expr, reduced: Sequence[Axis]) -> str:
    if reads_of(condition):
        return (
            "positions as data, X[I[i]], or a sum where I[k] == i, which adds up at its positions; a comparison of each with each "
            "asks all"
        )
    found = [own for axis in reduced for sides in _sides(condition) if (own := _by_axis(axis, *sides))]
    if not found:
        return (
            "a tensor of its own for what depends on fewer axes, so that each condition is about one of them"
        )
    return min(found, key=lambda own: own.rank).text


@dataclass(frozen=True, slots=True)
class _Remedy:
    """What to write, and how much is left to be reduced: nothing first."""

    rank: int
    text: str


def _sides(condition: Expr) -> Iterator[tuple[Expr, Expr, int, bool]]:
    """What ``condition`` says is equal or near: two sides, the number that their difference is taken modulo, or 0; whether it is equal."""
    assert isinstance(condition, Call)
    is_equation = condition.op is EQUAL
    left, right = condition.args
    for one, other in ((left, right), (right, left)):
        match one:
            case Call(op, (inside, Call(inner, (same,)))) if (op, inner) == (
                MAXIMUM,
                NEGATIVE,
            ) and inside is same:
                yield *_apart(inside), 0, False
        match division(one):
            case Remainder(inside, int() as n) if is_equation:
                a, b = _apart(inside)
                yield a, other if b is ZERO else b if other is ZERO else b + other, n, True
    yield left, right, 0, is_equation


def _apart(difference: Expr) -> tuple[Expr, Expr]:
    match difference:
        case Call(op, (a, b)) if op is SUBTRACT:
            return a, b
    return difference, ZERO


def _by_axis(axis: Axis, left: Expr, right: Expr, modulus: int, is_equation: bool) -> _Remedy | None:
    """How to reduce over what is left of ``axis``, where ``left`` is equal or near to ``right``, up to a multiple of ``modulus``."""
    for one, other in ((left, right), (right, left)):
        match division(one):
            case Quotient(own, int() as n) if own is axis and is_equation and not modulus:
                own_text = f"{axis.name} = {n} * {_within(other)} + r: a reduction over r below {n} alone, and reads at that"
                return None if depends_on(other, [axis]) else _Remedy(1, own_text)
    place, factor = _place(axis, left, right)
    if place is None:
        return None
    if modulus and factor == 1:
        remainder = f"{_within(place)} % {modulus} + {modulus} * q"
        return _Remedy(1, f"{axis.name} = {remainder}: a reduction over q alone, and reads at that")
    if is_equation and factor == 1:
        return _Remedy(0, f"reads at {text(place)} in place of {axis.name}, without a reduction over it")
    there = text(place) if factor == 1 else f"{_within(place)} // {factor}"
    return _Remedy(2, f"{axis.name} = {there} + d: a reduction over the few distances d, and reads at that")


def _place(axis: Axis, left: Expr, right: Expr) -> tuple[Expr | None, int]:
    """Where ``axis`` is if both sides are equal, in the user's spelling where it stands alone, and by what that is to be divided."""
    for one, other in ((left, right), (right, left)):
        if one is axis and not depends_on(other, [axis]):
            return other, 1
    try:
        form = linear(left) - linear(right)
    except IndexExpressionError:
        return None, 0
    factor = form.coefficient(axis)
    if not factor or any(atom is not axis and axis in free_axes(atom) for atom in form.terms):
        return None, 0
    rest = form - Linear({axis: factor})
    return from_linear(rest * (-1 if factor > 0 else 1)), abs(factor)


def _within(place: Expr) -> str:
    """The text of ``place`` as an operand."""
    written = text(place)
    return f"({written})" if " " in written else written
