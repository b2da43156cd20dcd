"""The adjoint of a tensor from what its readers pass on to it."""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.algebra.simplify import collect
from jaxte.autodiff.rules.seeds import Adjoint
from jaxte.lang.expr import Axis, Expr, Read, cast
from jaxte.lang.identity import among
from jaxte.lang.walk import substitute
from jaxte.tensors.shapes import Extent
from jaxte.tensors.tensor import Compute, Tensor, new_axes


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
    body = collect([_element(part, axes, inline=not among(part, heads)) for part in every])
    if body.weak or body.dtype != tensor.dtype:
        body = cast(body, tensor.dtype)
    origins = [origin for part in every if isinstance(part, Adjoint) for origin in part.origins]
    whole = all(isinstance(part, Adjoint) and part.origins for part in parts)
    return Adjoint(f"d{tensor.name}", axes, body, every, origins if whole and not heads else ())


def _element(part: Tensor, axes: Sequence[Axis], inline: bool) -> Expr:
    if inline and isinstance(part, Compute):
        return substitute(part.body, dict(zip(part.axes, axes, strict=True)))
    return Read(part, axes)
