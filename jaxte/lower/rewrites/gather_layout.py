"""Tensors made of gathers have the dimensions in which a gather gives them: ``S[n, c, i] = f(X[n, c, I[n, i]])`` as ``S[n, i, c]``.

What is gathered at positions in several dimensions that do not lie side by side, ``n`` and ``I[n, i]``, comes with these first and what is read
in whole last. Otherwise each gather is transposed, and each adjoint of one is transposed back, and gathers read and write single
elements in place of rows. Inputs and outputs stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jaxte.lang.expr import Axis, Expr, Read
from jaxte.lang.graphs import among
from jaxte.lang.limits import VECTOR
from jaxte.lang.walk import free_axes, reads_of, rewrite
from jaxte.lower.cost.work import points
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor

LAID_OUT = "gathers laid out"


def gathers_laid_out(outputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """``outputs`` in terms of tensors with the dimensions of their gathers."""
    order = topological_order(outputs)
    # adjoints and extern nodes know their tensors
    if any(type(t) not in (Compute, Placeholder) and t.inputs for t in order):
        return tuple(outputs)
    fixed = set(outputs)
    places: dict[Tensor, list[int]] = {}
    for tensor in order:
        if isinstance(tensor, Compute) and tensor not in fixed and not tensor.facts:
            found = _places(tensor)
            if found is not None:
                places[tensor] = found
    if not places:
        return tuple(outputs)
    new: dict[Tensor, Tensor] = {}
    for tensor in order:
        if isinstance(tensor, Compute):
            body = _rewritten(tensor.body, places, new)
            if tensor in places or body is not tensor.body:
                axes = [tensor.axes[n] for n in places.get(tensor, range(tensor.ndim))]
                new[tensor] = tensor.renewed(body, axes)
    return tuple(new.get(t, t) for t in outputs)


def _places(tensor: Compute) -> list[int] | None:
    """The numbers of the axes in the order in which the gathers of ``tensor`` give them; None where that is theirs already."""
    if tensor.body.reduces:
        return None
    wholes = {_whole(r) for r in reads_of(tensor.body) if any(map(_is_data, r.indices))}
    if len(wholes) != 1:
        return None
    (whole,) = wholes
    if not whole or points(whole) < VECTOR or not all(among(a, tensor.axes) for a in whole):
        return None
    last = [n for n, a in enumerate(tensor.axes) if among(a, whole)]
    order = [n for n in range(tensor.ndim) if n not in last] + last
    return order if order != sorted(order) else None


def _is_data(index: Expr) -> bool:
    return bool(reads_of(index))


def _whole(read: Read) -> tuple[Axis, ...]:
    """The axes over which a gather reads rows, if they lie between dimensions that are read at positions."""
    data = {axis for index in read.indices if _is_data(index) for axis in free_axes(index)}
    whole = [n for n, index in enumerate(read.indices) if isinstance(index, Axis) and index not in data]
    chosen = [n for n in range(len(read.indices)) if n not in whole]
    between = [n for n in whole if chosen[0] < n < chosen[-1]]
    return tuple(read.indices[n] for n in whole) if between else ()  # type: ignore[misc]


def _rewritten(body: Expr, places: Mapping[Tensor, Sequence[int]], new: Mapping[Tensor, Tensor]) -> Expr:
    """``body`` with the new tensors in place of the old ones."""

    def rule(node: Expr) -> Expr:
        if not isinstance(node, Read) or node.tensor not in new:
            return node
        order = places.get(node.tensor, range(len(node.indices)))
        return Read(new[node.tensor], [node.indices[n] for n in order])

    return rewrite(body, rule)
