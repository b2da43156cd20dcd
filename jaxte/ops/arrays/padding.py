"""Elements around a tensor: zeros, its edge, or the tensor itself again."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxte.lang.checks import counted, described
from jaxte.lang.errors import ArgumentError, ShapeError
from jaxte.lang.expr import Expr, as_expr
from jaxte.lang.functions import const, select
from jaxte.lang.functions.numbers import Number
from jaxte.ops._operator import Widths, operator, static_int
from jaxte.ops.arrays.joining import put
from jaxte.tensors.compute import compute
from jaxte.tensors.tensor import Tensor


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
