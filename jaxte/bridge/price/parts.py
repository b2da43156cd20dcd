"""The functions that XLA on the CPU writes a loop as, and how often each of its operations is computed there.

What is read at one position by one function is a part of that function. What is read at several positions, or by several functions, is a function
of its own, which each of them calls; small ones are written into their callers, where equal ones are one. So a chain of which each link is read by
several that follow it is computed once for every way through it: the gradient of two conversions of colours, whose channels are branches of one
loop, computes some operations a thousand times for each element.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jaxte.bridge.price.operations import FOR_EACH, JOINS, REDUCTIONS, UPDATE, VIEWS, Operation
from jaxte.lower.cost.paces import SIZES

# who reads at other positions than its own, by which operand; -1 for the function itself
Place = tuple[Operation, int]
Places = dict[Place, float]
"""Where something is read, and how many elements are."""


def computed(members: Iterable[Operation], root: Operation, start: Places) -> dict[Operation, float]:
    """How many elements are computed of each of the ``members`` of a loop, whose ``root`` is read at ``start``."""
    order = sorted(members, key=lambda own: -own.rank)
    called = _called(order, root)
    places: dict[Operation, Places] = {root: start}
    for own in order:
        if own is not root:
            found = read_at(own, places)
            places[own] = {(own, -1): sum(found.values())} if own in called and len(found) > 1 else found
    return {own: sum(places[own].values()) for own in order}


def read_at(own: Operation, places: Mapping[Operation, Places]) -> Places:
    """Where what ``own`` makes is read by the operations in ``places``, which tells where each of these is read itself."""
    found: Places = {}
    for reader, n in own.made.readers:
        if reader in places:
            if _reads_at_its_own(reader):
                if not found:
                    found = {**places[reader]}
                    continue
                for place, count in places[reader].items():
                    found[place] = max(found.get(place, 0.0), count)
            else:
                found[reader, n] = read_by(reader, n, sum(places[reader].values()))
    return found


def read_by(reader: Operation, n: int, times: float) -> float:
    """How many elements of an operand are read where ``reader`` is computed for so many elements."""
    array, made = reader.inputs[n], reader.made
    if reader.name in REDUCTIONS:
        return times * array.size / max(1, made.size)
    if reader.name == "broadcast_in_dim" and _repeats_rows(reader):
        return times / made.shape[-1]  # computed before the innermost loop
    if reader.name in JOINS or reader.name == "pad" or (reader.name == "gather" and n == 1):
        return times * min(1.0, array.size / max(1, made.size))
    return float(array.size) if reader.name == UPDATE else times


def _repeats_rows(own: Operation) -> bool:
    """Whether a broadcast makes rows of one element each."""
    rank = len(own.made.shape)
    return rank > 0 and (
        rank - 1 not in own.params["broadcast_dimensions"] or own.inputs[0].shape[-1:] == (1,)
    )


def _reads_at_its_own(reader: Operation) -> bool:
    return reader.name in FOR_EACH or reader.name in VIEWS


def _called(order: list[Operation], root: Operation) -> set[Operation]:
    """What begins a function that is called by others, of the members of a loop in ``order``, readers first."""
    at: dict[Operation, Place] = {root: (root, -1)}
    function = {root: root}
    callers: dict[Operation, set[Operation]] = {root: set()}
    for own in order:
        if own is root:
            continue
        readers = {
            at[r] if _reads_at_its_own(r) else (r, n): function[r]
            for r, n in own.made.readers
            if r in function
        }
        if len(readers) == 1:
            ((at[own], function[own]),) = readers.items()
        else:
            at[own], function[own], callers[own] = (own, -1), own, set(readers.values())
    size = dict.fromkeys(callers, 0)
    for own in order:
        size[function[own]] += own.name not in VIEWS
    return _with_calls(callers, size) - {root}


def _with_calls(callers: Mapping[Operation, set[Operation]], size: dict[Operation, int]) -> set[Operation]:
    """The functions that stay, the innermost first: what is written into its callers makes them longer."""
    kept = set[Operation]()
    for own in sorted(callers, key=lambda f: f.rank):
        is_small = size[own] <= SIZES.called
        kept |= set() if is_small else {own}
        for caller in callers[own]:
            size[caller] += size[own] if is_small else 1
    return kept
