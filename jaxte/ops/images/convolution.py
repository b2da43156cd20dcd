"""Convolutions (cross-correlations, as everywhere in machine learning) in one to three dimensions, and transposed ones: each element of the image adds a kernel."""

from __future__ import annotations

from typing import Any

from jaxte.lang.errors import ShapeError
from jaxte.lang.expr import Expr, as_expr
from jaxte.ops._operator import Padding, PerAxis, operator, static_int
from jaxte.ops.images.windows import (
    Window,
    channel_and_spatial,
    check_channels,
    kernel_axes,
    paddings,
    per_axis,
    windows,
)
from jaxte.tensors import reductions as r
from jaxte.tensors.compute import compute
from jaxte.tensors.shapes import Extent, shape_text
from jaxte.tensors.tensor import Tensor


def _convolution(
    x: Tensor, w: Tensor, strides: Any, padding: Any, dilation: Any, groups: int, layout: str, name: str
) -> Tensor:
    channel, spatial = channel_and_spatial(layout, x.ndim, name)
    out, into, taps = kernel_axes(x, w, channel == 1, name)
    per_group, outputs = _channels(x, w, channel, out, into, groups, name)
    along = windows(
        [x.shape[a] for a in spatial], [w.shape[a] for a in taps], strides, padding, dilation, name
    )
    c = r.reduce_axis((0, w.shape[into]), "c")
    own = [r.reduce_axis((0, window.size), f"k{n}") for n, window in enumerate(along)]

    def body(*i: Expr) -> Expr:
        places = [(window, i[a], k) for window, a, k in zip(along, spatial, own, strict=True)]
        inside: Any = as_expr(True)
        at_x: dict[int, Any] = {0: i[0], channel: c if groups == 1 else i[channel] // outputs * per_group + c}
        for (window, y, k), axis in zip(places, spatial, strict=True):
            at_x[axis] = window.index(y, k)
            inside = inside & window.inside(y, k)
        at_w = {out: i[channel], into: c} | dict(zip(taps, own, strict=True))
        product = x[tuple(at_x[a] for a in range(x.ndim))] * w[tuple(at_w[a] for a in range(w.ndim))]
        return r.sum(product, axis=[c, *own], where=inside)

    counts = dict(zip(spatial, [window.count for window in along], strict=True))
    shape = [w.shape[out] if a == channel else counts.get(a, e) for a, e in enumerate(x.shape)]
    return compute(shape, body, name)


def _channels(
    x: Tensor, w: Tensor, channel: int, out: int, into: int, groups: int, name: str
) -> tuple[Any, Any]:
    """Input and output channels of a group."""
    number = static_int(groups, f"te.ops.{name}: groups", 1)
    total, outputs = x.shape[channel], w.shape[out]
    check_channels(x, w, channel, into, w.shape[into], number, name)
    if number == 1:
        return total, outputs
    if static_int(outputs, f"te.ops.{name}: output channels of {w.name}") % number:
        raise ShapeError(
            f"te.ops.{name}: {w.name} has {outputs} output channels, which is not {number} equal groups"
        )
    return w.shape[into], outputs // number


@operator
def conv2d(
    x: Tensor,
    w: Tensor,
    strides: PerAxis = 1,
    padding: Padding = 0,
    dilation: PerAxis = 1,
    groups: int = 1,
    layout: str = "NCHW",
) -> Tensor:
    """A convolution in two dimensions.

    Args:
        x: images, (N, C, H, W); (N, H, W, C) with layout "NHWC".
        w: kernels, (O, C // groups, KH, KW); (KH, KW, C // groups, O) with layout "NHWC".
        strides: one number, or one for each spatial axis; so for ``dilation``, the distance between taps.
        padding: zeros around the image: a number, one for each axis, pairs (before, after), "SAME" or "VALID".
        groups: how many groups the channels are split into; each is convolved on its own.

    Formula: ``y[n, o, i, j] = sum over c, p, q of x[n, c, s * i + d * p - P, s * j + d * q - P] * w[o, c, p, q]``

    Raises:
        ShapeError: channels, groups, strides or padding that do not fit, windows larger than the padded image, an
            unknown layout.

    Source: ``jax.lax.conv_general_dilated``.

    Example:
        >>> te.ops.conv2d(te.placeholder((1, 3, 8, 8)), te.placeholder((4, 3, 3, 3)), padding="SAME").shape
        (1, 4, 8, 8)
    """
    return _convolution(x, w, strides, padding, dilation, groups, layout, "conv2d")


@operator
def conv1d(
    x: Tensor,
    w: Tensor,
    strides: PerAxis = 1,
    padding: Padding = 0,
    dilation: PerAxis = 1,
    groups: int = 1,
    layout: str = "NCW",
) -> Tensor:
    """A convolution in one dimension. See :func:`conv2d`.

    Formula: ``y[n, o, i] = sum over c, p of x[n, c, s * i + d * p - P] * w[o, c, p]``

    Raises:
        ShapeError: as of :func:`conv2d`.

    Source: ``jax.lax.conv_general_dilated``.

    Example:
        >>> te.ops.conv1d(te.placeholder((1, 3, 8)), te.placeholder((4, 3, 3)), 2).shape
        (1, 4, 3)
    """
    return _convolution(x, w, strides, padding, dilation, groups, layout, "conv1d")


@operator
def conv3d(
    x: Tensor,
    w: Tensor,
    strides: PerAxis = 1,
    padding: Padding = 0,
    dilation: PerAxis = 1,
    groups: int = 1,
    layout: str = "NCDHW",
) -> Tensor:
    """A convolution in three dimensions. See :func:`conv2d`.

    Formula: ``y[n, o, i, j, k] = sum over c, p, q, r of x[n, c, i + p, j + q, k + r] * w[o, c, p, q, r]``

    Raises:
        ShapeError: as of :func:`conv2d`.

    Source: ``jax.lax.conv_general_dilated``.

    Example:
        >>> te.ops.conv3d(te.placeholder((1, 3, 8, 8, 8)), te.placeholder((4, 3, 3, 3, 3))).shape
        (1, 4, 6, 6, 6)
    """
    return _convolution(x, w, strides, padding, dilation, groups, layout, "conv3d")


@operator
def depthwise_conv2d(
    x: Tensor,
    w: Tensor,
    strides: PerAxis = 1,
    padding: Padding = 0,
    dilation: PerAxis = 1,
    layout: str = "NCHW",
) -> Tensor:
    """A convolution of each channel on its own: :func:`conv2d` with as many groups as channels.

    Formula: ``y[n, c, i, j] = sum over p, q of x[n, c // m, s * i + d * p - P, s * j + d * q - P] * w[c, 0, p, q]``

    Raises:
        ShapeError: as of :func:`conv2d`.

    Source: ``jax.lax.conv_general_dilated with feature_group_count``.

    Example:
        >>> te.ops.depthwise_conv2d(te.placeholder((1, 3, 8, 8)), te.placeholder((6, 1, 3, 3))).shape
        (1, 6, 6, 6)
    """
    channel, _ = channel_and_spatial(layout, x.ndim, "depthwise_conv2d")
    groups = static_int(x.shape[channel], f"te.ops.depthwise_conv2d: channels of {x.name}", 1)
    return _convolution(x, w, strides, padding, dilation, groups, layout, "depthwise_conv2d")


@operator
def conv2d_transpose(
    x: Tensor,
    w: Tensor,
    strides: PerAxis = 1,
    padding: Padding = 0,
    output_padding: PerAxis = 0,
    dilation: PerAxis = 1,
    groups: int = 1,
    layout: str = "NCHW",
) -> Tensor:
    """The adjoint of :func:`conv2d` in its image, as an operator: ``strides`` times as many rows and columns.

    Args:
        x: images, (N, C, H, W); (N, H, W, C) with layout "NHWC".
        w: kernels, (C, O // groups, KH, KW); (KH, KW, O // groups, C) with layout "NHWC".
        padding: what :func:`conv2d` would pad, so what is cut off here: a number, one for each axis, pairs (before,
            after); "VALID" cuts nothing, "SAME" makes the result ``strides`` times as large.
        output_padding: rows and columns more at the end, fewer than ``strides``.

    Formula: ``y[n, o, i, j] = sum over c, p, q of x[n, c, (i + P - p) / s, (j + P - q) / s] * w[c, o, p, q]``,
    where the quotients are whole and inside

    Raises:
        ShapeError: channels and groups that do not fit, an unknown layout or padding, a result of negative size.

    Source: ``torch.nn.ConvTranspose2d``; ``jax.lax.conv_transpose`` with ``transpose_kernel=True``.

    Example:
        >>> te.ops.conv2d_transpose(te.placeholder((1, 3, 8, 8)), te.placeholder((3, 4, 4, 4)), 2, 1).shape
        (1, 4, 16, 16)
    """
    name = "conv2d_transpose"
    channel, spatial = channel_and_spatial(layout, x.ndim, name)
    into, out, taps = kernel_axes(x, w, channel == 1, name)
    per_group, outputs = _channels_added(x, w, channel, out, into, groups, name)
    sides, kernel = [x.shape[a] for a in spatial], [w.shape[a] for a in taps]
    along, extents = _windows(x, sides, kernel, strides, padding, output_padding, dilation)
    c = r.reduce_axis((0, per_group), "c")
    own = [r.reduce_axis((0, window.size), f"k{n}") for n, window in enumerate(along)]

    def body(*i: Expr) -> Expr:
        inside: Any = as_expr(True)
        group = 0 if groups == 1 else i[channel] // outputs * per_group
        at_x: dict[int, Any] = {0: i[0], channel: group + c}
        for window, axis, k in zip(along, spatial, own, strict=True):
            at = i[axis] + window.before - k * window.dilation
            at_x[axis] = at // window.stride
            inside = inside & (at >= 0) & (at < window.extent * window.stride)
            if window.stride > 1:
                inside = inside & (at % window.stride == 0)
        o = i[channel] if groups == 1 else i[channel] % outputs
        at_w = {into: group + c, out: o} | dict(zip(taps, own, strict=True))
        product = x[tuple(at_x[a] for a in range(x.ndim))] * w[tuple(at_w[a] for a in range(w.ndim))]
        return r.sum(product, axis=[c, *own], where=inside)

    sizes = dict(zip(spatial, extents, strict=True)) | {channel: outputs * groups}
    return compute([sizes.get(a, e) for a, e in enumerate(x.shape)], body, name)


def _channels_added(
    x: Tensor, w: Tensor, channel: int, out: int, into: int, groups: int, name: str
) -> tuple[Any, Any]:
    """Input and output channels of a group."""
    number = static_int(groups, f"te.ops.{name}: groups", 1)
    check_channels(x, w, channel, into, w.shape[into], 1, name)
    total = x.shape[channel]
    if number == 1:
        return total, w.shape[out]
    if static_int(total, f"te.ops.{name}: channels of {x.name}") % number:
        raise ShapeError(
            f"te.ops.{name}: {x.name} {shape_text(x.shape)} has {total} channels, which is not {number} equal groups; "
            f"give groups that divide them"
        )
    return total // number, w.shape[out]  # type: ignore[operator]


def _windows(
    x: Tensor, shape: list[Extent], sizes: list[Any], strides: Any, padding: Any, more: Any, dilation: Any
) -> tuple[list[Window], list[Extent]]:
    """The windows of the convolution whose adjoint this is, over the axes of ``x``; and the extents of the result."""
    name = "conv2d_transpose"
    numbers = [static_int(s, f"te.ops.{name}: window size", 1) for s in sizes]
    steps = per_axis(strides, len(shape), f"te.ops.{name}: strides")
    gaps = per_axis(dilation, len(shape), f"te.ops.{name}: dilation")
    extra = per_axis(more, len(shape), f"te.ops.{name}: output_padding", least=0)
    spans = [(n - 1) * gap + 1 for n, gap in zip(numbers, gaps, strict=True)]
    if isinstance(padding, str) and padding.upper() == "SAME":
        cut = [max(span - step, 0) for span, step in zip(spans, steps, strict=True)]
        pads = [(total // 2, total - total // 2) for total in cut]
        extents: list[Extent] = [e * step for e, step in zip(shape, steps, strict=True)]
    else:
        pads = paddings(padding, shape, spans, steps, name)
        extents = [
            (e - 1) * step - sum(pad) + span
            for e, step, pad, span in zip(shape, steps, pads, spans, strict=True)
        ]
    found = []
    for n, (step, rest) in enumerate(zip(steps, extra, strict=True)):
        if rest >= step and rest:
            raise ShapeError(
                f"te.ops.{name}: output_padding={rest} with strides {step}; give less than the stride"
            )
        extents[n] = extents[n] + rest
        if isinstance(extents[n], int) and extents[n] < 0:  # type: ignore[operator]
            raise ShapeError(
                f"te.ops.{name}: padding {pads[n]} cuts more than the {extents[n] + sum(pads[n])} elements that a "  # type: ignore[operator]
                f"kernel of {spans[n]} makes of the {shape[n]} of {x.name}; pad less"
            )
        found.append(Window(shape[n], numbers[n], step, gaps[n], *pads[n]))
    return found, extents
