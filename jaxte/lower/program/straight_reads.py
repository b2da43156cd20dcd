"""Reads at bent indices, ``x[(2 * i + k) % n]``, as reads of copies with continued ends; see :mod:`jaxte.tensors.copies`.

A copy is made once for all that reads the same of it, before the first of its readers.
"""

from __future__ import annotations

from dataclasses import replace

from jaxte.lower.tiles.tiling import Tiles, Tiling
from jaxte.tensors.copies import Extended, with_copies
from jaxte.tensors.tensor import Compute, Tensor


def with_straight_reads(planned: Tiling) -> Tiling:
    """``planned`` with the copies that its tensors read in place of what they are copies of."""
    known: dict[object, Extended] = {}
    order: list[Tensor | Tiles] = []
    new: dict[Tensor, Compute] = {}
    original: dict[Tensor, Tensor] = {own: tensor for tensor, own in planned.stand_ins.items()}
    made: set[Tensor] = set()
    for item in planned.order:
        found = with_copies(item.body, lambda read: True, known) if isinstance(item, Compute) else None
        if found is None or not isinstance(item, Compute):
            order.append(item)
            continue
        order += [copy for copy in found.copies if copy not in made]
        made.update(found.copies)
        straight = item.renewed(found.body)
        order.append(straight)
        new[original.get(item, item)] = straight
    return replace(planned, order=tuple(order), stand_ins={**planned.stand_ins, **new}) if new else planned
