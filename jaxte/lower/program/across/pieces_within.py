"""What is computed of a tensor element by element, and of nothing else, is computed in the pieces that the tensor is written in.

    g[i] = H[i] * x[(i + 1) % n] + H[(i - 1) % n] * x[(i - 1) % n]
    d[i] = g[i] * (1 - x[i] * x[i])

The interior and the edges of ``g`` are pieces, put together before ``d`` reads them: a loop over all of ``d`` in which XLA asks for each element which
piece it is in takes several times as long (``barriers.py``). With the definition of ``g`` in its place, the pieces are those of ``d``, and there is no
second pass over memory.

Functions of windows are computed within the sums over them, where what is computed for each term of a sum is fused with it.

    d[i, j] = sum over c below 3 of (x[i + j, c] - x[i, c])**2
    y[i] = sum over j below 5 of exp(-d[i, j]) * x[i + j, 0]

An array of ``d`` is five times as large as ``y``, and written for it to be read once. With its definition in the place of each read, the coordinates one
after the other, ``y`` is one loop of five terms, each of slices of ``x``, and so is what flows back through ``d``.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TypeGuard

from jaxte.algebra.simplify import simplify_reads
from jaxte.autodiff.rules.seeds import Adjoint
from jaxte.lang.expr import TRUE, Axis, Expr, Read, Reduce, call
from jaxte.lang.graphs import Members, among
from jaxte.lang.limits import LONGEST_UNROLLED, PLACES
from jaxte.lang.operators import SELECT
from jaxte.lang.rules import applied
from jaxte.lang.walk import (
    depends_on,
    free_axes,
    postorder,
    reads_data,
    reads_of,
    reductions,
    rewrite,
    substitute,
)
from jaxte.lower.body.assignment import Assignment
from jaxte.lower.cost.policy import Policy
from jaxte.lower.program.across.barriers import read_by_one
from jaxte.lower.program.across.padded_once import padded_in
from jaxte.lower.rewrites.short_axes import written_out
from jaxte.lower.rewrites.table import AFTER_PADDING, BEFORE_PADDING, Place
from jaxte.lower.rules.peeled_edges import peeled
from jaxte.lower.tiles.tiling import Tiles, Tiling
from jaxte.lower.views.scope import Scope, Widths
from jaxte.planning.indices.shared_places import is_window_function, positions
from jaxte.tensors.structure import structure_of
from jaxte.tensors.tensor import Compute, Tensor

_KINDS = (Compute, Adjoint)


def with_pieces_within(planned: Tiling, results: Members[Tensor], policy: Policy) -> Tiling:
    """``planned`` with definitions in pieces in place of the elements that one other definition reads of them."""
    if not policy.facts.drops_barriers:
        return planned
    taken = {*planned.stand_ins, *planned.stand_ins.values()}
    order = [t for t in planned.order if isinstance(t, Tensor)]
    # what is given is an array already
    alone = read_by_one(order, frozenset(results)).intersection(order).difference(taken)
    found: dict[Tensor, Compute] = {}
    gone: set[Tensor] = set()
    pieces = _Pieces(policy)
    for reader in order:
        if not _is_elementwise(reader) or reader in taken:
            continue
        for source in reader.inputs:
            if source in alone and _is_elementwise(source) and _reads_all(reader, source):
                own = found.get(source, source)
                if not _has_edges(own) or not pieces.are_of(own):
                    continue
                made = _with_definition(found.get(reader, reader), source, own)
                if pieces.are_of(made):
                    found[reader] = made
                    gone.add(source)
    return planned.with_definitions({t: m for t, m in found.items() if t not in gone}, gone, results)


def as_padded(body: Expr, place: Place) -> tuple[Expr, Mapping[Tensor, Widths]]:
    """``body`` after the rewrites of expressions, and the tensors that it reads with zeros around them."""
    root = applied(body, BEFORE_PADDING, place)
    return root, padded_in(root, place.policy.facts.tests_pads)


@dataclass
class _Pieces:
    """Which tensors of a program would be written in pieces: of definitions that are equal up to names, one is looked at."""

    policy: Policy
    _known: dict[Hashable, bool] = field(default_factory=dict)

    def are_of(self, tensor: Compute) -> bool:
        structure = structure_of(tensor)
        if structure is None or self.policy.forms:  # forms are asked for by names
            return is_in_pieces(tensor, self.policy)
        if structure not in self._known:
            self._known[structure] = is_in_pieces(tensor, self.policy)
        return self._known[structure]


def is_in_pieces(tensor: Compute, policy: Policy) -> bool:
    """Whether the interior and the edges of ``tensor`` would be written by themselves."""
    place = Place(tensor.axes, Scope(tensor.axes), policy, False)
    root, padded = as_padded(tensor.body, place)
    own = Assignment(tensor.name, tensor.name, tensor.name, {}, axes=tensor.axes, padded=padded)
    return peeled(applied(root, AFTER_PADDING, place), own, policy, place.scope).is_chosen


def _is_elementwise(tensor: Tensor) -> TypeGuard[Compute]:
    """Whether an element of ``tensor`` is computed of few others, at known places."""
    if not isinstance(tensor, Compute) or type(tensor) not in _KINDS:
        return False
    return not tensor.body.reduces and not reads_data(tensor.body)


def _has_edges(tensor: Compute) -> bool:
    return any(not all(isinstance(i, Axis) for i in read.indices) for read in reads_of(tensor.body))


def _reads_all(reader: Compute, source: Tensor) -> bool:
    """Whether ``reader`` reads ``source`` at all of its own axes, whatever their order, each element for one of its own."""
    return all(
        len(read.indices) == len(reader.axes) and all(among(axis, read.indices) for axis in reader.axes)
        for read in reads_of(reader.body)
        if read.tensor is source
    )


def _with_definition(reader: Compute, source: Tensor, own: Compute) -> Compute:
    table: dict[Expr, Expr] = {
        read: own.element(read.indices)
        for read in reads_of(reader.body)
        if isinstance(read, Read) and read.tensor is source
    }
    return reader.renewed(substitute(reader.body, table))


def with_windows_within(planned: Tiling, results: Members[Tensor], policy: Policy) -> Tiling:
    """``planned`` with functions of windows within the sums that read them."""
    within = _within(planned, results) if policy.facts.fuses_products else set()
    bodies: dict[Tensor, Compute] = {}
    new: dict[Tensor, Compute] = {}
    for tensor in planned.order if within else ():
        if tensor in within and isinstance(tensor, Compute):
            body = _with_definitions(tensor.body, bodies)
            bodies[tensor] = tensor.renewed(rewrite(body, _with_coordinates))
        elif isinstance(tensor, Compute) and any(t in within for t in tensor.inputs):
            new[tensor] = tensor.renewed(_with_definitions(tensor.body, bodies))
    return planned.with_definitions(new, within, results)


def _within(planned: Tiling, results: Members[Tensor]) -> set[Tensor]:
    """The functions of windows that nothing reads but sums over these, or other ones of that kind."""
    taken = {*planned.stand_ins, *planned.stand_ins.values()}
    sizes: dict[Tensor, int] = {}
    readers: dict[Tensor, list[Tensor | Tiles]] = {}
    for item in planned.order:
        for source in item.inputs:
            readers.setdefault(source, []).append(item)
        if is_window_function(item, _KINDS) and item not in taken and item not in results:
            assert isinstance(item, Compute)
            nodes = postorder(rewrite(item.body, _with_coordinates))
            sizes[item] = len(nodes) + sum(sizes.get(t, 0) for t in item.inputs)
    found: set[Tensor] = set()
    for tensor in reversed(sizes):
        own = readers.get(tensor, [])
        if all(r in found or (r not in taken and _sums(r, tensor, sizes[tensor])) for r in own):
            found.add(tensor)
    return found


def _sums(reader: Tensor | Tiles, tensor: Tensor, size: int) -> bool:
    """Whether all that ``reader`` reads of ``tensor``, of ``size`` nodes, is summed over a few positions."""
    if not isinstance(reader, Compute):
        return False
    summed = {
        read
        for node in reductions(reader.body)
        if node.is_sum
        if (count := positions(node)) is not None and count <= min(LONGEST_UNROLLED, PLACES // size)
        for read in reads_of(*node.exprs)
        if all(a in free_axes(read) for a in node.axes)
    }
    return all(r in summed for r in reads_of(reader.body) if r.tensor is tensor)


def _with_coordinates(node: Expr) -> Expr:
    """A sum over coordinates as the sum of its terms, chosen as a whole where a condition says so of all."""
    if not isinstance(node, Reduce):
        return node
    if node.where is TRUE or depends_on(node.where, node.axes):
        return simplify_reads(written_out(node, node.axes))
    whole = written_out(node.changed(where=TRUE), node.axes)
    return call(SELECT, node.where, simplify_reads(whole), node.reducer.identity[0])


def _with_definitions(body: Expr, bodies: Mapping[Tensor, Compute]) -> Expr:
    def rule(node: Expr) -> Expr:
        own = bodies.get(node.tensor) if isinstance(node, Read) else None
        if own is None or not isinstance(node, Read):
            return node
        return simplify_reads(own.element(node.indices))

    return rewrite(body, rule)
