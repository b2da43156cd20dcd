"""Adjoints that are zero although no single term is: shifts that cancel, as the running maximum of a softmax.

``d/dm`` of ``exp(x - m) / sum(exp(x - m))`` is ``y - y``. To see it, the adjoint is written as a polynomial
(:mod:`jaxte.algebra.polynomial`). An adjoint whose polynomial has no terms is zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from jaxte.algebra.polynomial import Expansion, TooLarge, Whole, added, scaled
from jaxte.lang.expr import Read, Reduce
from jaxte.tensors.tensor import Compute, Tensor, new_axes

_REACHES = (2, 3, 4)  # tried one after the other: far tensors only where near ones do not show it


def cancels(adjoint: Tensor, tensor: Tensor) -> bool:
    """Whether ``adjoint``, that of an extremum (or another reduction that is no sum) ``tensor``, is zero."""
    if not (isinstance(tensor, Compute) and isinstance(tensor.body, Reduce) and isinstance(adjoint, Compute)):
        return False
    if tensor.body.reducer.name == "sum":
        return False
    for reach in _REACHES:
        try:
            if not Expansion(tensor, reach).polynomial(adjoint.body):
                return True
        except TooLarge:
            return False
    return False


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
