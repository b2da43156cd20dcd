"""What every step from one definition to another one of the same value is: a rule with a name, by which it is switched off, and a reason."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from jaxte.lang.errors import JaxteError
from jaxte.lang.expr import Axis, Expr
from jaxte.lang.graphs import identical
from jaxte.lang.walk import free_axes

# set by the tests, so that all that is made in them is verified
VERIFY = bool(os.environ.get("JAXTE_VERIFY"))


class RuleError(JaxteError):
    """A rule gave something that has no meaning, or another one."""


class Asking(Protocol):
    """Who asks rules: which of them are not wanted, the names of those that changed something, which grow, and what is verified."""

    @property
    def without(self) -> frozenset[str]: ...

    @property
    def fired(self) -> list[str]: ...

    def verify(self, rule: str, before: Any, after: Any) -> None:
        """Raises a :class:`RuleError` where ``after`` cannot stand for ``before``; nothing unless it is to be verified."""


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
        if found is thing or (isinstance(found, tuple) and identical(found, thing)):
            return thing
        place.verify(self.name, thing, found)
        if self.name not in place.fired:
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


def verify_expr(rule: str, before: Expr, after: Expr, axes: Iterable[Axis] = ()) -> None:
    """Refuses an expression in place of another one that has another dtype, or that is over axes which that is not over and that are none of ``axes``.

    Raises:
        RuleError: with the name of the rule that gave it, which goes on without it.
    """
    if (before.dtype, before.weak) != (after.dtype, after.weak):
        raise fault(rule, f"{after.dtype} stands for {before.dtype}")
    known = {*free_axes(before), *axes}
    loose = [axis.name for axis in free_axes(after) if axis not in known]
    if loose:
        raise fault(rule, f"{', '.join(loose)} is bound by nothing")


def fault(rule: str, what: str) -> RuleError:
    return RuleError(
        f"{rule}: {what}, which is a fault of jaxte: please report it, and give te.function without={rule!r}"
    )
