"""Putting tensors together, repeating them, and what stands around one: zeros, its edge, or the tensor itself again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxte.lang.checks import counted, described
from jaxte.lang.errors import ArgumentError, ShapeError
from jaxte.lang.expr import Expr, as_expr
from jaxte.lang.functions import const, select
from jaxte.lang.functions.numbers import Number
from jaxte.ops._operator import Widths, normal_axis, operator, static_int
from jaxte.tensors.compute import compute
from jaxte.tensors.shapes import same_extent, shape_text
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


@operator
def pad(x: Tensor, pad_width: Widths, mode: str = "constant", constant_values: Number = 0) -> Tensor:
    """``x`` with elements before and after each axis.

    Args:
        pad_width: ``(before, after)`` for each axis, one such pair or one number for all.
        mode: "constant", "edge", "reflect", "symmetric" or "wrap", as in NumPy.

    Formula: ``y[i] = x[i - before] if before <= i < before + n else constant_values``

    Raises:
        ShapeError: an unknown mode, widths that are no pairs, nothing to mirror.

    Source: ``jnp.pad``.

    Example:
        >>> te.ops.pad(np.arange(3), (2, 1), "reflect").tolist()
        [2, 1, 0, 1, 2, 1]
    """
    widths = _widths(pad_width, x.ndim)
    if mode == "constant":
        return _pad_constant(x, widths, constant_values)
    if mode not in ("edge", "reflect", "symmetric", "wrap"):
        raise ShapeError(
            f"te.ops.pad: mode={mode!r}; the modes are 'constant', 'edge', 'reflect', 'symmetric' and 'wrap'"
        )
    result = x
    for axis, (before, after) in enumerate(widths):
        while before or after:
            # a mirror shows no more than what is before it; what it shows is mirrored again
            most = _mirrored(result, axis, mode)
            now = (before, after) if most is None else (min(before, most), min(after, most))
            result = _pad_axis(result, axis, *now, mode)
            before, after = before - now[0], after - now[1]
    return result


def _mirrored(x: Tensor, axis: int, mode: str) -> int | None:
    """How many elements can be mirrored at an end of an axis; None for other modes."""
    if mode not in ("reflect", "symmetric"):
        return None
    extent = static_int(x.shape[axis], f"te.ops.pad: extent of axis {axis} of {x.name} with mode {mode!r}", 1)
    return max(extent - 1, 1) if mode == "reflect" else extent


def _widths(pad_width: Any, ndim: int) -> list[tuple[int, int]]:
    if not isinstance(pad_width, (int, np.integer, list, tuple, np.ndarray)):
        raise ArgumentError(
            f"te.ops.pad: pad_width is {described(pad_width)}; give an integer, or a pair for each axis"
        )
    if hasattr(pad_width, "__index__"):
        pad_width = [(pad_width, pad_width)] * ndim
    pairs = list(pad_width)
    if len(pairs) == 2 and all(hasattr(p, "__index__") for p in pairs):
        pairs = [tuple(pairs)] * ndim
    if len(pairs) != ndim or any(len(p) != 2 for p in pairs):
        raise ShapeError(
            f"te.ops.pad: pad_width={pad_width!r}; give (before, after) for each of {counted(ndim, 'axis', 'axes')}"
        )
    return [(static_int(b, "te.ops.pad: before"), static_int(a, "te.ops.pad: after")) for b, a in pairs]


def _pad_constant(x: Tensor, widths: list[tuple[int, int]], value: Any) -> Tensor:
    shape = [before + e + after for e, (before, after) in zip(x.shape, widths, strict=True)]

    def body(*i: Expr) -> Expr:
        inside: Any = as_expr(True)
        for p, e, (before, after) in zip(i, x.shape, widths, strict=True):
            inside = inside & (p >= before) if before else inside
            inside = inside & (p < e + before) if after else inside
        read = x[tuple(p - before for p, (before, _) in zip(i, widths, strict=True))]
        return select(inside, read, const(value, x.dtype))

    return compute(shape, body, "pad")


def _pad_axis(x: Tensor, axis: int, before: int, after: int, mode: str) -> Tensor:
    extent = static_int(x.shape[axis], f"te.ops.pad: extent of axis {axis} of {x.name} with mode {mode!r}", 1)

    def body(*i: Expr) -> Expr:
        position = i[axis] - before
        if mode == "wrap" and max(before, after) > extent:
            return x[put(i, axis, position % extent)]
        first, last = _ends(position, extent, mode)
        value: Expr = x[put(i, axis, position)]
        if after:
            value = select(i[axis] < extent + before, value, x[put(i, axis, last)])
        return select(i[axis] < before, x[put(i, axis, first)], value) if before else value

    return compute(put(x.shape, axis, before + extent + after), body, f"pad_{mode}")


def _ends(position: Any, extent: int, mode: str) -> tuple[Any, Any]:
    """The elements that stand at a position before and at one after an axis."""
    if mode == "edge" or extent == 1:
        return 0, extent - 1
    if mode == "wrap":
        return position + extent, position - extent
    if mode == "symmetric":
        return -1 - position, 2 * extent - 1 - position
    return -position, 2 * (extent - 1) - position
