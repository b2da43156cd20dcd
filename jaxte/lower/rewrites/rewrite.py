"""Rules for the bodies of definitions that are about to be lowered."""

from __future__ import annotations

from dataclasses import dataclass, field

from jaxte.lang.expr import Axis, Expr
from jaxte.lang.rules import Rule, verify_expr
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
        fired: the names of the rewrites that changed something.
    """

    axes: tuple[Axis, ...]
    scope: Scope
    policy: Policy
    in_tiles: bool = False
    fired: list[str] = field(default_factory=list)

    @property
    def without(self) -> frozenset[str]:
        return self.policy.without

    def verify(self, rule: str, before: Expr, after: Expr) -> None:
        if self.policy.debug:
            verify_expr(rule, before, after, self.axes)


@dataclass(frozen=True)
class Rewrite(Rule[Expr, Place]):
    """A rule from an expression to another one with the same value.

    Attributes:
        in_tiles: whether it applies to blocks of larger tensors too.
    """

    in_tiles: bool = True

    def is_for(self, place: Place) -> bool:
        return self.in_tiles or not place.in_tiles
