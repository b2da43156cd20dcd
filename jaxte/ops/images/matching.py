"""How alike two images are when one of them is shifted."""

from __future__ import annotations

from typing import Any

from jaxte.lang import functions as f
from jaxte.lang.errors import ShapeError
from jaxte.lang.expr import Expr
from jaxte.ops._operator import operator, static_int
from jaxte.tensors import reductions as r
from jaxte.tensors.compute import compute
from jaxte.tensors.shapes import shape_text
from jaxte.tensors.tensor import Tensor


@operator
def correlation(a: Tensor, b: Tensor, max_displacement: int = 4, stride: int = 1) -> Tensor:
    """The mean over the channels of products of each pixel with those around it in another image.

    Args:
        a: images of one shape, (N, C, H, W).
        b: the other, of the same shape.
        max_displacement: the greatest shift of ``b``, in steps of ``stride`` pixels, in each direction.

    Returns:
        (N, D * D, H, W) with ``D = 2 * max_displacement + 1``; pixels outside ``b`` are 0.

    Formula: ``y[n, p * D + q, i, j] = sum over c of a[n, c, i, j] * b[n, c, i + s * (p - d), j + s * (q - d)] / C``

    Raises:
        ShapeError: shapes that differ or are no images, a negative displacement, a stride below 1.

    Source: Dosovitskiy et al., FlowNet.

    Example:
        >>> a = np.float32([[[[1, 2, 3]]]])
        >>> te.ops.correlation(a, a, 1)[0, 3:6, 0].tolist()
        [[0.0, 2.0, 6.0], [1.0, 4.0, 9.0], [2.0, 6.0, 0.0]]
    """
    _check(a, b, "correlation")
    reach = static_int(max_displacement, "te.ops.correlation: max_displacement")
    step = static_int(stride, "te.ops.correlation: stride", 1)
    n, channels, h, w = a.shape
    size, c = 2 * reach + 1, r.reduce_axis((0, channels), "c")

    def body(n: Expr, shift: Expr, i: Expr, j: Expr) -> Expr:
        y, z = i + step * (shift // size - reach), j + step * (shift % size - reach)
        inside = (y >= 0) & (y < h) & (z >= 0) & (z < w)
        return r.sum(a[n, c, i, j] * b[n, c, y, z], axis=c, where=inside)

    total = compute((n, size * size, h, w), body, "total")
    return _mean(total, channels, "correlation")


@operator
def cost_volume(left: Tensor, right: Tensor, max_disparity: int) -> Tensor:
    """The mean over the channels of products of each pixel with those to the left of it in the other image of a stereo pair.

    Args:
        left: images of one shape, (N, C, H, W).
        right: the other, of the same shape.
        max_disparity: how many shifts there are, from 0 on.

    Returns:
        (N, max_disparity, H, W); 0 where the shift leads out of the image.

    Formula: ``y[n, d, i, j] = sum over c of left[n, c, i, j] * right[n, c, i, j - d] / C``

    Raises:
        ShapeError: shapes that differ or are no images, fewer than one disparity.

    Source: Mayer et al., DispNet.

    Example:
        >>> a = np.float32([[[[1, 2, 3]]]])
        >>> te.ops.cost_volume(a, a, 2)[0, :, 0].tolist()
        [[1.0, 4.0, 9.0], [0.0, 2.0, 6.0]]
    """
    _check(left, right, "cost_volume")
    count = static_int(max_disparity, "te.ops.cost_volume: max_disparity", 1)
    n, channels, h, w = left.shape
    c = r.reduce_axis((0, channels), "c")

    def body(n: Expr, d: Expr, i: Expr, j: Expr) -> Expr:
        return r.sum(left[n, c, i, j] * right[n, c, i, j - d], axis=c, where=j >= d)

    return _mean(compute((n, count, h, w), body, "total"), channels, "cost_volume")


def _mean(total: Tensor, channels: Any, name: str) -> Tensor:
    return compute(total.shape, lambda *i: total[i] / f.cast(channels, total.dtype), name)


def _check(a: Tensor, b: Tensor, name: str) -> None:
    if a.ndim != 4 or a.shape != b.shape:
        raise ShapeError(
            f"te.ops.{name}: {a.name} {shape_text(a.shape)} and {b.name} {shape_text(b.shape)}; give two images of one "
            "shape, (N, C, H, W)"
        )
