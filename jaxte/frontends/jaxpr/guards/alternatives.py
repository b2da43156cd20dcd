"""Conditions under which an element is needed, as alternatives: sets of numbered conditions that hold together.

``where(a, where(b, f, g), 0)`` needs ``f`` where ``a`` and ``b`` hold. What all cases of a choice read is not left out by it: alternatives that differ
in nothing but the case of one choice are joined, so that a function that both sides read is needed wherever the choice around them takes one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from jaxte.frontends.jaxpr.equations.steps import Slot
from jaxte.frontends.jaxpr.rules.elementwise import ELEMENTWISE

Need = frozenset[frozenset[int]]
"""An element is needed where all conditions of one of these sets hold."""

WHOLE: Need = frozenset([frozenset()])
MASKS_MOVE = frozenset(["broadcast_in_dim", "reshape", "squeeze", "expand_dims", "transpose"])
_MOST_ALIKE = 3  # functions that a condition is made by, one after the other, and is told from others by
_REPEATED = frozenset([*ELEMENTWISE, *MASKS_MOVE])  # what makes conditions, and may be written twice
_MOST = 12  # alternatives, and conditions of one, beyond which they are one condition of their own


class Conditions:
    """Conditions by number: cases of choices, and others, which are told apart only by what they are."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._cases: dict[int, tuple[int, ...]] = {}
        self.all: list[Hashable] = []

    def number(self, condition: Hashable) -> int:
        """That of a condition, which is the same for equal ones."""
        found = self._numbers.setdefault(condition, len(self.all))
        if found == len(self.all):
            self.all.append(condition)
        return found

    def case(self, cases: Iterable[Hashable], taken: int) -> int:
        """The number of the case ``taken`` among all ``cases`` of a choice, of which exactly one holds at each element."""
        numbers = tuple(map(self.number, cases))
        self._cases |= dict.fromkeys(numbers, numbers)
        return numbers[taken]

    def both(self, need: Need, number: int) -> Need:
        """Where ``need`` and the condition hold."""
        return self._short(frozenset(own | {number} for own in need))

    def either(self, needs: Iterable[Need]) -> Need:
        """Where one of ``needs`` holds."""
        found = frozenset[frozenset[int]]().union(*needs)
        if len(found) > _MOST:
            return self._short(found)
        while (drop := next(self._droppable(found), None)) is not None:
            own, number = drop
            found = (found - {own}) | {own - {number}}
        return self._short(frozenset(own for own in found if not any(other < own for other in found)))

    def _droppable(self, found: Need) -> Iterator[tuple[frozenset[int], int]]:
        """Alternatives with a condition that makes no difference, since at its other cases the rest of them is enough as well."""
        for own, number in ((each, n) for each in in_order(found) for n in sorted(each)):
            rest, others = own - {number}, [n for n in self._cases.get(number, ()) if n != number]
            if others and all(any(other <= rest | {n} for other in found) for n in others):
                yield own, number

    def _short(self, need: Need) -> Need:
        if len(need) <= _MOST and all(len(own) <= _MOST for own in need):
            return need
        return frozenset([frozenset([self.number(need)])])


def in_order(need: Need) -> list[frozenset[int]]:
    """The alternatives in an order that is the same in every run."""
    return sorted(need, key=sorted)


def made_of(slot: Slot, most: int = _MOST_ALIKE) -> Hashable:
    """Equal for arrays that are one, or made of the same by the same functions."""
    if slot.known is not None:
        return slot.known.shape, str(slot.known.dtype), slot.known.tobytes()
    made = slot.origin
    if made is None or not most or made.name not in _REPEATED:
        return slot
    inputs = tuple(made_of(own, most - 1) for own in made.inputs)
    return made.name, tuple(sorted(made.eqn.params.items())), slot.shape, inputs
