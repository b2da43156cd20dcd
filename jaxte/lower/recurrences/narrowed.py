"""Definitions of which one position along an axis is all that is read, as that position: what they read themselves is then one position, too.

The gradient of what a loop begins with reads the adjoint of its first state, and what lies between is defined for all states.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.lang.expr import Axis, Expr, Read, as_expr
from jaxte.lang.identity import Members
from jaxte.lang.walk import reads_of, substitute
from jaxte.lower.recurrences.changes import Changed, changes
from jaxte.sets.affine import linear, normal
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import known, reach
from jaxte.tensors.recurrences.conditions import decided
from jaxte.tensors.tensor import Compute, Tensor

Position = tuple[int, int]
"""An axis, and where along it all reads are."""


def narrowed(order: Sequence[Tensor], given: Members[Tensor], results: Members[Tensor]) -> Changed:
    """What stands for the readers of such definitions.

    Args:
        order: all tensors, each after what it reads.
        given: those that exist already.
        results: those that have to exist in the end.
    """
    own = [t for t in order if t not in given]
    positions = _positions(own, results)
    if not positions:
        return {}
    made: dict[Tensor, Compute] = {}

    def body(tensor: Compute, changed: Changed) -> Expr:
        if tensor in positions:
            made[tensor] = _at_one(tensor, positions, made, changed)
        return _reading(tensor.body, positions, made)

    return changes(own, body, {})


def _positions(order: Sequence[Tensor], results: Members[Tensor]) -> dict[Tensor, Position]:
    """Of the definitions that are no results and that only definitions read, where they are read, if that is one position."""
    readers: dict[Tensor, list[Read]] = {}
    others: set[Tensor] = set()
    found: dict[Tensor, Position] = {}
    for tensor in reversed(order):
        if not isinstance(tensor, Compute):
            others.update(tensor.inputs)
            continue
        body = tensor.body
        if tensor not in results and tensor not in others:
            position = position_of(tensor, readers.get(tensor, []))
            if position is not None:
                found[tensor] = position
                body = decided(substitute(body, {tensor.axes[position[0]]: as_expr(position[1])}))
        for read in reads_of(body):
            readers.setdefault(read.tensor, []).append(read)
    return found


def position_of(tensor: Tensor, reads: Sequence[Read], but: int | None = None) -> Position | None:
    """Along which axis, but for one, ``reads`` of ``tensor`` are all at one position."""
    for place, extent in enumerate(tensor.shape):
        if place != but and reads and known(as_expr(extent) - 1):
            ends = {_end(r.indices[place]) for r in reads}
            if len(ends) == 1 and None not in ends:
                (end,) = ends
                assert end is not None
                return place, end
    return None


def is_at(read: Read, position: Position) -> bool:
    """Whether ``read`` is at ``position``."""
    place, at = position
    return _end(read.indices[place]) == at


def _end(index: Expr) -> int | None:
    """The position that ``index`` is, where it is but one."""
    if not is_index(index):
        return None
    ends = reach(linear(normal(index)))
    return ends[0] if ends is not None and ends[0] == ends[1] else None


def _at_one(
    tensor: Compute, positions: dict[Tensor, Position], made: dict[Tensor, Compute], changed: Changed
) -> Compute:
    place, position = positions[tensor]
    axes = tuple(Axis(a.name, 0, as_expr(1) if n == place else a.extent) for n, a in enumerate(tensor.axes))
    table: dict[Expr, Expr] = dict(zip(tensor.axes, axes, strict=True))
    table[tensor.axes[place]] = as_expr(position)
    body = _reading(decided(substitute(tensor.body, table)), positions, made)
    again: dict[Expr, Expr] = {
        r: Read(changed[r.tensor], r.indices) for r in reads_of(body) if r.tensor in changed
    }
    # reads are inside wherever they are taken, as those of the definition are; its conditions may say so in any order
    return Compute(tensor.name, axes, substitute(body, again))


def _reading(body: Expr, positions: dict[Tensor, Position], made: dict[Tensor, Compute]) -> Expr:
    """``body`` with reads of what is one position now."""
    table: dict[Expr, Expr] = {}
    for read in reads_of(body):
        if read.tensor in made:
            place = positions[read.tensor][0]
            table[read] = Read(
                made[read.tensor], [as_expr(0) if n == place else i for n, i in enumerate(read.indices)]
            )
    return substitute(body, table) if table else body
