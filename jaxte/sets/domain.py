"""Sets of integer points, asked through isl.

A set is given by variables with ranges and by conditions, all of them
expressions; isl sees positions, jaxte sees the expressions themselves. isl answers questions (empty? implied?
largest value?) and its objects never leave this package: they belong to the thread that made them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import islpy as isl

from jaxte.lang.expr import FALSE, Axis, Expr, Var, as_expr, call, conjunction
from jaxte.lang.graphs import among, place_of
from jaxte.lang.limits import CASES
from jaxte.lang.operators import OR
from jaxte.lang.text import text
from jaxte.lang.walk import all_of, substitute
from jaxte.sets.differences import Differences, differences
from jaxte.sets.isl_text import (
    FULL_TEXT,
    SPENT,
    asked,
    condition_text,
    constraint_expr,
    context,
    index_text,
    is_decidable,
    pw_aff_expr,
    whole,
)

Range = tuple[Expr, Expr]


class IntegerSet:
    """The integer points of ``variables`` within ``ranges`` at which every condition holds.

    Conditions (or parts of them) that depend on data constrain nothing. Sizes are parameters, of which holds what they are given with.

    Args:
        variables: axes (or sizes) that the points give values to.
        conditions: predicates; affine ones constrain the set.
        ranges: half-open ``(lo, hi)`` for each variable, None for no range; an axis has its own by default.
    """

    def __init__(
        self,
        variables: Sequence[Expr],
        conditions: Sequence[Expr] = (),
        ranges: Mapping[Expr, Range | None] | None = None,
    ) -> None:
        self.variables = tuple(variables)
        self._bounds = _range_conditions(self.variables, ranges or {})
        self._bounds += stated([*self.variables, *sizes_of([*self._bounds, *conditions], self.variables)])
        self._conditions = [*self._bounds, *conditions]
        self._sizes = sizes_of(self._conditions, self.variables)
        self._differences = None if self._sizes else differences(self.variables, self._conditions)
        self._known: isl.Set | None = None
        self._is_given = asked(self._is_read, False)

    def _is_read(self) -> bool:
        """Whether the set is there: as the bounds of differences, which answer most questions, or as isl has it."""
        if self._differences is None:
            self._known = self._read(self._conditions)
        return True

    @property
    def _set(self) -> isl.Set:
        """The set as isl has it; asked within a question, which is left open where there is none."""
        if not self._is_given:
            raise isl.Error(SPENT)
        if self._known is None:
            self._known = self._read(self._conditions)
        return self._known

    def _within(self) -> Differences | None:
        """The bounds of differences; None of what is known otherwise."""
        return self._differences if self._is_given else None

    def _names(self, extra: Sequence[Expr] = ()) -> tuple[dict[Expr, str], str, str]:
        sizes = dict.fromkeys([*self._sizes, *sizes_of(extra, self.variables)])
        names: dict[Expr, str] = {v: f"v{i}" for i, v in enumerate(self.variables)}
        names |= {p: f"p_{p.name}" if is_plain(p.name) else f"q{i}" for i, p in enumerate(sizes)}
        params = ", ".join(names[p] for p in sizes)
        return names, f"[{params}] -> " if params else "", ", ".join(names[v] for v in self.variables)

    def _read(self, conditions: Sequence[Expr]) -> isl.Set:
        names, params, dims = self._names(conditions)
        parts = [condition_text(c, names) for c in conditions]
        parts += [
            f"{name} >= {node.least}"
            for node, name in names.items()
            if isinstance(node, Var) and name[0] != "v"
        ]
        # isl reads a condition in parentheses twice, and the same one again each time
        where = " and ".join(dict.fromkeys(p for p in parts if p != FULL_TEXT)) or FULL_TEXT
        return isl.Set.read_from_str(context(), f"{params}{{ [{dims}] : {where} }}")

    def is_empty(self) -> bool:
        """Whether there is no point; False where isl leaves that open."""
        own = self._within()
        return asked(lambda: bool(self._set.is_empty()) if own is None else own.is_empty, False)

    def implies(self, condition: Expr) -> bool:
        """Whether ``condition`` holds at every point; False where it depends on data, or on an axis that is no variable, or isl leaves it open."""
        if not is_decidable(condition) or not condition.free.keys() <= {*self.variables}:
            return False
        own = self._within()
        known = None if own is None else own.implies(condition)
        return asked(
            lambda: bool(self._set.is_subset(self._read([condition]))) if known is None else known, False
        )

    def covers(self, leading: Sequence[Expr]) -> bool:
        """Whether all values of the ``leading`` variables, within the ranges, are those of some point; False where isl leaves it open."""
        count = len(leading)
        rest = (isl.dim_type.set, count, len(self.variables) - count)

        def covered() -> bool:
            everywhere = self._read(self._bounds).project_out(*rest)
            return bool(everywhere.is_subset(self._set.project_out(*rest)))

        return asked(covered, False)

    def shadow(self, leading: Sequence[Expr]) -> Expr | None:
        """A condition on the ``leading`` variables that holds where some point has their values.

        What their ranges imply is left out, so that it is True where the set covers these. None where isl's answer takes
        more than a few cases to write, or too long to find.
        """
        return asked(lambda: self._shadow(leading), None)

    def _shadow(self, leading: Sequence[Expr]) -> Expr | None:
        count = len(leading)
        rest = (isl.dim_type.set, count, len(self.variables) - count)
        everywhere = self._read(self._bounds).project_out(*rest)
        shadow = self._set.project_out(*rest).gist(everywhere).coalesce().remove_redundancies().compute_divs()
        pieces = shadow.get_basic_sets()
        # Each piece of a condition stands at each point that it is asked at.
        if len(pieces) > CASES:
            return None
        names, _, _ = self._names()
        nodes = {name: node for node, name in names.items()}
        nodes |= {f"in{n}": variable for n, variable in enumerate(leading)}
        result: Expr = FALSE
        for piece in pieces:
            holds = [constraint_expr(c, nodes) for c in piece.get_constraints()]
            result = call(OR, result, conjunction(holds))
        return result

    def is_equal(self, other: IntegerSet) -> bool:
        """Whether both hold the same points; their variables correspond by position. False where isl leaves it open."""
        own, others = self._within(), other._within()
        known = None if own is None or others is None else own.is_equal(others)
        return asked(lambda: bool(self._set.is_equal(other._set)) if known is None else known, False)

    def sample(self, share: int = 1) -> dict[Expr, int] | None:
        """The lexicographically first point (with the values of the sizes there), or None, also where isl leaves it open."""
        own = self._within()
        if own is not None and own.is_empty:
            return None
        return asked(lambda: self._sampled(self._set), None, share)

    def _sampled(self, own: isl.Set) -> dict[Expr, int] | None:
        if own.is_empty():
            return None
        first = own if self._sizes else own.lexmin()
        point = first.sample_point()
        found = {
            v: whole(point.get_coordinate_val(isl.dim_type.set, i)) for i, v in enumerate(self.variables)
        }
        names, _, _ = self._names()
        for i in range(point.get_space().dim(isl.dim_type.param)):
            name = point.get_space().get_dim_name(isl.dim_type.param, i)
            value = whole(point.get_coordinate_val(isl.dim_type.param, i))
            found |= {v: value for v, known in names.items() if known == name}
        return found

    def last_along(self, variable: Expr) -> dict[Expr, int] | None:
        """The first of the points at which ``variable`` is largest; None where that has no bound, or isl leaves it open."""
        return asked(lambda: self._last_along(place_of(variable, self.variables)), None)

    def _last_along(self, place: int) -> dict[Expr, int] | None:
        if self._sizes:
            most = self._maximum(self.variables[place])
            return (
                None
                if most is None
                else self._sampled(self._set.intersect(self._read([self.variables[place] >= most])))
            )
        if not self._set.dim_has_upper_bound(isl.dim_type.set, place):
            return None
        return self._sampled(self._set.fix_val(isl.dim_type.set, place, _most(self._set, place)))

    def points(self) -> Iterator[tuple[int, ...]]:
        """Every point of a bounded set without sizes, in lexicographic order."""
        found: list[tuple[int, ...]] = []
        dims = range(len(self.variables))

        def visit(point: isl.Point) -> None:
            found.append(tuple(whole(point.get_coordinate_val(isl.dim_type.set, i)) for i in dims))

        if not self.is_empty():
            self._set.foreach_point(visit)
        return iter(sorted(found))

    def is_bounded(self) -> bool:
        return bool(self._set.is_bounded())

    def maximum(self, expr: Expr) -> Expr | None:
        """The largest value of ``expr``, in terms of the sizes; None where it is unbounded, or isl leaves it open.

        The set must not be empty.
        """
        own = self._within()
        known = None if own is None else own.maximum(expr)
        return asked(lambda: self._maximum(expr) if known is None else as_expr(known), None)

    def _maximum(self, expr: Expr) -> Expr | None:
        image = self._image(expr)
        if not self._sizes and not image.dim(isl.dim_type.param):
            value = _most(image, 0)
            return as_expr(whole(value)) if value.is_int() else None
        if not image.dim_has_upper_bound(isl.dim_type.set, 0):
            return None
        names, _, _ = self._names([expr])
        return pw_aff_expr(image.dim_max(0), {name: node for node, name in names.items()})

    def _image(self, expr: Expr) -> isl.Set:
        names, params, dims = self._names([expr])
        written = f"{params}{{ [{dims}] -> [{index_text(expr, names)}] }}"
        return self._set.apply(isl.Map.read_from_str(context(), written))

    def __str__(self) -> str:
        written = str(self._set)
        names, _, _ = self._names()
        for node, name in sorted(names.items(), key=lambda item: -len(item[1])):
            written = written.replace(name, text(node))
        return written


def stated(sizes: Sequence[Expr]) -> list[Expr]:
    """What is given of the sizes among ``sizes``, said of them."""
    known = {Var(s.name): s for s in sizes if isinstance(s, Var)}
    conditions = dict.fromkeys(c for size in known.values() for c in size.given)
    return [substitute(c, known) for c in conditions]


def is_plain(name: str) -> bool:
    return name.isascii() and name.isidentifier()


def _range_conditions(variables: Sequence[Expr], ranges: Mapping[Expr, Range | None]) -> list[Expr]:
    found: list[Expr] = []
    for variable in variables:
        if variable in ranges:
            own = ranges[variable]
            if own is None:
                continue
            lo, hi = own
        elif isinstance(variable, Axis):
            lo, hi = variable.lo, variable.hi
        else:
            continue
        found += [as_expr(lo) <= variable, variable < hi]
    return found


def _most(points: isl.Set, place: int) -> isl.Val:
    """The largest value along a dimension. A part without points goes first, which isl takes for one at 0."""
    return points.coalesce().dim_max_val(place)


def sizes_of(exprs: Sequence[Expr], variables: Sequence[Expr]) -> list[Var]:
    """The sizes that ``exprs`` mention and that are not among the variables."""
    asked = [expr for expr in exprs if expr.children or isinstance(expr, Var)]
    found = dict.fromkeys([size for expr in asked for size in _sizes_below(expr)])
    return [size for size in found if not among(size, variables)]


@lru_cache(maxsize=4096)
def _sizes_below(expr: Expr) -> tuple[Var, ...]:
    return tuple(all_of(Var, expr))
