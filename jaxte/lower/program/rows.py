"""The names of all rows that are chosen from while a program is made: steps of planning, passes, rewrites, ways of writing and forms.

Passes stand here in the order in which they are asked, before any definition is lowered. The names are what ``te.explain`` shows, and what ``without=`` takes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches

from jaxte.lang.errors import LoweringError
from jaxte.lang.rules import Rule
from jaxte.lower.apart.differences import APART
from jaxte.lower.apart.digit_sums import DIGITS
from jaxte.lower.apart.exponentials import EXPONENTIALS
from jaxte.lower.apart.mirrored import MIRRORED
from jaxte.lower.body.candidates import GENERAL
from jaxte.lower.cost.policy import Policy
from jaxte.lower.program.across.contractions_in_common import with_common_contractions
from jaxte.lower.program.across.first_hits import without_winners
from jaxte.lower.program.across.halos import with_halos, with_straight_reads
from jaxte.lower.program.across.pieces_within import with_pieces_within, with_windows_within
from jaxte.lower.program.across.products_in_common import with_shared_products
from jaxte.lower.program.across.segments import with_segments
from jaxte.lower.recurrences.before_loops import BEFORE
from jaxte.lower.rewrites.gather_layout import LAID_OUT
from jaxte.lower.rewrites.table import REWRITES
from jaxte.lower.rules.excluded_points import MASKED
from jaxte.lower.rules.extremum_passes import EACH
from jaxte.lower.rules.form_table import FAMILIES
from jaxte.lower.rules.gather_forms import GATHER
from jaxte.lower.rules.interleaved import INTERLEAVED
from jaxte.lower.rules.peeled_edges import PEELED, SURROUNDED
from jaxte.lower.tiles.band_matrices import BLOCKS
from jaxte.lower.tiles.functions_in_common import with_common_functions
from jaxte.lower.tiles.sizes import IN_STEPS, TILES
from jaxte.lower.tiles.tiling import Tiling
from jaxte.lower.views.rotated import ROTATIONS
from jaxte.planning.asked import verify_kind
from jaxte.planning.graph import STEPS
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
        "functions in common",
        lambda planned, at: with_common_functions(planned, at.policy),
        "a dear function that several products of matrices sum is computed once",
    ),
    Pass(
        "contractions in common",
        lambda planned, at: with_common_contractions(planned, at.policy),
        "a product of two arrays with which several sums begin is summed once",
    ),
    Pass(
        "windows within",
        lambda planned, at: with_windows_within(planned, at.results, at.policy),
        "functions of windows are computed within the sums over them, and are no arrays",
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
    Pass(
        "pieces within",
        lambda planned, at: with_pieces_within(planned, at.results, at.policy),
        "what one definition reads of pieces, element by element, is computed in these pieces",
    ),
)

_OTHER_FORMS = {
    GENERAL: "products of matrices, shifted sums, or a plain reduction",
    GATHER: "elements at positions that are data",
    INTERLEAVED: "pieces of a result by the remainder of a position",
    PEELED: "the interior and the edges of a result by themselves",
    SURROUNDED: "zeros around what is read beyond its edges",
    APART: "products of matrices with each side of a difference",
    IN_STEPS: "a loop over all of a result for each position that is reduced",
    TILES: "a part of the result after the other",
}
_WAYS = {
    MIRRORED: "what flows back from pairs to either point of them is one sum, of weights that are added",
    EXPONENTIALS: "sums of exponentials up to each position are carried on in units of the largest",
    DIGITS: "sums over positions that meet others digit by digit are sums over one digit after the other",
    BEFORE: "functions at edges that no state decides are computed before a loop, for all its steps",
    LAID_OUT: "tensors made of gathers have the dimensions in which a gather gives them",
    ROTATIONS: "axes that are read from another position on are read as they lie, and turned",
    MASKED: "sums of many shifts are computed for all of a result, and chosen from",
    EACH: "values that come with an extremum are reduced by a pass each",
    BLOCKS: "bands that exist in tiles only are blocks of matrices",
}
_FORMS = {form: family.name for family in FAMILIES for form in family.forms}


def rows() -> dict[str, list[tuple[str, str]]]:
    """For each kind of row the names in the order in which they are asked, with what each gains or belongs to."""
    return {
        "steps of planning": [(row.name, row.reason) for row in STEPS],
        "passes": [(row.name, row.reason) for row in PASSES],
        "rewrites": [(row.name, row.reason) for row in REWRITES],
        "ways of writing": list(_WAYS.items()),
        "forms": [*_FORMS.items(), *((n, r) for n, r in _OTHER_FORMS.items() if n not in _FORMS)],
    }


def check_rows(names: Iterable[str]) -> None:
    """Refuses a name that no row has.

    Raises:
        LoweringError: with the nearest name.
    """
    known = [name for own in rows().values() for name, _ in own]
    for name in sorted(names):
        if name not in known:
            near = get_close_matches(name, known, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else "te.explain shows those that were used, and"
            raise LoweringError(
                f"without has {name!r}, which is no step, pass, rewrite, way of writing or form; {hint} python -m jaxte rows lists all"
            )
