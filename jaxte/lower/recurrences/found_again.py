"""Extrema that are found again of elements that an adjoint holds, in place of the same extrema of elements that are computed once more.

    m[i] = max over k of f(x[i, k]),   held[i, k] = f(x[i, k]),   best[i] = max over k of held[i, k]

The adjoint asks which elements are equal to ``best``, whose bits are those of the held elements. Where a program needs both and has neither, ``m`` is ``best``.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.autodiff.terms.beside import all_beside
from jaxte.lang.expr import Reduce
from jaxte.lang.graphs import Members
from jaxte.lower.recurrences.finals import Changed, changes
from jaxte.tensors.shapes import same_extent
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor


def found_again(order: Sequence[Tensor], given: Members[Tensor], results: Members[Tensor]) -> Changed:
    """What stands for such extrema, and for their readers. The arguments are those of ``within_loops``."""
    own = [t for t in order if t not in given]
    there = frozenset(own)
    found: Changed = {}
    for tensor in own:
        if isinstance(tensor, Compute) and isinstance(tensor.body, Reduce) and tensor not in results:
            best = all_beside(tensor).get("best")
            if best in there and best is not None and _is_alike(tensor, best):
                found[tensor] = best
    known = {t: best for t, best in found.items() if found.keys().isdisjoint(topological_order([best]))}
    return changes(own, lambda tensor, _: tensor.body, {}, known=known) if known else {}


def _is_alike(tensor: Compute, best: Compute) -> bool:
    """Whether both have the same axes: elements that do not differ along one of them are held without it."""
    return tensor.ndim == best.ndim and all(map(same_extent, tensor.shape, best.shape))
