"""Definitions of which one position along an axis is all that is read, as that position: what they read themselves is then one position, too.

The gradient of what a loop begins with reads the adjoint of its first state, and what lies between is defined for all states.

Tensors of recurrences of which one position along another axis than the clock is all that is read, as states of that position.

The gradient of what a loop within a loop begins with reads the first of its adjoints in each step, and the outer loop would hand on all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.lang.expr import Axis, Expr, Read, as_expr
from jaxte.lang.graphs import Members, among
from jaxte.lang.walk import reads_of, substitute
from jaxte.lower.recurrences.finals import Changed, changes, is_last
from jaxte.sets.affine import linear, normal
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import known, reach
from jaxte.tensors.recurrences.earlier import decided
from jaxte.tensors.recurrences.node import Recurrence, Recurrent, State
from jaxte.tensors.shapes import same_extent
from jaxte.tensors.tensor import Compute, Tensor

Position = tuple[int, int]
"""An axis, and where along it all reads are."""


def narrowed(order: Sequence[Tensor], given: Members[Tensor], results: Members[Tensor]) -> Changed:
    """What stands for the readers of such definitions. The arguments are those of ``within_loops``."""
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


def narrowed_states(order: Sequence[Tensor], given: Members[Tensor], results: Members[Tensor]) -> Changed:
    """What stands for the readers of such tensors. The arguments are those of ``within_loops``."""
    own = [t for t in order if t not in given]
    positions = _state_positions(own, results)
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


def _state_positions(order: Sequence[Tensor], results: Members[Tensor]) -> dict[Tensor, Position]:
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
