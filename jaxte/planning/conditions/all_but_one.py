"""Reductions over all positions but one: what stands before it, and what stands behind it.

    y[b, i] = prod over j of f[b, j] where j != i     is   before[b, i] * after[b, i]
    with   before[b, i] = prod over j of f[b, j] where j < i,     after[b, i] = prod over j of f[b, j] where j > i

Where nothing else depends on ``i``, each position would meet all others again: n * n points for n results, and the adjoint of a product, which is one over
all but one by itself, n * n * n. The two prefixes are n points each, and so are their adjoints. Nothing is divided or subtracted, so that a zero, a number far larger than the
others or an infinity at ``i`` leaves no trace in what all others make.

An extremum stays as it is: which of equal elements its gradient goes to is said of all of them together. So does what takes less than two loops do on the platform, and what is
left out at other positions than those of an axis: prefixes up to these are no cumulative sums.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod

from jaxte.algebra.sums import operations
from jaxte.lang import dtypes
from jaxte.lang.expr import Axis, Call, Expr, Read, Reduce, call, cast, conjunction, conjuncts
from jaxte.lang.limits import FEWER, MANY_OPERATIONS, MARGIN, WORTH_A_TENSOR
from jaxte.lang.operators import ADD, EQUAL, LESS, MULTIPLY, NOT, NOT_EQUAL, Op
from jaxte.lang.walk import depends_on, free_axes, substitute
from jaxte.planning.asked import intermediates
from jaxte.sets.affine import from_linear, linear
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import extent, known
from jaxte.tensors.bodies.range_checks import reads_inside
from jaxte.tensors.reducers import with_wide_reads
from jaxte.tensors.tensor import Compute

_JOINED: dict[str, Op] = {"sum": ADD, "prod": MULTIPLY}


def before_and_after(node: Reduce, axes: Sequence[Axis], name: str) -> Expr:
    """``node``, which stands in a definition over ``axes`` that is called ``name``, as what is before and what is behind a position; itself where it is over no such points."""
    if node.reducer.name not in _JOINED or not dtypes.is_inexact(node.dtype):
        return node
    wide = with_wide_reads(node)
    wide = node if wide is None else wide
    conditions = conjuncts(wide.where)
    for place, condition in enumerate(conditions):
        pair = _left_out(condition, wide.axes)
        others = conjunction([*conditions[:place], *conditions[place + 1 :]])
        if pair is None or _depends(pair[1], (*wide.exprs, others)):
            continue
        value = _joined(wide, others, pair, axes, name)
        return node if value is None else cast(value, node.dtype)
    return node


def _left_out(condition: Expr, axes: Sequence[Axis]) -> tuple[Axis, Expr] | None:
    """The one of ``axes`` that ``condition`` keeps from one position of others, and that position; None where it says something else."""
    match condition:
        case Call(op, (Call(equal, args),)) if op is NOT and equal is EQUAL:
            pass
        case Call(op, args) if op is NOT_EQUAL:
            pass
        case _:
            return None
    if not all(map(is_index, args)):
        return None
    apart = linear(args[0]) - linear(args[1])
    for own in axes:
        if abs(sign := apart.terms.get(own, 0)) == 1:
            position = from_linear(linear(own) - apart * sign)
            return None if depends_on(position, axes) else (own, position)
    return None


def _depends(position: Expr, on_it: Sequence[Expr]) -> bool:
    """Whether anything beside the condition depends on the ``position`` that is left out, or it does not run along one axis."""
    form = linear(position)
    if len(form.terms) != 1 or not all(isinstance(a, Axis) and abs(n) == 1 for a, n in form.terms.items()):
        return True  # prefixes up to anything but an axis are sums for each of its positions, as before
    return any(depends_on(e, tuple(free_axes(position))) for e in on_it)


def _joined(
    node: Reduce, others: Expr, pair: tuple[Axis, Expr], axes: Sequence[Axis], name: str
) -> Expr | None:
    """What is before the position of ``pair`` with what is behind it; None where the prefixes are no fewer points, or no tensors of their own."""
    along, position = pair
    length = known(along.extent)
    over = [a for a in axes if any(depends_on(e, (a,)) for e in (*node.exprs, others, position))]
    if length is None or any(known(a.lo) != 0 for a in (*over, *node.axes)):
        return None
    if not _is_worth(node, length, over, free_axes(position)):
        return None
    exprs = tuple(_computed_once(e, (*axes, *node.axes), f"{name}_element") for e in node.exprs)
    own: dict[Expr, Axis] = {a: Axis(a.name, 0, a.hi) for a in over}
    parts: list[Expr] = []
    for label, side in (("before", (along, position)), ("after", (position, along))):
        inside = conjunction([*conjuncts(others), call(LESS, *side)])
        element = substitute(node.changed(exprs=exprs, where=inside), own)
        if not reads_inside([*own.values()], element):
            return None
        parts.append(Read(Compute(f"{name}_{label}", [*own.values()], element), over))
    return call(_JOINED[node.reducer.name], *parts)


def _is_worth(node: Reduce, length: int, over: Sequence[Axis], own: Collection[Axis]) -> bool:
    """Whether the points of ``node``, or of its adjoint, take longer than two prefixes that are written and read."""
    ends = [known(a.extent) for a in own]
    if length <= MANY_OPERATIONS or any(n is not None and FEWER * n < length for n in ends):
        return False
    costs, points = intermediates(), prod(extent(a) for a in over)
    again = length if node.reducer.name == "prod" else 1
    prefixes = max(points, points // max(1, prod(map(extent, own))) * length)
    return points * length * again >= MARGIN * 2 * (prefixes * costs.element + costs.loop)


def _computed_once(element: Expr, axes: Sequence[Axis], name: str) -> Expr:
    """A read of what both prefixes are made of, a tensor of its own where it takes more than a few operations."""
    over = [a for a in axes if depends_on(element, (a,))]
    own: dict[Expr, Axis] = {a: Axis(a.name, 0, a.hi) for a in over}
    body = substitute(element, own)
    if element.reduces or operations(element) < WORTH_A_TENSOR or not reads_inside([*own.values()], body):
        return element
    return Read(Compute(name, [*own.values()], body), over)
