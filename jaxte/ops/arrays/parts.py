"""Parts of tensors, and their elements in another order along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxte.lang.checks import counted
from jaxte.lang.errors import ShapeError
from jaxte.lang.expr import Expr
from jaxte.ops._operator import normal_axes, normal_axis, operator, static_int
from jaxte.ops.arrays.joining import put
from jaxte.ops.arrays.reshape import reshape
from jaxte.tensors.compute import compute
from jaxte.tensors.shapes import Extent, shape_text
from jaxte.tensors.tensor import Tensor


@operator
def split(x: Tensor, indices_or_sections: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """Parts of ``x`` along ``axis``: so many equal ones, or those between the given positions.

    Formula: ``y_k[i] = x[start_k + i]``

    Raises:
        ShapeError: sections that do not divide the axis, an axis out of range.

    Source: ``jnp.split``.

    Example:
        >>> [y.tolist() for y in te.ops.split(np.float32([1, 2, 3, 4]), 2)]
        [[1.0, 2.0], [3.0, 4.0]]
    """
    along = normal_axis(axis, x.ndim, "split")
    extent = x.shape[along]
    if hasattr(indices_or_sections, "__index__"):
        sections = static_int(indices_or_sections, "te.ops.split: indices_or_sections", 1)
        if not isinstance(extent, int) or extent % sections:
            raise ShapeError(
                f"te.ops.split: axis {along} of {x.name} has {counted(extent, 'element', 'elements')}, which is not {sections} equal parts"
            )
        inner = [extent // sections * n for n in range(1, sections)]
    else:
        inner = [_position(p, extent) for p in indices_or_sections]  # type: ignore[union-attr]
    starts, ends = [0, *inner], [*inner, extent]
    return tuple(
        _part(x, along, lo, hi, f"split_{n}") for n, (lo, hi) in enumerate(zip(starts, ends, strict=True))
    )


def _position(position: Any, extent: Extent) -> int:
    """A position of a split as NumPy reads it: from the end if negative, cut at the ends."""
    if not isinstance(extent, int):
        return static_int(position, "te.ops.split: position on a symbolic axis")
    return slice(0, static_int(position, "te.ops.split: position", -extent)).indices(extent)[1]


def _part(x: Tensor, axis: int, lo: Any, hi: Any, name: str) -> Tensor:
    extent = hi - lo
    if isinstance(extent, int):
        extent = max(extent, 0)
    return compute(put(x.shape, axis, extent), lambda *i: x[put(i, axis, i[axis] + lo)], name)


@operator
def strided_slice(
    x: Tensor,
    begin: Sequence[int | None],
    end: Sequence[int | None],
    strides: Sequence[int | None] | None = None,
    axes: Sequence[int] | None = None,
) -> Tensor:
    """``x[begin:end:stride]`` on each of ``axes`` (the first ones by default), with Python's rules for slices.

    Formula: ``y[i] = x[begin + stride * i]``

    Raises:
        ShapeError: numbers of entries that differ, an axis out of range or named twice, a stride of 0.

    Source: ``jax.lax.slice; Python's slices``.

    Example:
        >>> te.ops.strided_slice(np.arange(5), (4,), (0,), (-2,)).tolist()
        [4, 2]
    """
    normal_axes(
        axes, x.ndim, "strided_slice"
    )  # Each is there, and none twice; their order is that of the entries.
    chosen = range(len(begin)) if axes is None else [normal_axis(a, x.ndim, "strided_slice") for a in axes]
    steps = [1] * len(begin) if strides is None else strides
    if not len(begin) == len(end) == len(steps) == len(chosen) or len(begin) > x.ndim:
        raise ShapeError(
            f"te.ops.strided_slice of {x.name} {shape_text(x.shape)}: begin, end and strides have {len(begin)}, "
            f"{len(end)} and {len(steps)} entries; give one for each axis that is sliced"
        )
    if 0 in steps:
        raise ShapeError(f"te.ops.strided_slice: strides={tuple(steps)}; give positive or negative strides")
    ranges: dict[int, range] = {}
    for a, lo, hi, step in zip(chosen, begin, end, steps, strict=True):
        extent = static_int(x.shape[a], f"te.ops.strided_slice: extent of axis {a} of {x.name}")
        ranges[a] = range(*slice(lo, hi, step).indices(extent))
    shape = [len(ranges[a]) if a in ranges else e for a, e in enumerate(x.shape)]

    def body(*i: Expr) -> Expr:
        return x[tuple(_at(ranges[a], p) if a in ranges else p for a, p in enumerate(i))]

    return compute(shape, body, "strided_slice")


def _at(range: range, position: Expr) -> Expr:
    return range.start + range.step * position


@operator
def flip(x: Tensor, axis: int | Sequence[int] | None = None) -> Tensor:
    """``x`` backwards along ``axis``, by default along all.

    Formula: ``y[i] = x[n - 1 - i]``

    Raises:
        ShapeError: an axis out of range or named twice.

    Source: ``jnp.flip``.

    Example:
        >>> te.ops.flip(np.arange(3)).tolist()
        [2, 1, 0]
    """
    backwards = normal_axes(axis, x.ndim, "flip")

    def body(*i: Expr) -> Expr:
        return x[tuple(x.shape[a] - 1 - p if a in backwards else p for a, p in enumerate(i))]

    return compute(x.shape, body, "flip")


@operator
def roll(x: Tensor, shift: int | Sequence[int], axis: int | Sequence[int] | None = None) -> Tensor:
    """``x`` turned round along ``axis``, by default all of it in row-major order: what leaves at one end comes in at the other.

    Args:
        shift: by how many elements, one number or one for each of ``axis``; negative ones turn the other way.
        axis: one axis or several; shifts of an axis that is named twice add up.

    Formula: ``y[i] = x[(i - shift) % n]``

    Raises:
        ShapeError: an axis out of range, or not one shift for each axis.

    Source: ``jnp.roll``.

    Example:
        >>> te.ops.roll(np.arange(4), 1).tolist()
        [3, 0, 1, 2]
    """
    if axis is None:
        return reshape(roll(reshape(x, -1), shift, 0), x.shape) if x.ndim != 1 else roll(x, shift, 0)
    along = [normal_axis(a, x.ndim, "roll") for a in ([axis] if hasattr(axis, "__index__") else axis)]
    shifts = [
        static_int(s, "te.ops.roll: shift", -(2**31))
        for s in ([shift] if hasattr(shift, "__index__") else shift)
    ]
    if len(shifts) not in (1, len(along)):
        raise ShapeError(
            f"te.ops.roll: {len(shifts)} shifts along {len(along)} axes; give one shift, or one for each axis"
        )
    total = [0] * x.ndim
    for a, s in zip(along, shifts * len(along) if len(shifts) == 1 else shifts, strict=True):
        total[a] += s
    return compute(
        x.shape,
        lambda *i: x[tuple((p - s) % e if s else p for p, s, e in zip(i, total, x.shape, strict=True))],
        "roll",
    )
