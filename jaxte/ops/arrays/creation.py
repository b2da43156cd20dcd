"""Tensors of one value, and ranges."""

from __future__ import annotations

import math

import numpy as np

from jaxte.lang.checks import counted, described
from jaxte.lang.dtypes import DtypeLike
from jaxte.lang.errors import ArgumentError, ShapeError
from jaxte.lang.expr import Expr
from jaxte.lang.functions import cast, const
from jaxte.lang.functions.numbers import Number
from jaxte.ops._operator import ShapeLike, operator
from jaxte.tensors.compute import compute
from jaxte.tensors.tensor import Tensor


@operator
def full(shape: ShapeLike, fill_value: Tensor | float, dtype: DtypeLike | None = None) -> Tensor:
    """A tensor of one value: a number, or a Tensor or an array without axes.

    Of a number of Python it is a Tensor, as ``zeros`` and ``ones`` are: what an override returns for a gradient that is one value.

    Formula: ``y[i] = fill_value``

    Raises:
        ShapeError: a negative extent, or a fill value with axes.

    Source: ``jnp.full``.

    Example:
        >>> te.ops.full((2,), np.float32(1.5)).tolist()
        [1.5, 1.5]
    """
    if isinstance(fill_value, Tensor):
        if fill_value.ndim:
            raise ShapeError(
                f"te.ops.full with {fill_value.name}, which has {counted(fill_value.ndim, 'axis', 'axes')}; give a scalar"
            )
        value = fill_value[()] if dtype is None else cast(fill_value[()], dtype)
    elif isinstance(fill_value, Expr):
        value = fill_value if dtype is None else cast(fill_value, dtype)
    else:
        value = const(fill_value, dtype)
    return compute(shape, lambda *i: value, "full")


@operator
def zeros(shape: ShapeLike, dtype: DtypeLike = "float32") -> Tensor:
    """A tensor of zeros.

    Formula: ``y[i] = 0``

    Raises:
        ShapeError: a negative extent.

    Source: ``jnp.zeros``.

    Example:
        >>> te.ops.zeros((2, 3)).shape
        (2, 3)
    """
    return compute(shape, lambda *i: const(0, dtype), "zeros")


@operator
def ones(shape: ShapeLike, dtype: DtypeLike = "float32") -> Tensor:
    """A tensor of ones.

    Formula: ``y[i] = 1``

    Raises:
        ShapeError: a negative extent.

    Source: ``jnp.ones``.

    Example:
        >>> te.ops.ones((2, 3), "int32").dtype
        'int32'
    """
    return compute(shape, lambda *i: const(1, dtype), "ones")


@operator
def full_like(x: Tensor, fill_value: Number, dtype: DtypeLike | None = None) -> Tensor:
    """A tensor of one value in the shape of ``x``, and in its dtype unless another is given.

    Formula: ``y[i] = fill_value``

    Raises:
        DtypeError: an unknown dtype.

    Source: ``jnp.full_like``.

    Example:
        >>> te.ops.full_like(np.zeros(2, "int32"), 7).tolist()
        [7, 7]
    """
    return compute(x.shape, lambda *i: const(fill_value, dtype or x.dtype), "full_like")


@operator
def zeros_like(x: Tensor, dtype: DtypeLike | None = None) -> Tensor:
    """Zeros in the shape of ``x``.

    Formula: ``y[i] = 0``

    Raises:
        DtypeError: an unknown dtype.

    Source: ``jnp.zeros_like``.

    Example:
        >>> te.ops.zeros_like(np.ones(2, "int32")).tolist()
        [0, 0]
    """
    return compute(x.shape, lambda *i: const(0, dtype or x.dtype), "zeros_like")


@operator
def ones_like(x: Tensor, dtype: DtypeLike | None = None) -> Tensor:
    """Ones in the shape of ``x``.

    Formula: ``y[i] = 1``

    Raises:
        DtypeError: an unknown dtype.

    Source: ``jnp.ones_like``.

    Example:
        >>> te.ops.ones_like(np.zeros(2, "int32")).tolist()
        [1, 1]
    """
    return compute(x.shape, lambda *i: const(1, dtype or x.dtype), "ones_like")


@operator
def arange(
    start: float, stop: float | None = None, step: float = 1, dtype: DtypeLike | None = None
) -> Tensor:
    """The numbers from ``start`` (0 if it is the only argument) up to ``stop``, in steps.

    Formula: ``y[i] = start + step * i``

    Raises:
        ShapeError: a step of 0.
        ArgumentError: what is no number.

    Source: ``jnp.arange``.

    Example:
        >>> te.evaluate(te.ops.arange(1, 6, 2), {}).tolist()
        [1, 3, 5]
    """
    first, last = (0, start) if stop is None else (start, stop)
    for what, value in (("start", first), ("stop", last), ("step", step)):
        if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
            raise ArgumentError(f"te.ops.arange: {what} is {described(value)}; give a number")
    if step == 0:
        raise ShapeError("te.ops.arange: step=0; give a positive or negative step")
    count = max(math.ceil((last - first) / step), 0)
    whole = all(hasattr(value, "__index__") for value in (first, last, step))
    kind = dtype or ("int32" if whole else "float32")

    def body(i: Expr) -> Expr:
        return cast(first + step * i, kind) if whole else cast(first + step * cast(i, "float32"), kind)

    return compute((count,), body, "arange")
