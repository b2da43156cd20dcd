"""Chains of choices along one dimension, as consecutive slices of it side by side."""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.lang.expr import Axis, Call, Expr, conjunction
from jaxte.lang.graphs import among, place_of
from jaxte.lang.operators import SELECT
from jaxte.lower.arrays.loops import Joined, Stacked
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.views import Broadcast
from jaxte.lower.body.assignment import Task
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.broadcasting import broadcast
from jaxte.lower.code.vocabulary import Value
from jaxte.lower.views.condition_box import Box, box_of, intersect, is_empty, split_conditions, usable
from jaxte.lower.views.scope import Scope
from jaxte.sets.affine import from_linear, linear
from jaxte.sets.intervals import constant, known, same


def boxes_of(parts: Sequence[Expr], scope: Scope) -> tuple[list[tuple[Box, Expr]], list[Expr]]:
    """One slice for each dimension that conditions cut, with the conditions, and the conditions that are left."""
    boxes: dict[Axis, tuple[Box, Expr]] = {}
    masks: list[Expr] = []
    for part in parts:
        box = box_of(part, scope)
        if box is None or not usable(box):
            masks.append(part)
            continue
        if box.dim in boxes:
            met = intersect(boxes[box.dim][0], box)
            if met is None or not usable(met):
                masks.append(part)
                continue
            boxes[box.dim] = met, conjunction([boxes[box.dim][1], part])
        else:
            boxes[box.dim] = box, part
    return list(boxes.values()), masks


def pieces_of(node: Call, scope: Scope) -> list[tuple[Box, Expr]] | None:
    """A chain of selects on one dimension as consecutive slices of it, each with its branch."""
    current: Expr = node
    dim: Axis | None = None
    left: list[Box] = []
    found: list[tuple[Box, Expr]] = []
    while isinstance(current, Call) and current.op is SELECT:
        parts = split_conditions(current.args[0], scope)
        if parts is None:
            current = current.args[2]
            continue
        boxes, masks = boxes_of(parts, scope)
        if (
            masks
            or len(boxes) != 1
            or boxes[0][0].step != 1
            or (dim is not None and boxes[0][0].dim is not dim)
        ):
            break
        box = boxes[0][0]
        if dim is None:
            dim = box.dim
            left = [Box(dim, constant(0), linear(dim.hi))]
        divided = _divide(left, box)
        if divided is None:
            return None
        taken, left = divided
        found += [(piece, current.args[1]) for piece in taken]
        current = current.args[2]
    if dim is None:
        return None
    found += [(piece, current) for piece in left]
    return _in_sequence(found, dim)


def _divide(left: Sequence[Box], box: Box) -> tuple[list[Box], list[Box]] | None:
    """The parts of ``left`` inside ``box`` and outside of it; None where the sizes leave it open."""
    inside: list[Box] = []
    outside: list[Box] = []
    for piece in left:
        met = intersect(piece, box)
        if met is None:
            return None
        if is_empty(met):
            outside.append(piece)
            continue
        inside.append(met)
        for rest in (Box(piece.dim, piece.start, met.start), Box(piece.dim, met.stop, piece.stop)):
            if not is_empty(rest):
                outside.append(rest)
    return inside, outside


def _in_sequence(found: list[tuple[Box, Expr]], dim: Axis) -> list[tuple[Box, Expr]] | None:
    """The pieces from the first to the last; None where the sizes do not say which follows which."""
    ordered: list[tuple[Box, Expr]] = []
    start = constant(0)
    remaining = list(found)
    while remaining:
        following = [entry for entry in remaining if same(entry[0].start, start)]
        if len(following) != 1:
            return None
        ordered += following
        remaining = [entry for entry in remaining if entry is not following[0]]
        start = following[0][0].stop
    return ordered if same(start, dim.hi) else None


def concatenated(body: Body, pieces: Sequence[tuple[Box, Expr]], node: Call, scope: Scope) -> Task:
    dim = pieces[0][0].dim
    values: list[tuple[Value, Scope, Axis]] = []
    for box, branch in pieces:
        inner, part = scope.restrict(dim, from_linear(box.start), 1, box.count)
        value = yield branch, inner
        values.append((body.cast(value, node.dtype), inner, part))
    dims = tuple(d for d in scope.order if d is dim or any(among(d, v.dims) for v, _, _ in values))
    if all(not among(part, v.dims) and known(part.hi) == 1 for v, _, part in values):
        rows = [body.named(v) if isinstance(v.code, Stacked) else v for v, _, _ in values]
        return body.stack(rows, dim, scope)
    parts: list[Node] = []
    for value, _, part in values:
        own = tuple(part if d is dim else d for d in dims)
        code = broadcast(value, own)
        if not value.dims or any(known(d.hi) != 1 for d in own if not among(d, value.dims)):
            code = Broadcast(code, tuple(d.hi for d in own))
        parts.append(code)
    body.report.note("concatenate")
    return Value(Joined(tuple(parts), place_of(dim, dims)), dims, (node.dtype, False))
