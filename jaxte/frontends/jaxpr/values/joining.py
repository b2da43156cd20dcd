"""Arrays side by side: one read where they are parts of one array, else a choice by position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxte.frontends.jaxpr.values.positions import clamped
from jaxte.frontends.jaxpr.values.value import Value
from jaxte.lang import operators as ops
from jaxte.lang.expr import Axis, Expr, Read, as_expr, call
from jaxte.lang.walk import depends_on
from jaxte.sets.affine import Linear, from_linear, linear


def joined(parts: Sequence[Value], axis: int, i: Sequence[Any]) -> Expr:
    """The element at ``i`` of ``parts`` laid one after the other along ``axis``."""
    if len(parts) == 1:
        return parts[0][tuple(i)]
    starts = [sum(p.shape[axis] for p in parts[:n]) for n in range(len(parts))]
    found = _one_read(parts, starts, axis, i)
    if found is not None:
        return found
    result = _element(parts[-1], starts[-1], axis, i)
    for part, start, stop in zip(parts[-2::-1], starts[-2::-1], starts[:0:-1], strict=True):
        result = call(ops.SELECT, as_expr(i[axis]) < stop, _element(part, start, axis, i), result)
    return result


def _element(part: Value, start: int, axis: int, i: Sequence[Any]) -> Expr:
    index = 0 if part.shape[axis] == 1 else i[axis] - start
    return part[(*i[:axis], index, *i[axis + 1 :])]


def _one_read(parts: Sequence[Value], starts: Sequence[int], axis: int, i: Sequence[Any]) -> Expr | None:
    """One read of the tensor that all parts are read from, around its end or held at its ends, if they are that."""
    own = i[axis]
    if not isinstance(own, Axis):
        return None
    reads = [_linear_read(p, s, axis, i) for p, s in zip(parts, starts, strict=True)]
    if any(r is None for r in reads):
        return None
    first = reads[0]
    assert first is not None
    tensor, forms = first
    moving = {n for r in reads if r is not None for n, f in enumerate(r[1]) if f.coefficient(own)}
    if len(moving) != 1 or any(r is None or r[0] is not tensor for r in reads):
        return None
    (place,) = moving
    for r in reads:
        assert r is not None
        if any(not _same(a, b) for n, (a, b) in enumerate(zip(r[1], forms, strict=True)) if n != place):
            return None
    indices = [from_linear(f) for f in forms]
    along = [(p.shape[axis], s, r[1][place]) for p, s, r in zip(parts, starts, reads, strict=True) if r]
    index = _around(along, own, tensor.shape[place])
    if index is None:
        index = _held(along, own, tensor.shape[place])
    if index is None:
        return None
    indices[place] = index
    return Read(tensor, indices)


def _linear_read(part: Value, start: int, axis: int, i: Sequence[Any]) -> tuple[Any, list[Linear]] | None:
    """The tensor that ``part`` is a read of, with its indices as linear forms of the axes of the result."""
    body = _element(part, start, axis, i)
    if not isinstance(body, Read):
        return None
    forms = [linear(index) for index in body.indices]
    if any(depends_on(a, [i[axis]]) for f in forms for a in f.terms if not isinstance(a, Axis)):
        return None
    return body.tensor, forms


def _same(a: Linear, b: Linear) -> bool:
    return not (a - b).terms and a.constant == b.constant


def _around(along: Sequence[tuple[int, int, Linear]], own: Axis, extent: Any) -> Expr | None:
    """``(i + shift) % extent`` if every part reads there."""
    if not isinstance(extent, int):
        return None
    shifts = set()
    for count, start, form in along:
        if form.coefficient(own) == 1 and len(form.terms) == 1:
            shifts.add(form.constant % extent)
        elif not form.terms and count == 1:
            shifts.add((form.constant - start) % extent)
        else:
            return None
    if len(shifts) != 1:
        return None
    shift = shifts.pop()
    total = along[-1][0] + along[-1][1]
    if shift == 0 and total <= extent:
        return own
    return (own + shift) % extent


def _held(along: Sequence[tuple[int, int, Linear]], own: Axis, extent: Any) -> Expr | None:
    """``minimum(maximum(i - shift, 0), extent - 1)`` if the parts are an array and its ends repeated."""
    if not isinstance(extent, int):
        return None
    whole = [f for count, _, f in along if f.coefficient(own) == 1 and len(f.terms) == 1]
    if len(whole) != 1:
        return None
    shift = whole[0].constant
    for count, start, form in along:
        if form is whole[0]:
            continue
        ends = [min(max(n + shift, 0), extent - 1) for n in (start, start + count - 1)]
        if form.terms or ends != [form.constant, form.constant]:
            return None
    return clamped(own + shift, 0, extent - 1)
