"""Other orders of the same elements in memory: layouts with split axes, and blocks of pixels as channels."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from jaxte.lang.checks import counted
from jaxte.lang.errors import ShapeError
from jaxte.lang.expr import Expr, as_expr
from jaxte.ops._operator import operator, static_int
from jaxte.ops.images.windows import channel_and_spatial
from jaxte.sets.affine import normal
from jaxte.tensors.compute import compute
from jaxte.tensors.shapes import Extent, shape_text
from jaxte.tensors.tensor import Tensor

_AXIS = re.compile(r"([A-Z])|(\d+)([a-z])")


@dataclass(frozen=True, slots=True)
class _LayoutAxis:
    """An axis of a layout: ``C`` is what is left of the axis after its splits, ``16c`` a split of 16 elements."""

    letter: str
    factor: int | None


def _layout(text: str, what: str) -> list[_LayoutAxis]:
    """The axes of a layout such as NCHW16c."""
    found, end = [], 0
    while end < len(text):
        match = _AXIS.match(text, end)
        if match is None:
            raise ShapeError(
                f"te.ops.layout_transform: {what}={text!r}; a layout has capital letters, and small ones with the size of "
                "a split before them, as in NCHW16c"
            )
        capital, size, small = match.groups()
        found.append(_LayoutAxis((capital or small).upper(), None if capital else int(size)))
        end = match.end()
    capitals = [a.letter for a in found if a.factor is None]
    if len(set(capitals)) != len(capitals) or {a.letter for a in found} != set(capitals):
        raise ShapeError(
            f"te.ops.layout_transform: {what}={text!r}; each letter stands once as a capital, and small letters belong to one"
        )
    if any(a.factor == 0 for a in found):
        raise ShapeError(f"te.ops.layout_transform: {what}={text!r} splits by 0; give at least 1")
    return found


@operator
def layout_transform(x: Tensor, src_layout: str, dst_layout: str) -> Tensor:
    """``x`` with its axes in another order, and split or joined.

    Capital letters are axes, a number and a small letter the inner part of one: in ``NCHW16c`` channel ``c`` stands at
    ``[n, c // 16, h, w, c % 16]``. Any two layouts of the same letters can be transformed into each other.

    Args:
        src_layout: the layout of ``x``, such as "NCHW" or "OIHW4i16o".
        dst_layout: the one wanted.

    Formula: ``y[n, C, h, w, c] = x[n, 16 * C + c, h, w]`` for "NCHW" to "NCHW16c"

    Raises:
        ShapeError: text that is no layout, layouts of different letters, an axis that its splits do not divide.

    Source: relay ``layout_transform``.

    Example:
        >>> te.ops.layout_transform(te.placeholder((1, 32, 7, 7)), "NCHW", "NCHW16c").shape
        (1, 2, 7, 7, 16)
    """
    source, target = _layout(src_layout, "src_layout"), _layout(dst_layout, "dst_layout")
    if {a.letter for a in source} != {a.letter for a in target}:
        raise ShapeError(
            f"te.ops.layout_transform: src_layout={src_layout!r} and dst_layout={dst_layout!r} have different letters"
        )
    if len(source) != x.ndim:
        raise ShapeError(
            f"te.ops.layout_transform: src_layout={src_layout!r} has {len(source)} axes, but {x.name} "
            f"{shape_text(x.shape)} has {x.ndim}"
        )
    sizes = _whole_sizes(x, source, src_layout)
    shape = [a.factor or _outer(a.letter, sizes[a.letter], target, dst_layout) for a in target]

    def body(*index: Expr) -> Expr:
        places = list(zip(target, index, strict=True))
        whole: dict[str, Any] = {axis.letter: i for axis, i in places if axis.factor is None}
        for axis, i in places:
            if axis.factor is not None:
                whole[axis.letter] = whole[axis.letter] * axis.factor + i
        return x[tuple(_digits(source, whole))]

    return compute(shape, body, "layout_transform")


def _whole_sizes(x: Tensor, source: list[_LayoutAxis], text: str) -> dict[str, Extent]:
    """The extent of each letter before it was split."""
    sizes: dict[str, Any] = {}
    for axis, extent in zip(source, x.shape, strict=True):
        if axis.factor is not None and as_expr(extent) is not as_expr(axis.factor):
            raise ShapeError(
                f"te.ops.layout_transform: {x.name} {shape_text(x.shape)} has extent {extent} where "
                f"src_layout={text!r} has {axis.factor}{axis.letter.lower()}"
            )
        sizes[axis.letter] = sizes.get(axis.letter, 1) * extent
    return sizes


def _outer(letter: str, size: Extent, target: list[_LayoutAxis], text: str) -> Extent:
    """What is left of an axis after its splits."""
    inner = math.prod(a.factor for a in target if a.letter == letter and a.factor is not None)
    if inner == 1:
        return size
    whole = static_int(size, f"te.ops.layout_transform: extent of {letter}, which dst_layout={text!r} splits")
    if whole % inner:
        raise ShapeError(
            f"te.ops.layout_transform: {letter} has {counted(whole, 'element', 'elements')}, which dst_layout={text!r} splits by {inner}; "
            "the splits must divide it: pad the tensor first"
        )
    return whole // inner


def _digits(source: list[_LayoutAxis], whole: dict[str, Any]) -> list[Any]:
    """The indices of the axes of ``source``, from the position along each letter."""
    rest, found = dict(whole), {}
    for place in reversed(range(len(source))):
        axis = source[place]
        if axis.factor is not None:
            found[place] = normal(rest[axis.letter] % axis.factor)
            rest[axis.letter] = normal(rest[axis.letter] // axis.factor)
    return [found[p] if p in found else rest[a.letter] for p, a in enumerate(source)]


@operator
def depth_to_space(x: Tensor, block_size: int, mode: str = "DCR", layout: str = "NCHW") -> Tensor:
    """Channels as blocks of ``block_size`` by ``block_size`` pixels.

    Args:
        x: (N, C * block_size ** 2, H, W), or its layout "NHWC".
        mode: "DCR", the block is the slow part of the channel; "CRD", the fast one ("pixel shuffle").

    Formula: ``y[n, c, i, j] = x[n, (i % b * b + j % b) * C + c, i // b, j // b]``

    Raises:
        ShapeError: channels that ``block_size ** 2`` does not divide, an unknown mode or layout.

    Source: ONNX ``DepthToSpace``.

    Example:
        >>> te.ops.depth_to_space(np.float32([1, 2, 3, 4]).reshape(1, 4, 1, 1), 2).tolist()
        [[[[1.0, 2.0], [3.0, 4.0]]]]
    """
    channel, (rows, columns) = _image_axes(x, layout, mode, "depth_to_space")
    b = static_int(block_size, "te.ops.depth_to_space: block_size", 1)
    total = static_int(x.shape[channel], f"te.ops.depth_to_space: channels of {x.name}")
    if total % (b * b):
        raise ShapeError(
            f"te.ops.depth_to_space: {x.name} {shape_text(x.shape)} has {total} channels, which block_size={b} squared "
            "does not divide"
        )
    channels = total // (b * b)

    def body(*i: Expr) -> Expr:
        within = i[rows] % b * b + i[columns] % b
        at: dict[int, Any] = {rows: i[rows] // b, columns: i[columns] // b}
        at[channel] = within * channels + i[channel] if mode == "DCR" else i[channel] * (b * b) + within
        return x[tuple(at.get(a, p) for a, p in enumerate(i))]

    sizes: dict[int, Any] = {channel: channels, rows: x.shape[rows] * b, columns: x.shape[columns] * b}
    return compute([sizes.get(a, e) for a, e in enumerate(x.shape)], body, "depth_to_space")


@operator
def space_to_depth(x: Tensor, block_size: int, mode: str = "DCR", layout: str = "NCHW") -> Tensor:
    """Blocks of ``block_size`` by ``block_size`` pixels as channels: the inverse of :func:`depth_to_space`.

    Formula: ``y[n, (p * b + q) * C + c, i, j] = x[n, c, i * b + p, j * b + q]``

    Raises:
        ShapeError: rows or columns that ``block_size`` does not divide, an unknown mode or layout.

    Source: ONNX ``SpaceToDepth``.

    Example:
        >>> te.ops.space_to_depth(np.float32([[1, 2], [3, 4]]).reshape(1, 1, 2, 2), 2).ravel().tolist()
        [1.0, 2.0, 3.0, 4.0]
    """
    channel, spatial = _image_axes(x, layout, mode, "space_to_depth")
    b = static_int(block_size, "te.ops.space_to_depth: block_size", 1)
    for a in spatial:
        if static_int(x.shape[a], f"te.ops.space_to_depth: extent of axis {a} of {x.name}") % b:
            raise ShapeError(
                f"te.ops.space_to_depth: axis {a} of {x.name} {shape_text(x.shape)} is not whole blocks of {b}"
            )
    rows, columns = spatial
    channels = static_int(x.shape[channel], f"te.ops.space_to_depth: channels of {x.name}")

    def body(*i: Expr) -> Expr:
        c = i[channel]
        slow, inner = (
            (c // max(channels, 1), c % max(channels, 1)) if mode == "DCR" else (c % (b * b), c // (b * b))
        )
        at = {rows: i[rows] * b + slow // b, columns: i[columns] * b + slow % b, channel: inner}
        return x[tuple(at.get(a, p) for a, p in enumerate(i))]

    sizes: dict[int, Any] = {channel: channels * b * b}
    sizes |= {a: static_int(x.shape[a], "extent") // b for a in spatial}
    return compute([sizes.get(a, e) for a, e in enumerate(x.shape)], body, "space_to_depth")


def _image_axes(x: Tensor, layout: str, mode: str, name: str) -> tuple[int, list[int]]:
    channel, spatial = channel_and_spatial(layout, x.ndim, name)
    if len(spatial) != 2:
        raise ShapeError(f"te.ops.{name}: {x.name} {shape_text(x.shape)}; give images, with four axes")
    if mode not in ("DCR", "CRD"):
        raise ShapeError(f"te.ops.{name}: mode={mode!r}; the modes are 'DCR' and 'CRD'")
    return channel, spatial
