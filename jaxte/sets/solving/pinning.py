"""Variables that two inequalities leave one value: ``0 <= e - n * q < n`` holds for ``q == e // n`` alone.

So a sum over the quotients of a ``%`` is none: with ``j == i - a - n * q`` between 0 and n, the quotient is ``(i - a) // n``, and ``j`` is
``(i - a) % n``. Several variables of a solution may be pinned, in any order, and most orders lead to the same solution: each is written out once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from jaxte.lang.budget import Budget
from jaxte.lang.expr import Call, Expr, call, conjuncts
from jaxte.lang.operators import EQUAL
from jaxte.lang.records import dataclass
from jaxte.lang.text import text
from jaxte.lang.walk import postorder, substitute
from jaxte.sets.affine import Linear, floor_divide, from_linear
from jaxte.sets.conditions import nonnegative_forms, tidy
from jaxte.sets.solving.elimination import Solution, mentions

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


def pinned(variables: Iterable[Expr], forms: Sequence[Linear]) -> tuple[Expr, Linear] | None:
    """One of ``variables`` that has one value at most where every form is at least 0, and this value, the shortest to write.

    Where the value is none, the other variables break one of ``forms``, which have to hold with the value put in.
    """
    return min(pins(variables, forms), key=lambda pin: _length(pin[1]), default=None)


def pins(variables: Iterable[Expr], forms: Sequence[Linear]) -> Iterator[tuple[Expr, Linear]]:
    """Each of ``variables`` that has one value at most, with such a value; see :func:`pinned`."""
    for variable in variables:
        above = [f for f in forms if f.terms.get(variable, 0) > 1 and not _hides(f, variable)]
        if not above:
            continue
        below = [f for f in forms if f.terms.get(variable, 0) < -1 and not _hides(f, variable)]
        for low in above:
            factor = low.terms[variable]
            for high in below:
                width = low + high
                # 0 <= low == factor * q - ... and 0 <= high == width - low
                if width.is_constant and 0 <= width.constant < factor:
                    yield variable, floor_divide(high.without(variable), factor)


def _length(value: Linear) -> tuple[int, int]:
    return _length_of(from_linear(value))


@lru_cache(maxsize=4096)  # what is pinned next has most of the values that were to choose from before
def _length_of(written: Expr) -> tuple[int, int]:
    return len(postorder(written)), len(text(written))


def _hides(form: Linear, variable: Expr) -> bool:
    """Whether ``variable`` stands inside of an atom of ``form`` too."""
    calls = [atom for atom in form.terms if isinstance(atom, Call)]
    return bool(calls) and any(mentions(atom, [variable]) for atom in calls)
