"""Variables that equations and inequalities leave one value.

Equations between a number and its digits are solved at once: ``8 * h + 2 * m + l == a`` with ``0 <= m < 4`` and ``0 <= l < 2`` holds at one point for each ``a``.

General elimination tries the variables one after the other, and what stands for each contains the others: of sixteen digits that takes minutes.

Two inequalities pin a variable: ``0 <= e - n * q < n`` holds for ``q == e // n`` alone.

So a sum over the quotients of a ``%`` is none: with ``j == i - a - n * q`` between 0 and n, the quotient is ``(i - a) // n``, and ``j`` is
``(i - a) % n``. Several variables of a solution may be pinned, in any order, and most orders lead to the same solution: each is written out once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from jaxte.lang.budget import Budget
from jaxte.lang.expr import Axis, Call, Expr, call, conjuncts
from jaxte.lang.graphs import among
from jaxte.lang.limits import FEW
from jaxte.lang.operators import EQUAL
from jaxte.lang.text import text
from jaxte.lang.walk import postorder, substitute
from jaxte.sets.affine import floor_divide, from_linear, mod
from jaxte.sets.conditions import tidy
from jaxte.sets.index_forms import nonnegative_forms
from jaxte.sets.linear import Linear
from jaxte.sets.solving.elimination import Solution, mentions


@dataclass(frozen=True, slots=True)
class Digits:
    """The only solution of an equation.

    Attributes:
        values: each digit in terms of what is no digit.
        conditions: where there is a solution.
    """

    values: Mapping[Expr, Linear]
    conditions: tuple[Expr, ...]


def digits_of(
    form: Linear, variables: Sequence[Expr], bounds: Mapping[Expr, tuple[int, int]]
) -> Digits | None:
    """Where ``form`` is 0, if the ``variables`` in it are the digits of a number; None where they are not.

    Args:
        bounds: least and greatest value of each variable.
    """
    own = {v: c for v, c in form.terms.items() if v in bounds and among(v, variables)}
    # Digits; fewer are solved for as everything else is.
    if len(own) < FEW:
        return None
    order = sorted(own, key=lambda v: abs(own[v]))
    weight = unit = abs(own[order[0]])
    number = Linear({a: -c for a, c in form.terms.items() if a not in own}, -form.constant)
    if any(mentions(atom, variables) for atom in number.terms):
        return None
    for v in order:
        low, high = bounds[v]
        if abs(own[v]) != weight:
            return None
        number = number - Linear({}, own[v] * (low if own[v] > 0 else high))
        weight *= high - low + 1
    whole = floor_divide(number, unit)
    conditions = [from_linear(number) >= 0, from_linear(number) < weight]
    if unit > 1:
        conditions.append(call(EQUAL, from_linear(mod(number, unit)), 0))
    values: dict[Expr, Linear] = {}
    for v in order:
        low, high = bounds[v]
        digit = floor_divide(whole, abs(own[v]) // unit)
        if v is not order[-1]:
            digit = mod(digit, high - low + 1)
        values[v] = digit + Linear({}, low) if own[v] > 0 else Linear({}, high) - digit
    return Digits(values, tuple(conditions))


Choice = tuple[Solution, list[Expr]]
Pin = tuple[Expr, Linear]
"""A variable, and the one value that it may have."""


_Parts = tuple[Sequence[Expr], int]  # what has to hold together, and its number of nodes


@dataclass(frozen=True)
class _Written:
    """The conditions of a solution, their number of nodes, and the variables that they leave one value."""

    conditions: list[Expr]
    size: int
    pins: tuple[Pin, ...]

    @cached_property
    def shortest(self) -> Pin | None:
        """The variable that is pinned next, with its value: of the solution that all begin with, it is not asked for."""
        return _shortest(self.pins)


class Pinning:
    """Solutions over ``variables`` under ``conditions`` without the variables that have one value.

    Work is counted as if each solution were written out wherever it is met, so that what is found does not depend on what was met before. A solution
    with one variable less has most conditions as they were, so each is kept by the values of its own variables.
    """

    def __init__(self, variables: Sequence[Expr], conditions: Sequence[Expr], budget: Budget) -> None:
        # of a variable that is no axis a condition does not say at once whether it has it
        self._conditions = [
            (c, [v for v in variables if v in c.free or not isinstance(v, Axis)]) for c in conditions
        ]
        self._budget = budget
        self._met: dict[tuple[Expr, ...], _Written] = {}
        self._parts: dict[tuple[Expr, ...], _Parts] = {}

    def choices(self, found: Solution) -> list[Choice]:
        """``found``, and the same without its variables of one value, beginning with each of these; with the conditions of each.

        Raises:
            Exhausted: the conditions are longer than what is left of the budget.
        """
        whole = self._written(found)
        choices = [(found, whole.conditions)]
        for first in dict(whole.pins).items():
            fewer = found.assigned(*first)
            while (own := self._written(fewer)).shortest is not None:
                fewer = fewer.assigned(*own.shortest)
            choices.append((fewer, own.conditions))
        return choices

    def _written(self, found: Solution) -> _Written:
        table = {v: from_linear(form) for v, form in found.values.items()}
        guards = _guards(found)
        key = (*found.free, *table.values(), *guards)
        if key in self._met:
            self._budget.spend(self._met[key].size)
            return self._met[key]
        parts = [*map(_in_parts, guards)]
        for condition, own in self._conditions:
            at = (condition, *map(table.__getitem__, own))
            if at not in self._parts:
                self._parts[at] = _in_parts(substitute(condition, table))
            parts.append(self._parts[at])
        size = sum([nodes for _, nodes in parts])
        self._budget.spend(size)
        conditions = _tidied([part for together, _ in parts for part in together])
        self._met[key] = _Written(conditions, size, tuple(pins(found.free, forms_of(conditions))))
        return self._met[key]


def _guards(found: Solution) -> list[Expr]:
    return [call(EQUAL, from_linear(guard), 0) for guard in found.guards]


def _in_parts(condition: Expr) -> _Parts:
    together = conjuncts(condition)
    return together, sum(len(postorder(part)) for part in together)


def transformed(found: Solution, conditions: Sequence[Expr]) -> list[Expr]:
    """``conditions`` and the solution's guards in terms of the free variables."""
    table = {v: from_linear(form) for v, form in found.values.items()}
    whole = [*_guards(found), *(substitute(c, table) for c in conditions)]
    return _tidied([part for c in whole for part in conjuncts(c)])


def forms_of(conditions: Iterable[Expr]) -> list[Linear]:
    """Forms that are at least 0 where ``conditions`` hold; none for those that are no comparisons of affine forms."""
    return [form for c in conditions for form in nonnegative_forms(c)]


def _tidied(flat: Sequence[Expr]) -> list[Expr]:
    return [tidy(c) for c in dict.fromkeys(flat)]


def pinned(variables: Iterable[Expr], forms: Sequence[Linear]) -> Pin | None:
    """One of ``variables`` that has one value at most where every form is at least 0, and this value, the shortest to write.

    Where the value is none, the other variables break one of ``forms``, which have to hold with the value put in.
    """
    return _shortest(tuple(pins(variables, forms)))


def _shortest(every: Sequence[Pin]) -> Pin | None:
    if len(every) < 2:
        return every[0] if every else None
    found = [(variable, value, from_linear(value)) for variable, value in every]
    nodes = [len(postorder(written)) for _, _, written in found]
    fewest = [pin for pin, own in zip(found, nodes, strict=True) if own == min(nodes)]
    # the text is made where the nodes do not tell
    best = min(fewest, key=lambda pin: _length(pin[2])) if len(fewest) > 1 else fewest[0]
    return best[:2]


def pins(variables: Iterable[Expr], forms: Sequence[Linear]) -> Iterator[Pin]:
    """Each of ``variables`` that has one value at most, with such a value; see :func:`pinned`."""
    for variable in variables:
        above = [f for f in forms if f.terms.get(variable, 0) > 1 and not _hides(f, variable)]
        if not above:
            continue
        below = [f for f in forms if f.terms.get(variable, 0) < -1 and not _hides(f, variable)]
        for low in above:
            factor = low.terms[variable]
            for high in below:
                if low.terms.keys() != high.terms.keys():  # most pairs, which add up to no number
                    continue
                width = low + high
                # 0 <= low == factor * q - ... and 0 <= high == width - low
                if width.is_constant and 0 <= width.constant < factor:
                    yield variable, floor_divide(high.without(variable), factor)


@lru_cache(maxsize=4096)  # what is pinned next has most of the values that were to choose from before
def _length(written: Expr) -> int:
    return len(text(written))


def _hides(form: Linear, variable: Expr) -> bool:
    """Whether ``variable`` stands inside of an atom of ``form`` too."""
    calls = [atom for atom in form.terms if isinstance(atom, Call)]
    return bool(calls) and any(mentions(atom, [variable]) for atom in calls)
