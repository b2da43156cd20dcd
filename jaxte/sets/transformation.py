"""Domains, and the transformations between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxte.lang.checks import a_mapping, one_of_type, several
from jaxte.lang.errors import DefinitionError
from jaxte.lang.expr import FALSE, Axis, Expr, Var, as_expr, conjuncts
from jaxte.lang.graphs import among
from jaxte.lang.text import text
from jaxte.lang.walk import postorder
from jaxte.sets.domain import IntegerSet, Range


@dataclass(frozen=True)
class Domain:
    """The integer points of ``variables`` within ``ranges`` at which every condition holds.

    Attributes:
        variables: axes or ``te.var`` variables.
        conditions: affine predicates; they may mention other axes and sizes, which are then parameters.
        ranges: half-open ``(lo, hi)`` of each variable; an axis has its own by default.

    Example:
        >>> x, y = te.var("x"), te.var("y")
        >>> list(te.Domain([x, y], [x + y == 2], {x: (0, 3), y: (0, 3)}).points())
        [(0, 2), (1, 1), (2, 0)]
    """

    variables: tuple[Expr, ...]
    conditions: tuple[Expr, ...] = ()
    ranges: Mapping[Expr, Range | None] = field(default_factory=dict)

    def __init__(
        self,
        variables: Iterable[Expr],
        conditions: Expr | bool | Iterable[Expr | bool] = (),
        ranges: Mapping[Expr, tuple[Expr | int, Expr | int] | None] | None = None,
    ) -> None:
        conditions = several(
            conditions, (Expr, bool), "the conditions of a domain", "predicates of axes and te.var variables"
        )
        names = several(variables, Expr, "the variables of a domain", "axes or te.var variables")
        object.__setattr__(self, "variables", tuple(names))
        flat = tuple(c for condition in conditions for c in conjuncts(as_expr(condition)))
        object.__setattr__(self, "conditions", flat)
        object.__setattr__(self, "ranges", _check_ranges(self.variables, {} if ranges is None else ranges))
        for condition in self.conditions:
            if condition.dtype != "bool":
                raise DefinitionError(
                    f"the condition `{text(condition)}` of a domain is no predicate; compare with ==, <=, ..."
                )

    def points(self) -> Iterator[tuple[int, ...]]:
        """The points of a bounded domain without parameters, in lexicographic order.

        Raises:
            DefinitionError: the domain is unbounded, or depends on something that has no value.
        """
        ends = [as_expr(end) for _, own in all_ranges(self) for end in own or ()]
        if free := _outside(self, (*self.conditions, *ends)):
            raise DefinitionError(
                f"this domain depends on {', '.join(map(text, free))}, which it does not list; list each as a variable with a range"
            )
        points = IntegerSet(self.variables, self.conditions, self.ranges)
        if not points.is_bounded():
            raise DefinitionError(
                "this domain is unbounded, its points cannot be listed; give every variable a range"
            )
        return points.points()

    def is_empty(self) -> bool:
        return IntegerSet([*parameters(self), *self.variables], self.conditions, self.ranges).is_empty()

    def __repr__(self) -> str:
        names = ", ".join(map(text, self.variables))
        bounds = [
            f"{text(as_expr(r[0]))} <= {text(v)} < {text(as_expr(r[1]))}" for v, r in all_ranges(self) if r
        ]
        return f"{{ [{names}] : {' and '.join([*bounds, *map(text, self.conditions)]) or 'all'} }}"


def _check_ranges(variables: Sequence[Expr], ranges: Mapping[Expr, Any]) -> dict[Expr, Range | None]:
    checked: dict[Expr, Range | None] = {}
    for variable, bounds in a_mapping(ranges, "the ranges of a domain", "{variable: (lo, hi)}").items():
        one_of_type(variable, Expr, "a key of the ranges of a domain", "an axis or a te.var variable")
        if bounds is None:
            checked[variable] = None
            continue
        if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
            raise DefinitionError(
                f"the range of {text(variable)} is {bounds!r}; give a half-open pair (lo, hi)"
            )
        checked[variable] = (as_expr(bounds[0]), as_expr(bounds[1]))
    for variable in variables:
        if not isinstance(variable, (Axis, Var)):
            raise DefinitionError(
                f"`{text(as_expr(variable))}` is no variable of a domain; use axes or te.var"
            )
    return checked


def all_ranges(domain: Domain) -> list[tuple[Expr, Range | None]]:
    found: list[tuple[Expr, Range | None]] = []
    for v in domain.variables:
        own = (v.lo, v.hi) if isinstance(v, Axis) else None
        found.append((v, domain.ranges.get(v, own)))
    return found


def parameters(domain: Domain) -> list[Expr]:
    """Axes and ranged variables that the domain mentions and does not list."""
    outside = _outside(domain, domain.conditions)
    return [n for n in outside if isinstance(n, Axis) or n in domain.ranges]


def _outside(domain: Domain, exprs: Iterable[Expr]) -> list[Expr]:
    """Axes and variables, sizes among them, that ``exprs`` mention and ``domain`` does not list."""
    mentioned = [n for e in exprs for n in postorder(e) if isinstance(n, (Axis, Var))]
    known = set(domain.variables)
    return [n for n in dict.fromkeys(mentioned) if n not in known]


@dataclass(frozen=True)
class DomainTransformation:
    """A bijection between the integer points of two domains.

    Attributes:
        old, new: the domains.
        old_to_new: each old variable as an expression of the new ones (and of parameters).
        new_to_old: each new variable as an expression of the old ones.
        solved: False where it takes more work to solve than there is a budget for, and the old domain stands.
    """

    old: Domain
    new: Domain
    old_to_new: Mapping[Expr, Expr]
    new_to_old: Mapping[Expr, Expr]
    solved: bool = True

    @property
    def is_empty(self) -> bool:
        """Whether there are no points at all."""
        return among(FALSE, self.new.conditions)


@dataclass(frozen=True)
class Bounds:
    """``max(lower) <= variable <= min(upper)``, all inclusive, in terms of later variables and parameters."""

    lower: tuple[Expr, ...]
    upper: tuple[Expr, ...]
