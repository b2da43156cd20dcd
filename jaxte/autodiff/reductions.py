"""Adjoints of reductions other than sums.

With ``y = reduce over k of x[k]`` and the adjoint ``g`` of ``y``, the adjoint of ``x[k]`` is

- maximum, minimum: ``g`` where ``x[k] == y``, shared among equal ones by the reduction's rule for ties;
- product: ``g`` times the product of the others, as (product of those before) * (product of those after), which is
  exact when some are zero;
- any combiner: the derivative of ``combine(combine(before, x[k]), after)``, with ``before`` and ``after`` the
  reductions of the points before and after ``k``.

The reductions of the points before and after are tensors of their own, computed by cumulative reductions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jaxte import dtypes
from jaxte.affine import normal
from jaxte.autodiff.prefixes import as_scan
from jaxte.autodiff.scalar import Contribution, contributions, guard, plus, times
from jaxte.autodiff.scans import scan_contributions
from jaxte.errors import DifferentiationError
from jaxte.expr import TRUE, Axis, Call, Const, Expr, Read, Reduce, Symbol, call, cast
from jaxte.operators import AND, DIVIDE, EQUAL, GREATER, LESS, SELECT, Op
from jaxte.reductions import builtin_reducer
from jaxte.tensor import Compute
from jaxte.walk import combine, postorder, substitute

Wanted = Callable[[Expr], bool]

# Operations whose result is not rounded.
_EXACT = (
    "select",
    "negative",
    "abs",
    "maximum",
    "minimum",
    "relu",
    "real",
    "imag",
    "conj",
    "sign",
    "floor",
    "ceil",
)


def reduction_contributions(tensor: Compute, seed: Expr, wanted: Wanted) -> list[Contribution]:
    """The contributions of ``seed`` to every wanted read in the body of ``tensor``, a reduction."""
    node = tensor.body
    assert isinstance(node, Reduce)
    if node.reducer.name == "sum":
        return contributions(node, tensor.axes, seed, None, wanted)
    scan = None if node.reducer.name in ("any", "all", "argmax", "argmin") else as_scan(tensor)
    if scan is not None:
        return scan_contributions(tensor, scan, seed, wanted)
    match node.reducer.name:
        case "max" | "min":
            return _extremum(tensor, node, seed, wanted)
        case "any" | "all":
            return []
        case "argmax" | "argmin":
            return _chosen(tensor, node, seed, wanted)
        case "prod":
            return _combined(tensor, node, seed, wanted, _product_slope)
    return _combined(tensor, node, seed, wanted, _combiner_slope)


def _inside(
    tensor: Compute, node: Reduce, position: int, g: Expr, wanted: Wanted, where: Expr = TRUE
) -> list[Contribution]:
    """What flows on from the adjoint ``g`` of the reduced expression at ``position``."""
    scope = (*tensor.axes, *node.axes)
    found = contributions(node.exprs[position], scope, g, None, wanted)
    condition = call(AND, node.where, where)
    return [Contribution(c.read, c.axes, call(AND, condition, c.where), c.value) for c in found]


def _extremum(tensor: Compute, node: Reduce, seed: Expr, wanted: Wanted) -> list[Contribution]:
    element, value = _compared(tensor, node)
    ties = node.reducer.ties
    if ties in ("first", "last"):
        winner = _once(tensor, "winner", lambda: _winner(tensor, node, element, value))
        g = guard(call(EQUAL, _position(node.axes), Read(winner, tensor.axes)), seed)
    elif ties == "all":
        g = guard(call(EQUAL, element, value), seed)
    else:
        count = _once(tensor, "ties", lambda: _count_of_ties(tensor, node, element, value))
        share = call(DIVIDE, seed, Read(count, tensor.axes))
        # Not `element == value`: a NaN among the elements makes all of them receive NaN, as in JAX.
        behind = call(LESS if node.reducer.name == "max" else GREATER, element, value)
        g = call(SELECT, behind, Const(0.0), share)
    return _inside(tensor, node, 0, g, wanted)


def _compared(tensor: Compute, node: Reduce) -> tuple[Expr, Expr]:
    """The element and the extremum as they are compared.

    An element that is computed again may come out rounded in another way (a multiplication and an addition in one
    instruction) and then equals no extremum. Such elements become a tensor, of which the extremum is taken again.
    """
    (element,) = node.exprs
    if not any(
        isinstance(n, Call) and dtypes.is_inexact(n.dtype) and n.op.name not in _EXACT
        for n in postorder(element)
    ):
        return element, Read(tensor, tensor.axes)
    elements = _once(tensor, "elements", lambda: _elements(tensor, node))
    again = _once(tensor, "extremum", lambda: _extremum_of(elements, tensor, node))
    at = (*tensor.axes, *(normal(a - a.lo) for a in node.axes))
    return Read(elements, at), Read(again, tensor.axes)


def _once(tensor: Compute, kind: str, make: Callable[[], Compute]) -> Compute:
    """What the adjoints of all that ``tensor`` reads have in common is one tensor, made for the first of them."""
    if kind not in tensor.derived:
        tensor.derived[kind] = make()
    return tensor.derived[kind]


def _elements(tensor: Compute, node: Reduce) -> Compute:
    own = [Axis(a.name, 0, a.extent) for a in node.axes]
    outer, table = _fresh(tensor.axes)
    table |= {old: normal(new + old.lo) for old, new in zip(node.axes, own, strict=True)}
    element = substitute(node.exprs[0], table)
    body = call(SELECT, substitute(node.where, table), element, node.reducer.identity[0])
    return Compute(f"elements_{tensor.name}", (*outer, *own), body)


def _extremum_of(elements: Compute, tensor: Compute, node: Reduce) -> Compute:
    over = [Axis(a.name, 0, a.extent, reduction=True) for a in node.axes]
    outer, _ = _fresh(tensor.axes)
    extremum = Reduce(node.reducer, (Read(elements, (*outer, *over)),), over, TRUE)
    return Compute(f"extremum_{tensor.name}", outer, extremum)


def _count_of_ties(tensor: Compute, node: Reduce, element: Expr, value: Expr) -> Compute:
    """How many elements equal the extremum; NaN where it is NaN."""
    axes, table = _fresh(tensor.axes)
    value = substitute(value, table)
    element, where = substitute(element, table), substitute(node.where, table)
    hit = cast(call(EQUAL, element, value), tensor.dtype)
    if dtypes.is_float(tensor.dtype):
        hit = call(SELECT, call(EQUAL, value, value), hit, value)
    body = Reduce(builtin_reducer("sum", tensor.dtype), (hit,), node.axes, where)
    return Compute(f"ties_{tensor.name}", axes, body)


def _winner(tensor: Compute, node: Reduce, element: Expr, value: Expr) -> Compute:
    """The position of the element that receives the adjoint: the first or last that equals the extremum."""
    axes, table = _fresh(tensor.axes)
    value = substitute(value, table)
    element, where = substitute(element, table), substitute(node.where, table)
    dtype = _position_dtype(node.axes)
    reducer = builtin_reducer("min" if node.reducer.ties == "first" else "max", dtype)
    position = cast(_position(node.axes), dtype)
    candidate = call(SELECT, call(EQUAL, element, value), position, reducer.identity[0])
    return Compute(f"winner_{tensor.name}", axes, Reduce(reducer, (candidate,), node.axes, where))


def _position(axes: Sequence[Axis]) -> Expr:
    """Row-major position of a point of a reduction, from 0."""
    position: Expr = Const(0)
    for axis in axes:
        position = position * axis.extent + (axis - axis.lo)
    return position


def _position_dtype(axes: Sequence[Axis]) -> str:
    """The shortest integers that number the points of ``axes`` from 0 and have one more for none of them."""
    points: Expr = Const(1)
    for axis in axes:
        points = points * axis.extent
    count = normal(points)
    for bits in (8, 16):
        if isinstance(count, Const) and int(count) < 2 ** (bits - 1):
            return f"int{bits}"
    return "int32"


def _fresh(axes: Sequence[Axis]) -> tuple[tuple[Axis, ...], dict[Expr, Expr]]:
    new = tuple(Axis(a.name, a.lo, a.hi) for a in axes)
    return new, dict(zip(axes, new, strict=True))


def _chosen(tensor: Compute, node: Reduce, seed: Expr, wanted: Wanted) -> list[Contribution]:
    """The value that comes with an argmax: its adjoint goes to the element at the position found."""
    if node.position == 0:
        return []
    axes, table = _fresh(tensor.axes)
    index = substitute(Reduce(node.reducer, node.exprs, node.axes, node.where, 0), table)
    chosen = Compute(f"winner_{tensor.name}", axes, index)
    g = guard(call(EQUAL, cast(node.exprs[0], "int32"), Read(chosen, tensor.axes)), seed)
    return _inside(tensor, node, 1, g, wanted)


Slope = Callable[[Reduce, Sequence[Expr], Sequence[Expr], Expr], list[Expr]]


def _combined(tensor: Compute, node: Reduce, seed: Expr, wanted: Wanted, slope: Slope) -> list[Contribution]:
    """Any combiner: the slope at a point, given the reductions of the points before and after it."""
    at = (*tensor.axes, _position(node.axes))
    before, after = (
        [Read(t, at) for t in _others(tensor, node, relation, name)]
        for relation, name in ((LESS, "before"), (GREATER, "after"))
    )
    results: list[Contribution] = []
    for position, g in enumerate(slope(node, before, after, seed)):
        if dtypes.is_inexact(node.exprs[position].dtype):
            results += _inside(tensor, node, position, g, wanted)
    return results


def _others(tensor: Compute, node: Reduce, relation: Op, name: str) -> list[Compute]:
    """The reductions of the points whose position is ``relation`` (LESS, GREATER) to that of a new last axis."""
    outer, table = _fresh(tensor.axes)
    points: Expr = Const(1)
    for axis in node.axes:
        points = points * axis.extent
    here = Axis("_".join(a.name for a in node.axes), 0, normal(points))
    other = Axis(f"other_{here.name}", 0, here.hi, reduction=True)
    table |= _digits(node.axes, other)
    exprs = [substitute(e, table) for e in node.exprs]
    where = call(AND, call(relation, other, here), substitute(node.where, table))
    return [
        Compute(f"{name}_{tensor.name}", (*outer, here), Reduce(node.reducer, exprs, (other,), where, n))
        for n in range(node.reducer.arity)
    ]


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


def _product_slope(node: Reduce, before: Sequence[Expr], after: Sequence[Expr], seed: Expr) -> list[Expr]:
    return [times(seed, before[0] * after[0])]


def _combiner_slope(node: Reduce, before: Sequence[Expr], after: Sequence[Expr], seed: Expr) -> list[Expr]:
    """The adjoint of each element from that of ``combine(combine(before, element), after)``."""
    elements = tuple(Symbol(f"element{n}", e.dtype) for n, e in enumerate(node.exprs))
    result = combine(node.reducer, combine(node.reducer, before, elements), after)[node.position]
    found: list[Expr] = [Const(0.0)] * len(elements)
    for part in contributions(result, (), seed, None, lambda leaf: leaf in elements):
        position = elements.index(part.read)
        found[position] = plus(found[position], part.value)
    table: dict[Expr, Expr] = dict(zip(elements, node.exprs, strict=True))
    return [substitute(g, table) for g in found]
