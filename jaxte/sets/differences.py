"""Integer points whose conditions compare an axis, or the difference of two, with a number, as those of stencils and windows do.

Such a set is closed under shortest paths: ``x - y <= c`` and ``y - z <= d`` give ``x - z <= c + d``, and of what follows for two axes no less can be
said, over the integers as over the reals. So whether it is empty, what it implies and how large a difference gets are read off, with the same
answers as isl's. One equation of more axes, ``x == t + k``, gives one of them by the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import inf

from jaxte.lang.expr import Axis, Expr, conjuncts
from jaxte.lang.limits import CASES
from jaxte.sets.index_forms import linear_or_none, nonnegative_forms
from jaxte.sets.linear import Linear

Bound = tuple[Expr | None, Expr | None, int]
"""``x - y <= bound``; None stands for 0."""


@lru_cache(maxsize=4096)
def _forms_of(condition: Expr) -> tuple[Linear, ...] | None:
    """The forms that are at least 0 exactly where ``condition`` holds; None where that is no affine comparison."""
    found: list[Linear] = []
    for part in conjuncts(condition):
        forms = nonnegative_forms(part)
        if not forms:
            return None
        found += forms
    return tuple(found)


def _bound(form: Linear) -> Bound | None:
    """``form >= 0`` as a bound."""
    upper: Expr | None = None
    lower: Expr | None = None
    for atom, factor in form.terms.items():
        if factor == -1 and upper is None and isinstance(atom, Axis):
            upper = atom
        elif factor == 1 and lower is None and isinstance(atom, Axis):
            lower = atom
        else:
            return None
    return upper, lower, form.constant


Solved = tuple[Expr, Linear]
"""An axis, and what it is by the others."""


def _solved(forms: Iterable[Linear], axes: Sequence[Expr]) -> Solved | None:
    """The last of ``axes`` by the others, from the first equation of more than two: two forms, one the other's opposite, one after the other."""
    before: Linear | None = None
    for form in forms:
        if before is not None and len(form.terms) > 2 and before == form * -1:
            for axis in reversed(axes):
                if abs(factor := form.coefficient(axis)) == 1:
                    return axis, form.without(axis) * -factor
        before = form
    return None


def _by_way_of_others(most: list[list[float]]) -> None:
    """Makes each bound of a difference the least that it has as a sum of differences, by way of any others."""
    for k, through in enumerate(most):
        for own in most:
            first = own[k]
            if first == inf:
                continue
            for m, rest in enumerate(through):
                if first + rest < own[m]:
                    own[m] = first + rest


class Differences:
    """The points of ``axes`` within ``bounds``: the least bound of each difference of two, and an axis that is ``solved``."""

    def __init__(self, axes: Sequence[Expr], bounds: Iterable[Bound], solved: Solved | None) -> None:
        self._axes, self._solved = axes, solved
        self._place: dict[Expr | None, int] = {node: n for n, node in enumerate(dict.fromkeys((None, *axes)))}
        count = len(self._place)
        most: list[list[float]] = [[inf] * count for _ in range(count)]
        for n in range(count):
            most[n][n] = 0
        for x, y, bound in bounds:
            own = most[self._place[x]]
            own[self._place[y]] = min(own[self._place[y]], bound)
        _by_way_of_others(most)
        self._most = most
        self.is_empty = any(own[n] < 0 for n, own in enumerate(most))

    def implies(self, condition: Expr) -> bool | None:
        """Whether ``condition`` holds at every point; None where it is no comparison of this kind."""
        forms = _forms_of(condition)
        bounds = None if forms is None else _bounds(forms, self._place, self._solved)
        if bounds is None:
            return None
        return self.is_empty or all(
            self._most[self._place[x]][self._place[y]] <= bound for x, y, bound in bounds
        )

    def maximum(self, expr: Expr) -> int | None:
        """The largest value of ``expr``, of a set that is not empty; None where it has no bound, or is no difference."""
        form = linear_or_none(expr)
        bounds = None if form is None or self.is_empty else _bounds([form * -1], self._place, self._solved)
        if bounds is None:
            return None
        ((x, y, constant),) = bounds
        most = self._most[self._place[x]][self._place[y]]
        return None if most == inf else int(most) - constant

    def is_equal(self, other: Differences) -> bool | None:
        """Whether both hold the same points, their axes by position; None where each has another axis by the others."""
        if self.is_empty or other.is_empty:
            return self.is_empty and other.is_empty
        return self._most == other._most if self._equation() == other._equation() else None

    def _equation(self) -> tuple[object, ...]:
        """The equation that is solved, of axes by position."""
        if self._solved is None:
            return ()
        axis, value = self._solved
        return self._place[axis], {self._place[a]: c for a, c in value.terms.items()}, value.constant


def _bounds(
    forms: Iterable[Linear], known: Iterable[Expr | None], solved: Solved | None
) -> list[Bound] | None:
    """The bounds that say that ``forms`` are at least 0; None where one of them is about more than a difference of what is ``known``."""
    found: list[Bound] = []
    for form in forms:
        if solved is not None and (factor := form.coefficient(solved[0])):
            form = form.without(solved[0]) + solved[1] * factor
        bound = _bound(form)
        if bound is None or bound[0] not in known or bound[1] not in known:
            return None
        found.append(bound)
    return found


def differences(axes: Sequence[Expr], conditions: Sequence[Expr]) -> Differences | None:
    """The points of ``axes`` at which ``conditions`` hold; None where one of these is about more than differences of ``axes``."""
    if len(axes) > CASES:
        return None
    forms: list[Linear] = []
    for condition in conditions:
        own = _forms_of(condition)
        if own is None:
            return None
        forms += own
    solved = _solved(forms, axes)
    bounds = _bounds(forms, {None, *axes}, solved)
    return None if bounds is None else Differences(axes, bounds, solved)
