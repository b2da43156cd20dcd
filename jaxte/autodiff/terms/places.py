"""Where an extremum is: the elements that are equal to it, as integers, and which values may be compared to find them.

    places   of min over k of (x[k], 1 << k):     the bits of all k with x[k] == min
    ends     of min over k of (x[k], k, k, 1):    the first of these k, the last, and how many they are

Elements are compared with each other as they are computed, in the one instruction that ``lax.reduce`` of several operands is. A NaN
is carried on, and leaves the values that say so.

Values that have the same bits in every loop that computes them may be compared in any. XLA computes a producer again in each fusion that reads it. Additions,
subtractions and products of 32 and 64 bits are rounded as IEEE 754 says, everywhere; what differs from loop to loop is which of them are joined or taken in another
order, and by which polynomials functions are computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache

from jaxte.algebra.simplify import simplify_reads
from jaxte.lang import dtypes
from jaxte.lang import operators as ops
from jaxte.lang.expr import Axis, Call, Const, Expr, Reduce, Reducer, Symbol, call, conjunction, conjuncts
from jaxte.lang.scalars.table import TABLE
from jaxte.lang.walk import fold, free_axes, postorder, substitute
from jaxte.sets.affine import linear, normal
from jaxte.sets.conditions import tidy
from jaxte.sets.isl_text import is_decidable
from jaxte.sets.solving.solve import simplify_domain
from jaxte.sets.transformation import Domain
from jaxte.tensors.reducers import builtin_reducer
from jaxte.tensors.shapes import MAX_EXTENT


@dataclass(frozen=True)
class Places:
    """What is carried beside the extremum: int32 values, and how those of equal elements are joined.

    Attributes:
        name: of the reduction.
        kinds: names of the values.
        joined: the operation for two equal elements, by value.
        identity: the values of no element.
        spoilt: the values of a NaN; None where they do not matter.
    """

    name: str
    kinds: tuple[str, ...]
    joined: tuple[ops.Op, ...]
    identity: tuple[int, ...]
    spoilt: tuple[int | None, ...]


BITS = Places("places", ("places",), (ops.BIT_OR,), (0,), (-1,))
ENDS = Places(
    "ends",
    ("first", "last", "count"),
    (ops.MINIMUM, ops.MAXIMUM, ops.ADD),
    (MAX_EXTENT, -1, 0),
    (None, None, 0),
)


def found(node: Reduce, places: Places, kind: str, exprs: Sequence[Expr]) -> Expr:
    """The value ``kind`` that comes with the extremum ``node``."""
    reducer = _reducer(node.reducer.name, node.exprs[0].dtype, places)
    return Reduce(reducer, exprs, node.axes, node.where, 1 + places.kinds.index(kind))


@cache
def _reducer(name: str, dtype: str, places: Places) -> Reducer:
    x, y = Symbol("x", dtype), Symbol("y", dtype)
    lhs = [Symbol(f"x_{kind}", "int32") for kind in places.kinds]
    rhs = [Symbol(f"y_{kind}", "int32") for kind in places.kinds]
    ahead, behind = (
        call(op, x, y) for op in ((ops.LESS, ops.GREATER) if name == "min" else (ops.GREATER, ops.LESS))
    )

    def carried(a: Expr, b: Expr, joined: Expr, spoilt: float | None) -> Expr:
        """By comparisons alone: the minimum and maximum of XLA on the CPU lose a NaN in some loops."""
        if dtypes.is_float(dtype) and spoilt is not None:
            joined = call(ops.SELECT, call(ops.EQUAL, x, y), joined, Const(spoilt, joined.dtype))
        return call(ops.SELECT, ahead, a, call(ops.SELECT, behind, b, joined))

    results = [carried(x, y, x, float("nan"))]
    for a, b, op, spoilt in zip(lhs, rhs, places.joined, places.spoilt, strict=True):
        results.append(carried(a, b, call(op, a, b), spoilt))
    identity = builtin_reducer(name, dtype).identity + tuple(Const(n, "int32") for n in places.identity)
    label = f"{places.name} of {name}"
    return Reducer("custom", label, "even", (x, *lhs), (y, *rhs), tuple(results), identity)


def points_of(axes: Sequence[Axis]) -> Expr:
    """How many points a reduction over ``axes`` has, conditions aside."""
    points: Expr = Const(1)
    for axis in axes:
        points = points * axis.extent
    return normal(points)


def deskewed(node: Reduce) -> Reduce:
    """``node`` over the smallest box around its points, in their order: a window ``i - 1 <= k <= i + 1`` over three positions."""
    conditions = conjuncts(node.where)
    known = [c for c in conditions if is_decidable(c)]
    if not known:
        return node
    found = simplify_domain(Domain(node.axes, known))
    axes = tuple(a for a in found.new.variables if isinstance(a, Axis))
    before, after = points_of(node.axes), points_of(axes)
    if (
        found.is_empty
        or not isinstance(before, Const)
        or not isinstance(after, Const)
        or int(after) >= int(before)
    ):
        return node
    new = _in_order(node.axes, axes, found.old_to_new)
    if new is None:
        return node
    table = {old: normal(substitute(e, new)) for old, e in found.old_to_new.items()}
    where = [substitute(c, new) for c in found.new.conditions]
    where += [substitute(c, table) for c in conditions if not is_decidable(c)]
    exprs = [simplify_reads(substitute(e, table)) for e in node.exprs]
    own = [a for e in new.values() for a in free_axes(e)]
    return node.changed(exprs=exprs, axes=own, where=tidy(conjunction(where)))


def _in_order(
    before: Sequence[Axis], after: Sequence[Axis], values: Mapping[Expr, Expr]
) -> dict[Expr, Expr] | None:
    """Axes for a reduction in the place of ``after``, turned so that points keep the order that they have over ``before``.

    None where an axis of ``before`` takes several of these, or two of them one.
    """
    found: dict[Expr, Expr] = {}
    for axis in before:
        form = linear(values[axis])
        moving = [a for a in after if any(n is a for n in postorder(values[axis]))]
        if not moving:
            continue
        if len(moving) > 1 or form.coefficient(moving[0]) not in (1, -1) or moving[0] in found:
            return None
        (old,) = moving
        new = Axis(old.name, 0, normal(old.extent), reduction=True)
        found[old] = normal(new + old.lo if form.coefficient(old) == 1 else old.hi - 1 - new)
    return found if len(found) == len(after) else None


def fresh(axes: Sequence[Axis]) -> tuple[tuple[Axis, ...], dict[Expr, Expr]]:
    """New axes like ``axes``, for a tensor of their own, and what stands for what."""
    new = tuple(Axis(a.name, a.lo, a.hi) for a in axes)
    return new, dict(zip(axes, new, strict=True))


def bits_set(value: Expr) -> Expr:
    """How many bits an int32 of at least 0 has, without a sum over them: counted in pairs, then in groups of 4, 8, 16 and 32."""
    count = value - call(ops.BIT_AND, call(ops.RIGHT_SHIFT, value, 1), 0x55555555)
    count = call(ops.BIT_AND, count, 0x33333333) + call(
        ops.BIT_AND, call(ops.RIGHT_SHIFT, count, 2), 0x33333333
    )
    count = call(ops.BIT_AND, count + call(ops.RIGHT_SHIFT, count, 4), 0x0F0F0F0F)
    count = count + call(ops.RIGHT_SHIFT, count, 8)
    return call(ops.BIT_AND, count + call(ops.RIGHT_SHIFT, count, 16), 0x3F)


_WIDE = ("float32", "float64")  # what is narrower may be carried on by XLA without its rounding


class _Rounding(IntEnum):
    """How a value is rounded, the least first."""

    NOT = 0
    SUM = 1
    PRODUCT = 2
    OTHER = 3


def is_rounded(body: Expr) -> bool:
    """Whether ``body`` has more than reads, choices among them, and their signs."""
    return any(map(_rounds, postorder(body)))


def _rounds(node: Expr) -> bool:
    if not dtypes.is_inexact(node.dtype):
        return False
    if isinstance(node, Call):
        return not TABLE[node.op.name].exact
    return isinstance(node, Reduce) and not node.is_extremum


def has_same_bits(element: Expr) -> bool:
    """Whether every loop that computes ``element`` rounds it alike: one sum of what is read, or one product of what is read and such sums.

    There is nothing in it that a compiler could join into one instruction, or take in another order: that needs a product in a sum, or two
    sums or two products one after the other.
    """
    kind: _Rounding = fold(element, _rounding)
    return kind is not _Rounding.OTHER


def _rounding(node: Expr, below: Sequence[_Rounding]) -> _Rounding:
    """The rounding of ``node``, whose operands, indices and conditions have those ``below``."""
    most = max(below, default=_Rounding.NOT)
    if not _rounds(node):
        changed = isinstance(node, Call) and node.op.name == "cast"
        return (
            _Rounding.OTHER
            if most and dtypes.is_inexact(node.dtype) and (changed or node.dtype not in _WIDE)
            else most
        )
    if not isinstance(node, Call) or node.dtype not in _WIDE:
        return _Rounding.OTHER
    if node.op in (ops.ADD, ops.SUBTRACT) and most is _Rounding.NOT:
        return _Rounding.SUM
    is_scaled = most and any(isinstance(a, Const) for a in node.args)
    is_square = node.op is ops.POWER and isinstance(exponent := node.args[1], Const) and exponent.value == 2
    if most <= _Rounding.SUM and (is_square or (node.op is ops.MULTIPLY and not is_scaled)):
        return _Rounding.PRODUCT
    return _Rounding.OTHER
