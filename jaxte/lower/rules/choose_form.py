"""The forms that a whole reduction has: each recogniser offers candidates, the cheapest is written."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from jaxte.lang.expr import Axis, Expr, Reduce, conjuncts
from jaxte.lang.walk import free_axes, reads_of, substitute
from jaxte.lower.body.candidates import GENERAL, Candidate, Search, choose
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.spec import Refusal
from jaxte.lower.cost.default_work import general_work
from jaxte.lower.cost.signature import signature
from jaxte.lower.cost.work import points
from jaxte.lower.forms.band.candidates import band_candidates
from jaxte.lower.forms.band.recognise import recognise_band
from jaxte.lower.forms.band.spec import BandSpec
from jaxte.lower.forms.conv.candidates import convolution_candidates
from jaxte.lower.forms.conv.recognise import match_convolution
from jaxte.lower.forms.data.pairwise_feature_sums import halves_candidates
from jaxte.lower.forms.data.recognise import recognise_scatter
from jaxte.lower.forms.data.scatter_candidates import scatter_candidates
from jaxte.lower.forms.pieces.short_reduction import short_candidates
from jaxte.lower.forms.scan.candidates import scan_candidates
from jaxte.lower.forms.scan.recognise import recognise_scan
from jaxte.lower.forms.window.candidates import unrolled_candidates, window_candidates
from jaxte.lower.forms.window.recognise import UnrollSpec, WindowSpec, recognise_window
from jaxte.lower.forms.window.unrolled import MOST_COPIES
from jaxte.lower.match.index_terms import is_row_major
from jaxte.lower.match.product import product_of, split_outer
from jaxte.lower.rewrites.table import COMMON_FACTORS
from jaxte.lower.views.scope import Scope


def recognised(body: Body, node: Expr, scope: Scope, guards: Sequence[Expr] = ()) -> Search:
    """The value of a reduction (zero where ``guards`` do not hold) by a form of its own; None where it has none."""
    current = substitute(node, dict(scope.table))
    if not isinstance(current, Reduce):
        return None
    current = body.rewrite(current, [COMMON_FACTORS], scope)
    assert isinstance(current, Reduce)
    guards = [substitute(g, dict(scope.table)) for g in guards]
    free = free_axes(current) | {a: None for g in guards for a in free_axes(g)}
    axes = tuple(d for d in scope.order if d in free)
    found = None if guards else (yield from _only_form(body, current, axes))
    if found is not None:
        return found
    offers = list(_candidates(body, current, axes, guards))
    if not offers:
        return None
    offers.append(Candidate(GENERAL, general_work(axes, current), None))
    chosen = choose(body, offers, signature(axes, current, guards))
    return None if chosen.write is None else (yield from chosen.write())


def _only_form(body: Body, node: Reduce, axes: tuple[Axis, ...]) -> Search:
    """Sums at positions that are data, and scans, which are no windows."""
    conditions = conjuncts(node.where)
    if any(reads_of(c) for c in conditions):
        found = yield from _scatter(body, node, axes)
        if found is not None:
            return found
    if any(len(free_axes(c)) > 1 for c in conditions):
        return (yield from _scan(body, node, axes))
    return None


def _candidates(
    body: Body, node: Reduce, axes: tuple[Axis, ...], guards: Sequence[Expr]
) -> Generator[Candidate, None, None]:
    if node.reducer.name == "sum":
        band = recognise_band(axes, node, guards)
        if isinstance(band, BandSpec):
            yield from band_candidates(body, band, axes, node)
        elif band.reason:
            body.refuse("block-skew", band.reason)
    if not _mixes(node, axes):
        if not guards and 1 < points(node.axes):
            yield from short_candidates(body, axes, node)
            yield from halves_candidates(body, axes, node)
        return
    single = node.reducer.name != "sum" or _is_single(node)
    if not single and all(
        is_row_major(i) or len(free_axes(i)) < 2 for r in reads_of(*node.exprs) for i in r.indices
    ):
        if not guards and _chooses(node):
            yield from short_candidates(body, axes, node)
        return  # digits of one number are a view, and what is left is a product of matrices
    if not single or guards:
        matched = match_convolution(axes, node, guards)
        if isinstance(matched, Refusal):
            body.refuse("convolution", matched.reason)
        else:
            yield from convolution_candidates(body, matched, axes, node)
            return
    if not guards:
        found = recognise_window(axes, node, MOST_COPIES)
        if isinstance(found, WindowSpec):
            yield from window_candidates(body, found, axes, node)
        elif isinstance(found, UnrollSpec):
            yield from unrolled_candidates(body, found, axes, node)
        elif isinstance(found, Refusal):
            body.refuse("window", found.reason)


def _is_single(node: Reduce) -> bool:
    """Whether no two factors depend on the reduced axes, so that there is nothing to convolve."""
    _, inner = split_outer(product_of(node.exprs[0]).factors, node.axes)
    return len(inner) < 2


def _chooses(node: Reduce) -> bool:
    """Whether the sum is of chosen positions, such as those that hold a maximum: not a product."""
    _, inner = split_outer(product_of(node.exprs[0]).factors, node.axes)
    return any(factor.guard for factor in inner)


def _mixes(node: Reduce, axes: Sequence[Axis]) -> bool:
    """Whether an index mixes an output axis with a reduced one."""
    for read in reads_of(*node.exprs):
        for index in read.indices:
            free = free_axes(index)
            if any(a in free for a in node.axes) and any(a in free for a in axes):
                return True
    return False


def _scatter(body: Body, node: Reduce, axes: tuple[Axis, ...]) -> Search:
    spec = recognise_scatter(axes, node)
    if isinstance(spec, Refusal):
        body.refuse("scatter-add", spec.reason)
        return None
    offers = list(scatter_candidates(body, spec, axes, node))
    chosen = choose(body, offers, signature(axes, node))
    assert chosen.write is not None
    return (yield from chosen.write())


def _scan(body: Body, node: Reduce, axes: tuple[Axis, ...]) -> Search:
    spec = recognise_scan(axes, node)
    if isinstance(spec, Refusal):
        body.refuse("scan", spec.reason)
        return None
    chosen = choose(body, list(scan_candidates(body, spec, axes, node)), signature(axes, node))
    return None if chosen.write is None else (yield from chosen.write())
