"""Windows along spatial axes: their number, the elements in each, and which of these exist."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from jaxte.lang.checks import counted, described
from jaxte.lang.errors import ArgumentError, ShapeError
from jaxte.lang.expr import Expr, as_expr
from jaxte.ops._operator import static_int
from jaxte.tensors.shapes import Extent

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
    listed = [value] * count if hasattr(value, "__index__") else list(value)
    if len(listed) != count:
        raise ShapeError(f"{what}={value!r}; give one number, or {count} of them")
    return [static_int(v, what, least) for v in listed]


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
    listed = [padding] * len(shape) if hasattr(padding, "__index__") else list(padding)
    pairs = [(p, p) if hasattr(p, "__index__") else tuple(p) for p in listed]
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
