"""What a step makes of less than it would read: ``select(t == 9, H[i], 0)`` over all positions is ``H`` and zeros, and is no array of all positions.

The adjoint of a tensor of which one position is read is such a one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from jaxte.derivatives.rebuilt import Rebuilt
from jaxte.lang import dtypes
from jaxte.lang.expr import Expr, Read, Reduce, as_expr
from jaxte.lang.identity import Members, place_of
from jaxte.lang.walk import free_axes, postorder, reads_of, substitute
from jaxte.lower.recurrences.changes import Changed, changes
from jaxte.lower.recurrences.finals import with_finals
from jaxte.sets.intervals import extent_of
from jaxte.tensors.recurrences.node import Recurrence, Recurrent
from jaxte.tensors.tensor import Compute, Tensor

_TIMES = 4  # how much larger it is than what it is made from


def made_in_steps(order: Sequence[Tensor], given: Members[Tensor], again: Members[Tensor]) -> Changed:
    """What stands for the tensors of ``order`` where steps make what is much larger than what it is made from.

    Args:
        order: all tensors, each after what it reads.
        given: those that exist already.
        again: tensors that do not exist in whole, so that a step makes what reads them, too.
    """
    own = [t for t in order if t not in given]
    table: dict[Recurrence, Recurrence] = {}
    for group in dict.fromkeys(t.group for t in own if isinstance(t, Recurrent)):
        if any(t in again for t in group.tensors):
            continue
        read = [t for t in group.inputs if t not in given and isinstance(t, Compute) and _is_elementwise(t)]
        cheap: dict[Tensor, Compute] = {
            t: t for t in read if _is_large(t) or _is_transposed(t) or any(own in again for own in t.inputs)
        }
        if cheap or any(t in again for t in group.inputs):
            table[group] = _with_bodies(group, cheap, again)
    return changes(own, lambda tensor, _: tensor.body, table) if table else {}


def _is_elementwise(tensor: Compute) -> bool:
    """Whether an element takes a few operations on elements at positions that are no data."""
    nodes = list(postorder(tensor.body))
    return not any(isinstance(n, Reduce) or (isinstance(n, Read) and reads_of(*n.indices)) for n in nodes)


def _is_large(tensor: Compute) -> bool:
    """Whether ``tensor`` is much larger than what it is made from, which is something, and not by reading it in windows."""
    if any(len(free_axes(index)) > 1 for read in reads_of(tensor.body) for index in read.indices):
        return False
    return bool(tensor.inputs) and _TIMES * sum(map(bytes_of_any, tensor.inputs)) <= bytes_of_any(tensor)


def _is_transposed(tensor: Compute) -> bool:
    """Whether ``tensor`` is another one with its axes in another order: a step reads its part of that in place."""
    if not isinstance(tensor.body, Read):
        return False
    places = [place_of(a, tensor.axes) for index in tensor.body.indices for a in free_axes(index)]
    return places != sorted(places) and sorted(places) == [*range(tensor.ndim)]


def _with_bodies(group: Recurrence, cheap: dict[Tensor, Compute], again: Members[Tensor]) -> Recurrence:
    """``group`` with the bodies of ``cheap`` where it reads these, and with the last values of ``again`` where it reads no others."""
    known: dict[Tensor, Tensor] = {}
    for tensor in group.inside:
        if not isinstance(tensor, Compute):
            if any(t in known for t in tensor.inputs):
                own = Rebuilt(known).parts(tensor.group.tensors)
                known.update(zip(tensor.group.tensors, own, strict=True))
            continue
        table: dict[Expr, Expr] = {}
        for read in reads_of(tensor.body):
            if read.tensor in cheap:
                source = cheap[read.tensor]
                table[read] = substitute(source.body, dict(zip(source.axes, read.indices, strict=True)))
            elif read.tensor in known:
                table[read] = Read(known[read.tensor], read.indices)
        body = with_finals(substitute(tensor.body, table), again)
        if body is not tensor.body:
            known[tensor] = tensor.renewed(body)
    made = [known.get(t, t) for t in group.definitions]
    definitions = tuple(t for t in made if isinstance(t, Compute))
    return Recurrence(group.states, definitions, group.places, group.reverse)


def bytes_of_any(tensor: Tensor) -> int:
    """The memory of ``tensor``, a guess where sizes are symbolic."""
    return prod(extent_of(as_expr(e)) for e in tensor.shape) * dtypes.width(tensor.dtype)
