"""Results that are repeated: ``y[i, j] = prod over k of x[i, k]`` is the same for all ``j``, and so is its derivative.

What flows into the copies is added up before it meets the slope, ``g[i] = sum over j of H[i, j]``, so that the adjoint takes as many points as
the products and the head together have, not as many as all copies of the products.
"""

from __future__ import annotations

from jaxte.lang.expr import ZERO, Axis, Expr, Read
from jaxte.lang.graphs import among
from jaxte.lang.walk import free_axes
from jaxte.sets.intervals import known
from jaxte.tensors.tensor import Compute


def own_axes(tensor: Compute) -> list[Axis]:
    """The axes that the elements of ``tensor``, a reduction, differ along; with those of a size that is not known."""
    depends = free_axes(tensor.body)
    return [a for a in tensor.axes if a in depends or not _is_repeated(a)]


def _is_repeated(axis: Axis) -> bool:
    """Whether there surely are several elements along ``axis``."""
    return (known(axis.extent) or 0) > 1


def first_along_others(tensor: Compute) -> Read:
    """The element of ``tensor`` that stands for those along the axes that it is repeated along."""
    own = own_axes(tensor)
    at: list[Expr] = [a if among(a, own) else ZERO for a in tensor.axes]
    return Read(tensor, at)
