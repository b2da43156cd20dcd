"""Tensors of recurrences of which nothing but the last position is read: the loop ends with it, and stacks no others."""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.lang.expr import Expr, Read, as_expr
from jaxte.lang.identity import Members
from jaxte.lang.walk import reads_of, substitute
from jaxte.lower.recurrences.changes import Changed, changes
from jaxte.sets.affine import linear, normal
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import known, reach
from jaxte.tensors.recurrences.node import Final, Kept, Recurrent
from jaxte.tensors.tensor import Compute, Tensor


def finals_only(order: Sequence[Tensor], given: Members[Tensor], results: Members[Tensor]) -> Changed:
    """What stands for the readers of tensors of which the last position is all that is read.

    Args:
        order: all tensors, each after what it reads.
        given: those that exist already.
        results: those that have to exist in the end.
    """
    own = [t for t in order if t not in given]
    last: dict[Tensor, None] = {
        t: None for t in own if type(t) is Recurrent and t not in results and _ends_with(t)
    }
    for reader in own:
        if isinstance(reader, Compute):
            for read in reads_of(reader.body):
                if read.tensor in last and not is_last(read):
                    del last[read.tensor]
        else:
            for tensor in reader.inputs:
                last.pop(tensor, None)
    if not last:
        return {}

    return changes(own, lambda tensor, _: with_finals(tensor.body, last), {})


def with_finals(body: Expr, of: Members[Tensor]) -> Expr:
    """``body`` where reads of the last position of tensors among ``of`` are reads of what the loop ends with."""
    table: dict[Expr, Expr] = {}
    for read in reads_of(body):
        whole = read.tensor
        if whole in of and isinstance(whole, Recurrent) and is_last(read):
            place = whole.group.places[whole.position]
            rest = [i for n, i in enumerate(read.indices) if n != place]
            table[read] = Read(whole.group.finals[whole.position], rest)
    return substitute(body, table)


def _ends_with(tensor: Recurrent) -> bool:
    """Whether the loop has a last position that is known."""
    return bool(known(as_expr(tensor.group.extent)))


def is_last(read: Read) -> bool:
    """Whether ``read`` is of the position that is computed last, and of no other."""
    tensor = read.tensor
    assert isinstance(tensor, Recurrent)
    group = tensor.group
    if isinstance(tensor, (Final, Kept)) or not known(as_expr(group.extent)):
        return False
    index = read.indices[group.places[tensor.position]]
    if not is_index(index):
        return False
    wanted = 0 if group.reverse else known(as_expr(group.extent) - 1)
    ends = reach(linear(normal(index)))
    return ends is not None and ends[0] == ends[1] == wanted
