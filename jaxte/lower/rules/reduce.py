"""Reductions: sums of products, jnp's own reductions, and ``lax.reduce`` for any other combiner."""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.lang.dtypes import is_inexact
from jaxte.lang.expr import ONE, ZERO, Axis, Call, Const, Expr, Reduce, as_expr, call, conjunction
from jaxte.lang.graphs import among, place_of
from jaxte.lang.limits import LONGEST_UNROLLED
from jaxte.lang.operators import POWER, SELECT
from jaxte.lower.arrays.elementwise import Kept, Typed, size
from jaxte.lower.arrays.loops import Item
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.products import OPS, Combined, Position, identity_of
from jaxte.lower.arrays.views import Reshape, View
from jaxte.lower.body.assignment import Task
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.vocabulary import Value
from jaxte.lower.match.empty_sums import point_condition, points_outside
from jaxte.lower.rewrites.short_axes import few_positions
from jaxte.lower.rules.by_columns import combined, reduced_call
from jaxte.lower.rules.extremum_passes import by_passes, is_found_by_passes, passes_for, position_by_passes
from jaxte.lower.rules.form_table import recognised
from jaxte.lower.rules.operand_order import operand_order
from jaxte.lower.rules.select import guarded
from jaxte.lower.rules.sum_of_products import sum_value
from jaxte.lower.views.condition_box import cut, split_conditions
from jaxte.lower.views.scope import Scope, overlapping
from jaxte.sets.affine import linear, normal
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import constant, known, nonnegative
from jaxte.tensors.reductions import position_of

FUNCTIONS = frozenset(name for name in OPS if name != "sum")  # that jnp has


def reduce_value(body: Body, node: Expr, scope: Scope) -> Task:
    """The value of a reduction at every point of ``scope``."""
    assert isinstance(node, Reduce)
    some = point_condition(node, scope)
    value = yield from _reduction(body, node, scope, some is not None)
    if some is None or value.literal:
        return value
    mask, zero = (yield some, scope), (yield Const(0.0), scope)
    return body.combine(SELECT, [mask, value, zero], (node.dtype, False), scope)


def _reduction(body: Body, node: Reduce, scope: Scope, counted: bool) -> Task:
    """The value of ``node``, which is not read where it has no point if that was ``counted``."""
    inner, dims = scope.extend(node.axes)
    identity = node.reducer.identity[node.position]
    parts = split_conditions(node.where, inner)
    if parts is None or any(known(d.hi) == 0 for d in dims):
        return (yield identity, scope)
    found = yield from recognised(body, node, scope)
    if found is not None:
        outside = points_outside(node)
        if outside is None:
            return found
        mask, zero = (yield outside, scope), (yield identity, scope)
        return body.combine(SELECT, [mask, found, zero], (node.dtype, False), scope)
    if node.is_sum:
        assert isinstance(identity, Const)
        return (yield from sum_value(body, node.exprs[0], parts, inner, dims, identity, counted))
    if node.reducer.name in FUNCTIONS:
        return (yield from _simple(body, node, node.exprs[0], parts, inner, dims))
    if node.reducer.name in ("argmax", "argmin"):
        if is_found_by_passes(body, node, inner, dims):
            return (yield from position_by_passes(body, node, parts, inner, dims))
        if not parts and _counts_row_major(node):
            return (yield from _arg(body, node, inner, dims))
    return (yield from _general(body, node, parts, inner, dims))


# --- jnp's own


def _simple(
    body: Body, node: Reduce, expr: Expr, parts: Sequence[Expr], scope: Scope, dims: tuple[Axis, ...]
) -> Task:
    """prod, max, min, any, all: conditions on one dimension cut it, the others mask with the identity."""
    identity = node.reducer.identity[0]
    assert isinstance(identity, Const)
    left = split_conditions(conjunction(list(parts)), scope)
    if left is None:
        return (yield identity, scope)
    single = next((d for d in dims if known(d.hi) == 1), None)
    if single is not None and len(scope.order) > 1:
        inner = scope.replace(single, ZERO, [], deeper=0)
        others = tuple(d for d in dims if d is not single)
        return (yield from _simple(body, node, expr, left, inner, others))
    if (shorter := cut(left, dims, scope)) is not None:
        if shorter.dims is None:
            return (yield identity, scope)
        return (yield from _simple(body, node, expr, shorter.conditions, shorter.scope, shorter.dims))
    outer = [p for p in left if not any(among(d, dims) for d in scope.dims_under(p))]
    if outer:
        rest = [p for p in left if not among(p, outer)]
        make = lambda part: _simple(body, node, expr, rest, part, dims)  # noqa: E731
        return (yield from guarded(body, outer, identity, scope, make))
    dim = overlapping([expr], dims, scope, LONGEST_UNROLLED)
    if dim is not None:
        body.report.note("shifted slices")
        return (yield from _unrolled(body, node, expr, left, scope, dims, dim))
    dim = few_positions(expr, dims, lambda e: scope.dims_under(e))
    if dim is not None:
        return (yield from _unrolled(body, node, expr, left, scope, dims, dim))
    masked = call(SELECT, conjunction(left), expr, identity) if left else expr
    value = yield masked, scope.arranged(operand_order(body, masked, scope, dims))
    return _reduced(body, node, value, scope, dims)


def _unrolled(
    body: Body,
    node: Reduce,
    expr: Expr,
    parts: Sequence[Expr],
    scope: Scope,
    dims: tuple[Axis, ...],
    dim: Axis,
) -> Task:
    """The reduction over a short dimension, one position after the other."""
    rest = tuple(d for d in dims if d is not dim)
    make = lambda at: _simple(body, node, expr, parts, at, rest)  # noqa: E731
    return (yield from combined(body, OPS[node.reducer.name], dim, scope, node.dtype, make))


def _reduced(body: Body, node: Reduce, value: Value, scope: Scope, dims: tuple[Axis, ...]) -> Value:
    function = node.reducer.name
    if value.literal:
        value = body.cast(value, node.dtype)
    lost = [d for d in dims if not among(d, value.dims)]
    if any(among(d, dims) for d in value.dims):
        empty = not all(nonnegative(linear(d.hi) - constant(1)) for d in dims)
        start = identity_of(node.reducer) if empty and function in ("max", "min") else None
        value = reduced_call(body, function, value, dims, scope, node.dtype, start)
    value = body.in_order(value, scope)
    if node.reducer.name == "prod":
        for dim in lost:
            count = Value(size(dim.hi), (), ("int32", True), literal=True)
            value = body.combine(POWER, [value, count], (node.dtype, False), scope)
    return value


# --- positions


def _counts_row_major(node: Reduce) -> bool:
    """Whether the first expression of an argmax is the position within its axes, as ``te.argmax`` makes it."""
    own = node.exprs[0]
    while isinstance(own, Call) and own.op.name == "cast":
        own = own.args[0]
    return is_index(own) and normal(own) is normal(position_of(node.axes))


def _arg(body: Body, node: Reduce, scope: Scope, dims: tuple[Axis, ...]) -> Task:
    value = yield node.exprs[1], scope
    out = tuple(d for d in scope.order if not among(d, dims))
    code = body.full(value, (*out, *dims))
    if node.position == 1:
        function = "max" if node.reducer.name == "argmax" else "min"
        whole = Value(code, (*out, *dims), value.kind)
        return reduced_call(body, function, whole, dims, scope, node.dtype)
    if len(dims) > 1:
        code = View(code, Reshape((*(d.hi for d in out), as_expr(-1))))
    body.report.note(node.reducer.name)
    return Value(Position(node.reducer.name, code, len(out)), out, (node.dtype, False))


# --- any combiner


def _general(body: Body, node: Reduce, parts: Sequence[Expr], scope: Scope, dims: tuple[Axis, ...]) -> Task:
    """``lax.reduce`` with the combiner as a function, masked with the identities; of a single position the element there.

    (``jax.jvp`` of ``lax.reduce`` fails where one of several operands is a constant, as those of a single position often are.)
    """
    if all(d.hi is ONE for d in dims):
        own, identity = node.exprs[node.position], node.reducer.identity[node.position]
        for d in dims:
            scope = scope.replace(d, ZERO, [], deeper=0)
        value = yield (call(SELECT, conjunction(list(parts)), own, identity) if parts else own), scope
        return body.cast(value, own.dtype)
    if (passes := passes_for(body, node, scope, dims)) is not None:
        return (yield from by_passes(body, node, passes, parts, scope, dims))
    order = scope.order
    operands: list[Node] = []
    for expr, identity in zip(node.exprs, node.reducer.identity, strict=True):
        masked = call(SELECT, conjunction(list(parts)), expr, identity) if parts else expr
        value = yield masked, scope
        value = body.cast(value, expr.dtype, always=value.kind[1])
        operand = body.full(value, order)
        if is_inexact(expr.dtype) and not is_inexact(node.dtype):
            operand = Kept(operand, "constant")  # jax.jvp has no rule for integers beside tangents
        operands.append(operand)
    starts = tuple(
        Typed(identity_of(node.reducer, n), identity.dtype)
        for n, identity in enumerate(node.reducer.identity)
    )
    axes = tuple(place_of(d, order) for d in dims)
    body.report.note("reduce")
    out, kind = tuple(d for d in order if not among(d, dims)), (node.dtype, False)
    results: Node = Combined(node.reducer, tuple(operands), starts, axes)
    if node.reducer.arity > 1:
        named = body.named_tuple(results)  # all of them are asked for
        results = Item(named, node.position, tuple(d.hi for d in out), kind)
    return Value(results, out, kind)
