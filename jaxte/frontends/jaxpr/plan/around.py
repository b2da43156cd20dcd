"""What is known of a jaxpr from where it stands: what loops and calls it is in, and what these give it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Any

from jax.core import Tracer

from jaxte.bridge.jaxprs import scan_counts
from jaxte.frontends.jaxpr.equations.steps import grouped
from jaxte.frontends.jaxpr.narrow.pairs import NOTHING_GIVEN, Given
from jaxte.frontends.jaxpr.plan.moving import LOOPS, Wanted, moving
from jaxte.lang.dtypes import is_inexact


@dataclass(frozen=True)
class Around:
    """Where a jaxpr stands.

    Attributes:
        inside: of another one.
        divided: over devices by a ``jax.shard_map``. It is not rewritten before: its axes have names only there.
        looped: it runs in each turn of a loop, where XLA does some primitives in other ways.
        given: the arguments of which it is known what they hold.
        same: how many first arguments are the same in all turns of the loop.
        flows: the arguments through which a derivative of any order may flow; None for all.
        told: a call of which the function around it has seen all steps, when it looked for slopes to be guarded.
    """

    inside: bool = False
    divided: bool = False
    looped: bool = False
    given: Given = field(default_factory=lambda: NOTHING_GIVEN)
    same: int = 0
    flows: Wanted = None
    told: bool = False

    @property
    def key(self) -> Hashable:
        """Equal for places of which the same is known."""
        given = tuple((n, hash(a.tobytes())) for n, a in self.given.items())
        return self.inside, self.divided, self.looped, given, self.same, self.flows, self.told

    def of_body(self, body: Any, eqn: Any, around: Any, given: Given, flows: Wanted) -> Around:
        """That of a ``body`` of ``eqn``, which stands in the jaxpr ``around``."""
        name = eqn.primitive.name
        inexact = sum(is_inexact(str(getattr(a, "dtype", ""))) for a in body.in_avals)
        return replace(
            self,
            inside=True,
            divided=self.divided or name == "shard_map",
            looped=self.looped or name in LOOPS,
            given=given,
            same=scan_counts(eqn.params)[0] if name == "scan" else 0,
            flows=None if flows is None or len(flows) == inexact else flows,
            told=grouped(eqn) is not None and not around.effects,
        )

    def flowing(self, closed: Any) -> set[Any] | None:
        """The variables of ``closed`` through which a derivative may flow; None for all, as where a function around it is differentiated by what it holds."""
        if any(isinstance(c, Tracer) for c in closed.consts):
            return None
        numbers = range(len(closed.jaxpr.invars)) if self.flows is None else self.flows
        return moving(closed.jaxpr, frozenset(numbers))
