"""Reading at positions that are data.

The greatest elements: where they are is a function of arrays, what they are is read there.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxte.bridge.given.extern import extern
from jaxte.lang import dtypes
from jaxte.lang import functions as f
from jaxte.lang.checks import counted
from jaxte.lang.dtypes import DtypeLike
from jaxte.lang.errors import DtypeError, ShapeError
from jaxte.lang.expr import Expr
from jaxte.lang.functions.numbers import Number
from jaxte.ops._operator import normal_axis, operator, static_int
from jaxte.ops.arrays.reshape import reshape
from jaxte.tensors.compute import compute
from jaxte.tensors.shapes import Extent, broadcast_shapes, same_extent
from jaxte.tensors.tensor import Tensor


@operator
def take(x: Tensor, indices: Tensor | int, axis: int | None = None, mode: str = "fill") -> Tensor:
    """The elements of ``x`` at ``indices`` along ``axis``, or of the flattened ``x``.

    Args:
        indices: integers, a number or a tensor; negative ones count from the end.
        mode: for indices out of range, "fill" gives NaN (0 for integers), "clip" takes the nearest element,
            negative indices being 0, "wrap" counts round and round.

    Formula: ``y[i, j, k] = x[i, indices[j], k]``

    Raises:
        ShapeError: an axis out of range, an unknown mode, a number that is no element.
        DtypeError: indices of floats.

    Source: ``jnp.take``.

    Example:
        >>> te.ops.take(np.float32([1, 2, 4]), np.array([2, -1, 0]), 0).tolist()
        [4.0, 4.0, 1.0]
    """
    if axis is None:
        return take(reshape(x, -1), indices, 0, mode)
    along = normal_axis(axis, x.ndim, "take")
    if not isinstance(indices, Tensor):
        number = static_int(indices, "te.ops.take: indices", -(2**31))
        return _take_one(x, number, along, mode)
    at = _resolved(indices, x.shape[along], mode, "take")

    def body(*i: Expr) -> Expr:
        inner = i[along : along + at.ndim]
        return x[(*i[:along], at[inner], *i[along + at.ndim :])]

    return compute((*x.shape[:along], *at.shape, *x.shape[along + 1 :]), body, "take")


def _take_one(x: Tensor, number: int, axis: int, mode: str) -> Tensor:
    extent = static_int(x.shape[axis], f"te.ops.take: extent of axis {axis} of {x.name}")
    if mode == "clip":
        number = min(max(number, 0), extent - 1)
    elif mode == "wrap":
        number %= max(extent, 1)
    elif number < 0:
        number += extent
    if not 0 <= number < extent:
        raise ShapeError(
            f"te.ops.take: there is no element {number} along axis {axis} of {x.name}, which has {extent}"
        )
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    return compute(shape, lambda *i: x[(*i[:axis], number, *i[axis:])], "take")


def _resolved(indices: Tensor, extent: Extent, mode: str, name: str) -> Tensor:
    """Indices with those out of range treated as ``mode`` says, and negative ones made positive."""
    if not dtypes.is_integer(indices.dtype):
        raise DtypeError(f"te.ops.{name}: {indices.name} has dtype {indices.dtype}; indices are integers")
    # the extent as a value: a symbolic one takes the dtype of the indices
    rules = {
        "fill": lambda e: f.select(e < 0, e + extent, e),
        "clip": lambda e: f.minimum(f.maximum(e, 0), extent - 1),
        "wrap": lambda e: e % extent,
    }
    if mode not in rules:
        raise ShapeError(f"te.ops.{name}: mode={mode!r}; the modes are 'fill', 'clip' and 'wrap'")
    if mode == "fill" and indices.dtype.startswith("u"):
        return indices
    return compute(indices.shape, lambda *i: rules[mode](indices[i]), "index")


@operator
def take_along_axis(x: Tensor, indices: Tensor, axis: int | None = -1, mode: str = "fill") -> Tensor:
    """The elements of ``x`` at ``indices`` along ``axis``, other indices for each position on the other axes.

    Args:
        indices: integers, of as many axes as ``x``; axes of one element in either are read by all positions of the other.
        axis: None for the flattened ``x`` and flat ``indices``.
        mode: for indices out of range, as in :func:`take`.

    Formula: ``y[i, j, k] = x[i, indices[i, j, k], k]``

    Raises:
        ShapeError: an axis out of range, other axes that do not fit, an unknown mode.
        DtypeError: indices of floats.

    Source: ``jnp.take_along_axis``.

    Example:
        >>> te.ops.take_along_axis(np.float32([[1, 2], [3, 4]]), np.array([[1], [0]]), 1).tolist()
        [[2.0], [3.0]]
    """
    if axis is None:
        return take_along_axis(reshape(x, -1), indices, 0, mode)
    along = normal_axis(axis, x.ndim, "take_along_axis")
    if indices.ndim != x.ndim:
        raise ShapeError(
            f"te.ops.take_along_axis: {indices.name} has {counted(indices.ndim, 'axis', 'axes')} and {x.name} has {x.ndim}; give as many"
        )
    at = _resolved(indices, x.shape[along], mode, "take_along_axis")
    others = [tuple(e for n, e in enumerate(t.shape) if n != along) for t in (x, at)]
    rest = broadcast_shapes(
        others, f"te.ops.take_along_axis of {x.name} and {indices.name} beside axis {along}"
    )

    def body(*i: Expr) -> Expr:
        here = [
            tuple(0 if same_extent(e, 1) else p for p, e in zip(i, t.shape, strict=True)) for t in (x, at)
        ]
        return x[
            (*here[0][:along], at[(*here[1][:along], i[along], *here[1][along + 1 :])], *here[0][along + 1 :])
        ]

    return compute((*rest[:along], at.shape[along], *rest[along:]), body, "take_along_axis")


@operator
def embedding(indices: Tensor, table: Tensor) -> Tensor:
    """The rows of ``table`` at ``indices``.

    Formula: ``y[i, k] = table[indices[i], k]``

    Raises:
        DtypeError: indices of floats.

    Source: ``torch.nn.Embedding``.

    Example:
        >>> te.ops.embedding(np.array([1, 0]), np.float32([[1, 2], [3, 4]])).tolist()
        [[3.0, 4.0], [1.0, 2.0]]
    """
    return take(table, indices, 0)


@operator
def gather_nd(x: Tensor, indices: Tensor, mode: str = "fill") -> Tensor:
    """The elements of ``x`` at the points ``indices[:, i...]``: axis 0 of ``indices`` runs over the first axes of ``x``.

    Args:
        mode: for indices out of range, as in :func:`take`.

    Formula: ``y[i, k] = x[indices[0, i], ..., indices[d - 1, i], k]``

    Raises:
        ShapeError: more indices than axes, an unknown mode.
        DtypeError: indices of floats.

    Source: relay ``gather_nd``.

    Example:
        >>> te.ops.gather_nd(np.float32([[1, 2], [3, 4]]), np.array([[0, 1], [1, 0]])).tolist()
        [2.0, 3.0]
    """
    depth = static_int(
        indices.shape[0] if indices.ndim else 0, f"te.ops.gather_nd: extent of axis 0 of {indices.name}", 1
    )
    if depth > x.ndim:
        raise ShapeError(
            f"te.ops.gather_nd: {indices.name} gives {depth} indices, but {x.name} has {counted(x.ndim, 'axis', 'axes')}"
        )
    rest = indices.shape[1:]
    columns = [compute(rest, lambda *i, n=n: indices[(n, *i)], f"{indices.name}_{n}") for n in range(depth)]
    at = [_resolved(c, x.shape[n], mode, "gather_nd") for n, c in enumerate(columns)]

    def body(*i: Expr) -> Expr:
        point, inner = i[: len(rest)], i[len(rest) :]
        return x[(*(index[point] for index in at), *inner)]

    return compute((*rest, *x.shape[depth:]), body, "gather_nd")


@operator
def one_hot(
    indices: Tensor,
    depth: int,
    on_value: Number = 1,
    off_value: Number = 0,
    axis: int = -1,
    dtype: DtypeLike = "float32",
) -> Tensor:
    """``on_value`` at the index, ``off_value`` elsewhere, along a new axis of ``depth`` elements.

    Formula: ``y[i, k] = on_value if indices[i] == k else off_value``

    Raises:
        ShapeError: a negative depth, an axis out of range.
        DtypeError: indices of floats.

    Source: ``jax.nn.one_hot``.

    Example:
        >>> te.ops.one_hot(np.array([1, 0]), 2).tolist()
        [[0.0, 1.0], [1.0, 0.0]]
    """
    along = normal_axis(axis, indices.ndim + 1, "one_hot")
    if not dtypes.is_integer(indices.dtype):
        raise DtypeError(f"te.ops.one_hot: {indices.name} has dtype {indices.dtype}; indices are integers")
    extent = static_int(depth, "te.ops.one_hot: depth")
    on, off = f.const(on_value, dtype), f.const(off_value, dtype)

    def body(*i: Expr) -> Expr:
        index = indices[(*i[:along], *i[along + 1 :])]
        return f.select(index == f.cast(i[along], indices.dtype), on, off)

    return compute((*indices.shape[:along], extent, *indices.shape[along:]), body, "one_hot")


class _Greatest:
    """The places of the ``k`` greatest elements along ``axis``, which is no index expression."""

    __name__ = "greatest"

    def __init__(self, k: int, axis: int) -> None:
        self.k, self.axis = k, axis

    def __call__(self, x: Any) -> Any:
        at = lax.top_k(jnp.moveaxis(x, self.axis, -1), self.k)[1]
        return jnp.moveaxis(at, -1, self.axis).astype("int32")


@operator
def top_k(x: Tensor, k: int, axis: int = -1) -> tuple[Tensor, Tensor]:
    """The ``k`` greatest elements along ``axis``, the greatest first, and where they are; of equal ones the first come first.

    The places are found by ``lax.top_k``, without sorting all; the elements are read at them, so that their adjoint adds to
    the places that were read.

    Returns:
        Values, of the dtype of ``x``, and places, int32, both with ``k`` elements along ``axis``.

    Formula: ``values[i, j] = x[i, indices[i, j]]``

    Raises:
        ShapeError: an axis out of range, more than there are elements, a tensor of a symbolic size.
        DtypeError: complex numbers.

    Source: ``lax.top_k``.

    Example:
        >>> values, indices = te.ops.top_k(np.float32([3, 1, 4, 1, 5]), 2)
        >>> values.tolist(), indices.tolist()
        ([5.0, 4.0], [4, 2])
    """
    if dtypes.is_complex(x.dtype):
        raise DtypeError(
            f"te.ops.top_k: {x.name} is complex, which has no order; give its real part or te.abs"
        )
    along = normal_axis(axis, x.ndim, "top_k")
    count = static_int(k, "te.ops.top_k: k")
    shape = [static_int(e, f"te.ops.top_k: extent of axis {n} of {x.name}") for n, e in enumerate(x.shape)]
    if count > shape[along]:
        raise ShapeError(f"te.ops.top_k: k={count}, but axis {along} of {x.name} has {shape[along]} elements")
    shape[along] = count
    places = extern(jax.ShapeDtypeStruct(tuple(shape), "int32"), _Greatest(count, along), [x], "places")
    return take_along_axis(x, places, along), places
