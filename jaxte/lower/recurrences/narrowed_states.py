"""Tensors of recurrences of which one position along another axis than the clock is all that is read, as states of that position.

The gradient of what a loop within a loop begins with reads the first of its adjoints in each step, and the outer loop would hand on all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.lang.expr import Axis, Expr, Read, as_expr
from jaxte.lang.identity import Members, among
from jaxte.lang.walk import reads_of, substitute
from jaxte.lower.recurrences.changes import Changed, changes
from jaxte.lower.recurrences.finals import is_last
from jaxte.lower.recurrences.narrowed import Position, is_at, position_of
from jaxte.tensors.recurrences.conditions import decided
from jaxte.tensors.recurrences.node import Recurrence, Recurrent, State
from jaxte.tensors.shapes import same_extent
from jaxte.tensors.tensor import Compute, Tensor


def narrowed_states(order: Sequence[Tensor], given: Members[Tensor], results: Members[Tensor]) -> Changed:
    """What stands for the readers of such tensors.

    Args:
        order: all tensors, each after what it reads.
        given: those that exist already.
        results: those that have to exist in the end.
    """
    own = [t for t in order if t not in given]
    positions = _positions(own, results)
    if not positions:
        return {}
    numbers: dict[Tensor, int] = {}
    longer: dict[Recurrence, Recurrence] = {}
    for tensor, position in positions.items():
        assert isinstance(tensor, Recurrent)
        group = longer.get(tensor.group, tensor.group)
        longer[tensor.group], numbers[tensor] = _with(group, tensor, position)

    def body(tensor: Compute, known: Changed) -> Expr:
        table: dict[Expr, Expr] = {}
        for read in reads_of(tensor.body):
            if read.tensor in numbers and is_at(read, positions[read.tensor]):
                whole, place = known.get(read.tensor, read.tensor), positions[read.tensor][0]
                assert isinstance(whole, Recurrent)
                rest = [i for n, i in enumerate(read.indices) if n != place]
                table[read] = Read(whole.group.tensors[numbers[read.tensor]], rest)
        return substitute(tensor.body, table) if table else tensor.body

    return changes(own, body, longer)


def _positions(order: Sequence[Tensor], results: Members[Tensor]) -> dict[Tensor, Position]:
    """The axis and the position at which each such tensor is read by definitions, and by nothing else."""
    readers: dict[Tensor, list[Read]] = {}
    others: set[Tensor] = set()
    for tensor in order:
        if isinstance(tensor, Compute):
            for read in reads_of(tensor.body):
                readers.setdefault(read.tensor, []).append(read)
        else:
            others.update(tensor.inputs)
    found: dict[Tensor, Position] = {}
    for tensor in order:
        if type(tensor) is Recurrent and tensor not in results and tensor not in others:
            clock = tensor.group.places[tensor.position]
            reads = readers.get(tensor, [])
            before = [
                r for r in reads if not is_last(r)
            ]  # what the loop ends with is there whatever it stacks
            position = position_of(tensor, reads, but=clock) or position_of(tensor, before, but=clock)
            if position is not None:
                found[tensor] = position
    return found


def _with(group: Recurrence, tensor: Recurrent, position: Position) -> tuple[Recurrence, int]:
    """``group`` with a state that is ``tensor`` at ``position``, and its number: one that is there already, or another one."""
    place, at = position
    whole, clock = group.definitions[tensor.position], group.places[tensor.position]
    axes = tuple(Axis(a.name, 0, a.extent) for n, a in enumerate(whole.axes) if n != place)
    table: dict[Expr, Expr] = {whole.axes[place]: as_expr(at)}
    table |= dict(zip((a for n, a in enumerate(whole.axes) if n != place), axes, strict=True))
    state = group.states[tensor.position]
    if any(among(state, t.inputs) for t in group.inside):  # the loop hands all of it on
        body: Expr = Read(state, [table[a] for a in whole.axes])
    else:
        body = decided(substitute(whole.body, table))
    for number, other in enumerate(group.definitions):
        if len(other.axes) == len(axes) and all(
            same_extent(a.hi, b.hi) for a, b in zip(other.axes, axes, strict=True)
        ):
            if substitute(other.body, dict(zip(other.axes, axes, strict=True))) is body:
                return group, number
    made = Compute(tensor.name, axes, body)
    longer = Recurrence(
        (*group.states, State(tensor.name, made.shape, made.dtype)),
        (*group.definitions, made),
        (*group.places, clock - (place < clock)),
        group.reverse,
    )
    return longer, len(group.states)
