"""What stands for a tensor in a graph that is rebuilt: a placeholder, a copy, and either with one more axis."""

from __future__ import annotations

from jaxte.algebra.product import tensor_stays_finite
from jaxte.lang.expr import TRUE, Axis, Read, Reduce, as_expr, call, cast
from jaxte.lang.operators import MULTIPLY
from jaxte.tensors.elementwise import copy_of
from jaxte.tensors.inputs import Placeholder, Residual
from jaxte.tensors.reducers import builtin_reducer
from jaxte.tensors.shapes import Extent, inserted
from jaxte.tensors.tensor import Compute, Tensor


def aligned(
    part: Tensor, own: int | None, wanted: int | None, many: bool, prefix: int, extent: Extent | None
) -> Tensor:
    """An adjoint with the new axis where its tensor has it, summed over it where its tensor does not.

    Args:
        own, wanted: the position of the new axis in ``part``, and in the tensor that it is the adjoint of; None if there is none.
        many: whether there are as many heads as the new axis has positions.
        prefix: how many axes of the head come before those of the tensor.
    """
    where = None if wanted is None else prefix + wanted
    if own == where and (own is not None or not many):
        return part
    rest = [Axis(f"i{n}", 0, e) for n, e in enumerate(part.shape) if n != own]
    if where is not None:
        lead = Axis("b", 0, as_expr(extent))
        at = tuple(rest) if own is None else inserted(rest, own, lead)
        return Compute(part.name, inserted(rest, where, lead), Read(part, at))
    if own is None:
        body = call(MULTIPLY, Read(part, tuple(rest)), cast(as_expr(extent), part.dtype))
        return Compute(part.name, rest, body)
    lead = Axis("b", 0, as_expr(extent), reduction=True)
    element = Read(part, inserted(rest, own, lead))
    return Compute(part.name, rest, Reduce(builtin_reducer("sum", part.dtype), (element,), (lead,), TRUE))


def copied(name: str, tensor: Tensor, reads: bool) -> Compute:
    """A tensor of its own with the elements of ``tensor``, which it computes too, or ``reads``."""
    if isinstance(tensor, Compute) and not reads:
        return Compute(name, tensor.axes, tensor.body)
    return copy_of(tensor, name)


def new_axis(extent: Extent | None, tensor: Compute) -> Axis:
    """An axis named apart from those of ``tensor``."""
    assert extent is not None
    taken = {a.name for a in tensor.axes}
    name = "b"
    while name in taken:
        name += "'"
    return Axis(name, 0, extent)


def stand_in(tensor: Tensor, at: int | None = None, extent: Extent | None = None) -> Placeholder:
    """A placeholder for ``tensor``, with one more axis of ``extent`` at the position ``at``; a residual where it may be infinite or NaN."""
    shape = tensor.shape if at is None else inserted(tensor.shape, at, extent)
    return (Placeholder if tensor_stays_finite(tensor) else Residual)(tensor.name, shape, tensor.dtype)
