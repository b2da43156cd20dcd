"""Reductions at all remainders of a stride, as one at all positions.

    a[i] = sum over t of P[2 * i, t] * L[2 * i, t],   b[i] = sum over t of P[2 * i + 1, t] * L[2 * i + 1, t]     read one
    m[p] = sum over t of P[p, t] * L[p, t]            at  m[2 * i],  m[2 * i + 1]

Children of a tree, even and odd rows, pairs of neighbours: each was a loop or a product of its own over every second row, and so was each of its adjoints, whose
parts were put together again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from jaxte.lang.expr import Axis, Expr, Read, Reduce
from jaxte.lang.graphs import among
from jaxte.lang.limits import CASES
from jaxte.lang.walk import depends_on, free_axes, reads_of, rewrite, substitute
from jaxte.sets.affine import from_linear, linear, normal
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import known
from jaxte.tensors.structure import CANONICAL, topological_order
from jaxte.tensors.tensor import Compute, Tensor


@dataclass(frozen=True, slots=True)
class _Phase:
    """``tensor`` is a reduction at ``stride * i + remainder``, where ``i`` is its axis at ``place``.

    Attributes:
        key: the reduction at a position, in canonical axes: the same of all phases of one.
    """

    tensor: Compute
    place: int
    stride: int
    remainder: int
    key: object


def with_phases_as_one(outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """``outputs`` with reductions at all remainders as one; the same tuple where there are none."""
    order = topological_order(outputs)
    groups: dict[object, dict[int, _Phase]] = {}
    for tensor in order:
        if _is_plain(tensor) and not among(tensor, outputs):
            for phase in _phases(tensor):
                groups.setdefault(phase.key, {}).setdefault(phase.remainder, phase)
    whole: dict[Tensor, _Phase] = {
        phase.tensor: phase
        for group in groups.values()
        for phase in group.values()
        if len(group) == phase.stride
    }
    return _read_as_one(outputs, order, whole) if whole else outputs


def _read_as_one(
    outputs: tuple[Tensor, ...], order: Sequence[Tensor], whole: dict[Tensor, _Phase]
) -> tuple[Tensor, ...]:
    new: dict[Tensor, Compute] = {}
    made: dict[object, Compute] = {}

    def rule(node: Expr) -> Expr:
        if not isinstance(node, Read) or node.tensor not in new:
            return node
        phase = whole.get(node.tensor)
        if phase is None:
            return Read(new[node.tensor], node.indices)
        indices = list(node.indices)
        indices[phase.place] = normal(indices[phase.place] * phase.stride + phase.remainder)
        return Read(new[node.tensor], indices)

    for tensor in order:
        if not isinstance(tensor, Compute):
            continue
        phase = whole.get(tensor)
        body = (
            rewrite(tensor.body, rule) if any(r.tensor in new for r in reads_of(tensor.body)) else tensor.body
        )
        if phase is not None:
            if phase.key not in made:
                made[phase.key] = _one(phase, body)
            new[tensor] = made[phase.key]
        elif body is not tensor.body:
            new[tensor] = tensor.renewed(body)
            new[tensor].with_override(tensor.override)
    return tuple(new.get(t, t) for t in outputs)


def _is_plain(tensor: Tensor) -> bool:
    return (
        type(tensor) is Compute
        and tensor.override is None
        and not tensor.facts
        and isinstance(tensor.body, Reduce)
    )


def _phases(tensor: Tensor) -> Iterator[_Phase]:
    """The axes of ``tensor`` along which it is one phase of a reduction."""
    assert isinstance(tensor, Compute)
    node = tensor.body
    if not isinstance(node, Reduce) or len(tensor.axes) > len(CANONICAL):
        return
    indices = [i for read in reads_of(node) for i in read.indices if i.children and is_index(i)]
    multiplied = {atom for i in indices for atom, factor in linear(i).terms.items() if factor > 1}
    for place, axis in enumerate(tensor.axes):
        found = _stride(node, axis) if axis in multiplied else None
        if found is None or known(axis.extent) is None:
            continue
        stride, remainder = found
        body = _at_position(node, axis, CANONICAL[place], stride, remainder)
        if axis not in free_axes(body):
            key = _canonical(body, tensor.axes), tuple(a.extent for a in tensor.axes), place, stride
            yield _Phase(tensor, place, stride, remainder, key)


def _stride(node: Reduce, axis: Axis) -> tuple[int, int] | None:
    """The number that ``axis`` is multiplied by in all indices of it, and the remainder of the first one's constant."""
    found: tuple[int, int] | None = None
    for read in reads_of(node):
        for index in read.indices:
            if not depends_on(index, (axis,)):
                continue
            if not is_index(index):
                return None
            form = linear(index)
            stride = form.coefficient(axis)
            if not 1 < stride <= CASES or any(
                depends_on(atom, (axis,)) for atom in form.terms if atom is not axis
            ):
                return None
            if found is not None and found[0] != stride:
                return None
            found = found or (stride, form.constant % stride)
    return found


def _at_position(node: Expr, axis: Axis, position: Expr, stride: int, remainder: int) -> Expr:
    """``node`` with ``position`` in place of ``stride * axis + remainder``."""

    def rule(own: Expr) -> Expr:
        if not isinstance(own, Read) or not depends_on(own, (axis,)):
            return own
        indices = [
            normal(from_linear(linear(i).without(axis)) + position - remainder)
            if depends_on(i, (axis,))
            else i
            for i in own.indices
        ]
        return Read(own.tensor, indices)

    return rewrite(node, rule)


def _one(phase: _Phase, body: Expr) -> Compute:
    """The reduction at all positions."""
    tensor = phase.tensor
    axes = [Axis(a.name, 0, a.hi) for a in tensor.axes]
    old = tensor.axes[phase.place]
    axes[phase.place] = position = Axis(old.name, 0, phase.stride * old.extent)
    moved = _at_position(body, old, position, phase.stride, phase.remainder)
    table: dict[Expr, Expr] = {a: b for a, b in zip(tensor.axes, axes, strict=True) if a is not old}
    return Compute(tensor.name, axes, substitute(moved, table))


def _canonical(node: Expr, axes: Sequence[Axis]) -> Expr:
    """``node`` in canonical axes, those that are reduced among them."""
    table: dict[Expr, Expr] = dict(zip(axes, CANONICAL, strict=False))
    assert isinstance(node, Reduce)
    reduced = [_reduced(n, a.lo, a.hi) for n, a in enumerate(node.axes)]
    table |= dict(zip(node.axes, reduced, strict=True))
    exprs = [substitute(e, table) for e in node.exprs]
    return node.changed(exprs=exprs, axes=reduced, where=substitute(node.where, table))


@lru_cache(maxsize=256)  # of the axes that the sums of a graph run along
def _reduced(number: int, low: Expr, high: Expr) -> Axis:
    return Axis(f"k{number}", low, high, reduction=True)
