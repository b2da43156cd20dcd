"""All families of forms that a whole reduction may have, as one table: which reductions each is asked about, how it recognises
them, and the ways that it offers to write them. The choice among them is made here, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jaxte.lang.expr import Expr, Reduce
from jaxte.lang.limits import MOST_PARTS
from jaxte.lang.walk import free_axes, reads_data, reads_of, substitute
from jaxte.lower.body.candidates import GENERAL, Candidate, Search, Wanted, choose
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.spec import Refusal
from jaxte.lower.cost.general import general_work
from jaxte.lower.cost.policy import signature
from jaxte.lower.cost.work import points
from jaxte.lower.forms.band import recognise as band
from jaxte.lower.forms.band.recognise import recognise_band
from jaxte.lower.forms.conv import candidates as conv
from jaxte.lower.forms.conv.lines import candidates as toeplitz
from jaxte.lower.forms.conv.recognise import match_convolution
from jaxte.lower.forms.data import scatters as scatter
from jaxte.lower.forms.data.masked import (
    MASKED,
    OF_TABLE,
    mask_candidates,
    recognise_mask,
    recognise_table,
    table_candidates,
)
from jaxte.lower.forms.data.recognise import SCATTER, recognise_scatter
from jaxte.lower.forms.scan import candidates as scan
from jaxte.lower.forms.scan.recognise import recognise_scan
from jaxte.lower.forms.window import candidates as window
from jaxte.lower.forms.window import unrolled as short
from jaxte.lower.forms.window import write as windows
from jaxte.lower.forms.window.recognise import recognise_window
from jaxte.lower.views.scope import Scope


@dataclass(frozen=True)
class Family:
    """One row.

    Attributes:
        name: what ``te.explain`` calls it where it refuses.
        asked: which reductions it is asked about.
        recognise: the specification of such a reduction, or the reason for refusing.
        ways: the candidates that a specification has.
        forms: all names that these may have.
        alone: whether nothing else, the general path included, is asked where it recognises the reduction.
        unless: a family in whose place this one stands, asked where that one recognises nothing.
    """

    name: str
    asked: Callable[[Body, Wanted], bool]
    recognise: Callable[[Wanted], Any | Refusal]
    ways: Callable[[Body, Any, Wanted], Iterator[Candidate]]
    forms: tuple[str, ...]
    alone: bool = False
    unless: str = ""


def _is_told_by_data(body: Body, wanted: Wanted) -> bool:
    """Sums at positions that are data have conditions that read them."""
    return not wanted.guards and any(reads_of(c) for c in wanted.conditions)


def _is_chosen_by_data(body: Body, wanted: Wanted) -> bool:
    """Data choose, for each row of the result, what is summed."""
    own = body.policy.facts.lays_out_sums and MASKED not in body.policy.without
    alone = own and not wanted.guards and not wanted.mixes
    return alone and (_is_told_by_data(body, wanted) or wanted.chooses)


def _is_read_at_data(body: Body, wanted: Wanted) -> bool:
    """What is summed is read at data for each row of the result."""
    own = body.policy.facts.branches and body.policy.facts.lays_out_sums
    return (
        own
        and not (wanted.guards or wanted.slides or body.in_tiles)
        and any(map(reads_data, wanted.node.exprs))
    )


def _is_bounded_by_axes(body: Body, wanted: Wanted) -> bool:
    """The bounds of a cumulative reduction move with the result."""
    return not wanted.guards and any(len(free_axes(c)) > 1 for c in wanted.chosen)


def _is_sum(body: Body, wanted: Wanted) -> bool:
    return wanted.node.is_sum


def _is_apart(body: Body, wanted: Wanted) -> bool:
    """Reductions of whole axes, and sums of what a view of a tensor holds at chosen positions."""
    if wanted.guards or body.in_tiles:
        return False
    if wanted.mixes:
        return wanted.is_product and wanted.is_of_digits and wanted.chooses
    return 1 < points(wanted.node.axes)


def _slides(wanted: Wanted) -> bool:
    """Digits of one number are a view, and what is left of a product of them is one of matrices."""
    return wanted.mixes and not (wanted.is_product and wanted.is_of_digits)


def _is_convolved(body: Body, wanted: Wanted) -> bool:
    return _slides(wanted) and (wanted.is_product or bool(wanted.guards))


def _is_windowed(body: Body, wanted: Wanted) -> bool:
    return _slides(wanted) and not wanted.guards


FAMILIES = (
    Family(
        SCATTER,
        _is_told_by_data,
        lambda w: recognise_scatter(w.axes, w.node),
        scatter.scatter_candidates,
        (SCATTER, scatter.ONE_HOT),
        alone=True,
    ),
    Family("masked", _is_chosen_by_data, recognise_mask, mask_candidates, (MASKED,), alone=True),
    Family("rows of a table", _is_read_at_data, recognise_table, table_candidates, (OF_TABLE,), alone=True),
    Family(
        "scan",
        _is_bounded_by_axes,
        lambda w: recognise_scan(w.axes, w.node),
        scan.scan_candidates,
        (scan.SCAN, scan.ASSOCIATIVE, scan.SEQUENTIAL, scan.BLOCKED, scan.WRITTEN),
        alone=True,
    ),
    Family(
        "block-skew",
        _is_sum,
        lambda w: recognise_band(w.axes, w.node, w.guards),
        band.band_candidates,
        (band.BLOCKS, band.SLICES),
    ),
    Family(
        "written out",
        _is_apart,
        lambda w: short.written_out(w.axes, w.node),
        short.short_candidates,
        (short.WRITTEN_OUT,),
    ),
    Family(
        "convolution",
        _is_convolved,
        lambda w: match_convolution(w.axes, w.node, w.guards),
        conv.convolution_candidates,
        (
            *(conv.CONVOLUTION, conv.GROUPED, conv.GROUPS_OF_BATCH, conv.PER_GROUP, conv.CLASSES),
            *(conv.FOLDED, conv.FOLDED_GROUPS, conv.IMAGES),
            *(conv.ONE_PASS, conv.TWO_STACKS, conv.ROWS, toeplitz.MATRIX, toeplitz.DIAGONALS),
            *(toeplitz.BLOCKS, toeplitz.SLICES, toeplitz.FOURIER),
        ),
    ),
    Family(
        "window",
        _is_windowed,
        lambda w: recognise_window(w.axes, w.node, MOST_PARTS),
        window.window_candidates,
        (*(windows.SLICES, windows.SEPARABLE, windows.PADDED_APART, windows.DOUBLING), windows.REDUCE_WINDOW),
        unless="convolution",
    ),
)


def recognised(body: Body, node: Expr, scope: Scope, guards: Sequence[Expr] = ()) -> Search:
    """The value of a reduction (zero where ``guards`` do not hold) by a form of its own; None where it has none."""
    wanted = _wanted(node, scope, guards)
    if wanted is None:
        return None
    found = offered(body, wanted)
    if found.candidates:
        taken = choose(body, found.candidates, signature(wanted.axes, wanted.node, wanted.guards))
        if taken.write is not None:
            return (yield from taken.write())
    for form, reason in found.refused:
        body.report.refuse(form, reason)
    return None


def _wanted(node: Expr, scope: Scope, guards: Sequence[Expr]) -> Wanted | None:
    current = substitute(node, dict(scope.table))
    if not isinstance(current, Reduce):
        return None
    guards = tuple(substitute(g, dict(scope.table)) for g in guards)
    free = free_axes(current) | {a: None for g in guards for a in free_axes(g)}
    return Wanted(current, tuple(d for d in scope.order if d in free), guards, scope)


@dataclass(frozen=True)
class Offered:
    """What the families say of a reduction: candidates, and those that refuse, each with the reason."""

    candidates: tuple[Candidate, ...]
    refused: tuple[tuple[str, str], ...]


def in_order(families: Sequence[Family]) -> list[Family]:
    """Those that stand alone first, those that stand for others last; which row comes first in the table is no matter."""
    return sorted(families, key=lambda family: (not family.alone, bool(family.unless)))


def offered(body: Body, wanted: Wanted) -> Offered:
    """The candidates of all families, and the general path beside them."""
    candidates: list[Candidate] = []
    refused: list[tuple[str, str]] = []
    recognisers: list[str] = []
    for family in in_order(FAMILIES):
        if family.unless in recognisers or not family.asked(body, wanted):
            continue
        found = family.recognise(wanted)
        if isinstance(found, Refusal):
            refused += [(family.name, found.reason)] if found.reason else []
            continue
        recognisers.append(family.name)
        candidates += family.ways(body, found, wanted)
        if family.alone:
            return Offered(tuple(candidates), ())
    if candidates:
        candidates.append(Candidate(GENERAL, general_work(wanted.axes, wanted.node, body.policy.facts), None))
    return Offered(tuple(candidates), tuple(refused))
