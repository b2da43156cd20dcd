"""What every rewrite is: a rule from a definition to another one with the same value, with its name and its reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jaxte.lang.expr import Axis, Expr
from jaxte.lower.cost.policy import Policy
from jaxte.lower.views.scope import Scope


@dataclass(frozen=True)
class Place:
    """Where a rewrite is asked.

    Attributes:
        axes: those of the tensor whose body it is.
        scope: what its axes stand for.
        policy: how forms are chosen, and which rewrites are not wanted.
        in_tiles: whether the tensor is one block of a larger one.
    """

    axes: tuple[Axis, ...]
    scope: Scope
    policy: Policy
    in_tiles: bool = False


@dataclass(frozen=True)
class Rewrite:
    """A rule from an expression to another one with the same value.

    Attributes:
        name: what ``te.explain`` calls it, and ``without=`` switches off.
        rule: gives the expression itself where it does not apply.
        reason: what is gained.
        in_tiles: whether it applies to blocks of larger tensors too.
    """

    name: str
    rule: Callable[[Expr, Place], Expr]
    reason: str
    in_tiles: bool = True

    def at(self, expr: Expr, place: Place) -> Expr:
        """``expr`` by the rule, or itself where the rewrite is not wanted or does not apply."""
        if self.name in place.policy.without or (place.in_tiles and not self.in_tiles):
            return expr
        return self.rule(expr, place)


def rewritten(expr: Expr, rewrites: Sequence[Rewrite], place: Place) -> tuple[Expr, list[str]]:
    """``expr`` by each of ``rewrites`` in turn, and the names of those that changed it."""
    fired = []
    for rewrite in rewrites:
        found = rewrite.at(expr, place)
        if found is not expr:
            fired.append(rewrite.name)
        expr = found
    return expr, fired
