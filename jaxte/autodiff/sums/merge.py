"""The adjoint of a tensor from what its readers pass on to it, and whether two tensors are equal by the normal forms of their elements."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from jaxte.algebra.polynomial import TooLarge, Whole, added, scaled
from jaxte.algebra.simplify import collect
from jaxte.autodiff.rules.seeds import Adjoint
from jaxte.autodiff.terms.guards import is_zero
from jaxte.lang.expr import Axis, Const, Expr, Read, cast
from jaxte.lang.graphs import among
from jaxte.lang.walk import substitute
from jaxte.tensors.reducers import number_of
from jaxte.tensors.shapes import Extent
from jaxte.tensors.tensor import Compute, Tensor, new_axes


def zero_of(dtype: str) -> Const:
    """The element of a tensor of zeros."""
    return number_of(0, dtype)


def typed(body: Expr, dtype: str) -> Expr:
    """``body`` as an element of a tensor of ``dtype``."""
    if is_zero(body):
        return zero_of(dtype)
    return body if body.dtype == dtype and not body.weak else cast(body, dtype)


def merge(
    tensor: Tensor, heads: Sequence[Tensor], parts: Sequence[Tensor], prefix: Sequence[Extent]
) -> Tensor:
    """The sum of ``heads`` and ``parts``, all of shape ``prefix + tensor.shape``, as one tensor.

    The terms of several parts stand in one expression, where equal ones add up and opposite ones vanish.
    """
    every = [*heads, *parts]
    if len(every) == 1:
        return every[0]
    model = next((t for t in parts if isinstance(t, Compute)), None)
    names = [a.name for a in model.axes] if model is not None else [f"i{n}" for n in range(every[0].ndim)]
    axes = new_axes((*prefix, *tensor.shape), names)
    terms = [_element(part, axes, inline=not among(part, heads)) for part in every]
    body = typed(collect(terms), tensor.dtype)
    origins = [origin for part in every if isinstance(part, Adjoint) for origin in part.origins]
    whole = all(isinstance(part, Adjoint) and part.origins for part in parts)
    return Adjoint(f"d{tensor.name}", axes, body, every, origins if whole and not heads else ())


def _element(part: Tensor, axes: Sequence[Axis], inline: bool) -> Expr:
    if inline and isinstance(part, Compute):
        return substitute(part.body, dict(zip(part.axes, axes, strict=True)))
    return Read(part, axes)


def equal_by_normal_forms(a: Tensor, b: Tensor, atoms: Sequence[Tensor]) -> bool:
    """Whether the elements of ``a`` and ``b`` are one polynomial over those of ``atoms`` and of the inputs of the graph.

    False where that was not found: they may be equal all the same.
    """
    axes = new_axes(a.shape)
    whole = Whole(atoms)
    try:
        difference = added(
            whole.polynomial(Read(a, axes)), scaled(whole.polynomial(Read(b, axes)), Fraction(-1))
        )
    except TooLarge:
        return False
    return not difference
