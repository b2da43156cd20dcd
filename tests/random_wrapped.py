"""Random sums of products at positions that wrap, are held at the ends of a tensor, or are reflected there."""

from __future__ import annotations

from dataclasses import dataclass

import jaxte as te
from jaxte.tensors.tensor import Tensor
from tests.choices import Choices


@dataclass(frozen=True)
class Index:
    """``stride * i + dilation * k + offset``, for ``count`` positions ``i``, as a position below ``extent``."""

    kind: str
    extent: int
    stride: int
    dilation: int
    offset: int
    count: int

    def at(self, i: te.Expr, k: te.Expr) -> te.Expr:
        plain, last = self.stride * i + self.dilation * k + self.offset, self.extent - 1
        if self.kind == "%":
            return plain % self.extent
        if self.kind == "held":
            return te.minimum(te.maximum(plain, 0), last)
        return te.abs(plain) if self.kind == "reflected" else last - te.abs(last - plain)


def index(choices: Choices, taps: int) -> Index:
    """Strides and dilations of both signs; about as many positions as there are elements, or a few more or less."""
    kind = choices.among(("%", "%", "held", "held", "reflected", "reflected at the end"))
    extent = choices.among((30, 31, 36, 48))
    if kind == "reflected":
        dilation = choices.number(1, 3)
        offset = -choices.number(0, min(3, dilation * taps))
        return Index(kind, extent, 1, dilation, offset, extent - dilation * taps)
    if kind == "reflected at the end":
        return Index(kind, extent, 1, 1, 0, extent)
    stride = choices.among((1, 1, 1, 2, 3, -1))
    count = choices.among((extent // abs(stride), extent // abs(stride), extent + 3, extent - 5))
    return Index(kind, extent, stride, choices.among((1, -1, 2, 3)), choices.number(-4, 4), count)


def wrapped(choices: Choices) -> tuple[Tensor, Tensor, Tensor]:
    """The sum over windows on one or two axes, what it reads, and the weights."""
    taps = choices.among((2, 3, 5))
    indices = [index(choices, taps) for _ in range(choices.number(1, 2))]
    ks = [te.reduce_axis((0, taps), f"k{n}") for n in range(len(indices))]
    x = te.placeholder(tuple(i.extent for i in indices), "float64", "x")
    w = te.placeholder((taps,) * len(indices), "float64", "w")

    def element(*positions: te.Axis) -> te.Expr:
        place = tuple(own.at(i, k) for own, i, k in zip(indices, positions, ks, strict=True))
        return te.sum(w[tuple(ks)] * x[place], ks)

    return te.compute(tuple(i.count for i in indices), element, "y"), x, w
