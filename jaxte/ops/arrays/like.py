"""Shapes taken from another tensor, and arrays moved to a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax

from jaxte.bridge.given.extern import extern
from jaxte.lang.checks import counted, described
from jaxte.lang.errors import ArgumentError, ShapeError
from jaxte.lang.expr import Expr
from jaxte.ops._operator import ShapeLike, normal_axes, operator
from jaxte.ops.arrays.reshape import reshape
from jaxte.ops.arrays.shape import broadcast_to
from jaxte.tensors import reductions as r
from jaxte.tensors.compute import compute
from jaxte.tensors.shapes import Extent, same_extent, shape_text
from jaxte.tensors.tensor import Tensor


@operator
def broadcast_to_like(x: Tensor, like: Tensor) -> Tensor:
    """``x`` repeated to the shape of ``like``, whose values do not matter.

    The adjoint of :func:`collapse_sum_like`, as that is of this.

    Formula: ``y[..., i] = x[i or 0]``

    Raises:
        ShapeError: from the last axis on, an extent of ``x`` is neither 1 nor that of ``like``.

    Source: relay ``broadcast_to_like``.

    Example:
        >>> te.ops.broadcast_to_like(np.float32([[1], [2]]), np.zeros((2, 3), "float32")).tolist()
        [[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]
    """
    return broadcast_to(x, like.shape)


@operator
def collapse_sum_like(x: Tensor, like: Tensor) -> Tensor:
    """``x`` summed to the shape of ``like``, whose values do not matter: what broadcasting repeated is added up again.

    Axes are matched from the last. Where extents differ, ``like`` has 1 (the axis is summed and kept) or no such axis
    (summed and dropped).

    Formula: ``y[j] = sum over i that broadcast from j of x[i]``

    Raises:
        ShapeError: ``like`` does not broadcast to ``x``.

    Source: relay ``collapse_sum_like``.

    Example:
        >>> te.ops.collapse_sum_like(np.ones((4, 2, 3), "float32"), np.zeros((2, 1), "float32")).tolist()
        [[12.0], [12.0]]
    """
    more = x.ndim - like.ndim
    if more < 0 or not all(
        same_extent(e, 1) or same_extent(e, own) for e, own in zip(like.shape, x.shape[more:], strict=True)
    ):
        raise ShapeError(
            f"te.ops.collapse_sum_like: {x.name} {shape_text(x.shape)} does not collapse to {like.name} "
            f"{shape_text(like.shape)}; from the last axis on, the extents of {like.name} must be equal, 1, or missing"
        )
    kept = [a for a in range(more, x.ndim) if same_extent(like.shape[a - more], x.shape[a])]
    summed = {a: r.reduce_axis((0, x.shape[a]), f"k{a}") for a in range(x.ndim) if a not in kept}

    def body(*i: Expr) -> Expr:
        read = x[tuple(i[a - more] if a in kept else summed[a] for a in range(x.ndim))]
        return r.sum(read, axis=list(summed.values())) if summed else read

    return compute(like.shape, body, "collapse_sum_like")


@operator
def slice_like(x: Tensor, like: Tensor, axes: Sequence[int] | None = None) -> Tensor:
    """The first elements of ``x``, as many as ``like`` has along each of ``axes`` (all by default).

    Formula: ``y[i] = x[i]`` for ``i < like.shape``

    Raises:
        ShapeError: an axis is out of range or named twice, or ``like`` is longer than ``x`` along one of them.

    Source: relay ``slice_like``.

    Example:
        >>> te.ops.slice_like(np.arange(6).reshape(2, 3), np.zeros((2, 2), "bool")).tolist()
        [[0, 1], [3, 4]]
    """
    if axes is None and x.ndim != like.ndim:
        raise ShapeError(
            f"te.ops.slice_like: {x.name} {shape_text(x.shape)} and {like.name} {shape_text(like.shape)} have "
            "different numbers of axes; give axes=, those that are cut"
        )
    cut = normal_axes(axes if axes is None else tuple(axes), x.ndim, "slice_like")
    shape: list[Extent] = list(x.shape)
    for a in cut:
        if a >= like.ndim:
            raise ShapeError(
                f"te.ops.slice_like: axis {a}, but {like.name} {shape_text(like.shape)} has {counted(like.ndim, 'axis', 'axes')}"
            )
        own, wanted = x.shape[a], like.shape[a]
        if isinstance(own, int) and isinstance(wanted, int) and wanted > own:
            raise ShapeError(
                f"te.ops.slice_like: axis {a} of {x.name} has {counted(own, 'element', 'elements')} and of {like.name} {wanted}; "
                "a slice is not longer than what it is cut from"
            )
        shape[a] = wanted
    return compute(shape, lambda *i: x[i], "slice_like")


@operator
def reverse_reshape(x: Tensor, shape: ShapeLike) -> Tensor:
    """A reshape whose special extents are worked out from the last axis on.

    In ``shape``, 0 copies the extent of ``x`` at the same distance from the last axis, and one -1 is worked out.

    Formula: ``y`` has the elements of ``x`` in row-major order

    Raises:
        ShapeError: -1 more than once, a 0 beyond the first axis of ``x``, or another number of elements.

    Source: relay ``reverse_reshape``.

    Example:
        >>> te.ops.reverse_reshape(te.placeholder((10, 5, 4)), (-1, 0)).shape
        (50, 4)
    """
    wanted: list[Any] = list(shape) if isinstance(shape, (list, tuple)) else [shape]
    for place, extent in enumerate(wanted):
        if isinstance(extent, int) and extent == 0:
            own = x.ndim - len(wanted) + place
            if own < 0:
                raise ShapeError(
                    f"te.ops.reverse_reshape: shape={tuple(wanted)} copies the extent {len(wanted) - place} axes from the "
                    f"last, but {x.name} {shape_text(x.shape)} has {counted(x.ndim, 'axis', 'axes')}"
                )
            wanted[place] = x.shape[own]
    return reshape(x, tuple(wanted))


@operator
def device_copy(x: Tensor, device: object) -> Tensor:
    """``x`` on another device; the gradient comes back to where ``x`` is.

    Args:
        device: a ``jax.Device`` or sharding, or text: "cpu", "gpu:1".

    Formula: ``y[i] = x[i]``

    Raises:
        ArgumentError: there is no such device.

    Source: relay ``device_copy``; ``jax.device_put``.

    Example:
        >>> te.ops.device_copy(np.float32([1, 2]), "cpu").tolist()
        [1.0, 2.0]
    """
    return _placed(x, device, "device_copy")


@operator
def on_device(x: Tensor, device: object) -> Tensor:
    """``x``, to be computed on ``device``; see :func:`device_copy`.

    Formula: ``y[i] = x[i]``

    Raises:
        ArgumentError: there is no such device.

    Source: relay ``on_device``; ``jax.device_put``.

    Example:
        >>> te.ops.on_device(np.float32([1, 2]), "cpu").tolist()
        [1.0, 2.0]
    """
    return _placed(x, device, "on_device")


def _placed(x: Tensor, device: Any, name: str) -> Tensor:
    target = _device(device, name)
    struct = jax.ShapeDtypeStruct(x.shape, x.dtype) if _known(x) else x.shape
    return extern(struct, lambda a: jax.device_put(a, target), [x], name)


def _known(x: Tensor) -> bool:
    return all(isinstance(e, int) for e in x.shape)


def _device(device: Any, name: str) -> Any:
    """A device or sharding; text is a platform and, after a colon, a number."""
    if isinstance(device, (jax.Device, jax.sharding.Sharding)):
        return device
    if isinstance(device, str):
        platform, _, number = device.partition(":")
        try:
            return jax.devices(platform)[int(number or 0)]
        except (RuntimeError, IndexError, ValueError):
            raise ArgumentError(
                f"te.ops.{name}: device={device!r}; there are {', '.join(_texts())}"
            ) from None
    raise ArgumentError(
        f"te.ops.{name}: device is {described(device)}; give a jax.Device, a sharding or text"
    )


def _texts() -> list[str]:
    return [f"{d.platform}:{d.id}" for d in jax.devices()]
