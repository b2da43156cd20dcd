"""Dropout: elements left out at random."""

from __future__ import annotations

from typing import Any, overload

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxte.bridge.given.extern import extern
from jaxte.lang import functions as f
from jaxte.lang.checks import counted, described, wants_arguments
from jaxte.lang.errors import ArgumentError, DtypeError
from jaxte.ops._operator import operator, pointwise, static_int
from jaxte.tensors.tensor import Tensor


@overload
def dropout(x: Tensor, rate: float, key: Tensor | None = None, mask: Tensor | None = None) -> Tensor: ...
@overload
def dropout(
    x: ArrayLike, rate: float, key: ArrayLike | None = None, mask: ArrayLike | None = None
) -> jax.Array: ...
@wants_arguments
def dropout(x: Any, rate: float, key: Any = None, mask: Any = None) -> Any:
    """Each element of ``x`` kept with probability ``1 - rate`` and scaled by its inverse, or else 0.

    The mask, or the key that draws one, is an input: the same one leaves out the same elements, forward and backward.

    Args:
        x: any shape.
        rate: the probability with which an element is left out, from 0 to below 1.
        key: a key of ``jax.random``, typed or as its data; or give ``mask``.
        mask: booleans that broadcast with ``x``, true where an element is kept.

    Formula: ``y[i] = x[i] / (1 - rate) if mask[i] else 0``

    Raises:
        ArgumentError: both or neither of ``key`` and ``mask``, a rate outside of 0 and 1.
        DtypeError: a mask that is not boolean, data of a key that are not uint32.
        ShapeError: a mask that does not broadcast with ``x``.

    Source: Srivastava et al., Dropout; ``equinox.nn.Dropout``.

    Example:
        >>> te.ops.dropout(np.float32([1, 2, 3]), 0.5, mask=np.array([True, False, True])).tolist()
        [2.0, 0.0, 6.0]
    """
    if (key is None) == (mask is None):
        raise ArgumentError("te.ops.dropout: give key=, of jax.random, or mask=, booleans; one of them")
    if mask is not None:
        return _masked(x, mask, rate)
    if isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return _drawn(x, jax.random.key_data(key), rate, str(jax.random.key_impl(key)))
    return _drawn(x, key, rate, None)


def _checked_rate(rate: Any) -> float:
    if isinstance(rate, bool) or not isinstance(rate, (int, float)) or not 0 <= rate < 1:
        raise ArgumentError(f"te.ops.dropout: rate is {described(rate)}; give a number from 0 to below 1")
    return float(rate)


def _of_mask(x: Tensor, mask: Tensor, rate: Any) -> Tensor:
    if mask.dtype != "bool":
        raise DtypeError(
            f"te.ops.dropout: {mask.name} has dtype {mask.dtype}; a mask is boolean, true where elements stay"
        )
    kept = 1.0 - _checked_rate(rate)
    return pointwise("dropout", lambda e, m: f.select(m, e / kept, 0), x, mask)


def _of_key(x: Tensor, key: Tensor, rate: Any, impl: Any) -> Tensor:
    if key.dtype != "uint32" or key.ndim != 1:
        raise DtypeError(
            f"te.ops.dropout: {key.name} has dtype {key.dtype} and {counted(key.ndim, 'axis', 'axes')}; give a key of jax.random"
        )
    kept = 1.0 - _checked_rate(rate)
    shape = tuple(static_int(e, f"te.ops.dropout: extents of {x.name} beside a key") for e in x.shape)

    def draw(data: Any) -> Any:
        typed = jax.random.wrap_key_data(data, impl=impl)
        return jax.random.bernoulli(typed, kept, shape)

    mask = extern(jax.ShapeDtypeStruct(shape, "bool"), draw, [key], "mask")
    return pointwise("dropout", lambda e, m: f.select(m, e / kept, 0), x, mask)


_of_mask.__name__ = _of_key.__name__ = "dropout"
_masked, _drawn = operator(_of_mask), operator(_of_key)
