"""Reads at piecewise affine indices, ``x[(2 * i + k) % n]``, as reads of copies with continued ends; see :mod:`jaxte.tensors.copies`.

A copy is made once for all that reads the same of it, before the first of its readers. Periodic reads along single axes share one copy where they
are many: ``x[(i + s) % n, (j + t) % m]`` for one ``s`` and ``t`` is a roll: two slices side by side, or the interior and the edges of a loop. A body
with many of them, a bilateral filter or a table of neighbours, would be written out once for the interior and once for each edge, where each read is two
pieces again. With a halo around the array each read is a slice, and the body stands there once. Few reads are left: a stencil of five
points has edges of a few operations, and no copy of its array.

Elements from another position on, and around the end: two slices side by side, or a choice between two pads.

XLA for GPUs makes an array of slices side by side and fuses little with it, so that a stencil on a ring takes a kernel for each of its
neighbours. A pad is computed in what reads it, and so is the choice: heat in a medium takes 6 kernels for 18, where JAX's derivative takes 12.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from jaxte.lang.expr import Axis, Expr, Read
from jaxte.lang.limits import FEW_POSITIONS, MOST_LARGER
from jaxte.lang.walk import reads_of, substitute
from jaxte.lower.arrays.elementwise import Apply
from jaxte.lower.arrays.node import Node, nodes_below, rewritten
from jaxte.lower.arrays.views import Roll, View
from jaxte.lower.tiles.tiling import Tiling
from jaxte.sets.intervals import known
from jaxte.sets.piecewise_affine import Neighbour, Piece, PiecewiseAffine, neighbour
from jaxte.tensors.copies import Extended, extended, with_copies
from jaxte.tensors.tensor import Compute, Tensor

Shifts = tuple[int, ...]  # of a read, for each axis of its tensor


@dataclass(frozen=True, slots=True)
class Halo:
    """How far the ends of a tensor are continued: before and after each of its axes."""

    before: Shifts
    after: Shifts


def with_halos(planned: Tiling) -> Tiling:
    """``planned`` with a copy of each tensor that one body reads at many periodic positions."""
    bodies = [t for t in planned.order if isinstance(t, Compute)]
    periodic = {t: _periodic_reads(t.body) for t in bodies}
    halos = _halos(periodic.values())
    if not halos:
        return planned
    copies: dict[Tensor, Tensor] = {}

    def rule(tensor: Compute) -> tuple[Sequence[Tensor], Expr]:
        before: list[Tensor] = []
        table: dict[Expr, Expr] = {}
        for read, shifts in periodic[tensor].items():
            halo = halos.get(read.tensor)
            if halo is None or not any(s for s in shifts):
                continue
            if read.tensor not in copies:
                made = _copies(read.tensor, halo)
                copies[read.tensor] = made[-1]
                before += made
            table[read] = _within(read, shifts, halo, copies[read.tensor])
        return before, substitute(tensor.body, table) if table else tensor.body

    return planned.with_bodies(rule)


def _periodic_reads(root: Expr) -> dict[Read, Shifts]:
    """The reads below ``root`` at an axis for each of the tensor's, all of it, some of them shifted around its end."""
    if root.reduces:
        return {}
    found: dict[Read, Shifts] = {}
    for read in reads_of(root):
        places = [neighbour(i, e) for i, e in zip(read.indices, read.tensor.shape, strict=True)]
        shifts = [_shift(p, e) for p, e in zip(places, read.tensor.shape, strict=True)]
        if all(s is not None for s in shifts) and len({p.axis for p in places if p}) == len(shifts):
            found[read] = tuple(s or 0 for s in shifts)
    return found


def _shift(place: Neighbour | None, extent: int | Expr) -> int | None:
    """How far around its end a whole axis is turned, the least of both ways; None where ``place`` is something else."""
    if place is None or not isinstance(extent, int) or known(place.axis.extent) != extent:
        return None
    if place.distance and not place.period:
        return None
    shift, period = place.distance, place.period or 0
    return shift - period if 2 * shift > period else shift


def _halos(bodies: Iterable[Mapping[Read, Shifts]]) -> dict[Tensor, Halo]:
    """What is put around each tensor that one of ``bodies`` reads at many positions around its ends."""
    shifts: defaultdict[Tensor, set[Shifts]] = defaultdict(set)
    many: set[Tensor] = set()
    for reads in bodies:
        own: defaultdict[Tensor, set[Shifts]] = defaultdict(set)
        for read, at in reads.items():
            if any(at):
                own[read.tensor].add(at)
        # Periodic reads of an array, from which on its edges are more to compile than a copy of it is to make.
        many |= {t for t, found in own.items() if len(found) >= FEW_POSITIONS}
        for tensor, found in own.items():
            shifts[tensor] |= found
    halos = {t: _around(shifts[t]) for t in shifts if t in many}
    # Elements of the copy for each of the array.
    return {t: halo for t, halo in halos.items() if _growth(t, halo) <= MOST_LARGER}


def _growth(tensor: Tensor, halo: Halo) -> float:
    """The elements of the copy for each of ``tensor``."""
    around = zip(tensor.shape, halo.before, halo.after, strict=True)
    return prod((size + before + after) / size for size, before, after in around if isinstance(size, int))


def _around(shifts: Iterable[Shifts]) -> Halo:
    columns = list(zip(*shifts, strict=True))
    return Halo(tuple(max(0, -min(c)) for c in columns), tuple(max(0, *c) for c in columns))


def _copies(tensor: Tensor, halo: Halo) -> list[Tensor]:
    """The copies that continue one axis after the other; the last one has them all."""
    found: list[Tensor] = []
    for axis, (before, after) in enumerate(zip(halo.before, halo.after, strict=True)):
        size = tensor.shape[axis]
        assert isinstance(size, int)
        if before or after:
            starts = [
                (0, before, size - before),
                (before, before + size, 0),
                (before + size, before + size + after, 0),
            ]
            pieces = tuple(Piece(a, b, first, 1) for a, b, first in starts if b > a)
            own = Axis("p", 0, before + size + after)
            tensor = extended(tensor, axis, PiecewiseAffine(own, before + size + after, pieces))
            found.append(tensor)
    return found


def _within(read: Read, shifts: Shifts, halo: Halo, copy: Tensor) -> Read:
    places = [neighbour(i, e) for i, e in zip(read.indices, read.tensor.shape, strict=True)]
    return Read(copy, [p.axis + (s + b) for p, s, b in zip(places, shifts, halo.before, strict=True) if p])


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


def with_rolls_chosen(source: Node) -> Node:
    """``source`` whose rolls are choices between two pads."""
    if not any(isinstance(node, Apply) for node in nodes_below(source)):
        return source  # a copy in another order, which a choice would read twice
    return rewritten(source, _chosen)


def _chosen(node: Node) -> Node:
    if isinstance(node, View) and isinstance(node.step, Roll) and None not in map(known, node.shape):
        return View(node.array, replace(node.step, by_choice=True))
    return node
