"""Solving over domains: equations eliminated, boxes made small, implied conditions dropped.

A transformation is a bijection between the integer points of two domains. Zero elimination is
``simplify_domain`` on the points at which a read hits a given element.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Literal, overload

from jaxte.lang.budget import remembered
from jaxte.lang.checks import one_of_type, wants_arguments
from jaxte.lang.expr import ONE, Axis, Expr, as_expr
from jaxte.lang.graphs import among, components
from jaxte.lang.walk import substitute
from jaxte.sets.affine import from_linear, normal
from jaxte.sets.domain import Range
from jaxte.sets.index_forms import nonnegative_forms
from jaxte.sets.linear import Linear
from jaxte.sets.solving.elimination import mentions, solutions, unfold_divisions
from jaxte.sets.solving.pinning import transformed
from jaxte.sets.solving.smallest_box import (
    intervals,
    nothing,
    range_conditions,
    resolve_divisions,
    smallest_box,
    split,
)
from jaxte.sets.transformation import Bounds, Domain, DomainTransformation, all_ranges, parameters


@wants_arguments
def solve_linear_equations(
    relations: Expr | bool | Iterable[Expr | bool],
    variables: Iterable[Expr],
    ranges: Mapping[Expr, tuple[Expr | int, Expr | int] | None] | None = None,
) -> DomainTransformation:
    """Solves linear equations over the integers. The result has fewer variables, and no equation between them is left.

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
    equations, others = split(old)
    unfolded, divisions = unfold_divisions(equations, old.variables, intervals(old))
    found = next(
        iter(solutions([*unfolded, *divisions.equations], [*old.variables, *divisions.variables])), None
    )
    if found is None:
        return nothing(old)
    own_ranges = {**old.ranges, **{v: (as_expr(lo), as_expr(hi)) for v, (lo, hi) in divisions.ranges.items()}}
    conditions = transformed(
        found,
        [
            *range_conditions(old.variables, own_ranges),
            *range_conditions(divisions.ranges, own_ranges),
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
    back = {names[v]: resolve_divisions(found.origin[v], divisions.table) for v in found.free}
    return DomainTransformation(old, new, old_to_new, back)


@overload
def solve_linear_inequalities(
    relations: Expr | bool | Iterable[Expr | bool],
    variables: Iterable[Expr],
    ranges: Mapping[Expr, tuple[Expr | int, Expr | int] | None] | None = None,
    deskew: Literal[False] = False,
) -> dict[Expr, Bounds]: ...
@overload
def solve_linear_inequalities(
    relations: Expr | bool | Iterable[Expr | bool],
    variables: Iterable[Expr],
    ranges: Mapping[Expr, tuple[Expr | int, Expr | int] | None] | None = None,
    *,
    deskew: Literal[True],
) -> DomainTransformation: ...
@wants_arguments
def solve_linear_inequalities(
    relations: Expr | bool | Iterable[Expr | bool],
    variables: Iterable[Expr],
    ranges: Mapping[Expr, tuple[Expr | int, Expr | int] | None] | None = None,
    deskew: bool = False,
) -> Any:
    """The bounds of each variable; with ``deskew``, a transformation to variables that start at 0.

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
        for c in [*range_conditions(old.variables, old.ranges), *old.conditions]
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
    solved = True
    for part in _components(domain):
        simpler = _remembered(part) if part.conditions else _identity(part)
        if simpler is None:
            return nothing(domain)
        values |= simpler.old_to_new
        origin |= simpler.new_to_old
        conditions += simpler.new.conditions
        variables += simpler.new.variables
        new_ranges |= simpler.new.ranges
        solved = solved and simpler.solved
    return DomainTransformation(domain, Domain(variables, conditions, new_ranges), values, origin, solved)


def _components(domain: Domain) -> list[Domain]:
    """Parts of the domain that share no variable; conditions on parameters alone stand in a part of their own."""
    touched = {c: [v for v in domain.variables if mentions(c, [v])] for c in domain.conditions}
    tied = [*domain.variables, *(c for c in domain.conditions if touched[c])]
    parts = []
    for members in components(tied, lambda member: touched.get(member, (member,))):
        own = [m for m in members if m not in touched]
        parts.append(Domain(own, [m for m in members if m in touched], domain.ranges))
    alone = [c for c in domain.conditions if not touched[c]]
    return [*parts, Domain([], alone, domain.ranges)] if alone else parts


def _remembered(domain: Domain) -> DomainTransformation | None:
    """``smallest_box`` up to the names of axes: the axes of an image often ask the same question."""
    outer = parameters(domain)
    table: dict[Expr, Expr] = {}
    for role, axes in (("v", domain.variables), ("o", outer)):
        for number, axis in enumerate(axes):
            bounds = domain.ranges.get(axis, (axis.lo, axis.hi) if isinstance(axis, Axis) else None)
            if bounds is None:
                return smallest_box(domain)
            table[axis] = _stand_in(f"{role}{number}", bounds)
    own = tuple(table[v] for v in domain.variables)
    found = _solved(own, tuple(substitute(c, table) for c in domain.conditions))
    return None if found is None else _renamed(found, domain, {new: old for old, new in table.items()})


@cache
def _stand_in(name: str, bounds: Range) -> Axis:
    """The axis that stands for any other of this range."""
    return Axis(name, *bounds)


@remembered(4096, one=True)
def _solved(variables: tuple[Expr, ...], conditions: tuple[Expr, ...]) -> DomainTransformation | None:
    return smallest_box(Domain(variables, conditions))


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
    values = {back[v]: substitute(e, table) for v, e in found.old_to_new.items()}
    origin = {fresh[z]: substitute(e, back) for z, e in found.new_to_old.items()}
    return DomainTransformation(domain, new, values, origin, found.solved)


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
