"""Digits of an axis: ``f // 96 % 14`` and ``f // 8 % 12`` are digits of ``f`` in a number system of several bases.

Over axes of which digits are read, one axis for each digit makes indices sums of axes: nothing is divided, and equations have one solution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from jaxte.lang.divisions import Quotient, Remainder, division, divisions
from jaxte.lang.expr import TRUE, ZERO, Axis, Call, Const, Expr, Read, Reduce, as_expr, call
from jaxte.lang.graphs import among
from jaxte.lang.limits import SEVERAL
from jaxte.lang.operators import COMPARISONS, FLOOR_DIVIDE, MOD, MULTIPLY, NOT_EQUAL
from jaxte.lang.walk import free_axes, reads_of, rewrite
from jaxte.sets.affine import from_linear, linear, normal
from jaxte.sets.index_forms import is_index, linear_or_none, nonnegative_forms
from jaxte.sets.intervals import at_most, axis_bounds, constant, interval, known
from jaxte.sets.linear import Linear
from jaxte.sets.resolved import resolved


def weights_of(axis: Axis, roots: Iterable[Expr]) -> list[int]:
    """The weights of the digits of ``axis`` that are read below ``roots``, the greatest first and 1 last; empty where it has no such digits."""
    extent = known(axis.extent)
    if extent is None or axis.lo is not ZERO:
        return []
    found = {1}
    for divided in divisions(*roots):
        if axis in free_axes(divided.number):
            weight = _weight(axis, divided.number)
            if weight is not None and divided.base is not None:
                found.add(weight * divided.base)
            elif not _is_of_digits(axis, divided.number):
                return []
    weights = sorted((w for w in found if w < extent), reverse=True)
    if len(weights) < 2 or extent % weights[0] or any(high % low for high, low in pairwise(weights)):
        return []
    return weights


def _is_of_digits(axis: Axis, number: Expr) -> bool:
    """Whether ``number`` adds quotients and remainders of ``axis`` to others, so that it is a sum of axes over its digits: what ``x[(7 * (w // 4) + i) % 28]`` wraps."""
    form = linear_or_none(number)
    return form is not None and axis not in form.terms and len(form.terms) > 1


def _weight(axis: Axis, numerator: Expr) -> int | None:
    """What one step of ``numerator`` counts for, where it is ``axis``, a quotient of it or a remainder."""
    form = linear_or_none(numerator)
    if form is None or form.constant:
        return None
    if list(form.terms.values()) != [1]:
        return None
    (atom,) = form.terms
    match division(atom):
        case Quotient(inner, int() as divisor):
            own_weight = _weight(axis, inner)
            return None if own_weight is None else own_weight * divisor
        case Remainder(inner, int()):
            return _weight(axis, inner)
    return 1 if atom is axis else None


@dataclass(frozen=True, slots=True)
class Number:
    """An axis and its digits; an axis of which few digits are read is its own only one.

    Attributes:
        axis: the number.
        digits: an axis for each digit, the greatest first.
        weights: what one of each counts for.
    """

    axis: Axis
    digits: tuple[Axis, ...]
    weights: tuple[int, ...] = (1,)

    @property
    def is_taken_apart(self) -> bool:
        return len(self.digits) > 1

    @property
    def whole(self) -> Expr:
        """The number of which these are the digits."""
        return whole(self.digits, self.weights)

    @property
    def indices(self) -> list[Expr]:
        """The digits of ``axis``: ``axis // 96``, ``axis // 8 % 12``, ``axis % 8``."""
        found: list[Expr] = []
        for n, (digit, weight) in enumerate(zip(self.digits, self.weights, strict=True)):
            own: Expr = self.axis if weight == 1 else call(FLOOR_DIVIDE, self.axis, Const(weight))
            found.append(own if n == 0 else call(MOD, own, digit.extent))
        return found


# Digits that are read of a number; two are solved for, and met by forms, as they stand.
def number_of(axis: Axis, roots: Sequence[Expr], many: int = SEVERAL) -> Number:
    """``axis`` taken apart into the digits that are read below ``roots``, where these are ``many``."""
    weights = weights_of(axis, roots)
    if len(weights) < many:
        return Number(axis, (axis,))
    extents = [int(known(axis.extent) or 0), *weights]
    digits = (
        Axis(f"{axis.name}_{n}", 0, high // low, reduction=axis.reduction)
        for n, (high, low) in enumerate(pairwise(extents))
    )
    return Number(axis, tuple(digits), tuple(weights))


def is_by_blocks(body: Expr, axes: Sequence[Axis]) -> bool:
    """Whether ``body`` is a sum of products of two arrays, of which one is read by the quotient of an axis, and the other one by its remainder.

    Over the axis, one of them has all dimensions; over its digits, ``sum over u of c[i // 8, u] * d[u, i % 8]`` is a product of matrices.
    """
    if not isinstance(body, Reduce) or not body.is_sum or body.where is not TRUE:
        return False
    match body.exprs[0]:
        case Call(op, (Read() as a, Read() as b)) if op is MULTIPLY:
            first, second = _digits_read(a), _digits_read(b)
            if first is None or second is None:
                return False
            sides = [(first - second, second - first), (second - first, first - second)]
            return any((Quotient, axis) in x and (Remainder, axis) in y for axis in axes for x, y in sides)
    return False


def shifting(body: Expr, axes: Sequence[Axis]) -> set[Axis]:
    """Those of ``axes`` of which a digit shifts what is read at another one of them, as in ``x[i + s // 9]``: over the digits it is a window, which forms meet."""
    found: set[Axis] = set()
    for read in reads_of(body):
        for index in read.indices:
            own = [a for a in free_axes(index) if among(a, axes)]
            form = linear_or_none(index) if len(own) > 1 else None
            terms = [] if form is None else list(form.terms.items())
            for atom, factor in terms:
                digit = division(atom)
                if digit is not None and among(digit.number, own):
                    others = [(a, c) for a, c in terms if a is not atom]
                    found.update(a for a in own if a is digit.number and _overlaps(atom, factor, others))
    return found


def _overlaps(atom: Expr, factor: int, others: Sequence[tuple[Expr, int]]) -> bool:
    """Whether the positions of ``factor * atom`` lie among those of another term: no digit beside it, as in ``x[16 * (i // 16) + c]``."""
    own = interval(linear(atom), axis_bounds(free_axes(atom)))
    for other, step in others:
        ends = interval(linear(other), axis_bounds(free_axes(other)))
        if own is not None and ends is not None:
            reach, width = abs(factor) * (own[1] - own[0] + 1), abs(step) * (ends[1] - ends[0] + 1)
            if reach > abs(step) and width > abs(factor):
                return True
    return False


def _digits_read(read: Read) -> set[tuple[type, Expr]] | None:
    """The quotients and remainders of axes that an element is read by; None where another index is not an axis by itself."""
    found: set[tuple[type, Expr]] = set()
    for index in read.indices:
        own = division(index)
        if own is not None and own.base is not None and isinstance(own.number, Axis):
            found.add((type(own), own.number))
        elif not isinstance(index, Axis):
            return None
    return found


def span(terms: Iterable[tuple[Axis, int]]) -> Linear:
    """How many positions the sums of multiples of axes lie among."""
    total = constant(1)
    for axis, factor in terms:
        total = total + (linear(axis.extent) - constant(1)) * abs(factor)
    return total


def are_digits(form: Linear) -> bool:
    """Whether a sum of multiples of axes is another number at each of their positions, since each factor is at least what those below it span."""
    terms = [(a, abs(c)) for a, c in form.terms.items() if isinstance(a, Axis) and known(a.extent) != 1]
    terms.sort(key=lambda term: term[1])
    return all(at_most(span(terms[:n]), constant(factor)) for n, (_, factor) in enumerate(terms))


def whole(digits: Sequence[Expr], weights: Sequence[int]) -> Expr:
    """The number of which ``digits`` are the digits."""
    terms = zip(digits, weights, strict=True)
    return from_linear(linear(sum((weight * digit for digit, weight in terms), start=as_expr(0))))


def at_digits(root: Expr, table: Mapping[Expr, Expr]) -> Expr:
    """``root`` with axes replaced by numbers of digits, and its indices and conditions on positions in normal form."""
    return _in_form(root, table, _plain)


def straightened(expr: Expr) -> Expr:
    """``expr`` with its indices and conditions on positions in normal form.

    Raises:
        IndexExpressionError: an index has none.
    """
    return _in_form(expr, {}, normal)


def _in_form(root: Expr, table: Mapping[Expr, Expr], form: Callable[[Expr], Expr]) -> Expr:
    """``root`` with ``table`` put in, and a ``form`` of its indices and of the differences of positions that it compares."""

    def rule(node: Expr) -> Expr:
        match node:
            case _ if node in table:
                return table[node]
            case Read(tensor, indices) if not any(map(reads_of, indices)):
                return Read(tensor, [*map(form, indices)])
            case Call(op) if (own := division(node)) is not None and is_index(own.number):
                return call(op, form(own.number), own.divisor)
            case Call(op, (left, right)) if op in COMPARISONS and _is_of_positions(node):
                return call(op, form(left - right), Const(0))
        return node

    return rewrite(root, rule)


def _is_of_positions(comparison: Call) -> bool:
    """Whether a comparison is one of numbers that positions and sizes give."""
    if reads_of(comparison):
        return False
    return bool(nonnegative_forms(comparison)) or (
        comparison.op is NOT_EQUAL and all(a.weak and is_index(a) for a in comparison.args)
    )


def _plain(index: Expr) -> Expr:
    form = linear_or_none(index)
    if form is None:
        return index
    bounds, found = axis_bounds(free_axes(index)), resolved(form, axis_bounds(free_axes(index)))
    while found.terms != form.terms:  # the quotients inside of a remainder come out with it
        form, found = found, resolved(found, bounds)
    return from_linear(found)
