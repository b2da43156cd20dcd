"""Reductions of the elements up to each position."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxte.lang.expr import Expr
from jaxte.ops._operator import normal_axis, operator
from jaxte.tensors import reductions as r
from jaxte.tensors.compute import compute
from jaxte.tensors.tensor import Tensor


def _cumulative(reduction: Callable[..., Any], x: Tensor, axis: int, name: str) -> Tensor:
    """``reduction`` of the elements up to each position along ``axis``."""
    along = normal_axis(axis, x.ndim, name)
    k = r.reduce_axis((0, x.shape[along]), "k")

    def body(*i: Expr) -> Expr:
        return reduction(x[(*i[:along], k, *i[along + 1 :])], axis=k, where=k <= i[along])

    return compute(x.shape, body, name)


@operator
def cumsum(x: Tensor, axis: int) -> Tensor:
    """The sums of the elements up to each position along ``axis``.

    Formula: ``y[i] = sum over k <= i of x[k]``

    Raises:
        ShapeError: an axis out of range.

    Source: ``jnp.cumsum``.

    Example:
        >>> te.ops.cumsum(np.float32([1, 2, 3]), 0).tolist()
        [1.0, 3.0, 6.0]
    """
    return _cumulative(r.sum, x, axis, "cumsum")


@operator
def cumprod(x: Tensor, axis: int) -> Tensor:
    """The products of the elements up to each position along ``axis``.

    Formula: ``y[i] = prod over k <= i of x[k]``

    Raises:
        ShapeError: an axis out of range.

    Source: ``jnp.cumprod``.

    Example:
        >>> te.ops.cumprod(np.float32([1, 2, 3]), 0).tolist()
        [1.0, 2.0, 6.0]
    """
    return _cumulative(r.prod, x, axis, "cumprod")


@operator
def cummax(x: Tensor, axis: int) -> Tensor:
    """The maxima of the elements up to each position along ``axis``; equal maxima share the gradient.

    Formula: ``y[i] = max over k <= i of x[k]``

    Raises:
        ShapeError: an axis out of range.

    Source: ``jax.lax.cummax``.

    Example:
        >>> te.ops.cummax(np.float32([1, 3, 2]), 0).tolist()
        [1.0, 3.0, 3.0]
    """
    return _cumulative(r.max, x, axis, "cummax")
