"""The two operands of a sum of products, and the role of each axis in them.

Factors that depend on the same index forms belong to one operand. An axis that is not part of a spatial dimension
has a role by where it occurs:

    ============  ========  ========  ========
    role          lhs       rhs       reduced
    ============  ========  ========  ========
    batch         yes       no        no
    feature       no        yes       no
    group         yes       yes       no
    contracted    yes       yes       yes
    lhs_sum       yes       no        yes
    rhs_sum       no        yes       yes
    broadcast     no        no        no
    ============  ========  ========  ========
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from jaxte.algebra.product import Factor, multiplied
from jaxte.lang.divisions import divisions
from jaxte.lang.expr import ONE, Axis, Expr, Reduce, as_expr, call, cast
from jaxte.lang.graphs import among
from jaxte.lang.operators import FLOOR_DIVIDE, MOD
from jaxte.lang.walk import free_axes, reads_of, substitute
from jaxte.lower.code.spec import Array, Refusal
from jaxte.lower.match.index_terms import Form, decompose, forms_of, rewrite_forms, with_normal_indices
from jaxte.sets.affine import normal
from jaxte.sets.intervals import known
from jaxte.sets.linear import Linear
from jaxte.tensors.reducers import builtin_reducer


@dataclass(frozen=True, slots=True)
class Operand:
    """Factors that are evaluated together, the forms that they depend on, and the axes in these."""

    factors: tuple[Factor, ...]
    forms: tuple[Form, ...]
    axes: frozenset[Axis]


def operand_of(factors: Sequence[Factor]) -> Operand:
    forms = tuple(forms_of([f.expr for f in factors]))
    return Operand(tuple(factors), forms, frozenset(axis for form in forms for axis in form.axes))


@lru_cache(maxsize=64)  # more than one recogniser asks for those of a product
def two_operands(factors: tuple[Factor, ...]) -> tuple[Operand, Operand] | Refusal:
    """``factors`` in exactly two operands: those on the same forms together, then those on fewer forms with them."""
    constants = [f for f in factors if not free_axes(f.expr)]
    groups: list[Operand] = []
    for factor in factors:
        if among(factor, constants):
            continue
        own = operand_of([factor])
        same = [n for n, group in enumerate(groups) if _keys(group) == _keys(own)]
        if same:
            groups[same[0]] = operand_of([*groups[same[0]].factors, factor])
        else:
            groups.append(own)
    while len(groups) > 2:
        pair = _absorbable(groups)
        if pair is None:
            return Refusal(f"a product of {len(groups)} operands on different indices")
        small, large = pair
        groups[large] = operand_of([*groups[large].factors, *groups[small].factors])
        del groups[small]
    if len(groups) < 2:
        return Refusal("no product of two operands")
    lhs, rhs = groups
    return lhs, Operand((*rhs.factors, *constants), rhs.forms, rhs.axes)


def _keys(operand: Operand) -> set[frozenset[tuple[Expr, int]]]:
    return {form.key for form in operand.forms}


def _absorbable(groups: Sequence[Operand]) -> tuple[int, int] | None:
    for small, own in enumerate(groups):
        for large, other in enumerate(groups):
            if small != large and _keys(own) <= _keys(other):
                return small, large
    return None


def role(axis: Axis, lhs: Operand, rhs: Operand, reduced: bool) -> str:
    match axis in lhs.axes, axis in rhs.axes:
        case True, True:
            return "contracted" if reduced else "group"
        case True, False:
            return "lhs_sum" if reduced else "batch"
        case False, True:
            return "rhs_sum" if reduced else "feature"
    return "unused" if reduced else "broadcast"


@dataclass(frozen=True, slots=True)
class Layout:
    """An operand as an array: ``dims`` are the roles of its dimensions, each of them merged from axes.

    Attributes:
        array: its elements over single axes, merged ones next to each other.
        dims: the name of each dimension, in order.
        shape: the shape with merged dimensions; None where the array has it already.
    """

    array: Array
    dims: tuple[str, ...]
    shape: tuple[Expr, ...] | None


def lay_out(
    operand: Operand,
    dims: dict[str, tuple[Axis, ...]],
    replaced: Sequence[tuple[Form, Expr]],
    summed: Sequence[Axis],
    guards: Sequence[Expr],
    dtype: str,
) -> Layout:
    """The array of an operand.

    Args:
        operand: the factors.
        dims: the axes that each dimension is merged from (none for a dimension of extent 1).
        replaced: index forms and what stands for them: positions on axes of ``dims``.
        summed: axes to sum over first.
        guards: conditions on the operand's own axes.
        dtype: of the array.
    """
    body = rewrite_forms(multiplied(operand.factors, guards), replaced)
    merged: dict[str, tuple[Axis, ...]] = {}
    for name, axes in dims.items():
        body, merged[name] = _fuse(body, axes) if len(axes) > 1 else (body, axes)
    body = cast(body, dtype)
    order = _order_of_appearance(body, merged)
    if summed:
        reducer = builtin_reducer("sum", dtype)
        body = Reduce(reducer, (body,), tuple(summed), as_expr(True))
    axes = tuple(axis for name in order for axis in merged[name])
    fresh = tuple(Axis(axis.name, 0, normal(axis.extent)) for axis in axes)
    table = {old: normal(new + old.lo) for old, new in zip(axes, fresh, strict=True)}
    result = Array(fresh, with_normal_indices(substitute(body, table)))
    if all(len(merged[name]) == 1 for name in order):
        return Layout(result, tuple(order), None)
    return Layout(result, tuple(order), tuple(size_of(merged[name]) for name in order))


def size_of(axes: Sequence[Axis]) -> Expr:
    """The product of extents."""
    size: Expr = ONE
    for axis in axes:
        size = size * axis.extent
    return size


def _order_of_appearance(body: Expr, dims: dict[str, tuple[Axis, ...]]) -> list[str]:
    """The dimensions in the order in which the largest read names their axes; those without axes come first."""
    reads = [r for r in reads_of(body) if free_axes(r)]
    reads.sort(key=lambda r: -len(free_axes(r)))
    seen = [axis for read in reads for index in read.indices for axis in free_axes(index)]
    seen += list(free_axes(body))
    position = {axis: n for n, axis in reversed(list(enumerate(seen)))}
    first = {name: min((position.get(a, len(seen)) for a in axes), default=-1) for name, axes in dims.items()}
    return sorted(dims, key=lambda name: first[name])


def _fuse(body: Expr, axes: tuple[Axis, ...]) -> tuple[Expr, tuple[Axis, ...]]:
    """One axis in place of several that ``body`` reads through their row-major position only."""
    if not all(known(axis.extent) is not None and axis.lo is as_expr(0) for axis in axes):
        return body, axes
    terms: dict[Expr, int] = {}
    stride = 1
    for axis in reversed(axes):
        terms[axis] = stride
        stride *= int(axis.extent)
    position = Form(Linear({a: terms[a] for a in axes}), axes)
    whole, here = Axis(axes[0].name, 0, stride), frozenset(axes)
    for read in reads_of(body):
        for index in read.indices:
            use = None if reads_of(index) else decompose(index)
            if use is not None and not here.isdisjoint(use.form.axes) and use.form.key != position.key:
                return body, axes
    fused = rewrite_forms(body, [(position, whole)])
    return (body, axes) if any(a in free_axes(fused) for a in axes) else (fused, (whole,))


def split_axis(axis: Axis, exprs: Sequence[Expr]) -> tuple[dict[Expr, Expr], tuple[Axis, Axis]] | None:
    """``axis == m * quotient + rest`` where ``exprs`` take it apart by ``// m`` and ``% m``.

    Returns:
        A table for ``substitute`` that writes the two new axes, and these; None if there is no single ``m``.
    """
    divisors: dict[int, None] = {}
    for found in divisions(*exprs):
        if found.number is axis and found.base is not None:
            divisors[found.base] = None
    extent = known(axis.extent)
    if len(divisors) != 1 or extent is None or axis.lo is not as_expr(0):
        return None
    (m,) = divisors
    if extent % m:
        return None
    quotient, rest = Axis(axis.name, 0, extent // m), Axis(f"{axis.name}_{m}", 0, m)
    table = {call(FLOOR_DIVIDE, axis, m): quotient, call(MOD, axis, m): rest, axis: m * quotient + rest}
    return table, (quotient, rest)
