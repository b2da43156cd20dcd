"""Reductions along axes, and the places of extrema.

Reductions of the elements up to each position.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxte.lang import functions as f
from jaxte.lang.errors import DefinitionError
from jaxte.lang.expr import Expr
from jaxte.ops._operator import normal_axes, normal_axis, operator, pointwise
from jaxte.tensors import reductions as r
from jaxte.tensors.compute import compute
from jaxte.tensors.shapes import Extent, same_extent
from jaxte.tensors.tensor import Tensor

Axes = int | tuple[int, ...] | None


def reduce(
    reduction: Callable[..., Any],
    x: Tensor,
    axis: Axes,
    keepdims: bool,
    name: str,
    exclude: bool = False,
    of: Callable[[Expr], Any] = lambda e: e,
) -> Tensor:
    """``reduction`` of ``of(element)`` along ``axis``, or with ``exclude`` along all the other axes."""
    reduced = reduced_axes(axis, x.ndim, exclude, name)
    if not reduced:
        return pointwise(name, lambda e: f.cast(of(e), reduction(of(e), axis=r.reduce_axis((0, 1))).dtype), x)
    own = {a: r.reduce_axis((0, x.shape[a]), f"k{a}") for a in reduced}
    shape = [1 if a in own else e for a, e in enumerate(x.shape) if keepdims or a not in own]

    def body(*index: Expr) -> Expr:
        kept = iter(index)
        outer = {a: next(kept) for a in range(x.ndim) if keepdims or a not in own}
        return reduction(of(x[tuple((outer | own)[a] for a in range(x.ndim))]), axis=list(own.values()))

    return compute(shape, body, name)


def count(x: Tensor, axis: Axes, name: str) -> Extent:
    """How many elements lie along ``axis``."""
    number: Any = 1
    for a in normal_axes(axis, x.ndim, name):
        number = number * x.shape[a]
    return number


def reduced_axes(axis: Axes, ndim: int, exclude: bool, name: str) -> tuple[int, ...]:
    """``axis`` as positions in order, or all the other ones."""
    named = normal_axes(axis, ndim, name)
    return tuple(a for a in range(ndim) if a not in named) if exclude else named


@operator
def sum(x: Tensor, axis: Axes = None, keepdims: bool = False, exclude: bool = False) -> Tensor:
    """The sum along ``axis`` (all axes by default; all others with ``exclude``).

    Formula: ``y[i] = sum over k of x[i, k]``

    Raises:
        ShapeError: an axis out of range or named twice.

    Source: ``jnp.sum``.

    Example:
        >>> te.ops.sum(np.float32([[1, 2], [3, 4]]), 0).tolist()
        [4.0, 6.0]
    """
    return reduce(r.sum, x, axis, keepdims, "sum", exclude)


@operator
def prod(x: Tensor, axis: Axes = None, keepdims: bool = False, exclude: bool = False) -> Tensor:
    """The product along ``axis``.

    Formula: ``y[i] = prod over k of x[i, k]``

    Raises:
        ShapeError: an axis out of range or named twice.

    Source: ``jnp.prod``.

    Example:
        >>> te.ops.prod(np.float32([2, 3])).tolist()
        6.0
    """
    return reduce(r.prod, x, axis, keepdims, "prod", exclude)


@operator
def max(x: Tensor, axis: Axes = None, keepdims: bool = False, exclude: bool = False) -> Tensor:
    """The maximum along ``axis``; equal maxima share the gradient.

    Formula: ``y[i] = max over k of x[i, k]``

    Raises:
        ShapeError: an axis out of range or named twice.

    Source: ``jnp.max``.

    Example:
        >>> te.ops.max(np.float32([[1, 2], [3, 4]]), 0, exclude=True).tolist()
        [2.0, 4.0]
    """
    return reduce(r.max, x, axis, keepdims, "max", exclude)


@operator
def min(x: Tensor, axis: Axes = None, keepdims: bool = False, exclude: bool = False) -> Tensor:
    """The minimum along ``axis``; equal minima share the gradient.

    Formula: ``y[i] = min over k of x[i, k]``

    Raises:
        ShapeError: an axis out of range or named twice.

    Source: ``jnp.min``.

    Example:
        >>> te.ops.min(np.float32([2, 3])).tolist()
        2.0
    """
    return reduce(r.min, x, axis, keepdims, "min", exclude)


@operator
def any(x: Tensor, axis: Axes = None, keepdims: bool = False, exclude: bool = False) -> Tensor:
    """Whether one of the elements along ``axis`` is true (not 0).

    Formula: ``y[i] = any over k of x[i, k]``

    Raises:
        ShapeError: an axis out of range or named twice.

    Source: ``jnp.any``.

    Example:
        >>> te.ops.any(np.array([False, True])).tolist()
        True
    """
    return reduce(r.any, x, axis, keepdims, "any", exclude)


@operator
def all(x: Tensor, axis: Axes = None, keepdims: bool = False, exclude: bool = False) -> Tensor:
    """Whether all elements along ``axis`` are true (not 0).

    Formula: ``y[i] = all over k of x[i, k]``

    Raises:
        ShapeError: an axis out of range or named twice.

    Source: ``jnp.all``.

    Example:
        >>> te.ops.all(np.array([False, True])).tolist()
        False
    """
    return reduce(r.all, x, axis, keepdims, "all", exclude)


def _position(
    reduction: Callable[..., Any], x: Tensor, axis: Axes, keepdims: bool, exclude: bool, name: str
) -> Tensor:
    axes = reduced_axes(axis, x.ndim, exclude, name)
    if not axes:
        return compute(x.shape, lambda *i: f.const(0, "int32"), name)
    for a in axes:
        if same_extent(x.shape[a], 0):
            raise DefinitionError(
                f"te.ops.{name} of {x.name} along an axis of extent 0: there is no such element"
            )
    return reduce(reduction, x, axes, keepdims, name)


@operator
def argmax(x: Tensor, axis: Axes = None, keepdims: bool = False, exclude: bool = False) -> Tensor:
    """The position of the first maximum along ``axis``, in the flattened tensor by default.

    Formula: ``y[i] = the k of the maximum of x[i, k]``

    Raises:
        ShapeError: an axis out of range.
        DefinitionError: an axis of extent 0.

    Source: ``jnp.argmax``.

    Example:
        >>> te.ops.argmax(np.float32([[1, 2], [4, 3]]), 1).tolist()
        [1, 0]
    """
    return _position(r.argmax, x, axis, keepdims, exclude, "argmax")


@operator
def argmin(x: Tensor, axis: Axes = None, keepdims: bool = False, exclude: bool = False) -> Tensor:
    """The position of the first minimum along ``axis``, in the flattened tensor by default.

    Formula: ``y[i] = the k of the minimum of x[i, k]``

    Raises:
        ShapeError: an axis out of range.
        DefinitionError: an axis of extent 0.

    Source: ``jnp.argmin``.

    Example:
        >>> te.ops.argmin(np.float32([2, 1, 1])).tolist()
        1
    """
    return _position(r.argmin, x, axis, keepdims, exclude, "argmin")


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
