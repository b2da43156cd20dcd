"""The smallest box around the points of a domain none of whose variables stand alone: equations solved, ranges deskewed, implied conditions dropped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from jaxte.lang.budget import (
    CHOICES,
    SOLVING,
    UNANSWERED,
    Budget,
    Exhausted,
    allowed_to_solve,
    charge,
    left_unsolved,
    ran_short,
)
from jaxte.lang.errors import DefinitionError
from jaxte.lang.expr import FALSE, Axis, Call, Const, Expr, as_expr
from jaxte.lang.graphs import among
from jaxte.lang.operators import EQUAL
from jaxte.lang.text import text
from jaxte.lang.walk import postorder, substitute
from jaxte.sets.affine import from_linear, linear, normal
from jaxte.sets.conditions import prune, tidy
from jaxte.sets.domain import IntegerSet, Range
from jaxte.sets.index_forms import difference
from jaxte.sets.isl_text import left_open
from jaxte.sets.linear import Linear
from jaxte.sets.solving.deskew import Box, surround
from jaxte.sets.solving.elimination import Solution, mentions, solutions, unfold_divisions
from jaxte.sets.solving.pinning import Pinning, digits_of, forms_of, pinned
from jaxte.sets.transformation import Domain, DomainTransformation, all_ranges, parameters


def smallest_box(domain: Domain) -> DomainTransformation | None:
    """The best transformation of one component; None where it has no points. Where it takes too much work, the domain stays as it is."""
    budget, unanswered = Budget(allowed_to_solve(SOLVING)), left_open()
    try:
        return _without_digits(domain, budget) or _smallest(domain, budget, unanswered + UNANSWERED)
    except Exhausted:
        if budget.left < 0 and budget.limit < SOLVING:
            ran_short(0)
        left_unsolved()
        own: dict[Expr, Expr] = {v: v for v in domain.variables}
        return DomainTransformation(domain, domain, own, own, solved=False)
    finally:
        charge(budget.spent)


def _smallest(domain: Domain, budget: Budget, most_open: int) -> DomainTransformation | None:
    outer = parameters(domain)
    equations, others = split(domain)
    unfolded, divisions = unfold_divisions(equations, domain.variables, intervals(domain))
    ranges = {**domain.ranges, **{v: (as_expr(lo), as_expr(hi)) for v, (lo, hi) in divisions.ranges.items()}}
    ranges |= {v: None for v in divisions.variables if v not in divisions.ranges}
    every = [*domain.variables, *divisions.variables]
    limits = range_conditions(every, ranges)
    best: tuple[tuple[int, ...], DomainTransformation] | None = None
    solved = solutions([*unfolded, *divisions.equations], every)
    pinning = Pinning(every, [*limits, *others], budget)
    choices = [choice for found in solved for choice in pinning.choices(found)]
    looked_at: set[tuple[Expr, ...]] = set()
    for order, (found, conditions) in _fewest_free(choices):
        if (key := found.key()) in looked_at:  # reached by pinning the same variables in another order
            continue
        looked_at.add(key)
        free_ranges = {v: None for v in found.free if not among(v, domain.variables)} | dict(domain.ranges)
        free_ranges |= {v: ranges[v] for v in found.free if v in ranges}
        points = IntegerSet([*outer, *found.free], conditions, free_ranges)
        if points.is_empty():
            return None
        if left_open() > most_open:
            raise Exhausted
        budget.spend(sum(map(_size, conditions)))
        box = surround(points, found.free, conditions, free_ranges, outer)
        if box is None:
            continue
        box = _without_pinned(box, conditions)
        values = _values(domain, found, box)
        length = sum(len(text(e)) for e in values.values())
        rank = (*box.volume(), box.shifted, length, -order)
        if best is None or rank < best[0]:
            best = rank, _boxed(domain, found, box, values, conditions, outer, divisions.table)
    if best is None and choices:
        if all(own is not None for _, own in all_ranges(domain)):
            raise Exhausted  # the ends are choices among sizes
        raise DefinitionError(f"{domain!r} is unbounded; give every variable a range")
    return best[1] if best is not None else None


def _without_digits(domain: Domain, budget: Budget) -> DomainTransformation | None:
    """The transformation of a domain in which some variables are the digits of a number; None where none are."""
    equations, _ = split(domain)
    bounds = intervals(domain)
    for form in equations:
        found = digits_of(form, domain.variables, bounds)
        if found is None:
            continue
        table: dict[Expr, Expr] = {v: from_linear(value) for v, value in found.values.items()}
        left = [v for v in domain.variables if v not in table]
        conditions = [tidy(substitute(c, table)) for c in (*domain.conditions, *found.conditions)]
        ranges = {v: own for v, own in domain.ranges.items() if v not in table}
        budget.spend(sum(map(_size, conditions)))
        rest = smallest_box(Domain(left, conditions, ranges))
        if rest is None:
            return nothing(domain)
        values = {v: table[v] if v in table else rest.old_to_new[v] for v in domain.variables}
        return DomainTransformation(domain, rest.new, values, rest.new_to_old, rest.solved)
    return None


def _fewest_free(
    choices: Sequence[tuple[Solution, list[Expr]]],
) -> list[tuple[int, tuple[Solution, list[Expr]]]]:
    """The choices that are looked at, with their places: of many, those that leave the fewest variables free, whose boxes are found soonest."""
    placed = list(enumerate(choices))
    if len(placed) <= CHOICES:
        return placed
    return sorted(placed, key=lambda choice: len(choice[1][0].free))[:CHOICES]


def _size(condition: Expr) -> int:
    """How many nodes there are in ``condition``."""
    return len(postorder(condition))


def _without_pinned(box: Box, conditions: Sequence[Expr]) -> Box:
    """``box`` without the axes that ``conditions``, those of the variables that it surrounds, leave one value."""
    while True:
        inside: dict[Expr, Expr] = {v: from_linear(form) for v, form in box.values.items()}
        limits = [form for axis in box.axes for form in (Linear({axis: 1}), linear(axis.hi - 1 - axis))]
        pin = pinned(box.axes, [*forms_of(substitute(c, inside) for c in conditions), *limits])
        if pin is None:
            return box
        box = box.assigned(*pin)


def intervals(domain: Domain) -> dict[Expr, tuple[int, int]]:
    """Least and greatest values of the variables whose ranges are known now."""
    found: dict[Expr, tuple[int, int]] = {}
    for variable, own in all_ranges(domain):
        ends = None if own is None else [normal(as_expr(end)) for end in own]
        if ends is not None and all(isinstance(end, Const) for end in ends):
            found[variable] = int(ends[0]), int(ends[1]) - 1
    return found


def _values(domain: Domain, found: Solution, box: Box) -> dict[Expr, Expr]:
    """Each variable of the domain in terms of the axes of the box."""
    inside: dict[Expr, Expr] = {v: from_linear(form) for v, form in box.values.items()}
    return {v: normal(substitute(from_linear(found.values[v]), inside)) for v in domain.variables}


def _boxed(
    domain: Domain,
    found: Solution,
    box: Box,
    values: Mapping[Expr, Expr],
    conditions: Sequence[Expr],
    outer: Sequence[Expr],
    divisions: Mapping[Expr, Linear],
) -> DomainTransformation:
    inside: dict[Expr, Expr] = {v: from_linear(form) for v, form in box.values.items()}
    remaining = prune(
        [tidy(substitute(c, inside)) for c in conditions],
        [*outer, *box.axes],
        {a: domain.ranges[a] for a in outer if a in domain.ranges},
    )
    back: dict[Expr, Expr] = {}
    for axis in box.axes:
        form = box.origin[axis]
        for variable in found.free:
            if variable in form.terms:
                form = form.without(variable) + found.origin[variable] * form.terms[variable]
        back[axis] = resolve_divisions(form, divisions)
    ranges: dict[Expr, Range | None] = {axis: (axis.lo, axis.hi) for axis in box.axes}
    return DomainTransformation(domain, Domain(box.axes, remaining, ranges), values, back)


def resolve_divisions(form: Linear, table: Mapping[Expr, Linear]) -> Expr:
    """``form`` with the variables that stood for ``//`` and ``%`` written as those again."""
    expr = from_linear(form)
    back: dict[Expr, Expr] = {next(iter(value.terms)): atom for atom, value in table.items()}
    while any(node in back for node in postorder(expr)):
        expr = substitute(expr, back)
    return expr


def split(domain: Domain) -> tuple[list[Linear], list[Expr]]:
    """The equations that mention a variable, as forms that are zero, and the other conditions."""
    equations, others = [], []
    for condition in domain.conditions:
        form = _equation(condition, domain.variables)
        if form is None:
            others.append(condition)
        else:
            equations.append(form)
    return equations, others


def _equation(condition: Expr, variables: Sequence[Expr]) -> Linear | None:
    if not (isinstance(condition, Call) and condition.op is EQUAL and mentions(condition, variables)):
        return None
    return difference(condition)


def range_conditions(variables: Iterable[Expr], ranges: Mapping[Expr, Range | None]) -> list[Expr]:
    found: list[Expr] = []
    for v in variables:
        own = ranges.get(v, (v.lo, v.hi) if isinstance(v, Axis) else None)
        if own is not None:
            found += [as_expr(own[0]) <= v, v < own[1]]
    return found


def nothing(domain: Domain) -> DomainTransformation:
    """The transformation of a domain without points."""
    zero = {v: as_expr(0) for v in domain.variables}
    return DomainTransformation(domain, Domain([], [FALSE]), zero, {})
