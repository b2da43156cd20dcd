"""The forms that a whole reduction has: each family of ``form_table.py`` offers candidates, the cheapest is written.

Why a family refuses is told where no form of its own is taken; what takes the place of others needs no excuse of theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxte.lang.expr import Expr, Reduce
from jaxte.lang.walk import free_axes, substitute
from jaxte.lower.body.candidates import GENERAL, Candidate, Search, choose
from jaxte.lower.body.evaluator import Body
from jaxte.lower.body.wanted import Wanted
from jaxte.lower.code.spec import Refusal
from jaxte.lower.cost.default_work import general_work
from jaxte.lower.cost.signature import signature
from jaxte.lower.rules.form_table import FAMILIES, Family
from jaxte.lower.views.scope import Scope


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
        candidates.append(
            Candidate(GENERAL, general_work(wanted.axes, wanted.node, body.policy.facts.fuses_products), None)
        )
    return Offered(tuple(candidates), tuple(refused))
