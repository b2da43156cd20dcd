"""What every step from one definition to another one of the same value is: a rule with a name, by which it is switched off, and a reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


class Asking(Protocol):
    """Who asks rules: which of them are not wanted, and the names of those that changed something, which grow."""

    @property
    def without(self) -> frozenset[str]: ...

    @property
    def fired(self) -> list[str]: ...


Thing = TypeVar("Thing")
Place = TypeVar("Place", bound=Asking, contravariant=True)


@dataclass(frozen=True)
class Rule(Generic[Thing, Place]):
    """A rule from something to another one with the same value.

    Attributes:
        name: what ``te.explain`` calls it, and ``without=`` switches off.
        apply: gives the thing itself where the rule does not apply.
        reason: what is gained.
    """

    name: str
    apply: Callable[[Thing, Place], Thing]
    reason: str

    def at(self, thing: Thing, place: Place) -> Thing:
        """``thing`` by the rule, or itself where the rule is not wanted or does not apply."""
        if self.name in place.without or not self.is_for(place):
            return thing
        found = self.apply(thing, place)
        if found is not thing and self.name not in place.fired:
            place.fired.append(self.name)
        return found

    def is_for(self, place: Place) -> bool:
        """Whether the rule is asked at ``place`` at all."""
        return True


def applied(thing: Thing, rules: Iterable[Rule[Thing, Place]], place: Place) -> Thing:
    """``thing`` by each of ``rules`` in turn."""
    for rule in rules:
        thing = rule.at(thing, place)
    return thing
