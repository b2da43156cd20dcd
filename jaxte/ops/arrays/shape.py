"""Broadcast, transpose, and axes of extent 1."""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.lang.checks import counted
from jaxte.lang.errors import ShapeError
from jaxte.lang.expr import Expr
from jaxte.ops._operator import ShapeLike, element, normal_axes, normal_axis, operator
from jaxte.tensors.compute import compute
from jaxte.tensors.shapes import check_shape, same_extent, shape_text
from jaxte.tensors.tensor import Tensor


@operator
def broadcast_to(x: Tensor, shape: ShapeLike) -> Tensor:
    """``x`` repeated along new axes and along axes of extent 1.

    Formula: ``y[..., i] = x[i or 0]``

    Raises:
        ShapeError: from the last axis on, an extent that is neither 1 nor the one wanted.

    Source: ``jnp.broadcast_to``.

    Example:
        >>> te.ops.broadcast_to(np.arange(2), (2, 2)).tolist()
        [[0, 1], [0, 1]]
    """
    target = check_shape(shape, "broadcast_to")
    own = target[len(target) - x.ndim :] if x.ndim <= len(target) else ()
    if len(own) != x.ndim or not all(
        same_extent(e, 1) or same_extent(e, t) for e, t in zip(x.shape, own, strict=True)
    ):
        raise ShapeError(
            f"te.ops.broadcast_to: {x.name} {shape_text(x.shape)} does not broadcast to {shape_text(target)}; "
            "from the last axis on, extents must be equal or 1"
        )
    return compute(target, lambda *i: element(x, i), "broadcast_to")


@operator
def transpose(x: Tensor, axes: Sequence[int] | None = None) -> Tensor:
    """``x`` with its axes in another order, reversed by default.

    Formula: ``y[j, i] = x[i, j]``

    Raises:
        ShapeError: axes that are no order of those of ``x``.

    Source: ``jnp.transpose``.

    Example:
        >>> te.ops.transpose(np.array([[1, 2]])).tolist()
        [[1], [2]]
    """
    order = list(range(x.ndim))[::-1] if axes is None else [normal_axis(a, x.ndim, "transpose") for a in axes]
    if sorted(order) != list(range(x.ndim)):
        raise ShapeError(
            f"te.ops.transpose: axes={tuple(axes or ())} is no order of the {counted(x.ndim, 'axis', 'axes')} of {x.name}"
        )
    shape = [x.shape[a] for a in order]
    return compute(shape, lambda *i: x[tuple(i[order.index(a)] for a in range(x.ndim))], "transpose")


@operator
def expand_dims(x: Tensor, axis: int | Sequence[int]) -> Tensor:
    """``x`` with new axes of extent 1 at the positions ``axis`` of the result.

    Formula: ``y[0, i] = x[i]``

    Raises:
        ShapeError: an axis out of range or named twice.

    Source: ``jnp.expand_dims``.

    Example:
        >>> te.ops.expand_dims(te.placeholder((3,)), (0, -1)).shape
        (1, 3, 1)
    """
    ndim = x.ndim + (len(axis) if isinstance(axis, (list, tuple)) else 1)
    new = normal_axes(axis, ndim, "expand_dims")
    own = iter(x.shape)
    shape = [1 if a in new else next(own) for a in range(ndim)]
    return compute(shape, lambda *i: x[tuple(p for a, p in enumerate(i) if a not in new)], "expand_dims")


@operator
def squeeze(x: Tensor, axis: int | Sequence[int] | None = None) -> Tensor:
    """``x`` without the axes ``axis`` of extent 1, by default all of them.

    Formula: ``y[i] = x[0, i]``

    Raises:
        ShapeError: an axis out of range, or whose extent is not 1.

    Source: ``jnp.squeeze``.

    Example:
        >>> te.ops.squeeze(te.placeholder((1, 3, 1)), -1).shape
        (1, 3)
    """
    ones = [a for a, e in enumerate(x.shape) if same_extent(e, 1)]
    dropped = tuple(ones) if axis is None else normal_axes(axis, x.ndim, "squeeze")
    for a in dropped:
        if a not in ones:
            raise ShapeError(
                f"te.ops.squeeze: axis {a} of {x.name} {shape_text(x.shape)} has not the extent 1"
            )
    shape = [e for a, e in enumerate(x.shape) if a not in dropped]

    def body(*index: Expr) -> Expr:
        kept = iter(index)
        return x[tuple(0 if a in dropped else next(kept) for a in range(x.ndim))]

    return compute(shape, body, "squeeze")
