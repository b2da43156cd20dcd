"""Solving over domains: equations eliminated, boxes made small, implied conditions dropped.

A transformation is a bijection between the integer points of two domains. Zero elimination is
``simplify_domain`` on the points at which a read hits a given element.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from jaxte.lang.checks import one_of_type, wants_arguments
from jaxte.lang.errors import DefinitionError
from jaxte.lang.expr import FALSE, ONE, Axis, Call, Const, Expr, as_expr, call, conjuncts
from jaxte.lang.identity import among
from jaxte.lang.operators import EQUAL
from jaxte.lang.text import text
from jaxte.lang.walk import postorder, substitute
from jaxte.sets.affine import Linear, difference, from_linear, linear, normal
from jaxte.sets.conditions import nonnegative_forms, prune, tidy
from jaxte.sets.deskew import Box, surround
from jaxte.sets.domain import IntegerSet, Range
from jaxte.sets.elimination import Solution, mentions, solutions, unfold_divisions
from jaxte.sets.pinned import pinned, pins
from jaxte.sets.transformation import Bounds, Domain, DomainTransformation, all_ranges, parameters


@wants_arguments
def solve_linear_equations(
    relations: Any, variables: Iterable[Expr], ranges: Mapping[Expr, Any] | None = None
) -> DomainTransformation:
    """Solves integer-linear equations: fewer variables, no equation between them left.

    Args:
        relations: predicates; the equalities among them are solved, the others become conditions.
        variables: what to solve for; everything else is a parameter.
        ranges: half-open ranges.

    Example:
        >>> x, y = te.var("x"), te.var("y")
        >>> t = te.solve_linear_equations([x + y == 7], [x, y], {x: (0, 5), y: (0, 5)})
        >>> len(list(t.new.points())) == len(list(t.old.points()))
        True
    """
    old = Domain(variables, relations, ranges)
    equations, others = _split(old)
    unfolded, divisions = unfold_divisions(equations, old.variables, _intervals(old))
    found = next(
        iter(solutions([*unfolded, *divisions.equations], [*old.variables, *divisions.variables])), None
    )
    if found is None:
        return _nothing(old)
    own_ranges = {**old.ranges, **{v: (as_expr(lo), as_expr(hi)) for v, (lo, hi) in divisions.ranges.items()}}
    conditions = _transformed(
        found,
        [
            *_range_conditions(old.variables, own_ranges),
            *_range_conditions(divisions.ranges, own_ranges),
            *others,
        ],
    )
    names = {
        v: Axis(str(getattr(v, "name", "z")), 0, 0) if not among(v, old.variables) else v for v in found.free
    }
    table: dict[Expr, Expr] = dict(names)
    new_ranges = {names[v]: own_ranges.get(v) for v in found.free if v in own_ranges} | {
        n: None for n in names.values() if not among(n, old.variables)
    }
    new = Domain(names.values(), [substitute(c, table) for c in conditions], new_ranges)
    old_to_new = {v: substitute(from_linear(found.values[v]), table) for v in old.variables}
    back = {names[v]: _resolve_divisions(found.origin[v], divisions.table) for v in found.free}
    return DomainTransformation(old, new, old_to_new, back)


@wants_arguments
def solve_linear_inequalities(
    relations: Any, variables: Iterable[Expr], ranges: Mapping[Expr, Any] | None = None, deskew: bool = False
) -> Any:
    """Bounds of each variable, or with ``deskew`` a transformation to variables that start at 0.

    Returns:
        ``{variable: Bounds}``; with ``deskew=True`` a :class:`DomainTransformation` whose new domain is a box
        with as few points as could be found, plus the conditions that the box does not imply.

    Example:
        >>> x, y = te.var("x"), te.var("y")
        >>> t = te.solve_linear_inequalities([x <= y, y <= x + 2], [x, y], {x: (0, 9), y: (0, 9)}, deskew=True)
        >>> [int(hi) for lo, hi in t.new.ranges.values()]
        [9, 3]
    """
    old = Domain(variables, relations, ranges)
    if deskew:
        return simplify_domain(old)
    forms = [
        f
        for c in [*_range_conditions(old.variables, old.ranges), *old.conditions]
        for f in nonnegative_forms(c)
    ]
    return {v: _bounds_of(v, forms) for v in old.variables}


def _bounds_of(variable: Expr, forms: Sequence[Linear]) -> Bounds:
    lower: dict[Expr, None] = {}
    upper: dict[Expr, None] = {}
    for form in forms:
        factor = form.coefficient(variable)
        rest = from_linear(form.without(variable))
        if factor > 0:
            lower[normal((-rest + (factor - 1)) // factor)] = None
        elif factor < 0:
            upper[normal(rest // -factor)] = None
    return Bounds(tuple(lower), tuple(upper))


@wants_arguments
def simplify_domain(domain: Domain) -> DomainTransformation:
    """The smallest box found for ``domain``: equations solved, ranges deskewed, implied conditions dropped.

    Example:
        >>> x, y = te.var("x"), te.var("y")
        >>> t = te.simplify_domain(te.Domain([x, y], [x == 2 * y], {x: (0, 10), y: (0, 10)}))
        >>> len(t.new.variables), len(list(t.new.points()))
        (1, 5)
    """
    one_of_type(domain, Domain, "the argument of te.simplify_domain", "a te.Domain")
    values: dict[Expr, Expr] = {}
    origin: dict[Expr, Expr] = {}
    conditions: list[Expr] = []
    new_ranges: dict[Expr, Range | None] = {}
    variables: list[Expr] = []
    for part in _components(domain):
        simpler = _remembered(part) if part.conditions else _identity(part)
        if simpler is None:
            return _nothing(domain)
        values |= simpler.old_to_new
        origin |= simpler.new_to_old
        conditions += simpler.new.conditions
        variables += simpler.new.variables
        new_ranges |= simpler.new.ranges
    return DomainTransformation(domain, Domain(variables, conditions, new_ranges), values, origin)


def _components(domain: Domain) -> list[Domain]:
    """Parts of the domain that share no variable; conditions on parameters alone stand in a part of their own."""
    group: dict[Expr, int] = {v: n for n, v in enumerate(domain.variables)}
    touched = [[v for v in domain.variables if mentions(c, [v])] for c in domain.conditions]
    for variables in touched:
        numbers = {group[v] for v in variables}
        for v in domain.variables:
            if group[v] in numbers:
                group[v] = min(numbers)
    parts = []
    for number in sorted(set(group.values())):
        own = [v for v in domain.variables if group[v] == number]
        conditions = [
            c for c, t in zip(domain.conditions, touched, strict=True) if t and group[t[0]] == number
        ]
        parts.append(Domain(own, conditions, domain.ranges))
    alone = [c for c, t in zip(domain.conditions, touched, strict=True) if not t]
    return [*parts, Domain([], alone, domain.ranges)] if alone else parts


def _remembered(domain: Domain) -> DomainTransformation | None:
    """``_simplify_component`` up to the names of axes: the axes of an image often ask the same question."""
    outer = parameters(domain)
    table: dict[Expr, Expr] = {}
    for role, axes in (("v", domain.variables), ("o", outer)):
        for number, axis in enumerate(axes):
            bounds = domain.ranges.get(axis, (axis.lo, axis.hi) if isinstance(axis, Axis) else None)
            if bounds is None:
                return _simplify_component(domain)
            table[axis] = _stand_in(f"{role}{number}", bounds)
    own = tuple(table[v] for v in domain.variables)
    found = _solved(own, tuple(substitute(c, table) for c in domain.conditions))
    return None if found is None else _renamed(found, domain, {new: old for old, new in table.items()})


@cache
def _stand_in(name: str, bounds: Range) -> Axis:
    """The axis that stands for any other of this range."""
    return Axis(name, *bounds)


@lru_cache(maxsize=4096)
def _solved(variables: tuple[Expr, ...], conditions: tuple[Expr, ...]) -> DomainTransformation | None:
    return _simplify_component(Domain(variables, conditions))


def _renamed(found: DomainTransformation, domain: Domain, back: dict[Expr, Expr]) -> DomainTransformation:
    """``found`` with the axes of ``domain`` in place of those that stood for them."""
    names = {str(getattr(new, "name", "")): str(getattr(old, "name", "z")) for new, old in back.items()}
    fresh: dict[Expr, Expr] = {}
    for axis in found.new.variables:
        assert isinstance(axis, Axis)
        fresh[axis] = Axis(names.get(axis.name, axis.name), axis.lo, axis.hi, reduction=True)
    table = back | fresh
    new = Domain(
        fresh.values(),
        [substitute(c, table) for c in found.new.conditions],
        {axis: (axis.lo, axis.hi) for axis in fresh.values() if isinstance(axis, Axis)},
    )
    values = {table[v]: substitute(e, table) for v, e in found.old_to_new.items()}
    origin = {fresh[z]: substitute(e, table) for z, e in found.new_to_old.items()}
    return DomainTransformation(domain, new, values, origin)


def _simplify_component(domain: Domain) -> DomainTransformation | None:
    """The best transformation of one component; None where it has no points."""
    outer = parameters(domain)
    equations, others = _split(domain)
    unfolded, divisions = unfold_divisions(equations, domain.variables, _intervals(domain))
    ranges = {**domain.ranges, **{v: (as_expr(lo), as_expr(hi)) for v, (lo, hi) in divisions.ranges.items()}}
    ranges |= {v: None for v in divisions.variables if v not in divisions.ranges}
    every = [*domain.variables, *divisions.variables]
    limits = _range_conditions(every, ranges)
    best: tuple[tuple[int, ...], DomainTransformation] | None = None
    solved = solutions([*unfolded, *divisions.equations], every)
    choices = [choice for found in solved for choice in _with_pinned(found, [*limits, *others])]
    for order, (found, conditions) in enumerate(choices):
        free_ranges = {v: None for v in found.free if not among(v, domain.variables)} | dict(domain.ranges)
        free_ranges |= {v: ranges[v] for v in found.free if v in ranges}
        points = IntegerSet([*outer, *found.free], conditions, free_ranges)
        if points.is_empty():
            return None
        box = surround(points, found.free, conditions, free_ranges, outer)
        if box is None:
            continue
        box = _without_pinned(box, conditions)
        values = _values(domain, found, box)
        length = sum(len(text(e)) for e in values.values())
        rank = (*box.volume(), box.shifted, length, order)
        if best is None or rank < best[0]:
            best = rank, _boxed(domain, found, box, values, conditions, outer, divisions.table)
    if best is None and choices:
        raise DefinitionError(f"{domain!r} is unbounded; give every variable a range")
    return best[1] if best is not None else None


def _with_pinned(found: Solution, conditions: Sequence[Expr]) -> list[tuple[Solution, list[Expr]]]:
    """``found``, and the same without the variables that the conditions leave one value, each with its conditions."""
    choices = [(found, _transformed(found, conditions))]
    for first in dict(pins(found.free, _forms(choices[0][1]))).items():
        fewer = found.assigned(*first)
        left = _transformed(fewer, conditions)
        while (pin := pinned(fewer.free, _forms(left))) is not None:
            fewer = fewer.assigned(*pin)
            left = _transformed(fewer, conditions)
        choices.append((fewer, left))
    return choices


def _without_pinned(box: Box, conditions: Sequence[Expr]) -> Box:
    """``box`` without the axes that ``conditions``, those of the variables that it surrounds, leave one value."""
    while True:
        inside: dict[Expr, Expr] = {v: from_linear(form) for v, form in box.values.items()}
        limits = [form for axis in box.axes for form in (Linear({axis: 1}), linear(axis.hi - 1 - axis))]
        pin = pinned(box.axes, [*_forms(substitute(c, inside) for c in conditions), *limits])
        if pin is None:
            return box
        box = box.assigned(*pin)


def _forms(conditions: Iterable[Expr]) -> list[Linear]:
    return [form for c in conditions for form in nonnegative_forms(c)]


def _intervals(domain: Domain) -> dict[Expr, tuple[int, int]]:
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
        [tidy(substitute(c, inside)) for c in conditions], [*outer, *box.axes], _only(outer, domain.ranges)
    )
    back: dict[Expr, Expr] = {}
    for axis in box.axes:
        form = box.origin[axis]
        for variable in found.free:
            if variable in form.terms:
                form = form.without(variable) + found.origin[variable] * form.terms[variable]
        back[axis] = _resolve_divisions(form, divisions)
    ranges: dict[Expr, Range | None] = {axis: (axis.lo, axis.hi) for axis in box.axes}
    return DomainTransformation(domain, Domain(box.axes, remaining, ranges), values, back)


def _only(axes: Sequence[Expr], ranges: Mapping[Expr, Range | None]) -> dict[Expr, Range | None]:
    return {a: ranges[a] for a in axes if a in ranges}


def _resolve_divisions(form: Linear, table: Mapping[Expr, Linear]) -> Expr:
    """``form`` with the variables that stood for ``//`` and ``%`` written as those again."""
    expr = from_linear(form)
    back: dict[Expr, Expr] = {next(iter(value.terms)): atom for atom, value in table.items()}
    while any(node in back for node in postorder(expr)):
        expr = substitute(expr, back)
    return expr


def _identity(domain: Domain) -> DomainTransformation:
    """Nothing to solve; variables with a single value take it."""
    single: dict[Expr, Expr] = {}
    for v, bounds in all_ranges(domain):
        if bounds is not None and normal(as_expr(bounds[1]) - bounds[0]) is ONE:
            single[v] = as_expr(bounds[0])
    kept = [v for v in domain.variables if v not in single]
    new = Domain(kept, [], {v: r for v, r in domain.ranges.items() if v not in single})
    return DomainTransformation(
        domain, new, {v: single.get(v, v) for v in domain.variables}, {v: v for v in kept}
    )


def _nothing(domain: Domain) -> DomainTransformation:
    zero = {v: as_expr(0) for v in domain.variables}
    return DomainTransformation(domain, Domain([], [FALSE]), zero, {})


def _split(domain: Domain) -> tuple[list[Linear], list[Expr]]:
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


def _range_conditions(variables: Iterable[Expr], ranges: Mapping[Expr, Range | None]) -> list[Expr]:
    found: list[Expr] = []
    for v in variables:
        own = ranges.get(v, (v.lo, v.hi) if isinstance(v, Axis) else None)
        if own is not None:
            found += [as_expr(own[0]) <= v, v < own[1]]
    return found


def _transformed(found: Solution, conditions: Sequence[Expr]) -> list[Expr]:
    """``conditions`` and the solution's guards in terms of the free variables."""
    table = {v: from_linear(form) for v, form in found.values.items()}
    guards = [call(EQUAL, from_linear(g), 0) for g in found.guards]
    flat = [part for c in [*guards, *(substitute(c, table) for c in conditions)] for part in conjuncts(c)]
    return [tidy(c) for c in dict.fromkeys(flat)]
