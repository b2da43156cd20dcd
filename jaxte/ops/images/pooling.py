"""Reductions over windows of images."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from jaxte.lang import functions as f
from jaxte.lang.errors import ShapeError
from jaxte.lang.expr import Axis, Expr, as_expr
from jaxte.ops._operator import Padding, PerAxis, operator
from jaxte.ops.arithmetic.reductions import reduce
from jaxte.ops.images.windows import Window, channel_and_spatial, per_axis, windows
from jaxte.tensors import reductions as r
from jaxte.tensors.compute import compute
from jaxte.tensors.tensor import Tensor

Reduction = Callable[[Expr, list[Axis], Expr], Expr]


def _windows(
    x: Tensor,
    pool_size: Any,
    strides: Any,
    padding: Any,
    layout: str,
    ceil_mode: bool,
    dilation: Any,
    name: str,
) -> dict[int, Window]:
    """The windows along each spatial axis of ``x``."""
    _, spatial = channel_and_spatial(layout, x.ndim, name)
    sizes = per_axis(pool_size, len(spatial), f"te.ops.{name}: pool_size")
    steps = sizes if strides is None else strides
    found = windows([x.shape[a] for a in spatial], sizes, steps, padding, dilation, name)
    for axis, window in zip(spatial, found, strict=True):
        if max(window.before, window.after) >= window.span:
            raise ShapeError(
                f"te.ops.{name}: padding {window.before, window.after} of axis {axis} of {x.name} makes windows of "
                f"{window.size} that hold no element; pad less than the window"
            )
    return dict(zip(spatial, [w.up_to_the_end(name) if ceil_mode else w for w in found], strict=True))


def _pool(x: Tensor, along: dict[int, Window], reduction: Reduction, name: str) -> Tensor:
    own = {a: r.reduce_axis((0, window.size), f"k{n}") for n, (a, window) in enumerate(along.items())}

    def body(*i: Expr) -> Expr:
        inside: Any = as_expr(True)
        position = list(i)
        for a, window in along.items():
            inside = inside & window.inside(i[a], own[a])
            position[a] = window.index(i[a], own[a])
        return reduction(x[tuple(position)], list(own.values()), inside)

    return compute([along[a].count if a in along else e for a, e in enumerate(x.shape)], body, name)


@operator
def max_pool2d(
    x: Tensor,
    pool_size: PerAxis,
    strides: PerAxis | None = None,
    padding: Padding = 0,
    layout: str = "NCHW",
    ceil_mode: bool = False,
    dilation: PerAxis = 1,
) -> Tensor:
    """The maximum of each window; of equal maxima the first one gets the gradient, as in ``lax.reduce_window``.

    Args:
        x: images, (N, C, H, W), or with layout "NHWC".
        pool_size: one number, or one for each spatial axis.
        strides: the same; by default the windows lie side by side.
        padding: as in :func:`conv2d`; elements outside count as minus infinity.
        ceil_mode: whether a last window may reach over the end, if it starts before it.
        dilation: the distance between the elements of a window.

    Formula: ``y[n, c, i, j] = max over p, q of x[n, c, s * i + d * p - P, s * j + d * q - P]``

    Raises:
        ShapeError: windows larger than the padded image or wholly in the padding, an unknown layout or padding.

    Source: ``torch.nn.MaxPool2d``; ``jax.lax.reduce_window``.

    Example:
        >>> te.ops.max_pool2d(np.float32([[[[1, 2, 5], [3, 4, 0]]]]), 2, ceil_mode=True).tolist()
        [[[[4.0, 5.0]]]]
    """
    along = _windows(x, pool_size, strides, padding, layout, ceil_mode, dilation, "max_pool2d")
    return _pool(
        x, along, lambda e, axes, inside: r.max(e, axis=axes, where=inside, ties="first"), "max_pool2d"
    )


@operator
def avg_pool2d(
    x: Tensor,
    pool_size: PerAxis,
    strides: PerAxis | None = None,
    padding: Padding = 0,
    count_include_pad: bool = True,
    layout: str = "NCHW",
    ceil_mode: bool = False,
    dilation: PerAxis = 1,
) -> Tensor:
    """The mean of each window.

    Args:
        count_include_pad: whether elements of the padding count as zeros; if not, they do not count. Those behind it,
            where ``ceil_mode`` leads, never do.

    See :func:`max_pool2d` for the others.

    Formula: ``y[n, c, i, j] = sum over p, q of x[n, c, s * i + d * p - P, s * j + d * q - P] / count``

    Raises:
        ShapeError: windows larger than the padded image or wholly in the padding, an unknown layout or padding.

    Source: ``torch.nn.AvgPool2d``; ``jax.lax.reduce_window``.

    Example:
        >>> te.ops.avg_pool2d(np.float32([[[[1, 2], [3, 4]]]]), 2).tolist()
        [[[[2.5]]]]
    """
    along = _windows(x, pool_size, strides, padding, layout, ceil_mode, dilation, "avg_pool2d")
    total = _pool(x, along, lambda e, axes, inside: r.sum(e, axis=axes, where=inside), "window_sum")

    def body(*i: Expr) -> Expr:
        return total[i] / f.cast(_elements(along, i, count_include_pad), total.dtype)

    return compute(total.shape, body, "avg_pool2d")


def _elements(along: dict[int, Window], i: Sequence[Expr], with_padding: bool) -> Any:
    """How many elements count in the window at ``i``."""
    count: Any = 1
    for a, window in along.items():
        first: Any = 0
        last: Any = window.size
        start = i[a] * window.stride
        if not with_padding and window.before:
            first = f.maximum(_taps(window.before - start, window), 0)
        if window.beyond if with_padding else window.reaches_over_the_end():
            end = window.extent + window.before + (window.after if with_padding else 0)
            last = f.minimum(_taps(end - start, window), window.size)
        count = count * (last - first)
    return count


def _taps(length: Any, window: Window) -> Any:
    """How many elements of a window lie within a length from its start."""
    return length if window.dilation == 1 else (length + (window.dilation - 1)) // window.dilation


@operator
def global_max_pool2d(x: Tensor, layout: str = "NCHW") -> Tensor:
    """The maximum of each channel of each image, with spatial axes of extent 1.

    Formula: ``y[n, c, 0, 0] = max over i, j of x[n, c, i, j]``

    Raises:
        ShapeError: an unknown layout.

    Source: relay ``global_max_pool2d``.

    Example:
        >>> te.ops.global_max_pool2d(np.float32([[[[1, 2]]]])).tolist()
        [[[[2.0]]]]
    """
    _, spatial = channel_and_spatial(layout, x.ndim, "global_max_pool2d")
    return reduce(functools.partial(r.max, ties="first"), x, tuple(spatial), True, "global_max_pool2d")


@operator
def global_avg_pool2d(x: Tensor, layout: str = "NCHW") -> Tensor:
    """The mean of each channel of each image, with spatial axes of extent 1.

    Formula: ``y[n, c, 0, 0] = sum over i, j of x[n, c, i, j] / (H * W)``

    Raises:
        ShapeError: an unknown layout.

    Source: relay ``global_avg_pool2d``.

    Example:
        >>> te.ops.global_avg_pool2d(np.float32([[[[1, 2]]]])).tolist()
        [[[[1.5]]]]
    """
    _, spatial = channel_and_spatial(layout, x.ndim, "global_avg_pool2d")
    total = reduce(r.sum, x, tuple(spatial), True, "total")
    count: Any = 1
    for a in spatial:
        count = count * x.shape[a]
    return compute(total.shape, lambda *i: total[i] / f.cast(count, total.dtype), "global_avg_pool2d")
