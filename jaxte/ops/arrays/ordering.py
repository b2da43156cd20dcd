"""The greatest elements: where they are is a function of arrays, what they are is read there."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxte.bridge.given.extern import extern
from jaxte.lang import dtypes
from jaxte.lang.errors import DtypeError, ShapeError
from jaxte.ops._operator import normal_axis, operator, static_int
from jaxte.ops.arrays.indexing import take_along_axis
from jaxte.tensors.tensor import Tensor


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
