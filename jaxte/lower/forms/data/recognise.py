"""Reductions at positions that are data: scatters.

``out[a, j] = sum over i where I[i] == a of body(i, j)`` visits each ``i`` once and adds its value to row ``I[i]``: a
scatter-add, if ``a`` occurs in that equation only. Several equations ``I[i] == a``, ``J[i] == b`` scatter to several
axes at once. The equation may be any index expression with ``a`` in it once: ``m * a == e`` stands for ``a == e // m`` where
``m`` divides ``e``. Values that fall outside of the output are dropped. Products, maxima and minima are accumulated alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from jaxte.algebra.product import Factor, multiplied, product_of, taken_outside
from jaxte.algebra.value_ranges import is_kept_within
from jaxte.autodiff.sums.cheap import LongPositions, Positions
from jaxte.lang.dtypes import is_integer
from jaxte.lang.expr import (
    TRUE,
    Axis,
    Call,
    Expr,
    Read,
    Reduce,
    as_expr,
    call,
    cast,
    conjunction,
    conjuncts,
    widened,
)
from jaxte.lang.graphs import among, identical, place_of
from jaxte.lang.limits import FEW_POSITIONS, VECTOR
from jaxte.lang.operators import EQUAL, SELECT
from jaxte.lang.text import text
from jaxte.lang.walk import depends_on, free_axes, reads_of, substitute
from jaxte.lower.code.spec import Array, Refusal, array, over_all
from jaxte.lower.cost.work import points
from jaxte.lower.forms.data.scatter_spec import Position, ScatterSpec, result_dims
from jaxte.sets.affine import from_linear, linear, normal
from jaxte.sets.index_forms import difference, linear_or_none
from jaxte.sets.intervals import at_most, known
from jaxte.sets.linear import Linear
from jaxte.tensors.facts import Permutation, Sorted, Unique, values_in

# of the built-in reductions, what ``.at`` calls them
METHODS = {"sum": "add", "prod": "multiply", "max": "max", "min": "min"}
_SORTED = "indices_are_sorted"
SCATTER = "scatter"  # of whatever operation a reduction is


@dataclass(frozen=True, slots=True)
class Target:
    """``axis == index`` for an output axis."""

    axis: Axis
    index: Expr


def recognise_scatter(axes: Sequence[Axis], node: Reduce, in_rows: bool = False) -> ScatterSpec | Refusal:
    """The scatter that ``node``, a sum, product, maximum or minimum for each point of ``axes``, is.

    Args:
        axes: of the result.
        node: the reduction.
        in_rows: whether what is accumulated has its short axes first, as where rows have the length of a register, filled or not.
    """
    if node.reducer.name not in METHODS:
        return Refusal(f"{node.reducer.label} is no sum, product, maximum or minimum")
    outer, inner, guards = _parts(node)
    targets: list[Target] = []
    others: list[Factor] = []
    for factor in inner:
        known = [t.axis for t in targets]
        target = _target(factor.expr, [a for a in axes if not among(a, known)]) if factor.guard else None
        if target is None:
            others.append(factor)
        else:
            targets.append(target)
    if not targets:
        return Refusal("no condition ties an output axis to data")
    if _within_window(node, [t.axis for t in targets], guards):
        return Refusal("the positions lie within windows of few elements, each of which is compared")
    # What else depends on a scattered axis is read where the value goes.
    table: dict[Axis, Expr] = {t.axis: widened(t.index) for t in targets}
    targets = [Target(t.axis, substitute(t.index, table)) for t in targets]
    others = [replace(f, expr=substitute(f.expr, table)) for f in others]
    outside = [g for g in guards if not depends_on(g, node.axes)]
    inside = [substitute(g, table) for g in guards if not among(g, outside)]
    for expr in (*(f.expr for f in others), *inside, *(t.index for t in targets)):
        if depends_on(expr, list(table)):
            return Refusal(f"{text(expr)} depends on the scattered axes themselves")
    found = _Outside(tuple(outer), tuple(outside))
    return _scatter(tuple(axes), node, targets, others, inside, found, in_rows)


def _within_window(node: Reduce, targets: Sequence[Axis], guards: Sequence[Expr]) -> bool:
    """Whether conditions without data leave few points for each position, as those of a pool do around the place of its maximum."""
    tied = any(depends_on(g, targets) and depends_on(g, node.axes) for g in guards)
    return tied and points(node.axes) <= FEW_POSITIONS


def _parts(node: Reduce) -> tuple[list[Factor], list[Factor], list[Expr]]:
    """Factors that leave the reduction, those that stay, conditions on data among them, and the other conditions."""
    if node.is_sum:
        product = product_of(node.exprs[0], conjuncts(node.where))
        return *taken_outside(product.factors, node.axes), list(product.guards)
    conditions = conjuncts(node.where)
    data = [c for c in conditions if reads_of(c)]
    inner = [Factor(node.exprs[0]), *(Factor(c, guard=True) for c in data)]
    return [], inner, [c for c in conditions if not among(c, data)]


@dataclass(frozen=True, slots=True)
class _Outside:
    """Factors and conditions that do not depend on the reduced axes."""

    factors: tuple[Factor, ...]
    guards: tuple[Expr, ...]


def _target(condition: Expr, axes: Sequence[Axis]) -> Target | None:
    """``condition`` solved for an output axis, if it is an equality that has it once and holds data."""
    if not (isinstance(condition, Call) and condition.op is EQUAL and reads_of(condition)):
        return None
    form = difference(condition)
    if form is None:
        return _computed_target(condition, axes)
    for axis in axes:
        factor, rest = form.coefficient(axis), form.without(axis)
        if not factor or depends_on(from_linear(rest), (axis,)) or not reads_of(from_linear(rest)):
            continue
        index = from_linear(rest * (-1 if factor > 0 else 1))
        size = abs(factor)
        return Target(
            axis, index if size == 1 else call(SELECT, call(EQUAL, index % size, 0), index // size, -1)
        )
    return None


def _computed_target(condition: Call, axes: Sequence[Axis]) -> Target | None:
    """The same where the data are no integer arithmetic: ``floor(at[i]) == axis + 1``, as an integer."""
    for own, data in (condition.args, condition.args[::-1]):
        form = linear_or_none(own)
        if form is None or not is_integer(data.dtype) or reads_of(own):
            continue
        for axis in axes:
            rest = form.without(axis)
            if (
                form.coefficient(axis) == 1
                and not depends_on(from_linear(rest), (axis,))
                and not depends_on(data, (axis,))
            ):
                return Target(axis, data if rest == Linear({}) else data - from_linear(rest))
    return None


def _scatter(
    axes: tuple[Axis, ...],
    node: Reduce,
    targets: Sequence[Target],
    others: Sequence[Factor],
    guards: Sequence[Expr],
    outside: _Outside,
    in_rows: bool,
) -> ScatterSpec:
    varying = list(dict.fromkeys(a for t in targets for a in free_axes(t.index)))
    # Output axes that the positions vary over come first in the block, each as positions 0, 1, 2, ...
    plain = [a for a in axes if among(a, varying)] + [a for a in node.axes if among(a, varying)]
    flags = _flags(axes, targets, varying)
    if in_rows:  # elements that are worth a row
        block = sorted(plain, key=lambda a: (known(a.extent) or VECTOR) >= VECTOR)
    elif _SORTED in flags:
        block = plain
    else:
        block = _as_stored(plain, [*(t.index for t in targets), *(f.expr for f in others)])
    # What is added at one position lies together in memory: whole dimensions come last, until all is added.
    scattered = [t.axis for t in targets]
    placed = sorted(axes, key=lambda a: not among(a, scattered) and not among(a, block))
    indices, positions = _positions(placed, targets, block)
    body = _element(node, others, guards)
    if summed := tuple(a for a in node.axes if not among(a, block)):
        body = node.changed(exprs=(body,), axes=summed, where=TRUE)
    dims = result_dims(positions, placed, block) if free_axes(body) else []
    flags = tuple(f for f in flags if identical(block, plain) or f != _SORTED)
    values, shape = array(dims, body), tuple(a.extent for a in placed)
    at: dict[Axis, Expr] = {old: normal(new + old.lo) for old, new in zip(dims, values.axes, strict=True)}
    unsure = not all(is_known_inside(t.index, t.axis.extent) for t in targets)
    told = " and ".join(f"{text(t.index)} == {t.axis.name}" for t in targets)
    return ScatterSpec(
        values=values,
        indices=tuple(indices),
        positions=tuple(positions),
        block=len(block),
        shape=shape,
        dtype=node.dtype,
        finish=over_all(axes, axes, outside.factors),
        guard=array(axes, conjunction(outside.guards)) if outside.guards else None,
        reason=f"{SCATTER}: the positions {told} {_why(targets)}",
        flags=flags,
        order=None if identical(placed, list(axes)) else tuple(place_of(a, placed) for a in axes),
        method=METHODS[node.reducer.name],
        identity=node.reducer.identity[0],
        hits=tuple(substitute(c, at) for t in targets for c in (t.index >= 0, t.index < t.axis.extent)),
        unsure=unsure,
        flat=not in_rows and _is_flat(shape, positions, indices) and not (flags and unsure),
    )


def _positions(
    placed: Sequence[Axis], targets: Sequence[Target], block: Sequence[Axis]
) -> tuple[list[Array], list[Position]]:
    """The arrays of positions, and an entry for each of the ``placed`` axes; ``block`` are the axes that these arrays vary over."""
    by_axis = {t.axis: t for t in targets}
    indices: list[Array] = []
    positions: list[Position] = []
    for axis in placed:
        if axis in by_axis:
            own = tuple(a for a in block if a in free_axes(by_axis[axis].index))
            positions.append(Position(1 + len(indices), tuple(place_of(a, block) for a in own)))
            indices.append(array(own, by_axis[axis].index))
        elif among(axis, block):
            positions.append(Position(dims=(place_of(axis, block),), count=axis.extent))
        else:
            positions.append(Position())
    return indices, positions


def _is_flat(shape: Sequence[Expr], positions: Sequence[Position], indices: Sequence[Array]) -> bool:
    """Whether single elements are accumulated at positions in one of several dimensions. XLA writes the positions in all of them to an array first, which takes a
    quarter longer on a CPU; of positions in several dimensions it gains nothing to count them together."""
    elements = prod(known(extent) or 2**31 for extent in shape)
    return (
        len(positions) > 1
        and not any(p.whole for p in positions)
        and [i.body.dtype for i in indices] == ["int32"]
        and elements < 2**31  # which 32 bits count
    )


def is_known_inside(index: Expr, extent: Expr | int) -> bool:
    """Whether facts, or how it is computed, keep a position that is data in range."""
    stop = values_in(index.tensor) if isinstance(index, Read) else None
    if stop is not None and at_most(linear(as_expr(stop)), as_expr(extent)):
        return True
    return is_kept_within(index, known(as_expr(extent)))


def _as_stored(block: Sequence[Axis], exprs: Sequence[Expr]) -> list[Axis]:
    """``block`` in the order in which most of what ``exprs`` read has its dimensions, so that arrays are visited as they lie in memory."""
    read = [own for r in reads_of(*exprs) if len(own := [i for i in r.indices if among(i, block)]) > 1]
    orders = [list(block)]
    for own in read:
        if len(set(own)) == len(own):
            orders.append([*own, *(a for a in block if not among(a, own))])  # type: ignore[list-item]

    def met(order: Sequence[Axis]) -> int:
        return sum(identical(own, sorted(own, key=lambda a: place_of(a, order))) for own in read)  # type: ignore[arg-type]

    return max(orders, key=met)


def _why(targets: Sequence[Target]) -> str:
    """Why nothing is solved for the elements at the positions of ``targets``."""
    read = [r.tensor for t in targets for r in reads_of(t.index)]
    if not all(isinstance(tensor, Positions) for tensor in read):
        return "are data"
    if any(isinstance(tensor, LongPositions) for tensor in read):
        return "would take more work to be solved for than derivation has a budget of"
    return "would take more points if they were solved for"


def _element(node: Reduce, factors: Sequence[Factor], guards: Sequence[Expr]) -> Expr:
    """What is accumulated; the identity where a condition does not hold."""
    if node.is_sum:
        # a number that is left alone when arrays have left the sum has the dtype of the sum
        value = cast(multiplied([f for f in factors if not f.guard]), node.dtype)
        return multiplied([Factor(value), *(f for f in factors if f.guard)], guards)
    tests = [*guards, *(f.expr for f in factors if f.guard)]
    (element,) = (f.expr for f in factors if not f.guard)
    return call(SELECT, conjunction(tests), element, node.reducer.identity[0]) if tests else element


def _flags(axes: Sequence[Axis], targets: Sequence[Target], varying: Sequence[Axis]) -> tuple[str, ...]:
    """What facts say of the positions, if they are one index tensor as it stands, row by row of the output."""
    index = targets[0].index
    if len(targets) > 1 or not isinstance(index, Read) or not identical(list(index.indices), list(varying)):
        return ()
    if any(not among(a, axes) for a in index.indices[:-1]):
        return ()
    kinds = {Sorted: _SORTED, Unique: "unique_indices", Permutation: "unique_indices"}
    known = dict.fromkeys(kinds[type(fact)] for fact in index.tensor.facts if type(fact) in kinds)
    if any(place_of(a, axes) > place_of(targets[0].axis, axes) for a in index.indices[:-1]):  # type: ignore[arg-type]
        known.pop(kinds[Sorted], None)  # rows are sorted, positions that begin with a value of a row are not
    return tuple(known)
