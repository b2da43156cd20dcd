"""Reductions between bounds that move with the result, or with something else that is reduced over, and stay as far apart: windows.

    sum over k of x[b, k] where i - 50 < k and k <= i        is   sum over r of x[b, i - 49 + r], r in [0, 50), where it is inside
    max over k of x[b, k] where abs(k - 3 * i) <= 2          is   max over r of x[b, 3 * i - 2 + r], r in [0, 5)
    sum over i, k of f(x[i], x[k]) where i < k and k < i + 9 is   sum over i, r of f(x[i], x[i + 1 + r]), r in [0, 8), where it is inside
    sum over t of x[t, i - 64 * t] where t steps of 64 are within 128 of i
                                                             is   sum over r of x[i // 64 - r, 64 * r + i % 64], r in [0, 2), where it is inside

As it is written the reduction visits all points, or is a mask over the result and what is reduced. Where an operand would be read along a diagonal of
its positions (a matrix of scores) the sum is a product under a mask, and stays.

Sums under conditions, with what they are multiplied by: what a term of a sum is, read through tensors that are such sums.

c[i] = sum over k of x[k] where k <= i,     -c[i - 3] / 4 where i >= 3      is   -1 times 1/4 times the sum over k of x[k] where k <= i - 3 and i >= 3
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

from jaxte.algebra.product import Factor, is_zero, multiplied, product_of
from jaxte.algebra.sums import Signed
from jaxte.lang.divisions import Quotient, Remainder, division
from jaxte.lang.expr import Axis, Call, Expr, Read, Reduce, call, conjunction, conjuncts
from jaxte.lang.limits import HALVED
from jaxte.lang.operators import GREATER_EQUAL, LESS, NOT, SELECT
from jaxte.lang.walk import at_positions, depends_on, free_axes, reads_of, substitute
from jaxte.sets.affine import from_linear, linear
from jaxte.sets.conditions import halves, positive, prune
from jaxte.sets.digits import straightened
from jaxte.sets.index_forms import is_index, nonnegative_forms
from jaxte.sets.intervals import known
from jaxte.sets.isl_text import is_decidable
from jaxte.sets.linear import Linear
from jaxte.tensors.tensor import Compute, Tensor


def with_windows(node: Reduce) -> Reduce:
    """``node`` over windows in place of the axes whose bounds move with the result; as it is where there are none."""
    if not node.reducer.ignores_order:
        return node
    for axis in node.axes:
        found = _windowed(node, axis)
        if found is not None:
            return with_windows(found)
    return node


@dataclass(frozen=True)
class _Window:
    """Where an axis is, ``at``, by its distance ``own`` from what its bounds move with.

    Attributes:
        width: how many distances there are.
        met: the conditions that hold at all of these places.
    """

    own: Axis
    width: int
    at: Expr
    met: frozenset[Expr]


def _windowed(node: Reduce, axis: Axis) -> Reduce | None:
    """``node`` with a window in place of ``axis``."""
    conditions = [part for c in conjuncts(node.where) for part in halves(c)]
    extent = known(axis.extent)
    window = next(_windows(conditions, axis), None)
    if window is None or extent is None:
        return None
    own, at = window.own, window.at
    if window.width * HALVED > extent or _reads_askew(node, axis, window):
        return None
    rest = [straightened(substitute(c, {axis: at})) for c in conditions if c not in window.met]
    inside = [call(GREATER_EQUAL, at, axis.lo), call(LESS, at, axis.hi)]
    axes = [own if a is axis else a for a in node.axes]
    kept = [*rest, *inside]
    within = dict.fromkeys([*axes, *(a for c in kept for a in free_axes(c))])
    where = conjunction(prune(kept, list(within)))
    exprs = [straightened(substitute(e, {axis: at})) for e in node.exprs]
    return node.changed(exprs=exprs, axes=axes, where=where)


def _windows(conditions: Sequence[Expr], axis: Axis) -> Iterator[_Window]:
    """The windows of ``axis`` between two of ``conditions`` that move together."""
    lowest: list[tuple[Linear, int, Expr]] = []
    highest: list[tuple[Linear, int, Expr]] = []
    for condition in conditions:
        forms = () if reads_of(condition) else nonnegative_forms(condition)
        factor = forms[0].coefficient(axis) if len(forms) == 1 else 0
        if factor:
            end = forms[0].without(axis) * (-1 if factor > 0 else 1)
            moves_with = from_linear(end)
            # a quotient in a bound may depend on the axis itself
            if free_axes(moves_with) and not depends_on(moves_with, [axis]):
                (lowest if factor > 0 else highest).append((end, abs(factor), condition))
    for (low, step, first), (high, other, last) in product(lowest, highest):
        gap = high - low
        if step == other and gap.is_constant and gap.constant >= 0:
            width = gap.constant // step + 1
            own = Axis(axis.name, 0, width, reduction=True)
            if step == 1:
                at = from_linear(low.plus(Linear({own: 1}), 1))
                yield _Window(own, width, at, frozenset((first, last)))
            else:
                yield _Window(own, width, from_linear(high) // step - own, frozenset((last,)))


def _reads_askew(node: Reduce, axis: Axis, window: _Window) -> bool:
    """Whether an operand that has a value for each position and each place of ``axis`` is read along a diagonal in ``window``.

    One that is read at digits of a position, or over the distances, is not.
    """
    moving = [a for a in free_axes(window.at) if a is not window.own]
    both = [r for e in node.exprs for r in reads_of(e) if depends_on(r, [axis]) and depends_on(r, moving)]
    found = [straightened(substitute(read, {axis: window.at})).children for read in both]
    pairs = [pair for indices in found for pair in combinations(indices, 2)]
    return any(
        depends_on(one, [a]) and depends_on(other, [a]) and not _are_digits(one, other, a)
        for a in moving
        for one, other in pairs
    )


def _are_digits(first: Expr, second: Expr, axis: Axis) -> bool:
    """Whether one index has ``axis`` in how often a number goes into it alone, and the other in what is left of it."""
    kinds = [
        [division(a) for a in linear(i).terms if depends_on(a, [axis])]
        for i in (first, second)
        if is_index(i)
    ]
    match kinds:
        case [[Quotient(high, by)], [Remainder(low, of)]] | [[Remainder(low, of)], [Quotient(high, by)]]:
            return high is low and by is not None and by == of
    return False


@dataclass(frozen=True, slots=True)
class Term:
    """``sign`` times ``weights`` times a sum."""

    sign: int
    weights: tuple[Factor, ...]
    node: Reduce

    def at(self, table: Mapping[Expr, Expr]) -> Term | None:
        """The term with other indices."""
        node = at_positions(self.node, table)
        weights = [Factor(at_positions(w.expr, table), w.inverse) for w in self.weights]
        return Term(self.sign, tuple(weights), node) if isinstance(node, Reduce) else None

    def signed(self) -> Signed:
        return multiplied([*self.weights, Factor(self.node)]), self.sign


def term_of(expr: Expr, sign: int, known: Mapping[Tensor, Term]) -> Term | None:
    """``sign * expr`` as weights times a sum; None where there is none, or are two."""
    own_sign, factors = product_of(expr, whole=True).signed()
    sums = [(f, own) for f in factors if not f.inverse if (own := sum_of(f.expr, known)) is not None]
    if len(sums) != 1:
        return None
    ((factor, inner),) = sums
    weights = [f for f in factors if f is not factor]
    return Term(sign * own_sign * inner.sign, (*inner.weights, *weights), inner.node)


def sum_of(expr: Expr, known: Mapping[Tensor, Term]) -> Term | None:
    """The sum that ``expr`` is: itself, an element of ``known`` tensors, one of these with zeros elsewhere, or a sum of such elements."""
    match expr:
        case Read(tensor, indices) if tensor in known and all(map(is_index, indices)):
            assert isinstance(tensor, Compute)
            return known[tensor].at(dict(zip(tensor.axes, indices, strict=True)))
        case Call(op, (test, taken, other)) if op is SELECT and is_decidable(test):
            if is_zero(taken):
                test, taken, other = call(NOT, test), other, taken
            inner = term_of(taken, 1, known) if is_zero(other) else None
            if inner is None or any(free_axes(w.expr) for w in inner.weights):
                return None
            return replace(inner, node=under(inner.node, [positive(test)]))
        case Reduce() if expr.is_sum and all(map(is_decidable, conjuncts(expr.where))):
            inner = sum_of(expr.exprs[0], known)
            if inner is None or inner.weights or inner.node.dtype != expr.dtype:
                return Term(1, (), expr)
            if depends_on(inner.node.where, expr.axes):
                return Term(1, (), expr)
            joined = expr.changed(exprs=inner.node.exprs, axes=(*expr.axes, *inner.node.axes))
            return replace(inner, node=under(joined, conjuncts(inner.node.where)))
    return None


def under(node: Reduce, conditions: Sequence[Expr]) -> Reduce:
    """``node`` where ``conditions`` hold as well."""
    where = conjunction(list(dict.fromkeys([*conjuncts(node.where), *conditions])))
    return node.changed(where=where)
