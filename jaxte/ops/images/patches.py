"""Images as the columns of a matrix, one for each window, and back."""

from __future__ import annotations

import math
from typing import Any

from jaxte.lang import functions as f
from jaxte.lang.errors import ShapeError
from jaxte.lang.expr import Expr, as_expr
from jaxte.ops._operator import Padding, PerAxis, operator, static_int
from jaxte.ops.arrays.reshape import reshape
from jaxte.ops.images.windows import Window, per_axis, windows
from jaxte.tensors import reductions as r
from jaxte.tensors.compute import compute
from jaxte.tensors.shapes import Extent, shape_text
from jaxte.tensors.tensor import Tensor


@operator
def unfold(
    x: Tensor, kernel_size: PerAxis, strides: PerAxis = 1, padding: Padding = 0, dilation: PerAxis = 1
) -> Tensor:
    """The windows of images as columns (im2col).

    Args:
        x: images, (N, C, H, W).
        kernel_size: rows and columns of a window: one number, or two.

    Returns:
        (N, C * KH * KW, L): one column for each of the L windows, in row-major order; 0 outside the image.

    Formula: ``y[n, (c * KH + p) * KW + q, i * OW + j] = x[n, c, s * i + d * p - P, s * j + d * q - P]``

    Raises:
        ShapeError: windows larger than the padded image, sizes or strides below 1.

    Source: ``torch.nn.Unfold``.

    Example:
        >>> te.ops.unfold(te.placeholder((1, 3, 6, 6)), 3).shape
        (1, 27, 16)
    """
    batch, channels, *spatial = _images(x, "unfold")
    along = windows(
        spatial, per_axis(kernel_size, 2, "te.ops.unfold: kernel_size"), strides, padding, dilation, "unfold"
    )

    def body(n: Expr, c: Expr, *places: Expr) -> Expr:
        inside, at = as_expr(True), []
        for window, k, i in zip(along, places[:2], places[2:], strict=True):
            inside = inside & window.inside(i, k)
            at.append(window.index(i, k))
        read = x[(n, c, *at)]
        return read if inside is as_expr(True) else f.select(inside, read, 0)

    columns = compute((batch, channels, *(w.size for w in along), *(w.count for w in along)), body, "unfold")
    rows = channels * math.prod(w.size for w in along)
    return reshape(columns, (batch, rows, along[0].count * along[1].count))


@operator
def fold(
    x: Tensor,
    output_size: PerAxis,
    kernel_size: PerAxis,
    strides: PerAxis = 1,
    padding: Padding = 0,
    dilation: PerAxis = 1,
) -> Tensor:
    """Images from the columns of their windows, which are added where they overlap (col2im).

    The adjoint of :func:`unfold`, as that is of this.

    Args:
        x: columns, (N, C * KH * KW, L), as :func:`unfold` makes them.
        output_size: rows and columns of the images.

    Returns:
        (N, C, H, W)

    Formula: ``y[n, c, a, b] = sum over p, q of x[n, (c * KH + p) * KW + q, i * OW + j]`` with ``s * i + d * p - P = a``

    Raises:
        ShapeError: rows that ``KH * KW`` does not divide, or another number of columns than there are windows.

    Source: ``torch.nn.Fold``.

    Example:
        >>> te.ops.fold(np.ones((1, 4, 4), "float32"), (3, 3), 2).tolist()
        [[[[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]]]
    """
    if x.ndim != 3:
        raise ShapeError(f"te.ops.fold: {x.name} {shape_text(x.shape)}; give columns, (N, C * KH * KW, L)")
    sizes = per_axis(kernel_size, 2, "te.ops.fold: kernel_size")
    spatial = per_axis(output_size, 2, "te.ops.fold: output_size")
    along = windows(spatial, sizes, strides, padding, dilation, "fold")
    rows = static_int(x.shape[1], f"te.ops.fold: extent of axis 1 of {x.name}")
    if rows % math.prod(sizes):
        raise ShapeError(
            f"te.ops.fold: {x.name} {shape_text(x.shape)} has {rows} rows, which are not whole windows of "
            f"{sizes[0]} by {sizes[1]}"
        )
    counts = [static_int(w.count, "te.ops.fold: windows") for w in along]
    if as_expr(x.shape[2]) is not as_expr(math.prod(counts)):
        raise ShapeError(
            f"te.ops.fold: {x.name} {shape_text(x.shape)} has {x.shape[2]} columns, but an image of {spatial[0]} by "
            f"{spatial[1]} has {counts[0]} by {counts[1]} windows"
        )
    apart = reshape(x, (x.shape[0], rows // math.prod(sizes), *sizes, *counts))
    p, q = (r.reduce_axis((0, size), name) for size, name in zip(sizes, "pq", strict=True))

    def body(n: Expr, c: Expr, *places: Expr) -> Expr:
        inside, at = as_expr(True), []
        for window, k, a in zip(along, (p, q), places, strict=True):
            inside = inside & _in_window(window, a, k)
            at.append((a + window.before - k * window.dilation) // window.stride)
        return r.sum(apart[(n, c, p, q, *at)], axis=[p, q], where=inside)

    return compute((*apart.shape[:2], *spatial), body, "fold")


def _in_window(window: Window, a: Any, k: Any) -> Expr:
    """Whether the element ``a`` of the axis has the place ``k`` in one of the windows."""
    at = a + window.before - k * window.dilation
    inside: Expr = (at >= 0) & (at < window.count * window.stride)
    return inside & (at % window.stride == 0) if window.stride > 1 else inside


def _images(x: Tensor, name: str) -> tuple[Extent, Extent, Extent, Extent]:
    if x.ndim != 4:
        raise ShapeError(f"te.ops.{name}: {x.name} {shape_text(x.shape)}; give images, (N, C, H, W)")
    return x.shape  # type: ignore[return-value]
