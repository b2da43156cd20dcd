"""Equations between a number and its digits: ``8 * h + 2 * m + l == a`` with ``0 <= m < 4`` and ``0 <= l < 2`` holds at one point for each ``a``.

General elimination tries the variables one after the other, and what stands for each contains the others: of sixteen digits that takes minutes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jaxte.lang.expr import Expr, call
from jaxte.lang.identity import among
from jaxte.lang.operators import EQUAL
from jaxte.sets.affine import Linear, floor_divide, from_linear, mod
from jaxte.sets.solving.elimination import mentions

_MANY = 4  # digits; fewer are solved for as everything else is


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
    if len(own) < _MANY:
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
