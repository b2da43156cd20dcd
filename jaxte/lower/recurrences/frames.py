"""What a step reads at several places, each under the condition that the place is inside: the inside with zeros around it, once.

The adjoint of a sweep ``B[i] = A[i - 1] + A[i] + A[i + 1]`` over the inside of an array, which keeps its edges, is

    dA[i] = (dB[i + 1] if i < n - 2 else 0) + (dB[i] if 1 <= i < n - 1 else 0) + (dB[i - 1] if 2 <= i else 0)

All three conditions say that the element read is none of the edges. So ``dB`` without its edges and with zeros in their place, and as far around it as the reads go,
is read at each of the places without any condition: slices of one array, where there were a mask or a pad for each.

What each step of a loop would take anew and need not: a slice at fixed positions of an array from before the loop, as ``W[2]``, that a product reads.

A product reads its operands from memory, one after the other, so that XLA copies such a slice, in every step, and does not do so before the loop by itself: a step
of four gates takes twice the time. What is elementwise reads a slice in place, and is left as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from math import isfinite

from jaxte.derivatives.rebuilt import Rebuilt
from jaxte.lang.expr import Axis, Call, Const, Expr, Read, as_expr, conjunction, conjuncts
from jaxte.lang.functions import select
from jaxte.lang.graphs import among
from jaxte.lang.operators import ADD, DIVIDE, MULTIPLY, NEGATIVE, SELECT, SUBTRACT
from jaxte.lang.walk import postorder, substitute, with_tensors
from jaxte.lower.arrays.elementwise import Name
from jaxte.lower.arrays.node import Node, nodes_below, replaced
from jaxte.lower.arrays.products import Einsum
from jaxte.lower.arrays.views import Entry, Index, Range, View
from jaxte.lower.code.lines import Names
from jaxte.lower.code.vocabulary import AnyStatement, Function, Statement
from jaxte.lower.views.condition_box import box_of
from jaxte.lower.views.scope import Scope
from jaxte.sets.affine import normal
from jaxte.sets.conditions import positive
from jaxte.sets.index_forms import linear_or_none
from jaxte.sets.intervals import known
from jaxte.tensors.recurrences.node import Recurrent
from jaxte.tensors.recurrences.step import Step
from jaxte.tensors.tensor import Compute, Tensor

Interval = tuple[int, int]
"""The first of some positions, and the first behind them."""


@dataclass(frozen=True, eq=False)
class _Guarded:
    """``term``, which is a multiple of ``read``, under ``masks`` and where the element read is within ``box``; 0 elsewhere.

    Attributes:
        shifts: how far the read is from the element that is computed, in each dimension.
        reach: the positions that it would read without the condition.
    """

    node: Call
    read: Read
    term: Expr
    masks: tuple[Expr, ...]
    shifts: tuple[int, ...]
    box: tuple[Interval, ...]
    reach: tuple[Interval, ...]

    @property
    def is_restricted(self) -> bool:
        return any(
            own != _within(r, (0, n)) for own, r, n in zip(self.box, self.reach, self.sizes, strict=True)
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(high - low for low, high in self.reach)

    def fits(self, box: Sequence[Interval]) -> bool:
        """Whether the condition says no more than that the element read is within ``box``."""
        return all(own == _within(r, b) for own, r, b in zip(self.box, self.reach, box, strict=True))


def with_frames(step: Step) -> Step:
    """``step`` with such reads as reads of the inside with zeros around it."""
    frames: dict[tuple[object, ...], Compute] = {}
    known_as: dict[Tensor, Tensor] = {}
    order: list[Tensor] = []
    for tensor in step.order:
        if not isinstance(tensor, Compute):
            if tensor not in known_as and any(t in known_as for t in tensor.inputs):
                together = [t for t in step.order if isinstance(t, Recurrent) and t.group is tensor.group]
                known_as.update(zip(together, Rebuilt(known_as).parts(together), strict=True))
            order.append(known_as.get(tensor, tensor))
            continue
        body = with_tensors(tensor.body, known_as)
        before = set(frames)
        body = _framed(body, tensor.axes, frames)
        order += [own for key, own in frames.items() if key not in before]
        if body is not tensor.body:
            known_as[tensor] = tensor.renewed(body)
        order.append(known_as.get(tensor, tensor))
    if not known_as:
        return step
    return step.renewed(order, known_as)


def _framed(body: Expr, axes: Sequence[Axis], frames: dict[tuple[object, ...], Compute]) -> Expr:
    by_tensor: dict[Tensor, list[_Guarded]] = {}
    for node in postorder(body):
        found = _guarded(node, axes)
        if found is not None:
            by_tensor.setdefault(found.read.tensor, []).append(found)
    table: dict[Expr, Expr] = {}
    for every in by_tensor.values():
        restricted = [own for own in every if own.is_restricted]
        if not restricted:
            continue
        box = tuple(_hull(intervals) for intervals in zip(*(own.box for own in restricted), strict=True))
        members = [own for own in every if own.fits(box)]
        if len({own.shifts for own in members}) > 1:
            for own, read in zip(members, _reads_of_frame(members, box, frames), strict=True):
                table[own.node] = select(conjunction(own.masks), substitute(own.term, {own.read: read}), 0)
    return substitute(body, table) if table else body


def _reads_of_frame(
    members: Sequence[_Guarded], box: Sequence[Interval], frames: dict[tuple[object, ...], Compute]
) -> list[Read]:
    """What is read instead, of the inside ``box`` with zeros as far around it as ``members`` read."""
    tensor, sizes = members[0].read.tensor, members[0].sizes
    every = list(zip(*(own.shifts for own in members), strict=True))
    around = [(max(0, -min(shifts)), max(0, *shifts)) for shifts in every]
    key = (tensor, tuple(box), tuple(around))
    if key not in frames:
        axes = [
            Axis(f"i{n}", 0, low + size + high)
            for n, (size, (low, high)) in enumerate(zip(sizes, around, strict=True))
        ]
        places = [normal(a - low) for a, (low, _) in zip(axes, around, strict=True)]
        inside = [c for p, (lo, hi) in zip(places, box, strict=True) for c in (p >= lo, p < hi)]
        value = select(conjunction(inside), Read(tensor, places), 0)
        frames[key] = Compute(f"{tensor.name}_inside", axes, as_expr(value))
    return [
        Read(frames[key], [normal(i + low) for i, (low, _) in zip(own.read.indices, around, strict=True)])
        for own in members
    ]


# --- what is read under a condition


def _guarded(node: Expr, axes: Sequence[Axis]) -> _Guarded | None:
    if not isinstance(node, Call) or node.op is not SELECT:
        return None
    test, term, other = node.args
    read = _multiple_of(term) if isinstance(other, Const) and not other.value else None
    if read is None or not read.indices:
        return None
    places = _places(read, axes)
    if places is None:
        return None
    bounds: dict[Axis, Interval] = {axis: (0, known(axis.hi) or 0) for axis, _ in places}
    masks: list[Expr] = []
    scope = Scope(tuple(axes))
    for part in conjuncts(test):
        box = box_of(positive(part), scope)
        plain = box is not None and box.step == 1 and box.start.is_constant and box.stop.is_constant
        if box is not None and plain and box.dim in bounds:
            bounds[box.dim] = _within(bounds[box.dim], (box.start.constant, box.stop.constant))
        else:
            masks.append(part)
    shifts = tuple(shift for _, shift in places)
    inside = tuple((bounds[a][0] + s, bounds[a][1] + s) for a, s in places)
    reach = tuple((s, (known(a.hi) or 0) + s) for a, s in places)
    if any(low >= high for low, high in inside):
        return None
    return _Guarded(node, read, term, tuple(masks), shifts, inside, reach)


def _places(read: Read, axes: Sequence[Axis]) -> list[tuple[Axis, int]] | None:
    """The axis that each index is, and how far from it; None for other indices, and where the axis is not as long as what is read."""
    found: list[tuple[Axis, int]] = []
    for index, extent in zip(read.indices, read.tensor.shape, strict=True):
        form = linear_or_none(index)
        if form is None or len(form.terms) != 1:
            return None
        ((axis, factor),) = form.terms.items()
        if factor != 1 or not isinstance(axis, Axis) or not among(axis, axes):
            return None
        size = known(axis.hi)
        if size is None or size != known(as_expr(extent)) or any(a is axis for a, _ in found):
            return None
        found.append((axis, form.constant))
    return found


def _multiple_of(term: Expr) -> Read | None:
    """The one read that ``term`` is a multiple of by finite numbers, so that zeros read in its place make a zero."""
    match term:
        case Read():
            return term
        case Call(op, (a, Const(value))) if op in (MULTIPLY, DIVIDE) and _is_finite(value, op is DIVIDE):
            return _multiple_of(a)
        case Call(op, (Const(value), a)) if op is MULTIPLY and _is_finite(value, False):
            return _multiple_of(a)
        case Call(op, (a,)) if op is NEGATIVE:
            return _multiple_of(a)
        case Call(op, (a, b)) if op in (ADD, SUBTRACT):
            first, second = _multiple_of(a), _multiple_of(b)
            return first if first is not None and first is second else None
    return None


def _is_finite(value: object, divides: bool) -> bool:
    return isinstance(value, (int, float)) and isfinite(value) and not (divides and not value)


def _within(a: Interval, b: Interval) -> Interval:
    return max(a[0], b[0]), min(a[1], b[1])


def _hull(intervals: Sequence[Interval]) -> Interval:
    return min(low for low, _ in intervals), max(high for _, high in intervals)


def taken_before(
    lines: Sequence[AnyStatement], outside: Collection[str], names: Names
) -> tuple[list[Statement], list[AnyStatement]]:
    """The statements that take such slices before a loop, and those of a step that read them.

    Args:
        lines: what a step consists of.
        outside: identifiers of the arrays that exist before the loop.
        names: those that are free.
    """
    known = [s for s in lines if isinstance(s, Statement) and _is_fixed(s.source, outside)]
    found = {s.source: s for s in known}
    table: dict[Node, Node] = {}
    for node in nodes_below(*_sources(lines)):
        for factor in node.factors if isinstance(node, Einsum) else ():
            if factor in table or not isinstance(factor, View) or not _is_fixed(factor, outside):
                continue
            assert isinstance(factor.array, Name)
            if factor not in found:
                target = names.new(factor.array.identifier)
                found[factor] = Statement(lines[0].scope, target, factor)
            table[factor] = Name(found[factor].target, factor.shape, factor.kind)
    moved = [found[f] for f in table]
    left = [_reading(s, table) for s in lines if s not in moved]
    return moved, left


def _is_fixed(node: Node, outside: Collection[str]) -> bool:
    """Whether ``node`` is a part of an array from before the loop, at positions that are numbers."""
    if not isinstance(node, View) or not isinstance(node.array, Name) or not isinstance(node.step, Index):
        return False
    return node.array.identifier in outside and all(map(_is_number, node.step.entries))


def _is_number(entry: Entry) -> bool:
    ends = (entry.start, entry.stop) if isinstance(entry, Range) else (entry,)
    return all(end is None or isinstance(end, Const) for end in ends)


def _sources(lines: Iterable[AnyStatement]) -> Iterable[Node]:
    """What the statements compute, those of functions among them included."""
    for statement in lines:
        if isinstance(statement, Statement):
            yield statement.source
        elif isinstance(statement, Function):
            yield from _sources(statement.statements)
            yield statement.result


def _reading(statement: AnyStatement, table: dict[Node, Node]) -> AnyStatement:
    """``statement`` with names in place of the slices of ``table``."""
    if isinstance(statement, Statement):
        return replace(statement, source=replaced(statement.source, table))
    if isinstance(statement, Function):
        own = tuple(_reading(s, table) for s in statement.statements)
        return replace(statement, statements=own, result=replaced(statement.result, table))
    return statement
