"""Random products and reductions over windows: strides, dilations, padding, channels and groups."""

from __future__ import annotations

from typing import Any

import jaxte as te
from jaxte.tensors.tensor import Tensor
from tests.choices import Choices


def windowed(choices: Choices) -> Tensor:
    """A product, or one read, over windows with random strides, dilations, padding, channels and groups."""
    rank = choices.number(1, 2)
    channels, groups, batch = choices.number(1, 3), choices.number(1, 3), choices.number(1, 2)
    sizes = [choices.number(4, 9) for _ in range(rank)]
    taps = [choices.number(1, 4) for _ in range(rank)]
    if rank == 1 and choices.number(0, 1):  # long enough for what is only offered for long kernels
        sizes, taps, channels, groups = [choices.number(16, 40)], [choices.number(5, 22)], 1, 1
    options = {name: [choices.number(1, 3) for _ in range(rank)] for name in ("strides", "dilation")}
    padding = [(choices.number(0, 2), choices.number(0, 2)) for _ in range(rank)]
    sizes = [max(n, (k - 1) * d + 1) for n, k, d in zip(sizes, taps, options["dilation"], strict=True)]
    kind = choices.among(("conv", "conv", "sum", "count", "max", "min"))
    dtype = "int32" if kind == "count" else "float64"
    x = te.placeholder((batch, channels * groups, *sizes), dtype, "X")
    if kind == "conv":
        w = te.placeholder((groups * choices.number(1, 2), channels, *taps), "float64", "W")
        conv = te.ops.conv1d if rank == 1 else te.ops.conv2d
        return conv(x, w, padding=padding, groups=groups, **options)
    return pooled(x, taps, padding, kind, **options)


def pooled(
    x: Tensor,
    taps: list[int],
    padding: list[tuple[int, int]],
    kind: str,
    strides: list[int],
    dilation: list[int],
) -> Tensor:
    own = [te.reduce_axis((0, k), f"k{n}") for n, k in enumerate(taps)]
    reduce = {"sum": te.sum, "count": te.sum, "max": te.max, "min": te.min}[kind]
    extents = [
        (n + a + b - (k - 1) * d - 1) // s + 1
        for n, (a, b), k, d, s in zip(x.shape[2:], padding, taps, dilation, strides, strict=True)
    ]

    def body(n: Any, c: Any, *t: Any) -> Any:
        places = [
            s * i + d * k - a for i, k, s, d, (a, _) in zip(t, own, strides, dilation, padding, strict=True)
        ]
        inside = te.const(True)
        for place, extent in zip(places, x.shape[2:], strict=True):
            inside = inside & (place >= 0) & (place < extent)
        return reduce(x[(n, c, *places)], axis=own, where=inside)

    return te.compute((*x.shape[:2], *extents), body, "Y")
