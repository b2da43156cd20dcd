"""What a step reads along a slanted line of an array, as a row of that array with its lines laid straight, which is made once before the loop.

    A[i + 1, t - 2 * i]   at all i of a step   =   S[t + 2, i + 1],      S[u, k] = A[k, u - 2 * k]

A loop along diagonals, or along the slanted fronts of a sweep in place, reads what it began with, or a table of scores, by a gather in each step. ``S`` is views of the
array alone, and its row at ``t + 2`` is a slice; all reads of one slope share it, whatever their distances.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from jaxte.lang.expr import Axis, Expr, Read, as_expr, conjunction
from jaxte.lang.functions import select
from jaxte.lang.graphs import Members
from jaxte.lang.limits import MOST_LAID_OUT, MOST_LARGER
from jaxte.lang.walk import free_axes, reads_of, substitute
from jaxte.lower.cost.work import points
from jaxte.lower.recurrences.finals import Changed, changes
from jaxte.sets.affine import from_linear, normal
from jaxte.sets.index_forms import linear_or_none
from jaxte.sets.intervals import extent_of, known, reach
from jaxte.sets.linear import Linear
from jaxte.tensors.recurrences.node import Recurrence, State, recurrences_in
from jaxte.tensors.tensor import Compute, Tensor


@dataclass(frozen=True)
class _Line:
    """A read along a slanted line.

    Attributes:
        row: the dimension that goes along the line by itself.
        column: the one that moves with the clock, and by ``slope`` for each row.
        place: on which of the lines the read is.
    """

    read: Read
    row: int
    column: int
    slope: int
    place: Linear

    @property
    def key(self) -> tuple[Tensor, int, int, int]:
        return self.read.tensor, self.row, self.column, self.slope


def straightened(order: Sequence[Tensor], given: Members[Tensor]) -> Changed:
    """What stands for recurrences that have such reads. The arguments are those of ``within_loops``."""
    return dict(_straightened(tuple([t for t in order if t not in given])))


@lru_cache(maxsize=4)  # a forward pass with what it keeps has the tensors of the one without
def _straightened(own: Sequence[Tensor]) -> Changed:
    groups = recurrences_in(own)
    made = {group: _with_straight_reads(group) for group in groups}
    longer = {group: new for group, new in made.items() if new is not group}
    return changes(own, lambda tensor, _: tensor.body, longer) if longer else {}


def _with_straight_reads(group: Recurrence) -> Recurrence:
    lines: dict[tuple[Tensor, int, int, int], list[_Line]] = {}
    inside = {*group.inside, *group.states}
    for own, place in zip(group.definitions, group.places, strict=True):
        steps = points(own.axes)
        for read in reads_of(own.body):
            if read.tensor in inside or isinstance(read.tensor, State):
                continue
            line = _line(read, own.axes[place])
            if line is not None and _straight_size(line.read, [line]) <= steps:
                lines.setdefault(line.key, []).append(line)
    table: dict[Expr, Expr] = {}
    for every in lines.values():
        # Times that the straight array may be as large as the one that is read: its lines are longer than a step needs where the slope is steep.
        if _straight_size(every[0].read, every) <= MOST_LAID_OUT * _size(every[0].read.tensor):
            table.update(_straight_reads(every))
    if not table:
        return group
    definitions = tuple(
        d.renewed(substitute(d.body, table)) if any(r in table for r in reads_of(d.body)) else d
        for d in group.definitions
    )
    return Recurrence(group.states, definitions, group.places, group.reverse)


def _line(read: Read, clock: Axis) -> _Line | None:
    """The line along which ``read`` goes in a step; None if it is a slice already, or would be none."""
    if any(known(as_expr(e)) is None for e in read.tensor.shape):
        return None
    forms = [linear_or_none(index) for index in read.indices]
    for column, form in enumerate(forms):
        if form is None or not form.coefficient(clock):
            continue
        for row, other in enumerate(forms):
            if other is None or len(other.terms) != 1 or row == column:
                continue
            ((axis, factor),) = other.terms.items()
            slope = form.coefficient(axis) * factor
            if not isinstance(axis, Axis) or axis is clock or abs(factor) != 1 or not slope:
                continue
            place = form.plus(other, -slope)
            if _is_short(place, clock):
                return _Line(read, row, column, slope, place)
    return None


def _is_short(place: Linear, clock: Axis) -> bool:
    """Whether the lines that a step reads at once lie side by side, and are read by counters alone."""
    rest = place.without(clock)
    ends = reach(rest)
    if ends is None or reach(place) is None or any(not isinstance(a, Axis) for a in place.terms):
        return False
    # Times as many lines as a step reads, between the first and the last of them: further apart they do not lie side by side.
    return ends[1] - ends[0] < MOST_LARGER * points(free_axes(from_linear(rest)))


def _ends(lines: Sequence[_Line]) -> tuple[int, int]:
    """The first and the last of the lines that are read."""
    found = [ends for line in lines if (ends := reach(line.place)) is not None]
    return min(low for low, _ in found), max(high for _, high in found)


def _size(tensor: Tensor) -> int:
    return prod(extent_of(e) for e in tensor.shape)


def _straight_size(read: Read, lines: Sequence[_Line]) -> int:
    low, high = _ends(lines)
    others = prod(extent_of(e) for n, e in enumerate(read.tensor.shape) if n != lines[0].column)
    return (high - low + 1) * others


def _straight_reads(lines: Sequence[_Line]) -> dict[Expr, Expr]:
    first = lines[0]
    tensor, (low, high) = first.read.tensor, _ends(lines)
    line = Axis("line", 0, high - low + 1)
    rest = [Axis(f"i{n}", 0, as_expr(tensor.shape[n])) for n in range(tensor.ndim) if n != first.column]
    at: list[Expr] = [*rest]
    at.insert(first.column, line)
    column = normal(line + low + first.slope * at[first.row])
    at[first.column] = column
    inside = conjunction([column >= 0, column < tensor.shape[first.column]])
    straight = Compute(
        f"{tensor.name}_straight",
        [line, *rest],
        select(inside, Read(tensor, at), False if tensor.dtype == "bool" else 0),
    )
    found: dict[Expr, Expr] = {}
    for own in lines:
        others = [i for n, i in enumerate(own.read.indices) if n != own.column]
        found[own.read] = Read(straight, [normal(from_linear(own.place) - low), *others])
    return found
