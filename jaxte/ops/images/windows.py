"""Windows along spatial axes: their number, the elements in each, which of these exist; and images as the columns of a matrix, one for each window, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from jaxte.lang import functions as f
from jaxte.lang.checks import counted, described
from jaxte.lang.errors import ArgumentError, ShapeError
from jaxte.lang.expr import Expr, as_expr
from jaxte.ops._operator import Padding, PerAxis, operator, static_int
from jaxte.ops.arrays.reshape import reshape
from jaxte.tensors import reductions as r
from jaxte.tensors.compute import compute
from jaxte.tensors.shapes import Extent, shape_text
from jaxte.tensors.tensor import Tensor

SPATIAL = "DHW"


@dataclass(frozen=True, slots=True)
class Window:
    """Windows of ``size`` elements, ``dilation`` apart, every ``stride`` elements of a padded axis.

    ``beyond`` are further elements at the end, behind the padding, that no mean counts.
    """

    extent: Extent
    size: int
    stride: int
    dilation: int
    before: int
    after: int
    beyond: int = 0

    @property
    def span(self) -> int:
        return (self.size - 1) * self.dilation + 1

    @property
    def count(self) -> Extent:
        """How many windows fit."""
        room = self.extent + (self.before + self.after + self.beyond - self.span)
        if isinstance(room, int):
            return max(room // self.stride + 1, 0)
        return room // self.stride + 1

    def index(self, window: Any, tap: Any) -> Any:
        """The element at the place ``tap`` of a window."""
        return window * self.stride + tap * self.dilation - self.before

    def inside(self, window: Any, tap: Any) -> Expr:
        """Whether that element exists; constantly true where it is known to."""
        index, inside = self.index(window, tap), as_expr(True)
        if self.before:
            inside = inside & (index >= 0)
        if self.reaches_over_the_end():
            inside = inside & (index < self.extent)
        return inside

    def up_to_the_end(self, name: str) -> Window:
        """The same with one window more, if elements are left over at the end; it starts before the padding there."""
        extent = static_int(self.extent, f"te.ops.{name}: extent of an axis with ceil_mode")
        left = (extent + self.before + self.after - self.span) % self.stride
        more = self.stride - left if left else 0
        wide = replace(self, beyond=more)
        starts_inside = (static_int(wide.count, "windows") - 1) * self.stride < extent + self.before
        return wide if starts_inside else self

    def reaches_over_the_end(self) -> bool:
        """Whether the last windows hold elements that do not exist."""
        if not isinstance(self.extent, int) or not isinstance(self.count, int):
            return self.after + self.beyond > 0
        return (self.count - 1) * self.stride + self.span - self.before > self.extent


def windows(
    shape: Sequence[Extent], sizes: Sequence[Any], strides: Any, padding: Any, dilation: Any, name: str
) -> list[Window]:
    """The windows along each of the axes of ``shape``."""
    count = len(shape)
    numbers = [static_int(s, f"te.ops.{name}: window size", 1) for s in sizes]
    steps = per_axis(strides, count, f"te.ops.{name}: strides")
    gaps = per_axis(dilation, count, f"te.ops.{name}: dilation")
    spans = [(n - 1) * gap + 1 for n, gap in zip(numbers, gaps, strict=True)]
    pads = paddings(padding, shape, spans, steps, name)
    for extent, span, pad in zip(shape, spans, pads, strict=True):
        if isinstance(extent, int) and span > extent + sum(pad):
            raise ShapeError(
                f"te.ops.{name}: a window of {span} elements over an axis of {extent} with padding {pad}; give windows that "
                "fit, or pad more"
            )
    return [Window(e, n, s, g, *p) for e, n, s, g, p in zip(shape, numbers, steps, gaps, pads, strict=True)]


def per_axis(value: Any, count: int, what: str, least: int = 1) -> list[int]:
    """An integer of at least ``least`` for each axis, from one for all or a sequence."""
    listed = list(value) if _is_several(value) else [value] * count
    if len(listed) != count:
        raise ShapeError(f"{what}={value!r}; give one number, or {count} of them")
    return [static_int(v, what, least) for v in listed]


def _is_several(value: Any) -> bool:
    return hasattr(value, "__iter__") and not hasattr(value, "__index__")


def paddings(
    padding: Any, shape: Sequence[Extent], spans: Sequence[int], strides: Sequence[int], name: str
) -> list[tuple[int, int]]:
    """Elements before and after each axis: from "SAME", "VALID", a number, one a axis, or pairs."""
    if isinstance(padding, str):
        if padding.upper() == "VALID":
            return [(0, 0)] * len(shape)
        if padding.upper() != "SAME":
            raise ShapeError(
                f"te.ops.{name}: padding={padding!r}; give 'SAME', 'VALID', numbers or pairs of numbers"
            )
        return [_same(e, k, s, name) for e, k, s in zip(shape, spans, strides, strict=True)]
    listed = list(padding) if _is_several(padding) else [padding] * len(shape)
    pairs = [tuple(p) if _is_several(p) else (p, p) for p in listed]
    if len(pairs) != len(shape) or any(len(p) != 2 for p in pairs):
        raise ShapeError(
            f"te.ops.{name}: padding={padding!r}; give a number, one for each of the {len(shape)} spatial axes, or a pair "
            "(before, after) for each"
        )
    what = f"te.ops.{name}: padding"
    return [(static_int(lo, what), static_int(hi, what)) for lo, hi in pairs]


def _same(extent: Extent, span: int, stride: int, name: str) -> tuple[int, int]:
    """The padding with which there is a window for each stride, the odd element at the end."""
    if stride == 1:
        total = span - 1
    else:
        known = static_int(extent, f"te.ops.{name}: extent of an axis with 'SAME' padding and a stride")
        total = max((-(-known // stride) - 1) * stride + span - known, 0)
    return total // 2, total - total // 2


def channel_and_spatial(layout: str, ndim: int, name: str) -> tuple[int, list[int]]:
    """The positions of the channel and of the spatial axes in a layout such as NCHW or NHWC."""
    if not isinstance(layout, str):
        raise ArgumentError(f"te.ops.{name}: layout is {described(layout)}; give a string such as NCHW")
    spatial = SPATIAL[len(SPATIAL) - (ndim - 2) :] if 3 <= ndim <= 5 else ""
    if not spatial or layout not in ("NC" + spatial, "N" + spatial + "C"):
        raise ShapeError(
            f"te.ops.{name}: layout={layout!r} for {counted(ndim, 'axis', 'axes')}; layouts are NCW, NWC, NCHW, NHWC, NCDHW and NDHWC"
        )
    return layout.index("C"), [layout.index(axis) for axis in spatial]


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


def kernel_axes(x: Tensor, w: Tensor, first: bool, name: str) -> tuple[int, int, list[int]]:
    """The axes of a kernel: of its two kinds of channels and of its taps; OIHW where channels are ``first``, else HWIO."""
    if w.ndim != x.ndim:
        raise ShapeError(
            f"te.ops.{name}: {x.name} has {counted(x.ndim, 'axis', 'axes')} and {w.name} {w.ndim}; give equally many"
        )
    if first:
        return 0, 1, list(range(2, w.ndim))
    return w.ndim - 1, w.ndim - 2, list(range(w.ndim - 2))


def check_channels(x: Tensor, w: Tensor, channel: int, into: int, taken: Any, groups: int, name: str) -> None:
    """Raises unless the kernel takes the channels that there are."""
    if as_expr(taken * groups) is not as_expr(x.shape[channel]):
        raise ShapeError(
            f"te.ops.{name}: {x.name} {shape_text(x.shape)} has {x.shape[channel]} channels and {w.name} "
            f"{shape_text(w.shape)} takes {taken} in each of {groups} groups; axis {into} of the kernel times groups "
            f"must be axis {channel}"
        )
