"""Reads at bent indices, ``x[(2 * i + k) % n]``, as reads of copies with continued ends; see :mod:`jaxte.tensors.copies`.

A copy is made once for all that reads the same of it, before the first of its readers.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.lang.expr import Expr
from jaxte.lower.tiles.tiling import Tiling
from jaxte.tensors.copies import Extended, with_copies
from jaxte.tensors.tensor import Compute, Tensor


def with_straight_reads(planned: Tiling) -> Tiling:
    """``planned`` with the copies that its tensors read in place of what they are copies of."""
    known: dict[object, Extended] = {}
    made: set[Tensor] = set()

    def rule(tensor: Compute) -> tuple[Sequence[Tensor], Expr]:
        found = with_copies(tensor.body, lambda read: True, known)
        if found is None:
            return (), tensor.body
        before = [copy for copy in found.copies if copy not in made]
        made.update(before)
        return before, found.body

    return planned.with_bodies(rule)
