"""Expressions as polynomials over what cannot be taken apart.

Sums are linear, guards are factors, factors that do not depend on the axes of a sum leave it, and equal factors above and below a fraction bar
cancel: equal expressions are one polynomial, wherever this arithmetic shows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TypeGuard

from jaxte.algebra.data import data_equation, data_readings
from jaxte.lang.expr import TRUE, Axis, Call, Const, Expr, Read, Reduce, call, conjunction, conjuncts
from jaxte.lang.graphs import among, identical
from jaxte.lang.limits import MOST_PARTS, PLACES
from jaxte.lang.operators import SELECT
from jaxte.lang.walk import depends_on, free_axes, postorder, substitute
from jaxte.tensors.reducers import builtin_reducer
from jaxte.tensors.tensor import Compute, Tensor

Monomial = tuple[tuple[Expr, int], ...]  # factors with exponents, in a fixed order
Polynomial = dict[Monomial, Fraction]


class TooLarge(Exception):
    """The polynomial has too many terms to be worth writing out."""


class Expansion:
    """Polynomials of expressions over the elements that they read."""

    def __init__(self, most_nodes: int = PLACES) -> None:
        self._budget = most_nodes
        self._numbers: dict[Expr, int] = {}
        self._fixed: dict[tuple[int, int, Expr, Expr], Axis] = {}

    def normal(self, root: Expr) -> Expr:
        """``root`` as the sum of the terms of its polynomial: equal ones are the same node."""
        return self._expression(self.polynomial(root))

    def polynomial(self, root: Expr) -> Polynomial:
        memo: dict[Expr, Polynomial] = {}
        for node in postorder(root):
            self._budget -= 1
            if self._budget < 0:
                raise TooLarge
            memo[node] = self._of(node, memo)
            if len(memo[node]) > MOST_PARTS:
                raise TooLarge
        return memo[root]

    def _of(self, node: Expr, memo: Mapping[Expr, Polynomial]) -> Polynomial:
        match node:
            case Const(value) if (
                isinstance(value, (int, float)) and value == value and abs(value) != float("inf")
            ):
                return {(): Fraction(value)} if value else {}
            case Read(tensor, indices) if isinstance(tensor, Compute) and self._expands(tensor):
                return self.polynomial(tensor.element(indices))
            case Reduce(reducer, (_,), axes, where, 0) if reducer.is_sum:
                return self._sum(memo[node.exprs[0]], axes, where)
            case Call(op, (condition, taken, other)) if op is SELECT:
                return self._guarded(condition, memo[taken], memo[other])
            case Call(op, args):
                return self._call(node, op.name, [memo[a] for a in args])
        return {((node, 1),): Fraction(1)}

    def _expands(self, tensor: Compute) -> bool:
        """Whether ``tensor`` is written out where it is read."""
        return False

    def _call(self, node: Expr, name: str, args: Sequence[Polynomial]) -> Polynomial:
        match name, args:
            case "add", (a, b):
                return added(a, b)
            case "subtract", (a, b):
                return added(a, scaled(b, Fraction(-1)))
            case "negative", (a,):
                return scaled(a, Fraction(-1))
            case "multiply", (a, b):
                return self._multiply(a, b)
            case "square", (a,):
                return self._multiply(a, a)
            case "divide", (a, b) if len(b) == 1:
                return self._multiply(a, _power(b, -1))
            case "reciprocal", (a,) if len(a) == 1:
                return _power(a, -1)
            case "power", (a, b) if len(a) == 1 and identical(list(b), [()]) and b[()].denominator == 1:
                return _power(a, int(b[()]))
            case "cast", (a,):
                return a
        return {((self._atom(node, args), 1),): Fraction(1)}

    def _atom(self, node: Expr, args: Sequence[Polynomial]) -> Expr:
        """``node`` over the normal forms of its operands, so that equal ones are the same node.

        Bits of integers stay as they are: a normal form is a number of floating point.
        """
        if isinstance(node, Call) and node.op.result == "integer":
            return node
        return node.rebuild([self._expression(p) for p in args])

    def _guarded(self, condition: Expr, taken: Polynomial, other: Polynomial) -> Polynomial:
        """``indicator * taken + (1 - indicator) * other``; guards are factors like any other."""
        indicator = self._indicators(condition)
        difference = added(taken, scaled(other, Fraction(-1)))
        return added(self._multiply(indicator, difference), other)

    def _indicators(self, condition: Expr) -> Polynomial:
        guards = [(call(SELECT, c, Const(1.0), Const(0.0)), 1) for c in conjuncts(condition)]
        return {self._monomial(guards): Fraction(1)}

    def _sum(self, inner: Polynomial, axes: Sequence[Axis], where: Expr) -> Polynomial:
        result: Polynomial = {}
        for monomial, coefficient in self._multiply(inner, self._indicators(where)).items():
            result = added(result, scaled(self._sum_of_product(monomial, axes), coefficient))
        return result

    def _sum_of_product(self, factors: Monomial, axes: Sequence[Axis]) -> Polynomial:
        for factor, _ in factors:  # an axis that a guard equates with data takes that value
            solved = data_equation(factor.args[0], axes) if _is_indicator(factor) else None
            if solved is not None:
                axis, value = solved
                assert isinstance(axis, Axis)
                rest = self._expression({tuple(f for f in factors if f[0] is not factor): Fraction(1)})
                term = self.polynomial(substitute(rest, {axis: value}))
                inside = self._indicators(conjunction([axis.lo <= value, value < axis.hi]))
                return self._sum(self._multiply(term, inside), [a for a in axes if a is not axis], TRUE)
        for factor, _ in factors:  # data that a guard equates with something takes its value
            table = _data_values(factor.args[0], axes) if _is_indicator(factor) else {}
            others = tuple(f for f in factors if f[0] is not factor)
            if table and any(node in table for f, _ in others for node in postorder(f)):
                product = self._expression({others: Fraction(1)})
                term = self.polynomial(substitute(product, table))
                return self._sum(self._multiply(term, {((factor, 1),): Fraction(1)}), axes, TRUE)
        bound = tuple(f for f in factors if any(a in free_axes(f[0]) for a in axes))
        outside = [f for f in factors if not among(f, bound)]
        if not axes:
            return {factors: Fraction(1)}
        if not bound:
            count: Polynomial = {self._monomial(outside): Fraction(1)}
            for axis in axes:
                count = self._multiply(count, self.polynomial(axis.extent))
            return count
        return {self._monomial([*outside, (self._canonical_sum(bound, axes), 1)]): Fraction(1)}

    def _canonical_sum(self, factors: Monomial, axes: Sequence[Axis]) -> Expr:
        """The sum of ``factors`` with its axes replaced by fixed ones, so that renamed sums are the same node."""
        inner = self._expression({factors: Fraction(1)})
        depth = _nesting(inner)  # sums inside have the axes of lower depths
        table: dict[Expr, Expr] = {}
        for number, axis in enumerate(axes):
            key = (depth, number, axis.lo, axis.hi)
            if key not in self._fixed:
                self._fixed[key] = Axis(f"z{depth}_{number}", axis.lo, axis.hi, reduction=True)
            table[axis] = self._fixed[key]
        # Normalised again: the order of terms and factors must not depend on the axes that were replaced.
        body = self._expression(self.polynomial(substitute(inner, table)))
        fixed = tuple(axis for axis in table.values() if isinstance(axis, Axis))
        return Reduce(builtin_reducer("sum", body.dtype), (body,), fixed, TRUE)

    def _multiply(self, a: Polynomial, b: Polynomial) -> Polynomial:
        if len(a) * len(b) > MOST_PARTS:
            raise TooLarge
        result: Polynomial = {}
        for m, c in a.items():
            for n, d in b.items():
                result = added(result, {self._monomial([*m, *n]): c * d})
        return result

    def _monomial(self, factors: Sequence[tuple[Expr, int]]) -> Monomial:
        powers: dict[Expr, int] = {}
        for factor, exponent in factors:
            power = powers.get(factor, 0) + exponent
            powers[factor] = min(power, 1) if _is_indicator(factor) else power
        return tuple(sorted(((f, e) for f, e in powers.items() if e), key=lambda item: self._number(item[0])))

    def _number(self, factor: Expr) -> int:
        """The order in which factors were first met; holding them also keeps them the same node."""
        return self._numbers.setdefault(factor, len(self._numbers))

    def _expression(self, polynomial: Polynomial) -> Expr:
        """A polynomial as an expression again, the same node for the same polynomial."""
        result: Expr = Const(0.0)
        for monomial in sorted(polynomial, key=lambda m: [(self._number(f), e) for f, e in m]):
            term: Expr = Const(float(polynomial[monomial]))
            for factor, exponent in monomial:
                term = term * (factor if exponent == 1 else factor**exponent)
            result = result + term
        return result


class Whole(Expansion):
    """Polynomials in which every tensor is written out, up to ``atoms``."""

    def __init__(self, atoms: Sequence[Tensor]) -> None:
        super().__init__(20 * PLACES)
        self._atoms = set(atoms)

    def _expands(self, tensor: Compute) -> bool:
        return tensor not in self._atoms and not (isinstance(tensor.body, Reduce) and not tensor.body.is_sum)


def _is_indicator(factor: Expr) -> TypeGuard[Call]:
    return isinstance(factor, Call) and factor.op is SELECT


def _data_values(condition: Expr, axes: Sequence[Axis]) -> dict[Expr, Expr]:
    """What data that depends on ``axes`` equals by an equation with something that does not."""
    return {
        read: value
        for read, value in data_readings(condition)
        if depends_on(read, axes) and not depends_on(value, axes)
    }


def _nesting(root: Expr) -> int:
    """How many sums stand inside each other below ``root`` at most."""
    depth: dict[Expr, int] = {}
    for node in postorder(root):
        depth[node] = max((depth[c] for c in node.children), default=0) + isinstance(node, Reduce)
    return depth[root]


def added(a: Polynomial, b: Polynomial) -> Polynomial:
    result = dict(a)
    for monomial, coefficient in b.items():
        total = result.get(monomial, Fraction(0)) + coefficient
        if total:
            result[monomial] = total
        else:
            result.pop(monomial, None)
    return result


def scaled(a: Polynomial, factor: Fraction) -> Polynomial:
    return {m: c * factor for m, c in a.items()}


def _power(a: Polynomial, exponent: int) -> Polynomial:
    """A single term to an integer power."""
    ((monomial, coefficient),) = a.items()
    return {tuple((f, e * exponent) for f, e in monomial): coefficient**exponent}
