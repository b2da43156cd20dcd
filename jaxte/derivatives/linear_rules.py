"""Rules that were written for one head, or one tangent, at several at once: they are linear, so their derivative is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jaxte.derivatives.forward import jvp_graph
from jaxte.derivatives.transpose import transposed
from jaxte.lang.errors import DifferentiationError
from jaxte.lang.identity import among
from jaxte.tensors.graph import topological_order
from jaxte.tensors.inputs import placeholder
from jaxte.tensors.shapes import Extent
from jaxte.tensors.tensor import Tensor

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
