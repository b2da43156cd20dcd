"""Adjoints of reductions other than sums.

With ``y = reduce over k of x[k]`` and the adjoint ``g`` of ``y``, the adjoint of ``x[k]`` is

- maximum, minimum: ``g`` where ``x[k] == y``, shared among equal ones by the reduction's rule for ties (see ``extrema``);
- product: ``g`` times the product of the others, which is exact when some are zero: by halves (see ``halves``), or as (product of those
  before) * (product of those after) of a few, where it is not known how many they are, and where loops wait to be started;
- any combiner: the derivative of ``combine(combine(before, x[k]), after)``, with ``before`` and ``after`` the
  reductions of the points before and after ``k``. Of equal operands of a maximum in it the first one receives everything: halves at both places
  where an element is combined would add up to more or less than ``g``.

The reductions of the points before and after are tensors of their own, computed by cumulative reductions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from jaxte.algebra.simplify import plus, times
from jaxte.autodiff.rules.extrema import extremum_adjoint
from jaxte.autodiff.rules.halves import all_but_one
from jaxte.autodiff.rules.prefixes import Prefix, as_prefix
from jaxte.autodiff.rules.scans import scan_contributions
from jaxte.autodiff.terms.beside import beside, fits, may_have_many_loops
from jaxte.autodiff.terms.guards import guard, through_guards
from jaxte.autodiff.terms.places import deskewed, fresh, points_of
from jaxte.autodiff.terms.scalar import Contribution, contributions
from jaxte.lang import dtypes
from jaxte.lang.errors import DifferentiationError
from jaxte.lang.expr import TRUE, ZERO, Axis, Call, Const, Expr, Read, Reduce, Symbol, call, cast
from jaxte.lang.graphs import among, place_of
from jaxte.lang.limits import FEW
from jaxte.lang.operators import (
    AND,
    EQUAL,
    GREATER,
    GREATER_EQUAL,
    LESS,
    LESS_EQUAL,
    MAXIMUM,
    MINIMUM,
    SELECT,
    Op,
)
from jaxte.lang.walk import combine, depends_on, free_axes, reads_of, rewrite, substitute
from jaxte.sets.intervals import known
from jaxte.tensors.reductions import position_of
from jaxte.tensors.tensor import Compute

Wanted = Callable[[Expr], bool]
_KEEPS_FIRST = {MAXIMUM: GREATER_EQUAL, MINIMUM: LESS_EQUAL}


def reduction_contributions(tensor: Compute, seed: Expr, wanted: Wanted) -> list[Contribution]:
    """The contributions of ``seed`` to every wanted read in the body of ``tensor``, a reduction."""
    node = tensor.body
    assert isinstance(node, Reduce)
    if node.is_sum:
        return contributions(node, tensor.axes, seed, None, wanted)
    if points_of(node.axes) is ZERO:  # an identity, which depends on nothing
        return []
    scan = scan_of(tensor)
    if scan is not None:
        return scan_contributions(tensor, scan, seed, wanted)
    match node.reducer.name:
        case "max" | "min":
            node = deskewed(node)
            return _inside(tensor, node, 0, extremum_adjoint(tensor, node, seed), wanted)
        case "any" | "all":
            return []
        case "argmax" | "argmin":
            return _chosen(tensor, node, seed, wanted)
        case "prod":
            # in any order: digits need to know all extents but the first one's
            axes = sorted(node.axes, key=lambda a: isinstance(a.extent, Const))
            node = node.changed(axes=axes)
            return _multiplied(tensor, node, seed, wanted)
    return _combined(tensor, node, seed, wanted, _combiner_slope)


def scan_of(tensor: Compute) -> Prefix | None:
    """The recurrence that the derivative of ``tensor`` follows, if its body is a cumulative reduction other than a sum."""
    node = tensor.body
    if not isinstance(node, Reduce) or node.reducer.name in ("sum", "any", "all", "argmax", "argmin"):
        return None
    return as_prefix(tensor)


def _inside(
    tensor: Compute, node: Reduce, position: int, g: Expr, wanted: Wanted, where: Expr = TRUE
) -> list[Contribution]:
    """What flows on from the adjoint ``g`` of the reduced expression at ``position``."""
    scope = (*tensor.axes, *node.axes)
    found = contributions(node.exprs[position], scope, g, None, wanted)
    condition = call(AND, node.where, where)
    return [Contribution(c.read, c.axes, call(AND, condition, c.where), c.value) for c in found]


def _chosen(tensor: Compute, node: Reduce, seed: Expr, wanted: Wanted) -> list[Contribution]:
    """The value that comes with an argmax: its adjoint goes to the element at the position found."""
    if node.position == 0:
        return []
    axes, table = fresh(tensor.axes)
    index = substitute(Reduce(node.reducer, node.exprs, node.axes, node.where, 0), table)
    chosen = Compute(f"winner_{tensor.name}", axes, index)
    g = guard(call(EQUAL, cast(node.exprs[0], "int32"), Read(chosen, tensor.axes)), seed)
    return _inside(tensor, node, 1, g, wanted)


Slope = Callable[[Reduce, Sequence[Expr], Sequence[Expr], Expr], list[Expr]]


def _combined(tensor: Compute, node: Reduce, seed: Expr, wanted: Wanted, slope: Slope) -> list[Contribution]:
    """Any combiner: the slope at a point, given the reductions of the points before and after it."""
    node = deskewed(node)
    front, behind = _sides(tensor, node)
    at = (*front, position_of(node.axes), *behind)
    order = " and ".join(",".join(a.name for a in side) for side in (front, behind))
    before, after = (
        [
            Read(
                beside(
                    tensor, f"{name} {n} {order}", partial(_others, label, front, behind, node, relation, n)
                ),
                at,
            )
            for n in range(node.reducer.arity)
        ]
        for relation, name, label in (
            (LESS, "before", f"before_{tensor.name}"),
            (GREATER, "after", f"after_{tensor.name}"),
        )
    )
    results: list[Contribution] = []
    for position, g in enumerate(slope(node, before, after, seed)):
        if dtypes.is_inexact(node.exprs[position].dtype):
            results += _inside(tensor, node, position, g, wanted)
    return results


def _sides(tensor: Compute, node: Reduce) -> tuple[list[Axis], list[Axis]]:
    """The axes of ``tensor``, but those along which the results are repeated, that stand before the reduced ones in what is made beside it, and those behind them."""
    own = [a for a in tensor.axes if a in free_axes(node)]
    behind = _read_behind(node, own)
    return [a for a in own if not among(a, behind)], behind


def _read_behind(node: Reduce, axes: Sequence[Axis]) -> list[Axis]:
    """Those of ``axes`` that the reduced elements are read at behind the reduced axes.

    What is computed for each element has its axes in the elements' own order, so that nothing is transposed.
    """
    for read in reads_of(*node.exprs):
        reduced = [n for n, index in enumerate(read.indices) if depends_on(index, node.axes)]
        if reduced:
            later = [a for index in read.indices[reduced[-1] + 1 :] for a in free_axes(index)]
            return [a for a in axes if among(a, later)]
    return []


def _others(
    name: str, front: Sequence[Axis], behind: Sequence[Axis], node: Reduce, relation: Op, position: int
) -> Compute:
    """The reduction of the points whose position is ``relation`` (LESS, GREATER) to that of a new axis between the others."""
    outer, table = fresh([*front, *behind])
    here = Axis("_".join(a.name for a in node.axes), 0, points_of(node.axes))
    other = Axis(f"other_{here.name}", 0, here.hi, reduction=True)
    table |= _digits(node.axes, other)
    exprs = [substitute(e, table) for e in node.exprs]
    where = call(AND, call(relation, other, here), substitute(node.where, table))
    axes = (*outer[: len(front)], here, *outer[len(front) :])
    return Compute(name, axes, Reduce(node.reducer, exprs, (other,), where, position))


def _digits(axes: Sequence[Axis], position: Expr) -> dict[Expr, Expr]:
    """Each of ``axes`` from the row-major position of a point."""
    table: dict[Expr, Expr] = {}
    for axis in reversed(axes):
        if axis is axes[0]:
            table[axis] = position + axis.lo
        elif isinstance(axis.extent, Const):
            table[axis] = position % axis.extent + axis.lo
            position = position // axis.extent
        else:
            raise DifferentiationError(
                f"a {axis.name} of symbolic extent in a reduction over several axes: reduce over one axis at a time"
            )
    return table


def _multiplied(tensor: Compute, node: Reduce, seed: Expr, wanted: Wanted) -> list[Contribution]:
    """A product: what flows to a factor is multiplied by all others, which are few, or found by halves where it is known how many they are."""
    whole = deskewed(node)
    length = known(points_of(whole.axes))
    sides = _sides(tensor, whole)
    if length is None or length <= FEW or not may_have_many_loops() or not _may_be_pairs(sides, length, node):
        return _combined(tensor, node, seed, wanted, _product_slope)

    def factor(position: Expr) -> Expr:
        table = _digits(whole.axes, position)
        value = substitute(whole.exprs[0], table)
        return value if whole.where is TRUE else call(SELECT, substitute(whole.where, table), value, 1.0)

    others = all_but_one(tensor, sides, factor, length)(position_of(whole.axes))
    return _inside(tensor, whole, 0, _through(seed, others), wanted)


def _may_be_pairs(sides: tuple[list[Axis], list[Axis]], length: int, node: Reduce) -> bool:
    """Whether pairs of ``length`` factors may be arrays of their dtype: prefixes of 16 bits are carried in 32, and fit into tiles."""
    shape: list[int | Expr] = [*(a.extent for side in sides for a in side), length]
    return dtypes.width(node.dtype) >= dtypes.width("float32") and fits(tuple(shape), node.dtype)


def _product_slope(node: Reduce, before: Sequence[Expr], after: Sequence[Expr], seed: Expr) -> list[Expr]:
    return [_through(seed, before[0] * after[0])]


def _through(seed: Expr, slope: Expr) -> Expr:
    found = through_guards(seed, lambda g: times(g, slope))
    return Const(0.0) if found is None else found


def _to_the_first(expr: Expr) -> Expr:
    """``expr`` with maxima and minima as choices, of which the first operand is taken where both are equal."""

    def chosen(node: Expr) -> Expr:
        match node:
            case Call(op, (a, b)) if op in _KEEPS_FIRST:
                return call(SELECT, call(_KEEPS_FIRST[op], a, b), a, b)
        return node

    return rewrite(expr, chosen)


def _combiner_slope(node: Reduce, before: Sequence[Expr], after: Sequence[Expr], seed: Expr) -> list[Expr]:
    """The adjoint of each element from that of ``combine(combine(before, element), after)``."""
    elements = tuple(Symbol(f"element{n}", e.dtype) for n, e in enumerate(node.exprs))
    result = _to_the_first(
        combine(node.reducer, combine(node.reducer, before, elements), after)[node.position]
    )
    found: list[Expr] = [Const(0.0)] * len(elements)
    for part in contributions(result, (), seed, None, lambda leaf: among(leaf, elements)):
        position = place_of(part.read, elements)
        found[position] = plus(found[position], part.value)
    table: dict[Expr, Expr] = dict(zip(elements, node.exprs, strict=True))
    return [substitute(g, table) for g in found]
