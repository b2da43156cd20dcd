"""All passes across the definitions of one program, in the order in which they are asked, before any of them is lowered."""

from __future__ import annotations

from dataclasses import dataclass, field

from jaxte.lang.rules import Rule
from jaxte.lower.cost.policy import Policy
from jaxte.lower.program.across.computed_once import with_shared_products
from jaxte.lower.program.across.first_hits import without_winners
from jaxte.lower.program.across.halos import with_halos, with_straight_reads
from jaxte.lower.program.across.segments import with_segments
from jaxte.lower.tiles.tiling import Tiling
from jaxte.planning.asked import verify_kind
from jaxte.tensors.tensor import Compute, Tensor


@dataclass(frozen=True)
class Within:
    """The program in which a pass is asked.

    Attributes:
        results: what the program returns.
        policy: how forms are chosen, and which passes are not wanted.
        fired: the names of the passes that changed something.
    """

    results: frozenset[Tensor]
    policy: Policy
    fired: list[str] = field(default_factory=list)

    @property
    def without(self) -> frozenset[str]:
        return self.policy.without

    def verify(self, rule: str, before: Tiling, after: Tiling) -> None:
        """Of each definition that has another one in its place, shape and dtype: to lowering, tensors are surrounded by zeros."""
        if self.policy.debug:
            for tensor, own in after.stand_ins.items():
                if tensor not in before.stand_ins and isinstance(tensor, Compute):
                    verify_kind(rule, tensor, own)


Pass = Rule[Tiling, Within]
PASSES = (
    Pass(
        "winners by comparison",
        lambda planned, at: without_winners(planned, at.results, at.policy),
        "gradients of maxima over windows side by side compare elements, and compute no winner",
    ),
    Pass(
        "products in common",
        lambda planned, at: with_shared_products(planned, at.results, at.policy),
        "a product that several sums read is computed once",
    ),
    Pass(
        "segments",
        lambda planned, at: with_segments(planned),
        "sums between bounds that move are sums of slices between fixed bounds",
    ),
    Pass(
        "straight reads",
        lambda planned, at: with_straight_reads(planned),
        "reads that wrap or are held at edges are slices of one copy with continued ends",
    ),
    Pass(
        "halos",
        lambda planned, at: with_halos(planned) if at.policy.facts.tests_pads else planned,
        "periodic reads at many positions are slices of one copy with a halo",
    ),
)
