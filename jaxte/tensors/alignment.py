"""Along which dimensions of its inputs each dimension of an output runs.

``Y[b, t, o] = sum over k, c of X[b, t + k, c] * W[k, c, o]`` runs along the batch of X, along its time and along the last dimension of W. An index
follows the axis that moves it furthest: of ``4 * i + j`` that is ``i``. So arrays that are divided among devices along
their dimensions tell along which ones an output is divided best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jaxte.lang.divisions import division
from jaxte.lang.expr import Axis, Expr, Read
from jaxte.lang.walk import free_axes, reads_of
from jaxte.sets.index_forms import linear_or_none
from jaxte.tensors.graph import topological_order
from jaxte.tensors.tensor import Compute, Tensor

Dimension = tuple[Tensor, int]
"""A tensor and the position of one of its dimensions."""


def alignment(outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> list[tuple[tuple[Dimension, ...], ...]]:
    """For each dimension of each output, the dimensions of ``inputs`` that it runs along, in order of appearance."""
    known: dict[Tensor, tuple[tuple[Dimension, ...], ...]] = {
        t: tuple(((t, n),) for n in range(t.ndim)) for t in inputs
    }
    for tensor in topological_order(outputs):
        if tensor not in known:
            known[tensor] = _of_compute(tensor, known) if isinstance(tensor, Compute) else ((),) * tensor.ndim
    return [known[t] for t in outputs]


def _of_compute(
    tensor: Compute, known: Mapping[Tensor, tuple[tuple[Dimension, ...], ...]]
) -> tuple[tuple[Dimension, ...], ...]:
    found: dict[Axis, dict[Dimension, None]] = {a: {} for a in tensor.axes}
    for read in reads_of(tensor.body):
        for index, dimensions in zip(read.indices, known.get(read.tensor, ()), strict=False):
            axis = _leading(index)
            if axis in found:
                found[axis].update(dict.fromkeys(dimensions))
    return tuple(tuple(found[a]) for a in tensor.axes)


def _leading(index: Expr) -> Axis | None:
    """The axis that moves ``index`` furthest at each step; None if it holds data, or no axis."""
    while (divided := division(index)) is not None:
        index = divided.number
    axes = free_axes(index)
    if len(axes) == 1 and not any(isinstance(r, Read) for r in reads_of(index)):
        return next(iter(axes))
    form = linear_or_none(index)
    if form is None:
        return None
    steps = {a: abs(form.coefficient(a)) for a in axes if a in form.terms}
    return max(steps, key=lambda a: (steps[a], not a.reduction), default=None)
