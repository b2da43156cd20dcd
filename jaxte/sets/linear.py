"""Linear forms over integers: a sum of atoms times integers, and a constant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from jaxte.lang.expr import Expr


class Linear(NamedTuple):
    """``sum of terms[atom] * atom + constant``; no coefficient is zero.

    A tuple, since a derivation makes a hundred thousand of them: that takes a third of the time of a frozen dataclass.
    """

    terms: Mapping[Expr, int]
    constant: int = 0

    def plus(self, other: Linear, factor: int = 1, constant: int = 0) -> Linear:
        """``self + factor * other + constant``."""
        terms = self.terms
        if other.terms:
            terms = dict(terms)
            for atom, coefficient in other.terms.items():
                total = terms.get(atom, 0) + factor * coefficient
                if total:
                    terms[atom] = total
                else:
                    terms.pop(atom, None)
        return new_form(Linear, (terms, self.constant + factor * other.constant + constant))

    def __add__(self, other: Linear) -> Linear:  # type: ignore[override]
        return self.plus(other)

    def __mul__(self, factor: int) -> Linear:  # type: ignore[override]
        terms = {a: c * factor for a, c in self.terms.items()} if factor else {}
        return new_form(Linear, (terms, self.constant * factor))

    def __floordiv__(self, divisor: int) -> Linear:
        """The quotient of a form whose coefficients are multiples of ``divisor``; its constant is rounded down."""
        return Linear({a: c // divisor for a, c in self.terms.items()}, self.constant // divisor)

    def __sub__(self, other: Linear) -> Linear:
        return self.plus(other, -1)

    def coefficient(self, atom: Expr) -> int:
        return self.terms.get(atom, 0)

    def without(self, atom: Expr) -> Linear:
        return Linear({a: c for a, c in self.terms.items() if a is not atom}, self.constant)

    @property
    def is_constant(self) -> bool:
        return not self.terms

    @property
    def key(self) -> tuple[frozenset[tuple[Expr, int]], int]:
        """The same of equal forms, in whatever order their terms are."""
        return frozenset(self.terms.items()), self.constant


Linear.__add__ = Linear.plus  # type: ignore[method-assign, assignment]  # the same, with one call of Python less
new_form = tuple.__new__  # of a form, without a call of Python


def combined(parts: Sequence[tuple[int, Linear]], constant: int = 0) -> Linear:
    """``constant`` and the sum of ``factor * form`` for all ``parts``."""
    result = new_form(Linear, ({}, constant))
    for factor, form in parts:
        result = result.plus(form, factor) if result.terms or result.constant or factor != 1 else form
    return result


def split_multiples(form: Linear, divisor: int) -> tuple[Linear, Linear]:
    """``form == whole * divisor + rest`` with the coefficients of ``rest`` in ``[0, divisor)``, or below 0 where that is shorter."""
    whole, rest = {}, {}
    for atom, coefficient in form.terms.items():
        quotient, remainder = divmod(coefficient, divisor)
        if divisor - remainder == 1 < remainder or 2 * (divisor - remainder) < remainder:
            quotient, remainder = quotient + 1, remainder - divisor
        if quotient:
            whole[atom] = quotient
        if remainder:
            rest[atom] = remainder
    nearest = -((divisor - 2 * form.constant) // (2 * divisor))  # what is left is half of the divisor at most
    return new_form(Linear, (whole, nearest)), new_form(Linear, (rest, form.constant - nearest * divisor))


def multiple_of(form: Linear, part: Linear) -> int:
    """The ``m`` for which every atom of ``m * part`` stands in ``form`` with that coefficient, or 0."""
    found: tuple[int, int] | None = None
    for atom, c in part.terms.items():
        own = divmod(form.terms.get(atom, 0), c)
        if own[1] or found not in (None, own):
            return 0
        found = own
    return 0 if found is None else found[0]
