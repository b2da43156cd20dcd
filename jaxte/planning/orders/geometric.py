"""Sums with geometric weights, which are linear recurrences: in blocks, with what was summed before a block carried from block to block.

    y[t] = sum over s <= t of r ** (t - s) * x[s]   is   P[q, i] + r ** (i + 1) * S[q]   for t = B * q + i
    with   P[q, i] = sum over j <= i of r ** (i - j) * x[B * q + j]          each block by itself
           S[q] = sum over c < q of r ** (B * (q - 1 - c)) * P[c, B - 1]     at the beginning of each

With B about the square root of the length n these are products with small matrices, n ** 1.5 operations for n ** 2, and as parallel as sums are: what
is called a chunked scan of a linear recurrence. Weights are powers and exponentials of a multiple of the distance (averages, discounted
returns, decays that are learned), sums go forwards or backwards, so that adjoints have the same form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt, prod

from jaxte.algebra.product import Factor, Product, multiplied, product_of
from jaxte.lang import dtypes
from jaxte.lang.expr import ONE, ZERO, Axis, Call, Expr, Read, Reduce, as_expr, call, cast
from jaxte.lang.graphs import among
from jaxte.lang.limits import LONG
from jaxte.lang.operators import ADD, DIVIDE, MULTIPLY, NEGATIVE, POWER, SELECT, SUBTRACT
from jaxte.lang.scalars.table import TABLE
from jaxte.lang.walk import depends_on, free_axes, substitute
from jaxte.planning.asked import intermediates
from jaxte.planning.orders.contraction import EXACT
from jaxte.sets.affine import linear
from jaxte.sets.domain import IntegerSet
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import extent, known
from jaxte.sets.isl_text import is_decidable
from jaxte.tensors.bodies.range_checks import reads_inside
from jaxte.tensors.reducers import builtin_reducer
from jaxte.tensors.structure import PartialSum
from jaxte.tensors.tensor import Compute

_LOOPS = 3  # more than a product with a triangle takes
_EXP = TABLE["exp"].op


@dataclass(frozen=True, slots=True)
class _Recurrence:
    """The sum over ``s`` up to ``t`` (from ``t`` on, if ``backwards``) of ``weight``, geometric in the distance, times ``rest``; ``outside`` of it factors."""

    t: Axis
    s: Axis
    backwards: bool
    weight: Expr
    rest: tuple[Factor, ...]
    outside: tuple[Factor, ...]

    def over(self, distance: Expr) -> Expr:
        """By what weights change over ``distance``."""
        assert isinstance(self.weight, Call)
        base, exponent = self.weight.args if self.weight.op is POWER else (None, self.weight.args[0])
        slope = _slope(exponent, *((self.s, self.t) if self.backwards else (self.t, self.s)))
        assert slope is not None
        steps = _times(slope, cast(distance, "int32"))
        return call(_EXP, steps) if base is None else call(POWER, base, steps)


def in_blocks(node: Reduce, axes: Sequence[Axis], name: str) -> Expr | None:
    """``node``, at the points of ``axes``, in blocks; None where it is no such sum, or a short one.

    Args:
        name: what the tensors are called after.
    """
    found = _recurrence(node, axes)
    if found is None:
        return None
    summed = _over(found, axes, found.rest)
    if prod(map(extent, (*axes, found.s))) <= _LOOPS * intermediates().loop:
        return None
    rows = _rows(found, summed, _block(extent(found.t)), node.dtype, name)
    if rows is None:
        return None
    kept = _over(found, axes, (*found.rest, Factor(found.weight)))
    parts = _blocks(found, rows, summed, kept, name)
    carried = _carried(found, parts, kept, name)
    joined = _joined(found, parts, carried, kept, name)
    size = extent(joined.axes[-1])
    value = Read(joined, [*kept, found.t // size, found.t % size])
    return cast(multiplied((*found.outside, Factor(value))), node.dtype) if found.outside else value


def _over(found: _Recurrence, axes: Sequence[Axis], factors: Sequence[Factor]) -> list[Axis]:
    """The axes that ``factors`` depend on beside the two of the recurrence."""
    return [a for a in axes if a is not found.t and any(depends_on(f.expr, [a]) for f in factors)]


def _block(length: int) -> int:
    """About the square root of ``length``, a divisor of it if there is one nearby."""
    root = isqrt(length)
    near = [size for size in range(root // 2, 2 * root + 1) if length % size == 0]
    return min(near, key=lambda size: abs(size - root)) if near else root


def _rows(found: _Recurrence, over: Sequence[Axis], size: int, dtype: str, name: str) -> Compute | None:
    """What is summed, a block in each row, zeros behind the end; None where it would read what only a condition keeps in range."""
    length = extent(found.t)
    own = _own(over)
    q, j = Axis("q", 0, -(-length // size)), Axis("j", 0, size)
    place = size * q + j
    value = cast(substitute(multiplied(found.rest), own | {found.s: place}), dtype)
    element = call(SELECT, place < length, value, cast(as_expr(0), dtype)) if length % size else value
    axes = [*own.values(), q, j]
    return Compute(f"{name}_rows", axes, element) if reads_inside(axes, element) else None


def _blocks(
    found: _Recurrence, rows: Compute, summed: Sequence[Axis], kept: Sequence[Axis], name: str
) -> PartialSum:
    """Each block by itself."""
    own = _own(kept)
    q, place = rows.axes[-2:]
    i, j = Axis("i", 0, place.hi), Axis("j", 0, place.hi, reduction=True)
    block = Axis("q", 0, q.hi)
    weight = substitute(found.weight, own | {found.t: i, found.s: j})
    element = Read(rows, [*(own[a] for a in summed), block, j])
    return PartialSum(
        f"{name}_blocks",
        [*own.values(), block, i],
        _sum(weight * element, j, j >= i if found.backwards else j <= i, rows.dtype),
    )


def _carried(found: _Recurrence, parts: PartialSum, kept: Sequence[Axis], name: str) -> PartialSum:
    """What the blocks before each one (behind it, backwards) come to at its beginning."""
    own = _own(kept)
    count, size = (extent(a) for a in parts.axes[-2:])
    q, c = Axis("q", 0, count), Axis("c", 0, count, reduction=True)
    between, within = (c - q - 1, c > q) if found.backwards else (q - 1 - c, c < q)
    weight = substitute(found.over(size * between), own)
    last = Read(parts, [*own.values(), c, ZERO if found.backwards else as_expr(size - 1)])
    return PartialSum(f"{name}_carried", [*own.values(), q], _sum(weight * last, c, within, parts.dtype))


def _joined(
    found: _Recurrence, parts: PartialSum, carried: PartialSum, kept: Sequence[Axis], name: str
) -> Compute:
    """The sums, a block in each row."""
    own = _own(kept)
    q, i = (Axis(a.name, 0, a.hi) for a in parts.axes[-2:])
    weight = substitute(found.over(i.hi - i if found.backwards else i + 1), own)
    value = Read(parts, [*own.values(), q, i]) + cast(weight, parts.dtype) * Read(carried, [*own.values(), q])
    return Compute(f"{name}_joined", [*own.values(), q, i], value)


def _own(axes: Sequence[Axis]) -> dict[Expr, Axis]:
    """Axes of a new tensor for those of another."""
    return {a: Axis(a.name, 0, a.hi) for a in axes}


def _sum(value: Expr, over: Axis, within: Expr, dtype: str) -> Reduce:
    return Reduce(builtin_reducer("sum", dtype), (cast(value, dtype),), (over,), within)


def _recurrence(node: Reduce, axes: Sequence[Axis]) -> _Recurrence | None:
    if node.reducer.name != "sum" or node.dtype not in EXACT or len(node.axes) != 1:
        return None
    (s,) = node.axes
    if s.lo is not ZERO or (known(s.hi) or 0) < LONG:
        return None
    product = product_of(node.exprs[0], [node.where])
    found = _direction(product, s, axes)
    if found is None or any(f.guard for f in product.factors):
        return None
    t, backwards = found
    both = [f for f in product.factors if depends_on(f.expr, [s]) and depends_on(f.expr, [t])]
    if len(both) != 1 or both[0].inverse or not _is_geometric(both[0].expr, t, s):
        return None
    others = [f for f in product.factors if f is not both[0]]
    rest = tuple(f for f in others if not depends_on(f.expr, [t]))
    return _Recurrence(
        t, s, backwards, both[0].expr, rest, tuple(f for f in others if depends_on(f.expr, [t]))
    )


def _direction(product: Product, s: Axis, axes: Sequence[Axis]) -> tuple[Axis, bool] | None:
    """The axis that bounds ``s``, and whether from below: whatever conditions say so."""
    if not product.guards or not all(map(is_decidable, product.guards)):
        return None
    bounding = {a for c in product.guards for a in free_axes(c) if a is not s}
    if len(bounding) != 1:
        return None
    (t,) = bounding
    if not among(t, axes) or t.lo is not ZERO or t.hi is not s.hi:
        return None
    points = IntegerSet((t, s), product.guards)
    for backwards, bound in ((False, s <= t), (True, s >= t)):
        whole = IntegerSet((t, s), [bound])
        if points.implies(bound) and all(map(whole.implies, product.guards)):
            return t, backwards
    return None


def _is_geometric(weight: Expr, t: Axis, s: Axis) -> bool:
    """Whether ``weight`` is a power or an exponential of a multiple of ``t - s``, and of something that neither is in."""
    if not isinstance(weight, Call) or weight.op not in (POWER, _EXP) or not dtypes.is_inexact(weight.dtype):
        return False
    if weight.op is POWER and depends_on(weight.args[0], [t, s]):
        return False
    return _slope(weight.args[-1], t, s) is not None


def _slope(exponent: Expr, t: Axis, s: Axis) -> Expr | None:
    """What ``exponent`` grows by with ``t``, which is what it falls by with ``s``; None where that is not so everywhere."""
    if not depends_on(exponent, [t, s]):
        return ZERO
    if is_index(exponent):
        form = linear(exponent)
        rest = form.without(t).without(s)
        plain = not any(depends_on(atom, [t, s]) for atom in rest.terms)
        step = form.coefficient(t)
        return as_expr(step) if plain and step == -form.coefficient(s) else None
    if not isinstance(exponent, Call):
        return None
    op, args = exponent.op, exponent.args
    if op.name == "cast" or op is NEGATIVE:
        own = _slope(args[0], t, s)
        return own if own is None or op is not NEGATIVE else -own
    if op in (ADD, SUBTRACT):
        left, right = (_slope(a, t, s) for a in args)
        return None if left is None or right is None else left + right if op is ADD else left - right
    if op in (MULTIPLY, DIVIDE):
        moving = [a for a in args if depends_on(a, [t, s])]
        own = (
            _slope(moving[0], t, s)
            if len(moving) == 1 and not (op is DIVIDE and moving[0] is args[1])
            else None
        )
        if own is None:
            return None
        other = args[1] if moving[0] is args[0] else args[0]
        return _times(own, other) if op is MULTIPLY else call(op, own, other)
    return None


def _times(a: Expr, b: Expr) -> Expr:
    return b if a is ONE else a * b
