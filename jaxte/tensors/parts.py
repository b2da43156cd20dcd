"""The kinds of tensors that planning takes out of definitions, and that others tell from what a user defined; of what each is a part."""

from __future__ import annotations

from jaxte.lang.expr import Expr
from jaxte.lang.walk import reads_of
from jaxte.tensors.graph import topological_order
from jaxte.tensors.tensor import Compute


class PartialSum(Compute):
    """A sum over some axes of a larger sum, or a reduction at the terms of its indices."""

    __slots__ = ()


class Rows(Compute):
    """Rows of a tensor at positions that are data."""

    __slots__ = ()


def mark_parts(tensor: Compute, old: Expr, new: Expr) -> None:
    """Says of the tensors in ``new``, which takes the place of ``old``, that they are parts of ``tensor``."""
    if new is old:
        return
    known = {read.tensor for read in reads_of(old)}
    order = topological_order(
        [read.tensor for read in reads_of(new)], lambda t: () if t in known else t.inputs
    )
    for part in order:
        if isinstance(part, Compute) and part not in known and part.part_of == part.name:
            part.as_part_of(tensor.part_of)
