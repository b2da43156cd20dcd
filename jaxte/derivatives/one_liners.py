"""Tensors that pass values on as they are and their gradients otherwise: through a rounding, scaled, reversed, clipped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jaxte.derivatives.overrides import Override, check_dependencies
from jaxte.lang.checks import one_of_type, wants_arguments
from jaxte.lang.errors import ArgumentError, DtypeError, ShapeError
from jaxte.lang.expr import Read
from jaxte.lang.functions import clip
from jaxte.lang.operators import AnnotatedArray
from jaxte.tensors.shapes import same_extent, shape_text
from jaxte.tensors.tensor import Compute, Tensor, axis_names_of, new_axes


@wants_arguments
def straight_through(value: Tensor | AnnotatedArray, through: Tensor | AnnotatedArray) -> Tensor:
    """``value`` with the derivative of ``through``: the straight-through estimator, as for a rounding.

    Args:
        value: what is computed.
        through: a tensor of the same shape and dtype that ``value`` does not become part of.

    Example:
        >>> X = te.placeholder((3,), name="X")
        >>> rounded = te.straight_through(te.round(X), X)
        >>> print(te.differentiate(rounded, [X], te.placeholder((3,), name="H"))[0].name)
        H
    """
    own, other = _checked(value, "te.straight_through"), _checked(through, "te.straight_through")
    same = own.ndim == other.ndim and all(map(same_extent, own.shape, other.shape))
    if not same:
        raise ShapeError(
            f"te.straight_through: {own.name} has shape {shape_text(own.shape)}, {other.name} {shape_text(other.shape)}; give tensors "
            "of one shape"
        )
    if own.dtype != other.dtype:
        raise DtypeError(
            f"te.straight_through: {own.name} has dtype {own.dtype}, {other.name} {other.dtype}; cast one with te.cast"
        )
    return _passed(own, f"through_{own.name}", (other,), lambda out, inputs, head: [head])


@wants_arguments
def scale_gradient(x: Tensor | AnnotatedArray, factor: float) -> Tensor:
    """``x``, whose adjoint is multiplied by ``factor``."""
    own = _checked(x, "te.scale_gradient")
    _check_number(factor, "the factor of te.scale_gradient")
    return _passed(own, f"scaled_{own.name}", (own,), lambda out, inputs, head: [head * factor])


@wants_arguments
def reverse_gradient(x: Tensor | AnnotatedArray, factor: float = 1.0) -> Tensor:
    """``x``, whose adjoint is multiplied by ``-factor``: the gradient reversal of adversarial training."""
    own = _checked(x, "te.reverse_gradient")
    _check_number(factor, "the factor of te.reverse_gradient")
    return _passed(own, f"reversed_{own.name}", (own,), lambda out, inputs, head: [head * -factor])


@wants_arguments
def clip_gradient(x: Tensor | AnnotatedArray, lo: float, hi: float) -> Tensor:
    """``x``, whose adjoint is held between ``lo`` and ``hi``. This is no linear map, so that it has no forward mode."""
    own = _checked(x, "te.clip_gradient")
    _check_number(lo, "the lower bound of te.clip_gradient")
    _check_number(hi, "the upper bound of te.clip_gradient")
    if not lo <= hi:
        raise ArgumentError(
            f"te.clip_gradient({own.name}, {lo}, {hi}): no number lies between; give the lower bound first"
        )
    return _passed(own, f"clipped_{own.name}", (own,), lambda out, inputs, head: [clip(head, lo, hi)])


def _passed(
    x: Tensor, name: str, dependencies: Sequence[Tensor], adjoints: Callable[..., Sequence[Tensor]]
) -> Compute:
    """A tensor that is ``x``, with another derivative."""
    axes = new_axes(x.shape, axis_names_of(x))
    out = Compute(name, axes, Read(x, axes))
    check_dependencies([out], dependencies)
    out.with_override(Override((out,), tuple(dependencies), adjoints))
    return out


def _checked(x: Any, what: str) -> Tensor:
    return one_of_type(
        x, Tensor, f"the argument of {what}", "a whole Tensor, outside of the body that reads it"
    )


def _check_number(value: Any, what: str) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ArgumentError(f"{what} is {value!r}; give a number")
