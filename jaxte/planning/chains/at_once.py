"""Recurrences that look back several positions at least, as ones of blocks of as many: no element of a block is read by another one of it.

    y[t] = x[t] + g * y[t - 37]     ->     Y[q, p] = x[37 * q + p] + g * Y[q - 1, p],   y[t] = Y[t // 37, t % 37]

A loop of blocks has so many fewer steps. What is read further back than a block begins in one block and ends in the next one. The positions behind the last
whole block read none of each other either, and are definitions of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from jaxte.lang.errors import DefinitionError
from jaxte.lang.expr import Axis, Expr, Read, as_expr, call, cast, conjunction
from jaxte.lang.operators import SELECT
from jaxte.lang.walk import reads_of, substitute
from jaxte.planning.chains.looking_back import Looking, has_parts_of_its_own
from jaxte.sets.affine import normal
from jaxte.sets.intervals import known
from jaxte.sets.resolved import decided
from jaxte.tensors.compute import extract_reductions
from jaxte.tensors.recurrences.node import Recurrence, State
from jaxte.tensors.recurrences.starts import guarded_read, inside
from jaxte.tensors.recurrences.steps import step_of
from jaxte.tensors.tensor import Compute, Tensor

Positions = tuple[Expr, Expr]
"""A block, and a place in it."""


def in_blocks(group: Recurrence) -> Sequence[Tensor] | None:
    """What stands for the tensors of ``group``; None where it looks back a single position, or no fixed number of them."""
    blocks = Blocks.of(group)
    return None if blocks is None else blocks.tensors()


@dataclass(frozen=True, eq=False)
class Blocks:
    """A recurrence in blocks of ``size`` positions.

    Attributes:
        back: how the recurrence looks back.
        extent: its number of positions.
    """

    back: Looking
    extent: int
    size: int
    _begun: dict[State, Tensor] = field(default_factory=dict)
    _behind: dict[int, Compute] = field(default_factory=dict)

    @classmethod
    def of(cls, group: Recurrence) -> Blocks | None:
        """``group`` in blocks; None where it looks back a single position, or no fixed number of them."""
        extent = known(as_expr(group.extent))
        if extent is None or type(group) is not Recurrence or not has_parts_of_its_own(group):
            return None
        back = Looking.of(group)
        try:
            lags = {*back.lags.values()} - {0}
        except LookupError:
            return None
        size = min([extent // 2, *lags]) if lags else 0
        return cls(back, extent, size) if size > 1 else None

    @property
    def group(self) -> Recurrence:
        return self.back.group

    @property
    def count(self) -> int:
        """How many whole blocks there are."""
        return self.extent // self.size

    @property
    def rest(self) -> int:
        """How many positions are in none: the last ones, of a recurrence from the other end the first ones."""
        return self.extent % self.size

    @property
    def first(self) -> int:
        """The position that the first block begins at."""
        return self.rest if self.group.reverse else 0

    def tensors(self) -> list[Tensor]:
        """What stands for the tensors of the recurrence; they themselves where a block cannot be computed by what is before it."""
        states = tuple(self._state(n) for n in range(len(self.group.states)))
        definitions = tuple(self._of_blocks(n, states) for n in range(len(states)))
        made = Recurrence(states, definitions, self.group.places, self.group.reverse)
        try:
            step_of(made)
        except DefinitionError:
            return [*self.group.tensors]
        return [self._whole(n, made.tensors) for n in range(len(states))]

    def _state(self, number: int) -> State:
        own, place = self.group.states[number], self.group.places[number]
        shape = (*own.shape[:place], self.count, self.size, *own.shape[place + 1 :])
        return State(f"{own.name}_blocks", shape, own.dtype)

    def _of_blocks(self, number: int, states: Sequence[Tensor]) -> Compute:
        """The definition of the tensor with that number, of all blocks."""
        clock = self.back.clocks[number]
        along = Axis(f"{clock.name}_block", 0, self.count), Axis(clock.name, 0, self.size)
        body = self._body(number, along, states, lambda other: (states[other], along))
        return self._over(number, states[number].name, along, body)

    def _rest(self, number: int, blocks: Sequence[Tensor]) -> Compute:
        """The definition of the tensor with that number, of the positions that are in no block, which are at the beginning or the end of one more."""
        if number not in self._behind:
            place = Axis(self.back.clocks[number].name, 0, self.rest)
            at = (
                (as_expr(-1), place + (self.size - self.rest))
                if self.group.reverse
                else (as_expr(self.count), place)
            )
            body = self._body(number, at, blocks, lambda other: (self._rest(other, blocks), (place,)))
            self._behind[number] = self._over(
                number, f"{self.group.states[number].name}_rest", (place,), decided(body)
            )
        return self._behind[number]

    def _whole(self, number: int, blocks: Sequence[Tensor]) -> Compute:
        """All positions."""
        own, clock = self.group.definitions[number], self.back.clocks[number]
        since = normal(clock - self.first)
        body: Expr = Read(
            blocks[number], self._indices(number, own.axes, (since // self.size, since % self.size))
        )
        if self.rest:
            in_a_block = clock >= self.first if self.group.reverse else clock < self.count * self.size
            start = 0 if self.group.reverse else self.count * self.size
            behind = Read(
                self._rest(number, blocks), self._indices(number, own.axes, (normal(clock - start),))
            )
            body = call(SELECT, in_a_block, body, behind)
        return self._over(
            number, self.group.states[number].name, (Axis(clock.name, 0, self.extent),), body
        ).with_facts(own.facts)

    def _indices(self, number: int, indices: Sequence[Expr], along: Sequence[Expr]) -> list[Expr]:
        """``indices`` of a tensor of the recurrence, with others ``along`` the recurrence."""
        place = self.group.places[number]
        return [*indices[:place], *along, *indices[place + 1 :]]

    def _over(self, number: int, name: str, along: Sequence[Axis], body: Expr) -> Compute:
        """A definition over the axes of a tensor of the recurrence, with others ``along`` it."""
        own = self.group.definitions[number].axes
        table: dict[Expr, Expr] = {
            a: Axis(a.name, a.lo, a.hi) for a in own if a is not self.back.clocks[number]
        }
        if len(along) == 1:
            table[self.back.clocks[number]] = along[0]
        axes = tuple(
            a for a in self._indices(number, [table.get(a, a) for a in own], along) if isinstance(a, Axis)
        )
        return Compute(name, axes, extract_reductions(name, axes, substitute(body, table)))

    def _body(
        self,
        number: int,
        at: Positions,
        blocks: Sequence[Tensor],
        now: Callable[[int], tuple[Tensor, Sequence[Expr]]],
    ) -> Expr:
        """The body of the tensor with that number ``at`` a place of a block.

        Args:
            blocks: what earlier positions are read from.
            now: a tensor of the recurrence at the same place, with what stands in its indices for that.
        """
        back, table = self.back, {}
        for read in reads_of(back.bodies[number]):
            if read.tensor not in back.numbers:
                continue
            if back.lags[read]:
                table[read] = self._earlier(read, at, blocks)
            else:
                tensor, along = now(back.numbers[read.tensor])
                table[read] = Read(tensor, self._indices(back.numbers[read.tensor], read.indices, along))
        block, place = at
        body = substitute(back.bodies[number], table)
        return substitute(body, {back.clocks[number]: normal(self.size * block + place + self.first)})

    def _earlier(self, read: Read, at: Positions, blocks: Sequence[Tensor]) -> Expr:
        """What ``read`` is, ``at`` a place of a block: of a block before, or of the one before that where it is further back than that begins."""
        block, place = at
        ago, within = divmod(self.back.lags[read], self.size)
        if not self.group.reverse:
            ago, within = -ago, -within
        whole = self._element(read, (block + ago, place + within), blocks)
        if not within:
            return whole
        over = self.size if self.group.reverse else -self.size
        test = place < self.size - within if self.group.reverse else place >= -within
        step = 1 if self.group.reverse else -1
        return call(
            SELECT, test, whole, self._element(read, (block + ago + step, place + within - over), blocks)
        )

    def _element(self, read: Read, at: Positions, blocks: Sequence[Tensor]) -> Expr:
        """What ``read`` is of another place of a block, or what stands before the first one where it says so."""
        number = self.back.numbers[read.tensor]
        own, place = self.group.states[number], self.group.places[number]
        found = Read(blocks[number], self._indices(number, read.indices, [normal(e) for e in at]))
        if read.tensor not in self.back.guarded:
            return found
        if own in self.back.starts.tensors:
            return guarded_read(blocks[number], place, found, self._before(own), self.group.reverse)
        return call(SELECT, inside(found, place, self.group.reverse), found, cast(as_expr(0), own.dtype))

    def _before(self, state: State) -> Tensor:
        """The values before the first position, in blocks."""
        if state not in self._begun:
            given, number = self.back.starts.tensors[state], self.group.numbers[state]
            place = self.group.places[number]
            length = as_expr(given.shape[place])
            lags = [lag for r, lag in self.back.lags.items() if self.back.guarded.get(r.tensor) == number]
            axes = [Axis(a.name, a.lo, a.hi) for a in self.group.definitions[number].axes]
            along = Axis("block", 0, -(-max(lags) // self.size)), Axis(axes[place].name, 0, self.size)
            at = normal(
                self.size * along[0]
                + along[1]
                + (0 if self.group.reverse else length - self.size * along[0].hi)
            )
            body = Read(given, self._indices(number, axes, [at]))
            known_there = conjunction([at >= 0, at < length])
            own = [a for a in self._indices(number, axes, along) if isinstance(a, Axis)]
            self._begun[state] = Compute(
                f"{given.name}_blocks",
                own,
                decided(call(SELECT, known_there, body, cast(as_expr(0), state.dtype))),
            )
        return self._begun[state]
