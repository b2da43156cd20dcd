"""Reductions that are made of others: means, norms, the stable logarithm of a sum of exponentials, and softmax; and those that a user makes.

What is reduced twice is reduced over axes of the same ranges: the largest element, which keeps exponentials from overflow, runs over all
elements for each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxte.lang import dtypes, functions
from jaxte.lang.checks import described, wants_arguments
from jaxte.lang.errors import ArgumentError, DefinitionError, DtypeError
from jaxte.lang.expr import TRUE, Axis, Expr, ScalarLike, as_expr, call, cast
from jaxte.lang.graphs import among
from jaxte.lang.operators import AND
from jaxte.lang.walk import free_axes, substitute
from jaxte.tensors import reductions
from jaxte.tensors.bodies.open_ranges import axis_again
from jaxte.tensors.reductions import Axes, axes_given, operand_of


@wants_arguments
def mean(
    expr: ScalarLike, axis: Axes | None = None, where: ScalarLike | None = None, *, over: Axes | None = None
) -> Expr:
    """``sum over axis of expr`` divided by the number of points where ``where`` holds, NaN where it holds nowhere. See :func:`sum`.

    Example:
        >>> k = te.axis("k")
        >>> te.compute(lambda i: A[i, k] - te.mean(A[i, k], over=k))
    """
    value, axes, held = _operands(expr, axes_given(axis, over, "mean"), where, "mean")
    if held is TRUE and all(a.condition is TRUE for a in axes):
        number: Expr = as_expr(1)
        for own in axes:
            number = number * own.extent
    else:
        number = reductions.sum(1, axis=list(axes), where=held)
    return reductions.sum(value, axis=list(axes), where=held) / number


@wants_arguments
def variance(
    expr: ScalarLike, axis: Axes | None = None, where: ScalarLike | None = None, *, over: Axes | None = None
) -> Expr:
    """The mean square of the distance from the mean over ``axis``, as ``jnp.var``. See :func:`mean`.

    Formula: ``(sum over k of abs(x[k] - m) ** 2) / n`` with ``m = (sum over k of x[k]) / n``

    Example:
        >>> k = te.axis("k")
        >>> te.compute(lambda i: te.variance(A[i, k], over=k))
    """
    value, axes, held = _operands(expr, axes_given(axis, over, "variance"), where, "variance")
    again, (other, there) = _elsewhere(axes, value, held)
    return mean(_squared(value - mean(other, axis=again, where=there)), axis=list(axes), where=held)


@wants_arguments
def std(
    expr: ScalarLike, axis: Axes | None = None, where: ScalarLike | None = None, *, over: Axes | None = None
) -> Expr:
    """The square root of :func:`variance`. Its slope where all elements are equal is NaN, as that of ``jnp.std`` is."""
    return functions.sqrt(variance(expr, axes_given(axis, over, "std"), where))


def _squared(value: Expr) -> Expr:
    return functions.real(value) ** 2 + functions.imag(value) ** 2 if _is_complex(value) else value**2


@wants_arguments
def logsumexp(
    expr: ScalarLike, axis: Axes | None = None, where: ScalarLike | None = None, *, over: Axes | None = None
) -> Expr:
    """``log(sum over axis of exp(expr))``, without overflow, -inf where there are no elements. See :func:`sum`.

    Formula: ``log(sum over k of exp(x[k] - m)) + m`` with ``m = max over k of x[k]``

    Example:
        >>> k = te.axis("k")
        >>> te.compute(lambda i: te.logsumexp(A[i, k], over=k))
    """
    value, axes, held = _operands(expr, axes_given(axis, over, "logsumexp"), where, "logsumexp")
    shift = _largest(value, axes, held)
    return functions.log(reductions.sum(functions.exp(value - shift), axis=list(axes), where=held)) + shift


@wants_arguments
def softmax(
    expr: ScalarLike, axis: Axes | None = None, where: ScalarLike | None = None, *, over: Axes | None = None
) -> Expr:
    """``exp(expr) / sum over axis of exp(expr)``, without overflow. It is 0 at the points where ``where`` does not hold.

    It keeps its axis, which may be an axis of the result, or one that a reduction around it runs over.

    Args:
        expr: scalar expression.
        axis: one axis, or several, of the result or made by :func:`reduce_axis` or :func:`axis`.
        where: predicate of the points that count.
        over: the same as ``axis``.

    Example:
        >>> weights = te.compute((4, 6), lambda i, k: te.softmax(A[i, k], over=k))
        >>> k = te.reduce_axis((0, 6), "k")
        >>> attended = te.compute((4, 3), lambda i, c: te.sum(te.softmax(A[i, k], over=k) * V[k, c], over=k))
    """
    kept = axes_given(axis, over, "softmax")
    listed = tuple(kept) if isinstance(kept, (list, tuple)) else (kept,)
    if not listed or not all(isinstance(own, Axis) for own in listed):
        raise DefinitionError(
            f"softmax over {described(kept)}: give an axis of the tensor, or one of te.reduce_axis or te.axis "
            "(te.ops.softmax is that of a whole tensor by the number of its axis)"
        )
    value, axes, held = _operands(expr, listed, where, "softmax")
    if missing := [own.name for own in axes if not among(own, free_axes(value))]:
        raise DefinitionError(f"softmax over {missing[0]}: the expression does not depend on {missing[0]}")
    again, (other, there) = _elsewhere(axes, value, held)
    largest = functions.stop_gradient(reductions.max(other, axis=again, where=there))
    shifted = functions.exp(value - largest)
    again, (other, there) = _elsewhere(axes, shifted, held)
    share = shifted / reductions.sum(other, axis=again, where=there)
    return share if held is TRUE else functions.select(held, share, 0)


@wants_arguments
def norm(
    expr: ScalarLike,
    axis: Axes | None = None,
    where: ScalarLike | None = None,
    ord: float = 2,
    *,
    over: Axes | None = None,
) -> Expr:
    """The norm of a vector, ``(sum over axis of abs(expr) ** ord) ** (1 / ord)``. See :func:`sum`.

    Args:
        ord: 2 for the Euclidean norm, 1 for the sum of absolute values, ``inf`` for the largest one, ``-inf`` for the smallest, or
            another number. The slope of the Euclidean norm at 0 is NaN, as that of ``jnp.linalg.norm`` is.

    Example:
        >>> k = te.axis("k")
        >>> te.compute(lambda i, j: A[i, j] / te.norm(A[i, k], over=k))
    """
    if isinstance(ord, (bool, str)) or not isinstance(ord, (int, float)) or ord == 0 or ord != ord:
        raise ArgumentError(f"te.norm: ord is {described(ord)}; give 1, 2, inf, -inf or another number but 0")
    value, axes, held = _operands(expr, axes_given(axis, over, "norm"), where, "norm")
    own = list(axes)
    if ord == 2:
        return functions.sqrt(reductions.sum(_squared(value), axis=own, where=held))
    size = functions.abs(value)
    if ord in (float("inf"), float("-inf")):
        extreme = reductions.max if ord > 0 else reductions.min
        if ord > 0 and held is not TRUE:  # the largest of nothing is no -inf, where sizes are compared
            return functions.maximum(extreme(size, axis=own, where=held), 0)
        return extreme(size, axis=own, where=held)
    if ord == 1:
        return reductions.sum(size, axis=own, where=held)
    return reductions.sum(size**ord, axis=own, where=held) ** (1 / ord)


def _operands(expr: Any, axis: Any, where: Any, name: str) -> tuple[Expr, tuple[Axis, ...], Expr]:
    """The value as a float, the axes, and the condition."""
    value = operand_of(expr, name)
    axes = tuple(axis) if isinstance(axis, (list, tuple)) else (axis,)
    held = TRUE if where is None else as_expr(where)
    if name in ("softmax", "logsumexp") and _is_complex(value):
        raise DtypeError(f"te.{name} of complex values is not defined; take te.real, te.imag or te.abs first")
    return cast(value, dtypes.to_inexact((value.dtype, value.weak))[0]), axes, held


def _is_complex(value: Expr) -> bool:
    return dtypes.is_complex(value.dtype)


def _elsewhere(axes: Sequence[Axis], *exprs: Expr) -> tuple[list[Axis], list[Expr]]:
    """``exprs`` at other points of ``axes``: with new axes of the same ranges to reduce over."""
    again = [axis_again(own) for own in axes]
    table = dict(zip(axes, again, strict=True))
    return again, [substitute(expr, table) for expr in exprs]


def _largest(value: Expr, axes: Sequence[Axis], held: Expr) -> Expr:
    """The largest element, 0 where it is not finite; exponentials are shifted by it, which no result depends on."""
    for own in axes:
        held = call(AND, own.condition, held) if isinstance(own, Axis) else held
    again, (other, there) = _elsewhere(axes, value, held)
    largest = reductions.max(other, axis=again, where=there)
    return functions.stop_gradient(functions.select(functions.isfinite(largest), largest, 0))
