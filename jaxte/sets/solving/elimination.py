"""Linear equations over the integers, solved by unimodular changes of variables.

A system ``A v = b`` over integer variables ``v`` is solved one equation at a time. A variable with coefficient
+-1 is solved for. Where there is none, the variable with the least coefficient takes multiples of the others
into itself (one step of Euclid's algorithm, as in the Hermite normal form) until one appears. What cannot be
solved is a condition on the right-hand side: ``e % g == 0`` where ``g`` divides every coefficient.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from jaxte.lang.divisions import Quotient, division
from jaxte.lang.expr import Axis, Call, Expr, call
from jaxte.lang.graphs import among
from jaxte.lang.limits import LEVELS
from jaxte.lang.operators import FLOOR_DIVIDE, MOD
from jaxte.lang.walk import postorder, substitute
from jaxte.sets.affine import floor_divide, from_linear, linear, mod
from jaxte.sets.intervals import interval
from jaxte.sets.linear import Linear


@dataclass(frozen=True, slots=True)
class Solution:
    """The solutions of a system of equations.

    Attributes:
        values: each variable in terms of the free ones and of what is not a variable.
        free: the variables that remain.
        origin: each free variable in terms of the variables of the system.
        guards: forms that have to be zero for there to be a solution; variables stand in minima and the like only.
    """

    values: Mapping[Expr, Linear]
    free: tuple[Expr, ...]
    origin: Mapping[Expr, Linear]
    guards: tuple[Linear, ...]

    def key(self) -> tuple[Expr, ...]:
        """Equal for solutions of one system that are equal."""
        return (*self.free, *map(from_linear, self.values.values()), *map(from_linear, self.guards))

    def assigned(self, variable: Expr, value: Linear) -> Solution:
        """The solutions where the free ``variable`` has ``value``."""
        values = {v: replace(form, variable, value) for v, form in self.values.items()}
        guards = tuple(replace(form, variable, value) for form in self.guards)
        origin = {v: form for v, form in self.origin.items() if v is not variable}
        return Solution(values, tuple(v for v in self.free if v is not variable), origin, guards)


@dataclass(frozen=True, slots=True)
class _State:
    values: dict[Expr, Linear]
    free: tuple[Expr, ...]
    origin: dict[Expr, Linear]
    guards: tuple[Linear, ...]

    def assign(self, variable: Expr, value: Linear, free: tuple[Expr, ...]) -> _State:
        values = {v: replace(form, variable, value) for v, form in self.values.items()}
        guards = tuple(replace(form, variable, value) for form in self.guards)
        return _State(values, free, self.origin, guards)


def replace(form: Linear, variable: Expr, value: Linear) -> Linear:
    """``form`` with ``value`` for ``variable``, inside of minima and the like too."""
    factor = form.coefficient(variable)
    result = form.without(variable) + value * factor if factor else form
    for atom in form.terms:
        if isinstance(atom, Call) and mentions(atom, [variable]):
            inner = linear(substitute(atom, {variable: from_linear(value)}))
            result = result.without(atom) + inner * form.terms[atom]
    return result


def replaced(form: Linear, table: Mapping[Expr, Linear]) -> Linear:
    """``form`` with the values of ``table``, none of which holds a key of it."""
    for variable, value in table.items():
        form = replace(form, variable, value)
    return form


def solutions(equations: Sequence[Linear], variables: Sequence[Expr]) -> Iterator[Solution]:
    """The solutions of ``form == 0`` for each of ``equations``, one for each choice of pivots (a few at most).

    All of them describe the same points; they differ in which variables remain free. None comes where the
    equations contradict each other.
    """
    start = _State(
        {v: Linear({v: 1}) for v in variables}, tuple(variables), {v: Linear({v: 1}) for v in variables}, ()
    )
    stack = [(start, 0)]
    found = 0
    # Each pivot gives a solution that is compared with the others.
    while stack and found < LEVELS:
        state, number = stack.pop()
        if number == len(equations):
            found += 1
            yield Solution(state.values, state.free, state.origin, state.guards)
            continue
        form = equations[number]
        solved = [v for v in variables if not among(v, state.free)]
        for variable in solved:
            form = replace(form, variable, state.values[variable])
        stack.extend((s, number + 1) for s in reversed(_solve_one(form, state)))


def _solve_one(form: Linear, state: _State) -> list[_State]:
    """The states after ``form == 0``, one for each variable that it can be solved for.

    A variable inside of a minimum cannot be; where that leaves none, the equation is a guard.
    """
    hidden = {node for atom in form.terms if isinstance(atom, Call) for node in postorder(atom)}
    terms = {v: form.terms[v] for v in state.free if v in form.terms and v not in hidden}
    rest = Linear({a: c for a, c in form.terms.items() if a not in terms}, form.constant)
    if not terms:
        if rest.is_constant:
            return [state] if rest.constant == 0 else []
        return [_State(state.values, state.free, state.origin, (*state.guards, rest))]
    divisor = math.gcd(*terms.values())
    if divisor > 1:
        if next(iter(rest.terms.values()), rest.constant) > 0:  # divide a, not -a: a // 3 reads better
            rest, terms = rest * -1, {v: -c for v, c in terms.items()}
        quotient, terms = floor_divide(rest * -1, divisor), {v: c // divisor for v, c in terms.items()}
        remainder = mod(rest * -1, divisor)
        if remainder.is_constant and remainder.constant:
            return []
        if not remainder.is_constant:
            state = _State(state.values, state.free, state.origin, (*state.guards, remainder))
        rest = quotient * -1
    while all(abs(c) != 1 for c in terms.values()):
        terms, state = _euclid(terms, state)
    units = [v for v, c in terms.items() if abs(c) == 1]
    return [_solve_for(v, terms, rest, state) for v in units]


def _solve_for(variable: Expr, terms: Mapping[Expr, int], rest: Linear, state: _State) -> _State:
    others = Linear({v: c for v, c in terms.items() if v is not variable})
    value = (others + rest) * -terms[variable]
    return state.assign(variable, value, tuple(v for v in state.free if v is not variable))


def _euclid(terms: dict[Expr, int], state: _State) -> tuple[dict[Expr, int], _State]:
    """Takes multiples of the least coefficient's variable out of the others: a unimodular change of variables."""
    pivot = min(terms, key=lambda v: abs(terms[v]))
    own = terms[pivot]
    quotients = {v: c // own for v, c in terms.items() if v is not pivot and c // own}
    fresh = unbounded(str(getattr(pivot, "name", "z")))
    value = Linear({fresh: 1}) - Linear(quotients)
    free = tuple(fresh if v is pivot else v for v in state.free)
    origin = dict(state.origin)
    origin[fresh] = origin[pivot]
    for v, q in quotients.items():
        origin[fresh] = origin[fresh] + origin[v] * q
    state = _State(state.values, state.free, origin, state.guards).assign(pivot, value, free)
    remainders = {v: c - own * quotients.get(v, 0) for v, c in terms.items() if v is not pivot}
    return {fresh: own} | {v: c for v, c in remainders.items() if c}, state


def unbounded(name: str) -> Axis:
    """A new variable; its range comes from the equations that it is part of."""
    return Axis(name, 0, 0)


@dataclass(frozen=True, slots=True)
class Divisions:
    """Quasi-affine atoms replaced by variables: ``numerator == divisor * quotient + remainder``."""

    equations: tuple[Linear, ...]
    variables: tuple[Expr, ...]
    ranges: Mapping[Expr, tuple[Expr | int, Expr | int]]
    table: Mapping[Expr, Linear]


def unfold_divisions(
    forms: Sequence[Linear], variables: Sequence[Expr], bounds: Mapping[Expr, tuple[int, int]]
) -> tuple[list[Linear], Divisions]:
    """``forms`` with each ``e // c`` and ``e % c`` over ``variables`` replaced by new variables.

    ``bounds`` are least and greatest values; where they give some for ``e``, the quotient has a range.
    """
    found: dict[tuple[Expr, int], tuple[Expr, Expr]] = {}
    equations: list[Linear] = []
    table: dict[Expr, Linear] = {}
    results = [_unfold(form, variables, found, equations, table) for form in forms]
    added = [v for pair in found.values() for v in pair]
    ranges: dict[Expr, tuple[Expr | int, Expr | int]] = {}
    for (numerator, divisor), (quotient, remainder) in found.items():
        ranges[remainder] = (0, divisor)
        ends = interval(linear(numerator), bounds)
        if ends is not None:
            ranges[quotient] = (ends[0] // divisor, ends[1] // divisor + 1)
    return results, Divisions(tuple(equations), tuple(added), ranges, table)


def _unfold(
    form: Linear,
    variables: Sequence[Expr],
    found: dict[tuple[Expr, int], tuple[Expr, Expr]],
    equations: list[Linear],
    table: dict[Expr, Linear],
) -> Linear:
    result = Linear({}, form.constant)
    for atom, coefficient in form.terms.items():
        divided = division(atom)
        if divided is not None and divided.base is not None and mentions(atom, variables):
            numerator, divisor = linear(divided.number), divided.base
            key = (from_linear(numerator), divisor)
            if key not in found:
                inner = _unfold(numerator, variables, found, equations, table)
                pair: tuple[Expr, Expr] = (unbounded("q"), unbounded("r"))
                found[key] = pair
                equations.append(inner - Linear({pair[0]: divisor, pair[1]: 1}))
                for op, variable in zip((FLOOR_DIVIDE, MOD), pair, strict=True):
                    table[call(op, key[0], divisor)] = Linear({variable: 1})
            quotient, remainder = found[key]
            result = result + Linear({quotient if isinstance(divided, Quotient) else remainder: coefficient})
        else:
            result = result + Linear({atom: coefficient})
    return result


def mentions(expr: Expr, variables: Sequence[Expr]) -> bool:
    if not expr.free.keys().isdisjoint(variables):
        return True
    others = {v for v in variables if not isinstance(v, Axis)}
    return bool(others) and any(node in others for node in postorder(expr))
