"""What is computed of a tensor element by element, and of nothing else, is computed in the pieces that the tensor is written in.

    g[i] = H[i] * x[(i + 1) % n] + H[(i - 1) % n] * x[(i - 1) % n]
    d[i] = g[i] * (1 - x[i] * x[i])

The interior and the edges of ``g`` are pieces, put together before ``d`` reads them: a loop over all of ``d`` in which XLA asks for each element which
piece it is in takes several times as long (``computed_once.py``). With the definition of ``g`` in its place, the pieces are those of ``d``, and there is no
second pass over memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

from jaxte.autodiff.rules.seeds import Adjoint
from jaxte.lang.expr import Axis, Expr, Read
from jaxte.lang.graphs import Members, among
from jaxte.lang.rules import applied
from jaxte.lang.walk import reads_data, reads_of, substitute
from jaxte.lower.body.assignment import Assignment
from jaxte.lower.cost.policy import Policy
from jaxte.lower.program.across.computed_once import read_by_one
from jaxte.lower.program.across.padded_once import padded_in
from jaxte.lower.rewrites.rewrite import Place
from jaxte.lower.rewrites.table import AFTER_PADDING, BEFORE_PADDING
from jaxte.lower.rules.peeled_edges import peeled
from jaxte.lower.tiles.tiling import Tiling
from jaxte.lower.views.scope import Scope, Widths
from jaxte.tensors.tensor import Compute, Tensor

_KINDS = (Compute, Adjoint)


def with_pieces_within(planned: Tiling, results: Members[Tensor], policy: Policy) -> Tiling:
    """``planned`` with definitions in pieces in place of the elements that one other definition reads of them."""
    if not policy.facts.drops_barriers:
        return planned
    taken = {*planned.stand_ins, *planned.stand_ins.values()}
    order = [t for t in planned.order if isinstance(t, Tensor)]
    alone = (
        read_by_one(order, frozenset(results)).intersection(order).difference(taken)
    )  # what is given is an array already
    found: dict[Tensor, Compute] = {}
    gone: set[Tensor] = set()
    for reader in order:
        if not _is_elementwise(reader) or reader in taken:
            continue
        for source in reader.inputs:
            if source in alone and _is_elementwise(source) and _reads_all(reader, source):
                own = found.get(source, source)
                made = _with_definition(found.get(reader, reader), source, own)
                if _has_edges(own) and is_in_pieces(own, policy) and is_in_pieces(made, policy):
                    found[reader] = made
                    gone.add(source)
    return planned.with_definitions({t: m for t, m in found.items() if t not in gone}, gone, results)


def as_padded(body: Expr, place: Place) -> tuple[Expr, Mapping[Tensor, Widths]]:
    """``body`` after the rewrites of expressions, and the tensors that it reads with zeros around them."""
    root = applied(body, BEFORE_PADDING, place)
    return root, padded_in(root, place.policy.facts.tests_pads)


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
        read: substitute(own.body, dict(zip(own.axes, read.indices, strict=True)))
        for read in reads_of(reader.body)
        if isinstance(read, Read) and read.tensor is source
    }
    return reader.renewed(substitute(reader.body, table))
