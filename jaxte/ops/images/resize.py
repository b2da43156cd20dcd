"""Images of another size."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Any

from jaxte.lang import dtypes
from jaxte.lang import functions as f
from jaxte.lang.errors import ShapeError
from jaxte.lang.expr import Expr
from jaxte.ops._operator import operator, static_int
from jaxte.ops.images.windows import channel_and_spatial, per_axis
from jaxte.tensors import reductions as r
from jaxte.tensors.compute import compute
from jaxte.tensors.tensor import Tensor

METHODS = ("nearest", "bilinear", "bicubic")
ALIGNMENTS = ("half_pixel", "align_corners", "asymmetric")


@operator
def resize(
    x: Tensor,
    size: int | Sequence[int],
    method: str = "bilinear",
    align: str = "half_pixel",
    layout: str = "NCHW",
) -> Tensor:
    """Images with another number of rows and columns, without a filter against aliasing.

    Args:
        x: images, (N, C, H, W), or with layout "NHWC"; other ranks as in :func:`conv1d` and :func:`conv3d`.
        size: the new extents of the spatial axes.
        method: "nearest", "bilinear", or "bicubic" (Keys' kernel with a = -1/2, whose taps outside do not count).
        align: where element ``i`` of ``new`` lies among ``old``: "half_pixel" ``(i + 1/2) * old / new - 1/2``,
            "align_corners" ``i * (old - 1) / (new - 1)``, "asymmetric" ``i * old / new``.

    Formula: ``y[i] = sum over taps t of weight(i, t) * x[floor(at(i)) + t]`` along one axis after the other

    Raises:
        ShapeError: sizes below 1, unknown method, alignment or layout, no rows or columns to take values from.

    Source: ``jax.image.resize`` with ``antialias=False`` for "half_pixel"; ONNX ``Resize`` for the others.

    Example:
        >>> te.ops.resize(np.float32([0, 1]).reshape(1, 1, 1, 2), (1, 4)).ravel().tolist()
        [0.0, 0.25, 0.75, 1.0]
    """
    return _resized(x, size, method, align, layout, "resize")


@operator
def upsampling(
    x: Tensor,
    scale: int | Sequence[int],
    layout: str = "NCHW",
    method: str = "nearest",
    align: str = "half_pixel",
) -> Tensor:
    """Images with ``scale`` times as many rows and columns.

    Args:
        scale: one number, or one for each spatial axis.
        method: as in :func:`resize`.
        align: as in :func:`resize`.

    Formula: ``y[n, c, i, j] = x[n, c, i // scale, j // scale]`` for "nearest"

    Raises:
        ShapeError: scales below 1, unknown method, alignment or layout.

    Source: relay ``upsampling``; ``jax.image.resize``.

    Example:
        >>> te.ops.upsampling(np.float32([1, 2]).reshape(1, 1, 1, 2), (1, 2)).ravel().tolist()
        [1.0, 1.0, 2.0, 2.0]
    """
    _, spatial = channel_and_spatial(layout, x.ndim, "upsampling")
    scales = per_axis(scale, len(spatial), "te.ops.upsampling: scale")
    _check(method, align, "upsampling")
    if method == "nearest" and align != "align_corners":
        factors = dict(zip(spatial, scales, strict=True))
        shape = [e * factors.get(a, 1) for a, e in enumerate(x.shape)]
        return compute(
            shape, lambda *i: x[tuple(p // factors.get(a, 1) for a, p in enumerate(i))], "upsampling"
        )
    known = [static_int(x.shape[a], f"te.ops.upsampling: extent of axis {a} of {x.name}", 1) for a in spatial]
    size = [e * s for e, s in zip(known, scales, strict=True)]
    return _resized(x, size, method, align, layout, "upsampling")


def _check(method: str, align: str, name: str) -> None:
    for what, value, known in (("method", method, METHODS), ("align", align, ALIGNMENTS)):
        if value not in known:
            raise ShapeError(f"te.ops.{name}: {what}={value!r}; give one of {', '.join(map(repr, known))}")


def _resized(x: Tensor, size: Any, method: str, align: str, layout: str, name: str) -> Tensor:
    _, spatial = channel_and_spatial(layout, x.ndim, name)
    _check(method, align, name)
    wanted = per_axis(size, len(spatial), f"te.ops.{name}: size")
    known = [static_int(x.shape[a], f"te.ops.{name}: extent of axis {a} of {x.name}", 1) for a in spatial]
    result = x
    for axis, old, new in sorted(
        zip(spatial, known, wanted, strict=True), key=lambda a: (a[2] > a[1], -a[0] if a[2] > a[1] else a[0])
    ):
        if old != new:
            result = _along(result, axis, _Positions(old, new, align, method == "nearest"), method, name)
    return result


class _Positions:
    """The exact places ``(step * i + first) / parts`` of the new elements among the old ones."""

    def __init__(self, old: int, new: int, align: str, nearest: bool) -> None:
        # numerators over twice the parts, so that half an element is whole
        step, parts = (old - 1, max(new - 1, 1)) if align == "align_corners" else (old, new)
        first = old if align == "half_pixel" else 0
        if nearest and align == "align_corners":
            first += parts  # the nearer corner is the one before half an element further
        elif not nearest and align == "half_pixel":
            first -= parts  # from the left edge of an element to its centre
        common = gcd(2 * step, first, 2 * parts)
        self.old, self.new = old, new
        self.step, self.first, self.parts = 2 * step // common, first // common, 2 * parts // common

    def floor(self, i: Any) -> Any:
        """The old element at or before the place; with the smallest numbers that give the same quotient."""
        common = gcd(self.step, self.parts)
        return (self.step // common * i + self.first // common) // (self.parts // common)

    def fraction(self, i: Any, dtype: str) -> Any:
        """How far the place lies behind that element, from 0 to 1."""
        return f.cast((self.step * i + self.first) % self.parts, dtype) / self.parts

    @property
    def reach(self) -> tuple[int, int]:
        """The least and the greatest element before a place."""
        ends = [(self.step * i + self.first) // self.parts for i in (0, self.new - 1)]
        return ends[0], ends[1]


def _along(x: Tensor, axis: int, at: _Positions, method: str, name: str) -> Tensor:
    """``x`` resized along one axis."""
    kind = dtypes.to_inexact((x.dtype, False))[0]

    def read(i: Sequence[Expr], tap: int) -> Expr:
        place = at.floor(i[axis]) + tap
        low, high = at.reach
        place = f.maximum(place, 0) if low + tap < 0 else place
        place = f.minimum(place, at.old - 1) if high + tap >= at.old else place
        return x[(*i[:axis], place, *i[axis + 1 :])]

    def body(*i: Expr) -> Expr:
        if method == "nearest":
            return read(i, 0)
        share = at.fraction(i[axis], kind)
        return (1 - share) * read(i, 0) + share * read(i, 1)

    def weighted(*i: Expr) -> Expr:
        place = at.floor(i[axis]) + tap - 1
        element = x[(*i[:axis], place, *i[axis + 1 :])]
        return r.sum(weights[i[axis], tap] * element, axis=tap, where=(place >= 0) & (place < at.old))

    shape = [at.new if a == axis else e for a, e in enumerate(x.shape)]
    if method != "bicubic":
        return compute(shape, body, name)
    tap, weights = r.reduce_axis((0, 4), "tap"), _cubic_weights(at, kind)
    return compute(shape, weighted, name)


def _cubic_weights(at: _Positions, kind: str) -> Tensor:
    """Keys' weights of the four elements around each place, (new, 4): they add up to 1 over those that exist."""
    near = [lambda d: (1.5 * d - 2.5) * d * d + 1, lambda d: ((-0.5 * d + 2.5) * d - 4) * d + 2]

    def body(i: Expr, tap: Expr) -> Expr:
        share = at.fraction(i, kind)
        found = [near[1](1 + share), near[0](share), near[0](1 - share), near[1](2 - share)]
        inside = [(at.floor(i) + t >= 0) & (at.floor(i) + t < at.old) for t in (-1, 0, 1, 2)]
        kept = [f.select(c, w, 0.0) for c, w in zip(inside, found, strict=True)]
        own = kept[3]
        for t in (2, 1, 0):
            own = f.select(tap < t + 1, kept[t], own)
        return own / (kept[0] + kept[1] + kept[2] + kept[3])

    return compute((at.new, 4), body, "weights")
