"""The graph that tensors form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from jaxte.lang.graphs import ordered
from jaxte.tensors.tensor import Tensor


def topological_order(
    tensors: Iterable[Tensor], sources: Callable[[Tensor], Sequence[Tensor]] | None = None
) -> list[Tensor]:
    """Every tensor that ``tensors`` need, each after its ``sources``, by default its inputs, in a fixed order."""
    return ordered(tensors, (lambda tensor: tensor.inputs) if sources is None else sources)
