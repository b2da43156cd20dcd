"""Putting tensors together and taking parts of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxte.lang.checks import counted
from jaxte.lang.errors import ShapeError
from jaxte.lang.expr import Expr, as_expr
from jaxte.lang.functions import select
from jaxte.ops._operator import normal_axes, normal_axis, operator, static_int
from jaxte.ops.arrays.reshape import reshape
from jaxte.tensors.compute import compute
from jaxte.tensors.shapes import Extent, same_extent, shape_text
from jaxte.tensors.tensor import Tensor


def put(index: Sequence[Any], axis: int, value: Any) -> tuple[Any, ...]:
    """``index`` with another entry at ``axis``."""
    return (*index[:axis], value, *index[axis + 1 :])


@operator
def concatenate(xs: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Tensors one after the other along ``axis``.

    Formula: ``y[i] = x0[i] if i < n0 else x1[i - n0]``

    Raises:
        ShapeError: nothing to put together, ranks or other extents that differ, an axis out of range.

    Source: ``jnp.concatenate``.

    Example:
        >>> te.ops.concatenate([np.float32([1]), np.float32([2, 3])]).tolist()
        [1.0, 2.0, 3.0]
    """
    parts = _same_rank(xs, "concatenate")
    along = normal_axis(axis, parts[0].ndim, "concatenate")
    for part in parts[1:]:
        for a, (extent, first) in enumerate(zip(part.shape, parts[0].shape, strict=True)):
            if a != along and as_expr(extent) is not as_expr(first):
                raise ShapeError(
                    f"te.ops.concatenate along axis {along}: {parts[0].name} {shape_text(parts[0].shape)} and "
                    f"{part.name} {shape_text(part.shape)} differ on axis {a}; the other axes must be equal"
                )
    ends: list[Any] = [parts[0].shape[along]]
    for part in parts[1:]:
        ends.append(ends[-1] + part.shape[along])

    def body(*i: Expr) -> Expr:
        reads = [
            part[put(i, along, i[along] - (end - part.shape[along]))]
            for part, end in zip(parts, ends, strict=True)
        ]
        value: Expr = reads[-1]
        for read, end in zip(reads[-2::-1], ends[-2::-1], strict=True):
            value = select(i[along] < end, read, value)
        return value

    return compute(put(parts[0].shape, along, ends[-1]), body, "concatenate")


def _same_rank(xs: Sequence[Tensor], name: str) -> list[Tensor]:
    parts = list(xs)
    if not parts:
        raise ShapeError(f"te.ops.{name} of nothing; give at least one tensor")
    for part in parts:
        if part.ndim != parts[0].ndim:
            raise ShapeError(
                f"te.ops.{name}: {parts[0].name} {shape_text(parts[0].shape)} and {part.name} {shape_text(part.shape)} "
                "have different numbers of axes"
            )
    return parts


@operator
def stack(xs: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Tensors of one shape along a new axis.

    Formula: ``y[k, i] = xs[k][i]``

    Raises:
        ShapeError: nothing to put together, shapes that differ, an axis out of range.

    Source: ``jnp.stack``.

    Example:
        >>> te.ops.stack([np.float32([1, 2]), np.float32([3, 4])]).tolist()
        [[1.0, 2.0], [3.0, 4.0]]
    """
    parts = _same_rank(xs, "stack")
    along = normal_axis(axis, parts[0].ndim + 1, "stack")
    for part in parts:
        if shape_text(part.shape) != shape_text(parts[0].shape):
            raise ShapeError(
                f"te.ops.stack: {parts[0].name} {shape_text(parts[0].shape)} and {part.name} {shape_text(part.shape)} "
                "differ; all shapes must be equal"
            )

    def body(*i: Expr) -> Expr:
        own = (*i[:along], *i[along + 1 :])
        value: Expr = parts[-1][own]
        for number in reversed(range(len(parts) - 1)):
            value = select(i[along] < number + 1, parts[number][own], value)
        return value

    shape = list(parts[0].shape)
    return compute([*shape[:along], len(parts), *shape[along:]], body, "stack")


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
        ShapeError: numbers of entries that differ, an axis out of range.

    Source: ``jax.lax.slice; Python's slices``.

    Example:
        >>> te.ops.strided_slice(np.arange(5), (4,), (0,), (-2,)).tolist()
        [4, 2]
    """
    chosen = range(len(begin)) if axes is None else [normal_axis(a, x.ndim, "strided_slice") for a in axes]
    steps = [1] * len(begin) if strides is None else strides
    if not len(begin) == len(end) == len(steps) == len(chosen) or len(begin) > x.ndim:
        raise ShapeError(
            f"te.ops.strided_slice of {x.name} {shape_text(x.shape)}: begin, end and strides have {len(begin)}, "
            f"{len(end)} and {len(steps)} entries; give one for each axis that is sliced"
        )
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


@operator
def tile(x: Tensor, reps: int | Sequence[int]) -> Tensor:
    """``x`` again and again, so many times along each axis, the last ones first as in NumPy.

    Formula: ``y[i] = x[i % n]``

    Raises:
        ShapeError: negative repetitions.

    Source: ``jnp.tile``.

    Example:
        >>> te.ops.tile(np.arange(2), 2).tolist()
        [0, 1, 0, 1]
    """
    times = [static_int(r, "te.ops.tile: reps") for r in ([reps] if hasattr(reps, "__index__") else reps)]  # type: ignore[union-attr]
    ndim = max(x.ndim, len(times))
    times = [1] * (ndim - len(times)) + times
    own = [1] * (ndim - x.ndim) + list(x.shape)
    shape = [e * t for e, t in zip(own, times, strict=True)]

    def body(*i: Expr) -> Expr:
        positions = [
            p if t == 1 else 0 if same_extent(e, 1) else p % e for p, e, t in zip(i, own, times, strict=True)
        ]
        return x[tuple(positions[ndim - x.ndim :])]

    return compute(shape, body, "tile")


@operator
def repeat(x: Tensor, repeats: int, axis: int) -> Tensor:
    """Each element of ``x`` so many times along ``axis``.

    Formula: ``y[i] = x[i // repeats]``

    Raises:
        ShapeError: negative repetitions, an axis out of range.

    Source: ``jnp.repeat``.

    Example:
        >>> te.ops.repeat(np.arange(2), 2, 0).tolist()
        [0, 0, 1, 1]
    """
    along, times = normal_axis(axis, x.ndim, "repeat"), static_int(repeats, "te.ops.repeat: repeats")
    shape = put(x.shape, along, x.shape[along] * times)
    return compute(shape, lambda *i: x[put(i, along, i[along] // max(times, 1))], "repeat")
