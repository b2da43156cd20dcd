"""The loops that XLA on the CPU fuses operations into, and how often each operation is computed there.

A loop begins at an operation that has to be an array, and takes in what it reads as long as that may be computed again for each of its
readers: nothing dear is computed twice, and nothing is written into one loop more than fifteen times, once for each place that it is read
at. So a sum of shifted reads of sums of shifted reads computes the inner ones for every way along which they are read. What is made of several
arrays is computed once for all readers where not all of them can take it in. Large sums and extrema
are done by a routine, which takes in what is computed for it alone, without choices: all else that it reads is an array.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from jaxte.bridge.price.operations import (
    BY_ROUTINE,
    FUSED,
    JOINS,
    REDUCTIONS,
    TAKEN_BY_ROUTINE,
    UPDATE,
    Array,
    Operation,
    is_dear,
    joined_along,
)
from jaxte.bridge.price.parts import Places, computed, read_at
from jaxte.lang.limits import BEHIND
from jaxte.lower.cost.paces import SIZES


@dataclass(eq=False)
class Loop:
    """What is computed together.

    Attributes:
        root: what it makes.
        times: elements that are computed of each operation in it.
        written: copies of each in its text.
    """

    root: Operation
    times: dict[Operation, float] = field(default_factory=dict)
    written: dict[Operation, int] = field(default_factory=dict)
    _places: dict[Operation, Places] = field(default_factory=dict)
    _updated: list[Array] = field(default_factory=list)

    def __post_init__(self) -> None:
        update = self.root.name == UPDATE  # which is written into the array that is there
        size = self.root.inputs[1].size if update else self.root.made.size
        self.take(self.root, {(self.root, -1): float(size)}, 1)

    @property
    def is_routine(self) -> bool:
        """Whether a routine does all of it: a large reduction of floats."""
        array = self.root.inputs[0]
        return self.root.name in BY_ROUTINE and array.item > 1 and array.size > SIZES.reduced

    def take(self, own: Operation, places: Places, written: int) -> None:
        """``own`` is computed in it, for what is read at ``places``, and is ``written`` so many times."""
        self._places[own] = places
        if own.name == UPDATE:
            self._updated.append(own.inputs[0])
        self.times[own] = sum(places.values())
        self.written[own] = written

    def writes_into(self, array: Array) -> bool:
        """Whether an update in it writes into ``array``, which then is one before the loop begins."""
        return array in self._updated

    def places(self, own: Operation) -> Places:
        """Where what ``own`` makes is read in it, and how many elements are."""
        return read_at(own, self._places)

    def settle(self) -> None:
        """Nothing more is taken in, so that it is known which functions it is written as."""
        self.times = computed(self.times, self.root, self._places[self.root])

    def reads(self) -> Iterator[tuple[Operation, int, Array]]:
        """What its operations read of arrays."""
        for own in self.times:
            for n, array in enumerate(own.inputs):
                inside = array.maker is not None and (array.maker in self.times or array.maker.is_known)
                if array.size > 1 and not inside:
                    yield own, n, array


def loops(order: Sequence[Operation]) -> list[Loop]:
    """The loops of a program, whose operations are in order."""
    readers = {own: {reader for a in own.outputs for reader, _ in a.readers} for own in order}
    fusable = frozenset([own for own in order if _may_be_fused(own)])
    by_routine = frozenset([own for own in fusable if _is_taken_by_routine(own)])
    once = frozenset([own for own in fusable if _is_once(own, fusable)])
    found = []
    for own in reversed(order):
        needed = bool(readers[own]) or any(a.is_result for a in own.outputs)
        number = own.made.size <= 1 and own.name not in REDUCTIONS if own.outputs else True
        if own.name in FUSED and needed and not own.is_known and not number:
            loop = Loop(own)
            _fuse(loop, readers, by_routine if loop.is_routine else fusable, once)
            loop.settle()
            found.append(loop)
            _settle(loop, readers)
    return found


def _fuse(
    loop: Loop,
    readers: dict[Operation, set[Operation]],
    fusable: frozenset[Operation],
    once: frozenset[Operation],
) -> None:
    """Takes in what the root reads of ``fusable``, the last first, so that all of its readers are in; what is computed ``once`` only with all readers."""
    seen: set[Operation] = set()
    waiting: list[tuple[int, Operation]] = []

    taken: Operation | None = loop.root
    while taken is not None or waiting:
        if taken is not None:
            for n, array in enumerate(taken.inputs):
                maker = array.maker
                in_place = n == 0 and taken.name == UPDATE
                if maker in fusable and maker not in seen and array.size > 1 and not in_place:
                    seen.add(maker)
                    heappush(waiting, (-maker.rank, maker))
            taken = None
            continue
        _, own = heappop(waiting)
        places = {} if loop.writes_into(own.made) else loop.places(own)
        written = sum([loop.written[reader] for reader, _ in places])
        others = own.made.is_result or not readers[own] <= loop.times.keys()
        if places and _is_taken(own, loop, places, written, others, own in once):
            loop.take(own, places, written)
            taken = own


def _may_be_fused(own: Operation) -> bool:
    """Whether a loop may take ``own`` in, but one that a routine does."""
    if own.name not in FUSED or own.name in REDUCTIONS or own.name == UPDATE:
        return False
    if own.is_known or len(own.outputs) != 1:
        return False
    return own.name not in JOINS or joined_along(own) != len(own.made.shape) - 1


def _is_taken_by_routine(own: Operation) -> bool:
    """Whether the routine for a reduction computes ``own`` with it; of transpositions only what is reduced at once, whose axes change places."""
    if own.name == "transpose" and any(reader.name not in REDUCTIONS for reader, _ in own.made.readers):
        return False
    return own.name in TAKEN_BY_ROUTINE and not _is_choice(own)


def _is_choice(own: Operation) -> bool:
    """Whether ``own`` makes numbers of a condition, or multiplies by such numbers, which XLA writes as a choice."""
    if own.name == "convert_element_type":
        return own.inputs[0].item == 1
    makers = [a.maker for a in own.inputs if a.maker is not None] if own.name == "mul" else []
    return any(maker.name == "convert_element_type" and maker.inputs[0].item == 1 for maker in makers)


def _is_taken(own: Operation, loop: Loop, places: Places, written: int, others: bool, once: bool) -> bool:
    """Whether ``own`` is computed in ``loop``, where ``others`` may read it, too: not if it would be ``written`` too often, or something dear be
    computed twice.
    """
    parts = len(own.inputs) if own.name in JOINS else 1
    if written * parts > SIZES.written:
        return False
    if others and loop.is_routine:
        return False
    if is_dear(own) and (others or sum(places.values()) > 1.01 * written * own.made.size):
        return False
    return not (others and once)


def _is_once(own: Operation, fusable: frozenset[Operation]) -> bool:
    """Whether what is made of several arrays is computed once for all of its readers, because one of them is no loop that may take it in, or reads
    it again through what is an array in any case: ``u + f(stack(u, ...))`` after each step.
    """
    if len({id(a) for a in own.inputs if a.size > 1}) < 2:
        return False
    if own.made.is_result or any(
        r.name not in FUSED or (r.name == UPDATE and n == 0) for r, n in own.made.readers
    ):
        return True
    return _is_read_through_array(own, fusable)


def _is_read_through_array(own: Operation, fusable: frozenset[Operation]) -> bool:
    """Whether one of the readers of ``own`` also reads something made of it that is no part of its loop."""
    direct = {reader for reader, _ in own.made.readers}
    if len(direct) < 2:
        return False
    last = max(reader.rank for reader in direct)
    seen: set[tuple[Operation, bool]] = set()
    waiting = [(reader, False) for reader in direct]
    # Operations between an array and its last reader.
    while waiting and len(seen) < BEHIND:
        step, behind = waiting.pop()
        if behind and step in direct:
            return True
        if step.rank < last and (step, behind) not in seen:
            seen.add((step, behind))
            behind = behind or step not in fusable
            waiting += [(reader, behind) for array in step.outputs for reader, _ in array.readers]
    return False


def _settle(loop: Loop, readers: dict[Operation, set[Operation]]) -> None:
    """From now on the loop reads what its operations read; those that nothing else needs are gone."""
    for own in loop.times:
        if own is not loop.root:
            readers[own] -= loop.times.keys()
    for own in loop.times:
        gone = own is loop.root or not (readers[own] or own.made.is_result)
        for array in own.inputs:
            maker = array.maker
            if maker is not None and gone:
                readers[maker].discard(own)
            if maker is not None and maker not in loop.times:
                readers[maker].add(loop.root)
