"""Reduction axes, the built-in reductions and those that a user makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from jaxte.lang import dtypes
from jaxte.lang.checks import one_of_type, wants_arguments
from jaxte.lang.errors import (
    OF_VALUES,
    ArgumentError,
    DefinitionError,
    DtypeError,
    IndexExpressionError,
    ShapeError,
)
from jaxte.lang.expr import TRUE, ZERO, Axis, Const, Expr, Reduce, Reducer, ScalarLike, as_expr, call, cast
from jaxte.lang.graphs import among
from jaxte.lang.operators import AND, NOT_EQUAL
from jaxte.lang.text import text
from jaxte.lang.walk import free_axes, reads_of, reductions
from jaxte.sets.affine import from_linear, linear, normal
from jaxte.sets.linear import Linear
from jaxte.tensors.reducers import arg_reducer, builtin_reducer
from jaxte.tensors.shapes import MAX_EXTENT, Extent
from jaxte.tensors.tensor import Tensor

Axes: TypeAlias = Axis | Sequence[Axis]
_ties = ("even", "first", "last", "all")


@wants_arguments
def reduce_axis(bounds: tuple[Extent, Extent] | Sequence[Extent], name: str | None = None) -> Axis:
    """An axis to reduce over, with the half-open range ``lo <= axis < hi``.

    Args:
        bounds: ``(lo, hi)``: integers, sizes, or affine expressions of other axes (a triangular range).
        name: label in printed formulas.

    Raises:
        ShapeError: a range that is negative, unbounded or too large.

    Example:
        >>> k = te.reduce_axis((0, 3), "k")
    """
    label = "k" if name is None else str(name)
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        pair = f"(0, {bounds})" if isinstance(bounds, (int, Expr)) else "(lo, hi)"
        pair = f"({bounds}, {name})" if isinstance(name, (int, Expr)) else pair
        raise ShapeError(
            f"reduce_axis {label}: give the range as a pair, {pair}, not {bounds!r}; te.axis('k') has the range that follows from its reads"
        )
    if name is not None:
        one_of_type(name, str, "the name of a te.reduce_axis", "a string")
    lo, hi = (_bound(b, label) for b in bounds)
    least, most = _extreme(lo, largest=False), _extreme(hi, largest=True)
    extent = normal(most - least)
    if isinstance(extent, Const) and int(extent.value) < 0:  # type: ignore[arg-type]
        raise ShapeError(f"reduce_axis {label} runs from {text(lo)} to {text(hi)}; its extent is negative")
    if isinstance(extent, Const) and int(extent.value) > MAX_EXTENT:  # type: ignore[arg-type]
        raise ShapeError(f"reduce_axis {label} has {text(extent)} points, which overflows int32")
    ends = (None if least is lo else lo, None if most is hi else hi)
    return Axis(label, least, most, reduction=True, ends=ends)


def _bound(value: Any, label: str) -> Expr:
    if isinstance(value, Expr):
        try:
            return normal(value)
        except IndexExpressionError as error:
            raise ShapeError(f"reduce_axis {label}: {error}") from None
    if (
        isinstance(value, (bool, type))
        or not hasattr(value, "__index__")
        or hasattr(value, "aval")
        or getattr(value, "ndim", None)
    ):
        raise ShapeError(
            f"reduce_axis {label}: {value!r} is no bound; give Python integers, te.var sizes or affine expressions "
            "of axes (a value traced by jax.jit has to be a static argument)"
        )
    return as_expr(int(value))


def _extreme(expr: Expr, largest: bool) -> Expr:
    """The least or greatest value of a bound over the ranges of the axes in it."""
    form = linear(expr)
    result = Linear({}, form.constant)
    for atom, coefficient in form.terms.items():
        if isinstance(atom, Axis):
            end = atom.hi - 1 if (coefficient > 0) == largest else atom.lo
            result = result + linear(end) * coefficient
        elif not free_axes(atom) and not reads_of(atom):
            result = result + Linear({atom: coefficient})
        else:
            raise ShapeError(f"`{text(expr)}` is no bound of a range: it must be affine in axes and sizes")
    return from_linear(result)


def make_reduce(reducer: Reducer, exprs: Sequence[Expr], axis: Any, where: Any = None) -> tuple[Expr, ...]:
    """The results of reducing ``exprs`` over ``axis``, after checking axes and condition."""
    axes = _check_axes(axis, reducer.label)
    condition = TRUE if where is None else as_expr(where)
    if condition.dtype != "bool":
        raise DtypeError(
            f"{reducer.label}: where=`{text(condition)}` has dtype {condition.dtype}; give a predicate"
        )
    for own in axes:
        condition = call(AND, own.condition, condition)
    for node in reductions(*exprs, condition):
        for own in node.axes:
            if among(own, axes):
                raise DefinitionError(
                    f"{reducer.label} over {own.name}: `{text(node)}` inside reduces over the same axis already; "
                    "make a new te.reduce_axis for each reduction"
                )
    return tuple(Reduce(reducer, exprs, axes, condition, n) for n in range(reducer.arity))


def _check_axes(axis: Any, what: str) -> tuple[Axis, ...]:
    axes = tuple(axis) if isinstance(axis, (list, tuple)) else (axis,)
    if not axes:
        raise DefinitionError(f"{what}: no axis to reduce over was given; pass axis=te.reduce_axis((lo, hi))")
    for own in axes:
        if not isinstance(own, Axis):
            pair = f"; {OF_VALUES[what]}" if what in OF_VALUES else ""
            raise DefinitionError(
                f"{what} over {own!r}: that is no axis; reduce over axes made by te.reduce_axis((lo, hi), name) or te.axis(name) "
                f"(te.ops has the reductions of whole tensors by axis number){pair}"
            )
        if not own.reduction:
            raise DefinitionError(
                f"{what} over {own.name}: that is an output axis of a compute; reduce over an axis made by "
                "te.reduce_axis((lo, hi), name)"
            )
    for n, own in enumerate(axes):
        if among(own, axes[:n]):
            raise DefinitionError(f"{what} over {own.name} twice; each reduction axis stands once")
    return axes


def axes_given(axis: Any, over: Any, what: str) -> Any:
    """The axes of a reduction, which is given as ``axis=`` or as ``over=``."""
    if axis is not None and over is not None:
        raise ArgumentError(f"te.{what}: axis= and over= are the same; give one of them")
    if axis is None and over is None:
        raise ArgumentError(
            f"te.{what}: no axis to reduce over was given; pass over=te.axis({'k'!r}), or axis=te.reduce_axis((lo, hi)); "
            "te.ops has the reductions of whole tensors and arrays"
        )
    return over if axis is None else axis


def operand_of(expr: Any, what: str) -> Expr:
    if isinstance(expr, Tensor):
        raise DefinitionError(
            f"te.{what} of the whole tensor {expr.name}: reduce an element over axes, as in "
            f"te.{what}({expr.name}[k], axis=k), or use te.ops.{what}({expr.name}, axis=0)"
        )
    return as_expr(expr)


def _builtin(name: str, expr: Any, axis: Any, where: Any, ties: str = "even") -> Expr:
    operand = operand_of(expr, name)
    if not isinstance(ties, str) or ties not in _ties:
        raise DefinitionError(f"{name}: ties={ties!r}; the rules are {', '.join(map(repr, _ties))}")
    if name in ("any", "all") and operand.dtype != "bool":
        operand = call(NOT_EQUAL, operand, 0)
    if name in ("max", "min") and dtypes.is_complex(operand.dtype):
        raise DtypeError(f"{name} of complex values is not defined; take te.real, te.imag or abs first")
    dtype = dtypes.sum_dtype(operand.dtype) if name in ("sum", "prod") else operand.dtype
    return make_reduce(builtin_reducer(name, dtype, ties), (cast(operand, dtype),), axis, where)[0]


@wants_arguments
def sum(
    expr: ScalarLike, axis: Axes | None = None, where: ScalarLike | None = None, *, over: Axes | None = None
) -> Expr:
    """``sum over axis of expr`` at the points where ``where`` holds; an empty sum is 0.

    Args:
        expr: scalar expression; booleans and small integers widen as in ``jnp.sum``.
        axis: one axis made by :func:`reduce_axis` or :func:`axis`, or several.
        where: predicate of the points that count.
        over: the same as ``axis``.

    Example:
        >>> k = te.reduce_axis((0, 8), "k")
        >>> Y = te.compute((4,), lambda i: te.sum(A[i, k] * x[k], axis=k))
    """
    return _builtin("sum", expr, axes_given(axis, over, "sum"), where)


@wants_arguments
def prod(
    expr: ScalarLike, axis: Axes | None = None, where: ScalarLike | None = None, *, over: Axes | None = None
) -> Expr:
    """The product over ``axis``; an empty product is 1. Its adjoint is exact at zeros. See :func:`sum`."""
    return _builtin("prod", expr, axes_given(axis, over, "prod"), where)


@wants_arguments
def max(
    expr: ScalarLike,
    axis: Axes | None = None,
    where: ScalarLike | None = None,
    ties: str = "even",
    *,
    over: Axes | None = None,
) -> Expr:
    """The maximum over ``axis``. It is NaN if one element is, and -inf or the least integer where there are no elements.

    Args:
        ties: how the derivative is shared among k equal maxima: "even" (1/k each, as ``jnp.max``),
            "first" or "last" in the order of the axes (as pooling), or "all" (1 each). See also :func:`sum`.
    """
    return _builtin("max", expr, axes_given(axis, over, "max"), where, ties)


@wants_arguments
def min(
    expr: ScalarLike,
    axis: Axes | None = None,
    where: ScalarLike | None = None,
    ties: str = "even",
    *,
    over: Axes | None = None,
) -> Expr:
    """The minimum over ``axis``. It is inf or the largest integer where there are no elements. See :func:`max`."""
    return _builtin("min", expr, axes_given(axis, over, "min"), where, ties)


@wants_arguments
def any(
    expr: ScalarLike, axis: Axes | None = None, where: ScalarLike | None = None, *, over: Axes | None = None
) -> Expr:
    """Whether ``expr`` holds at one point at least. See :func:`sum`."""
    return _builtin("any", expr, axes_given(axis, over, "any"), where)


@wants_arguments
def all(
    expr: ScalarLike, axis: Axes | None = None, where: ScalarLike | None = None, *, over: Axes | None = None
) -> Expr:
    """Whether ``expr`` holds at every point. See :func:`sum`."""
    return _builtin("all", expr, axes_given(axis, over, "all"), where)


def position_of(axes: Sequence[Axis]) -> Expr:
    """Row-major position of a point of a reduction over ``axes``, from 0."""
    position: Expr = as_expr(0)
    for axis in axes:
        position = position * axis.extent + (axis - axis.lo)
    return position


def _arg(name: str, expr: Any, axis: Any, where: Any) -> Expr:
    operand = operand_of(expr, name)
    if dtypes.is_complex(operand.dtype):
        raise DtypeError(f"{name} of complex values is not defined; take te.real, te.imag or abs first")
    axes = _check_axes(axis, name)
    for own in axes:
        if own.extent is ZERO:
            raise ShapeError(
                f"{name} over {own.name}: its range from {text(own.lo)} to {text(own.hi)} is empty, and nothing has no "
                f"position; give it an element, or take te.{name[3:]}, which has a value of nothing"
            )
    exprs = (cast(position_of(axes), "int32"), cast(operand, operand.dtype))
    return make_reduce(arg_reducer(name, operand.dtype), exprs, axis, where)[0]


@wants_arguments
def argmax(
    expr: ScalarLike, axis: Axes | None = None, where: ScalarLike | None = None, *, over: Axes | None = None
) -> Expr:
    """The position (int32, from 0, row-major over several axes) of the first maximum. See :func:`sum`.

    Where ``where`` leaves no point, it is 2147483647.

    Raises:
        ShapeError: an axis without elements.
    """
    return _arg("argmax", expr, axes_given(axis, over, "argmax"), where)


@wants_arguments
def argmin(
    expr: ScalarLike, axis: Axes | None = None, where: ScalarLike | None = None, *, over: Axes | None = None
) -> Expr:
    """The position of the first minimum. See :func:`argmax`."""
    return _arg("argmin", expr, axes_given(axis, over, "argmin"), where)
