"""Arrays side by side: one read where they are parts of one array, else a choice by position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxte.frontends.jaxpr.values.positions import clamped, positions_in, remainder
from jaxte.frontends.jaxpr.values.value import Value
from jaxte.lang import operators as ops
from jaxte.lang.divisions import Remainder, division
from jaxte.lang.expr import Axis, Expr, Read, as_expr, call
from jaxte.lang.walk import depends_on
from jaxte.sets.affine import from_linear, linear
from jaxte.sets.linear import Linear


def joined(parts: Sequence[Value], axis: int, i: Sequence[Any]) -> Expr:
    """The element at ``i`` of ``parts`` laid one after the other along ``axis``."""
    if len(parts) == 1:
        return parts[0][tuple(i)]
    if all(p.shape[axis] == 1 for p in parts):
        return stacked([p[(*i[:axis], 0, *i[axis + 1 :])] for p in parts], i[axis])
    starts = [sum(p.shape[axis] for p in parts[:n]) for n in range(len(parts))]
    found = _one_read(parts, starts, axis, i)
    if found is not None:
        return found
    result = _element(parts[-1], starts[-1], axis, i)
    for part, start, stop in zip(parts[-2::-1], starts[-2::-1], starts[:0:-1], strict=True):
        result = call(ops.SELECT, as_expr(i[axis]) < stop, _element(part, start, axis, i), result)
    return result


def stacked(elements: Sequence[Expr], own: Any) -> Expr:
    """The element of which ``elements`` is the one at each position of ``own``: one read where they are reads at positions that follow from it."""
    found = _read_at(elements, own)
    if found is not None:
        return found
    *first, result = elements
    for number, element in reversed(list(enumerate(first))):
        result = call(ops.SELECT, as_expr(own) < number + 1, element, result)
    return result


def _read_at(elements: Sequence[Expr], own: Any) -> Expr | None:
    """``x[i, j + a * s + b]``, around the end of an axis too, where that is what ``elements`` are for ``s`` from 0 on."""
    if not isinstance(own, Axis) or len(elements) < 2:
        return None
    first = elements[0]
    if not isinstance(first, Read) or any(
        not isinstance(e, Read) or e.tensor is not first.tensor for e in elements
    ):
        return None
    columns = zip(*(e.indices for e in elements if isinstance(e, Read)), strict=True)
    found = [
        _index_at(column, own, extent) for column, extent in zip(columns, first.tensor.shape, strict=True)
    ]
    indices = [index for index in found if index is not None]
    return Read(first.tensor, indices) if len(indices) == len(found) else None


def _index_at(column: Sequence[Expr], own: Axis, extent: Any) -> Expr | None:
    """The index that each of ``column`` is at its own position, if these are one but for numbers that follow from the position."""
    inner = [_inside_of_remainder(index, extent) for index in column]
    forms = [linear(index) for index, _ in inner]
    constants = [f.constant for f in forms]
    if any((f - forms[0]).terms for f in forms):
        return None
    least = min(constants)
    moves = positions_in([c - least for c in constants], (own,), max(constants) - least + 1)
    if moves is None:
        return None
    index = from_linear(forms[0] - linear(as_expr(forms[0].constant - least))) + moves
    return (
        remainder(index, extent) if any(is_around for _, is_around in inner) else from_linear(linear(index))
    )


def _inside_of_remainder(index: Expr, extent: Any) -> tuple[Expr, bool]:
    """``i + s`` of ``(i + s) % n``, an index that goes around the end of an axis of ``n``."""
    match division(index):
        case Remainder(inner, int() as divisor) if divisor == extent:
            return inner, True
    return index, False


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
