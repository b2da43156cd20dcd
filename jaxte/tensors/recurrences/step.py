"""What one position of a recurrence is: the tensors that it computes, what it is handed, and what it results in.

Few elements of an array that a step reads from one on that the clock moves, ``x[t + k]`` with few ``k``, are a window of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from jaxte.lang.errors import DefinitionError
from jaxte.lang.expr import Axis, Expr, Read, as_expr
from jaxte.lang.graphs import reached
from jaxte.lang.limits import MOST_LARGER
from jaxte.lang.text import text
from jaxte.lang.walk import free_axes, reads_of
from jaxte.sets.affine import from_linear, linear, normal
from jaxte.sets.index_forms import linear_or_none
from jaxte.sets.intervals import highest, index_stays_in, known, lowest
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.recurrences.earlier import offset_from
from jaxte.tensors.recurrences.node import Recurrence, Recurrent, State
from jaxte.tensors.tensor import Compute, Tensor

Carried = tuple[State, int]
"""A state and how many steps ago it was that."""


@dataclass(frozen=True)
class Slice:
    """``source`` at ``positions``, expressions of the clock, along the dimensions that are its keys; from there on, where it has a length."""

    source: Tensor
    positions: dict[int, Expr]
    lengths: dict[int, int] = field(default_factory=dict)

    @property
    def key(self) -> tuple[Tensor, tuple[tuple[int, str], ...], tuple[tuple[int, int], ...]]:
        """What tells it apart from other slices of the same tensor, whatever step it is of."""
        positions = tuple((n, text(position)) for n, position in self.positions.items())
        return self.source, positions, tuple(self.lengths.items())


@dataclass(frozen=True)
class Step:
    """One position.

    Attributes:
        clock: the position, as an axis.
        now: the same as data.
        order: the tensors of one step, each after what it reads.
        results: what each definition is at the position.
        carried: what the step is handed of earlier ones.
        slices: what it is handed of other tensors.
        before: of states that have values before the first position, the tensor of these, as long as the state looks back.
        history: of states that are read at positions that no fixed number of steps lies between, what is handed on of all positions so far.
    """

    clock: Axis
    now: Placeholder
    order: list[Compute | Recurrent]
    results: list[Compute]
    carried: dict[Carried, Placeholder]
    slices: dict[Placeholder, Slice]
    before: dict[State, Tensor]
    history: dict[State, Placeholder]

    def only(self, wanted: Sequence[Compute]) -> Step:
        """The same without tensors that are none of ``wanted``, and that these need not."""
        own: set[Tensor] = set(self.order)
        roots: list[Tensor] = [*wanted]
        needed = reached(roots, lambda tensor: [t for t in tensor.inputs if t in own])
        return replace(self, order=[t for t in self.order if t in needed])

    def renewed(self, order: Sequence[Tensor], known: Mapping[Tensor, Tensor]) -> Step:
        """The same with the tensors ``order``, and results that are what ``known`` says."""
        results = [known.get(t, t) for t in self.results]
        return replace(
            self,
            order=[t for t in order if isinstance(t, (Compute, Recurrent))],
            results=[t for t in results if isinstance(t, Compute)],
        )

    def depth(self, state: State) -> int:
        """How many steps ``state`` is carried for."""
        return max((lag for own, lag in self.carried if own is state), default=0)


@dataclass(frozen=True)
class Window:
    """``length`` elements from ``start`` on, read at ``rest`` within."""

    start: Expr
    length: int
    rest: Expr


def window_of(index: Expr, extent: int | Expr, clock: Axis) -> Window | None:
    """The elements along an axis of ``extent`` elements of which ``index`` is at all points of a position of ``clock``."""
    form = linear_or_none(index)
    if form is None or reads_of(index):
        return None
    moved = form.coefficient(clock)
    rest = linear(normal(index - moved * clock))
    axes = free_axes(from_linear(rest))
    low, high = lowest(rest), highest(rest)
    if not moved or clock in axes or low is None or high is None:
        return None
    if not low.is_constant or not high.is_constant:
        return None
    length = int(high.constant - low.constant) + 1
    own = [known(a.extent) for a in axes]
    # How many elements of a window there may be for each that is read.
    if any(n is None for n in own) or length > MOST_LARGER * prod(n for n in own if n is not None):
        return None
    start = normal(clock * moved + low.constant)
    if not all(index_stays_in(e, as_expr(extent)) for e in (start, start + (length - 1))):
        return None
    return Window(start, length, normal(from_linear(rest) - low.constant))


def lag_of(read: Read, name: str, group: Recurrence, clock: Axis) -> int:
    """How many steps before that of ``name``, a definition of ``group``, the ``read`` of a state is.

    Raises:
        DefinitionError: no fixed number of steps, or a position that comes after.
    """
    index = read.indices[group.place_of(read.tensor)]
    offset = offset_from(clock, index)
    form = None if offset is None else linear_or_none(offset)
    if form is None or not form.is_constant:
        raise DefinitionError(
            f"{name} reads {text(read)}: along {clock.name} a recurrence reads its tensors a fixed number of positions "
            f"before, as [{clock.name} {'+' if group.reverse else '-'} 1], or at others that are {'later' if group.reverse else 'earlier'} under the "
            "conditions around the read"
        )
    lag = form.constant if group.reverse else -form.constant
    if lag < 0:
        raise not_known_yet(name, read, clock, group.reverse)
    return int(lag)


def not_known_yet(name: str, read: Read, clock: Axis, reverse: bool) -> DefinitionError:
    """The error of a read of a state at a position that comes after its own."""
    word, end = ("an earlier", "first") if reverse else ("a later", "last")
    return DefinitionError(
        f"{name} reads {text(read)}, {word} position along {clock.name}, which is not known yet; if all reads are of "
        f"{word} ones, begin at the {end} with reverse={not reverse}"
    )
