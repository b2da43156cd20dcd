"""Gradients by hand without a definition of their own: of a range of tensors, or of statements under ``te.loops``, and of values that pass as they are.

A value that is rounded, scaled, reversed or clipped on its way back is a tensor of its own, whose override says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from jaxte.derivatives.forward import jvp_graph, transposed
from jaxte.derivatives.given_overrides import check_covered, check_dependencies
from jaxte.derivatives.overrides import Override, listed_names
from jaxte.derivatives.reverse import differentiate
from jaxte.lang.checks import one_of_type, several, wants_arguments
from jaxte.lang.errors import ArgumentError, DifferentiationError, DtypeError, ShapeError
from jaxte.lang.expr import Read
from jaxte.lang.functions import clip
from jaxte.lang.graphs import among
from jaxte.lang.nodes import AnnotatedArray
from jaxte.tensors.inputs import placeholder
from jaxte.tensors.shapes import Extent, same_extent, shape_text
from jaxte.tensors.structure import axis_names_of, topological_order
from jaxte.tensors.tensor import Compute, Tensor, made_within, new_axes


class Region:
    """See :func:`region`."""

    def __init__(self) -> None:
        self._made: list[Tensor] | None = None
        self._token: Any = None

    def __enter__(self) -> Region:
        self._made = []
        self._token = made_within.set((*made_within.get(), self._made))
        return self

    def __exit__(self, *_: object) -> None:
        made_within.reset(self._token)

    def holds(self, tensor: Tensor) -> bool:
        """Whether ``tensor`` was defined within."""
        return any(own is tensor for own in self._made or ())


def region() -> Region:
    """A range of definitions, or of statements of a function under :func:`loops`, for ``with``, whose gradient is given by hand.

    What is defined within ``with te.region() as r:`` has the gradient that ``te.gradient(r, outputs, inputs)`` is given, from ``outputs``, tensors defined
    within, to ``inputs``, tensors defined before: nothing is derived between the two. The gradient is a function of the heads of the outputs, which
    returns the adjoints of the inputs; it may read any tensor defined before, those within the region among them.

    In a function under :func:`loops` statements stand within, and ``with te.gradient(r, outputs, inputs) as (dy, dx):`` right behind them, in which statements read
    ``dy``, the adjoints of the outputs, and write ``dx``, those of the inputs, which are zeros at first. Outputs and inputs are names, rows and other parts of
    arrays; what else is read has the values of this iteration. Both are nothing where the function runs on NumPy arrays.

    Example:
        >>> @te.function
        ... def softplus(x):
        ...     with te.region() as r:
        ...         y = te.compute(x.shape, lambda i: te.log(1 + te.exp(x[i])))
        ...     @te.gradient(r, y, x)
        ...     def by_hand(dy):
        ...         return te.compute(x.shape, lambda i: dy[i] * te.sigmoid(x[i]))
        ...     return y
        >>> jax.grad(lambda x: softplus(x).sum())(jnp.array([0.0, 200.0])).tolist()
        [0.5, 1.0]
    """
    return Region()


class RegionGradient:
    """What ``te.gradient(r, outputs, inputs)`` returns: it takes the function that is the gradient.

    In a function under ``te.loops`` that runs on NumPy arrays it is a ``with`` whose names are zeros, so that its statements change nothing.
    """

    def __init__(self, own: Region, outputs: Any, inputs: Any) -> None:
        self._region, self._outputs, self._inputs = own, outputs, inputs

    def __enter__(self) -> Any:
        both = [*_several(self._outputs), *_several(self._inputs)]
        if any(isinstance(own, Tensor) for own in both):
            raise DifferentiationError(
                "te.gradient of a region of tensors is a decorator of the function that is the gradient: @te.gradient(r, outputs, inputs); with `with`, it "
                "stands in a function under te.loops"
            )
        return tuple(np.zeros_like(own) for own in both)

    def __exit__(self, *_: object) -> None:
        return None

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        what = "of te.gradient of a region"
        outputs = tuple(several(self._outputs, Tensor, f"the outputs {what}", "tensors defined in it"))
        inputs = tuple(several(self._inputs, Tensor, f"the inputs {what}", "tensors defined before it"))
        if not callable(fn):
            raise DifferentiationError(f"the gradient of a region is {fn!r}; give a function of the heads")
        for output in outputs:
            if not self._region.holds(output):
                raise DifferentiationError(
                    f"{output.name} is an output of a region in which it was not defined; define it within `with te.region() as r:`"
                )
        for source in inputs:
            if self._region.holds(source):
                raise DifferentiationError(
                    f"{source.name} is an input of the region in which it is defined; inputs are defined before it"
                )
        check_dependencies(outputs, inputs)
        check_covered(outputs, inputs)
        give(outputs, inputs, lambda heads: fn(*heads))
        return fn


@overload
def gradient(output: Region, inputs: npt.ArrayLike, head: npt.ArrayLike) -> RegionGradient: ...
@overload
def gradient(
    output: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    head: Tensor | Sequence[Tensor | None] | None = None,
) -> list[Tensor]: ...
@wants_arguments
def gradient(output: Any, inputs: Any, head: Any = None) -> Any:
    """The adjoints of ``inputs`` as a list. See :func:`differentiate`.

    ``te.gradient(r, outputs, inputs)`` of a :func:`region` takes the gradient from ``outputs`` to ``inputs`` that is given for it.
    """
    if isinstance(output, Region):
        return RegionGradient(output, inputs, head)
    return list(differentiate(output, inputs, head))


def give(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], rule: Callable[[Sequence[Tensor]], Any]
) -> None:
    """Makes ``rule``, from the heads of ``outputs`` to the adjoints of ``inputs``, the derivative of ``outputs``."""

    def pulled(heads: Sequence[Tensor]) -> list[Tensor]:
        found = rule(heads)
        listed = [found] if isinstance(found, Tensor) else list(found)
        if len(listed) != len(inputs) or not all(isinstance(t, Tensor) for t in listed):
            raise DifferentiationError(
                f"the gradient of the region of {listed_names(outputs)} returned {len(listed)} adjoints for {len(inputs)} inputs "
                f"({listed_names(inputs)}); return one Tensor for each, in that order"
            )
        return listed

    def adjoints(_: Any, __: Any, heads: Sequence[Tensor]) -> list[Tensor]:
        prefix = heads[0].shape[: heads[0].ndim - outputs[0].ndim]
        label = f"the gradient of the region of {listed_names(outputs)}"
        return at_several(pulled, outputs, heads, prefix, label)

    own = Override(tuple(outputs), tuple(dict.fromkeys(inputs)), adjoints, region=True)
    for output in outputs:
        output.with_override(own)


def _several(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (tuple, list)) else [given]


_REMEDY = "give both defgrad and defjvp"

LinearRule = Callable[[Sequence[Tensor]], Sequence[Tensor]]


def at_several(
    rule: LinearRule, models: Sequence[Tensor], values: Sequence[Tensor], prefix: Sequence[Extent], label: str
) -> list[Tensor]:
    """``rule`` of ``values``, each of shape ``prefix`` and that of its model, where it is written for ones without a prefix."""
    if not prefix:
        return list(rule(values))
    one = [placeholder(t.shape, t.dtype, f"H_{t.name}") for t in models]
    found = jvp_graph(list(rule(one)), one, values, prefix=prefix)
    order = topological_order(found)
    if any(among(t, order) for t in one):
        raise DifferentiationError(
            f"{label} is not linear in what it is given, so that it cannot be applied to several at once; {_REMEDY}, and no head with a prefix"
        )
    return found


def transposed_rule(
    rule: LinearRule, models: Sequence[Tensor], heads: Sequence[Tensor], label: str
) -> list[Tensor]:
    """The transpose of ``rule``, a linear map from tensors like ``models``, applied to ``heads`` of its results."""
    one = [placeholder(t.shape, t.dtype, f"{t.name}_dot") for t in models]
    return transposed(list(rule(one)), one, heads, label=label, remedy=f"; {_REMEDY}")


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
