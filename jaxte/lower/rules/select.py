"""Choices: by slicing and padding or concatenating where a condition is about positions, else by ``jnp.where``.

A branch that stands behind a condition on one dimension is evaluated for that part of the dimension only. So the branch that
is not taken contributes nothing at all, and a read that is in range only behind its guard is a plain slice.

Choices among a few numbers by position as the array of these: ``te.constant``, and tables that are written with ``te.select``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any

import numpy as np

from jaxte.lang import dtypes
from jaxte.lang.expr import ONE, ZERO, Axis, Call, Const, Expr, Read, Reduce, as_expr, call, conjunction
from jaxte.lang.graphs import among, identical
from jaxte.lang.limits import MOST_PARTS, NESTED
from jaxte.lang.operators import ADD, DIVIDE, MULTIPLY, NEGATIVE, NOT, SELECT, SUBTRACT
from jaxte.lang.walk import all_of, reads_of
from jaxte.lower.arrays.elementwise import Literal, Number, Typed
from jaxte.lower.arrays.elementwise import Numbers as Rows
from jaxte.lower.arrays.views import Pad, Spread
from jaxte.lower.body.assignment import Task
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.vocabulary import Value
from jaxte.lower.match.empty_sums import point_condition, spoils_outside
from jaxte.lower.rules.form_table import recognised
from jaxte.lower.rules.interleaved import interleaved_value
from jaxte.lower.rules.pieces import boxes_of, concatenated, pieces_of
from jaxte.lower.views.condition_box import Box, box_of, forms_of_condition, is_empty, split_conditions
from jaxte.lower.views.scope import Scope
from jaxte.sets.affine import from_linear, linear
from jaxte.sets.intervals import constant, known, lowest, nonnegative
from jaxte.sets.linear import Linear
from jaxte.sets.tabulate import tabulated
from jaxte.tensors.tensor import Compute

Make = Callable[[Scope], Task]


def select_value(body: Body, node: Expr, scope: Scope) -> Task:
    """The value of ``select(condition, taken, other)``."""
    assert isinstance(node, Call)
    condition, taken, other = node.args
    parts = split_conditions(condition, scope)
    if parts is None or not parts:
        value = yield (other if parts is None else taken), scope
        return body.cast(value, node.dtype) if value.dtype != node.dtype else value
    whole = isinstance(taken, Reduce) and isinstance(other, Const) and not other.value
    if (
        isinstance(taken, Reduce)
        and whole
        and point_condition(taken, scope) is None
        and not spoils_outside(taken)
    ):
        found = yield from recognised(body, taken, scope, parts)
        if found is not None:
            return found
    if len(parts) == 1:
        chosen = yield from interleaved_value(body, node, scope)
        if chosen is not None:
            return chosen
    may_cut = scope.depth < NESTED and not body.is_in_pieces
    if isinstance(other, Const):
        inside = [part for part in parts if not _vanishes(taken, part, scope)] if not other.value else parts
        if (may_cut and _worth_cutting(body, taken, parts, scope)) or not identical(inside, parts):
            made = lambda part: _passed(taken, part)  # noqa: E731
            value = yield from guarded(body, inside, other, scope, made)
            return body.cast(value, node.dtype) if value.dtype != node.dtype else value
    elif isinstance(taken, Const) and body.leaks(other):
        opposite = call(SELECT, call(NOT, condition), other, taken)
        if len(parts) == 1 and not identical(
            split_conditions(call(NOT, condition), scope), [call(NOT, condition)]
        ):
            return (yield opposite, scope)
    if may_cut:
        pieces = pieces_of(node, scope)
        apart = body.leaks(taken) or body.leaks(other) or node.reduces
        if pieces is not None and (apart or all(known(box.count) == 1 for box, _ in pieces)):
            return (yield from concatenated(body, pieces, node, scope))
    return (yield from _where(body, parts, taken, other, node, scope))


def _worth_cutting(body: Body, taken: Expr, parts: Sequence[Expr], scope: Scope) -> bool:
    """Whether the branch has reads that need its guard, or stands at one position in so many only."""
    boxes = [box_of(part, scope) for part in parts]
    return body.leaks(taken) or any(box is not None and box.step != 1 for box in boxes)


def _passed(node: Expr, scope: Scope) -> Task:
    return (yield node, scope)


def _where(body: Body, parts: Sequence[Expr], taken: Expr, other: Expr, node: Expr, scope: Scope) -> Task:
    mask = yield from mask_value(parts, scope)
    first = yield taken, scope
    second = yield other, scope
    return body.combine(SELECT, [mask, first, second], node.kind, scope)


def mask_value(parts: Sequence[Expr], scope: Scope) -> Task:
    """The conjunction of ``parts`` as an array of booleans."""
    return (yield conjunction(list(parts)), scope)


def _vanishes(node: Expr, condition: Expr, scope: Scope) -> bool:
    """Whether ``node`` is 0 wherever ``condition`` does not hold: a sum of reads that are out of range, times numbers."""
    match node:
        case Read():
            return keeps_in_range(condition, node, scope)
        case Call(op, (a, b)) if op is ADD or op is SUBTRACT:
            return _vanishes(a, condition, scope) and _vanishes(b, condition, scope)
        case Call(op, (a, Const(value))) if op is MULTIPLY or (op is DIVIDE and value):
            return _is_finite(value) and _vanishes(a, condition, scope)
        case Call(op, (Const(value), a)) if op is MULTIPLY:
            return _is_finite(value) and _vanishes(a, condition, scope)
        case Call(op, (a,)) if op is NEGATIVE:
            return _vanishes(a, condition, scope)
    return False


def _is_finite(value: object) -> bool:
    return not isinstance(value, (float, complex)) or isfinite(abs(value))


def keeps_in_range(condition: Expr, read: Read, scope: Scope) -> bool:
    """Whether ``read`` is out of range, and thus zero, wherever ``condition`` does not hold."""
    forms = forms_of_condition(condition, scope)
    if not forms or any(reads_of(i) for i in read.indices):
        return False
    limits: list[Linear] = []
    for index, extent in zip(read.indices, read.tensor.shape, strict=True):
        form = linear(scope.index(index))
        limits += [form, linear(ZERO + extent) - form - constant(1)]
    return all(any(_implied(limit, form) for limit in limits) for form in forms)


def _implied(limit: Linear, form: Linear) -> bool:
    """Whether ``form < 0`` makes ``limit < 0``."""
    difference = lowest(form - limit)
    return difference is not None and nonnegative(difference)


# --- restriction


def guarded(body: Body, parts: Sequence[Expr], other: Const, scope: Scope, make: Make) -> Task:
    """What ``make`` returns where all of ``parts`` hold, and the number ``other`` elsewhere; anything where nobody reads it."""
    boxes, masks = boxes_of(parts, scope)
    masks = [m for m in masks if not among(m, body.unread)]
    if any(is_empty(box) for box, _ in boxes):
        return (yield other, scope)
    inner = scope
    new: list[tuple[Box, Axis, Expr]] = []
    for box, condition in boxes:
        inner, part = inner.restrict(box.dim, from_linear(box.start), box.step, box.count)
        new.append((box, part, condition))
    if masks:
        mask = yield from mask_value(masks, inner)
        value = yield from make(inner)
        fill = yield other, inner
        value = body.combine(SELECT, [mask, value, fill], (value.dtype, False), inner)
    else:
        value = yield from make(inner)
    return (yield from _spread(body, value, new, other, scope))


def _spread(
    body: Body, value: Value, cuts: Sequence[tuple[Box, Axis, Expr]], other: Const, scope: Scope
) -> Task:
    """``value`` over parts of dimensions, as an array over the whole dimensions that holds ``other`` elsewhere."""
    missing = [condition for _, part, condition in cuts if not among(part, value.dims)]
    placed = {part: box for box, part, _ in cuts if among(part, value.dims)}
    if placed:
        value = _padded(body, value, placed, other)
    if not missing:
        return value
    mask = yield from mask_value(missing, scope)
    if mask.literal:
        return value
    fill = yield other, scope
    return body.combine(SELECT, [mask, value, fill], (value.dtype, False), scope)


def _padded(body: Body, value: Value, placed: dict[Axis, Box], other: Const) -> Value:
    dims = tuple(placed[d].dim if d in placed else d for d in value.dims)
    plain = not other.value and all(box.step == 1 for box in placed.values())
    if plain:
        widths = tuple(_widths(placed.get(d)) for d in value.dims)
        return body.with_steps(value, [Pad(widths)], dims)
    if value.kind[1]:
        value = body.cast(value, value.dtype, always=True)
    spread: list[tuple[Expr, Expr, int]] = []
    for dim in value.dims:
        box = placed.get(dim)
        spread.append((*_widths(box), box.step - 1 if box else 0))
    code, fill = value.code, Typed(Number(other.value), value.dtype)
    # of nothing, nothing is spread: not even what is left out
    if any(_may_be_empty(placed.get(d)) for d in value.dims):
        more = tuple((ZERO, ONE if _may_be_empty(placed.get(d)) else ZERO, 0) for d in value.dims)
        code = Spread(code, fill, more)
    return Value(Spread(code, fill, tuple(spread)), dims, value.kind)


def _widths(box: Box | None) -> tuple[Expr, Expr]:
    """The elements missing before and after the slice ``box`` of its dimension, which has one more where it may be empty."""
    if box is None:
        return ZERO, ZERO
    last = linear(box.count) - constant(0 if _may_be_empty(box) else 1)
    covered = box.start + last * box.step + constant(1)
    return from_linear(box.start), from_linear(linear(box.dim.hi) - covered)


def _may_be_empty(box: Box | None) -> bool:
    """Whether a slice with gaps has no element for some sizes."""
    return (
        box is not None
        and box.step != 1
        and known(box.count) is None
        and not nonnegative(linear(box.count) - constant(1))
    )


# --- pieces


def literal_of(tensor: Compute) -> Literal | None:
    """The elements of ``tensor`` where they are few, and choices among numbers that positions alone decide; else None."""
    extents = [known(e) for e in map(as_expr, tensor.shape)]
    sizes = [e for e in extents if e is not None]
    if len(sizes) < len(extents) or not 1 < int(np.prod(sizes)) <= MOST_PARTS:
        return None
    if not _is_choice(tensor.body) or tensor.dtype in dtypes.COMPLEX:
        return None
    grid = np.indices(sizes)
    values = tabulated(tensor.body, dict(zip(tensor.axes, grid, strict=True)))
    if values is None:
        return None
    shape = tuple(as_expr(e) for e in tensor.shape)
    return Literal(shape, _rows(np.broadcast_to(values, sizes).tolist()), tensor.dtype)


def _is_choice(body: Expr) -> bool:
    """Whether ``body`` chooses, and computes nothing that would be rounded."""
    calls = all_of(Call, body)
    rounded = [n for n in calls if dtypes.is_inexact(n.dtype) and n.op not in (SELECT, NEGATIVE)]
    return not rounded and any(n.op is SELECT for n in calls)


def _rows(numbers: Any) -> Rows:
    return tuple(map(_rows, numbers)) if isinstance(numbers, list) else numbers
