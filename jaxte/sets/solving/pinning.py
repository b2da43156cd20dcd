"""The ways to leave out variables of a solution that its conditions leave one value, and its conditions for each of them.

Several variables may be pinned, in any order, and most orders lead to the same solution: each is written out once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jaxte.lang.budget import Budget
from jaxte.lang.expr import Expr, call, conjuncts
from jaxte.lang.operators import EQUAL
from jaxte.lang.walk import postorder, substitute
from jaxte.sets.affine import Linear, from_linear
from jaxte.sets.conditions import nonnegative_forms, tidy
from jaxte.sets.solving.elimination import Solution
from jaxte.sets.solving.pinned import pinned, pins

Choice = tuple[Solution, list[Expr]]


@dataclass(frozen=True)
class _Written:
    """The conditions of a solution, their number of nodes, and the variable that is pinned next with its value."""

    conditions: list[Expr]
    size: int
    pin: tuple[Expr, Linear] | None


class Pinning:
    """Solutions under ``conditions`` without the variables that have one value.

    Work is counted as if each solution were written out wherever it is met, so that what is found does not depend on what was met before.
    """

    def __init__(self, conditions: Sequence[Expr], budget: Budget) -> None:
        self._conditions, self._budget = conditions, budget
        self._met: dict[tuple[Expr, ...], _Written] = {}

    def choices(self, found: Solution) -> list[Choice]:
        """``found``, and the same without its variables of one value, beginning with each of these; with the conditions of each.

        Raises:
            Exhausted: the conditions are longer than what is left of the budget.
        """
        whole = self._written(found)
        choices = [(found, whole.conditions)]
        for first in dict(pins(found.free, forms_of(whole.conditions))).items():
            fewer = found.assigned(*first)
            while (own := self._written(fewer)).pin is not None:
                fewer = fewer.assigned(*own.pin)
            choices.append((fewer, own.conditions))
        return choices

    def _written(self, found: Solution) -> _Written:
        key = found.key()
        if key in self._met:
            self._budget.spend(self._met[key].size)
        else:
            flat = _flat(found, self._conditions)
            size = sum(len(postorder(c)) for c in flat)
            self._budget.spend(size)
            conditions = _tidied(flat)
            self._met[key] = _Written(conditions, size, pinned(found.free, forms_of(conditions)))
        return self._met[key]


def transformed(found: Solution, conditions: Sequence[Expr]) -> list[Expr]:
    """``conditions`` and the solution's guards in terms of the free variables."""
    return _tidied(_flat(found, conditions))


def forms_of(conditions: Iterable[Expr]) -> list[Linear]:
    """Forms that are at least 0 where ``conditions`` hold; none for those that are no comparisons of affine forms."""
    return [form for c in conditions for form in nonnegative_forms(c)]


def _flat(found: Solution, conditions: Sequence[Expr]) -> list[Expr]:
    table = {v: from_linear(form) for v, form in found.values.items()}
    guards = [call(EQUAL, from_linear(g), 0) for g in found.guards]
    return [part for c in [*guards, *(substitute(c, table) for c in conditions)] for part in conjuncts(c)]


def _tidied(flat: Sequence[Expr]) -> list[Expr]:
    return [tidy(c) for c in dict.fromkeys(flat)]
