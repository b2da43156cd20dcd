"""Sums over positions that meet others digit by digit, as sums over one digit after the other.

    z[s] = sum over i of x[i] where (s & i) == i

The condition holds where it holds for each bit of the two positions: what ``x`` is weighted by is a Kronecker product of matrices, one for each digit,

    T1[h, d, l] = x[h, 0, l] + (x[h, 1, l] if d == 1)     and so on for each bit, N log N operations in place of N * N.

So are signs by the parity of common bits (Walsh and Hadamard), sums over subsets and supersets and their inverses, and Pascal's triangle modulo two. Whether
weights are of this kind is seen from their table, whatever they are written as; nothing is asked of sums whose conditions have neither quotients nor bits. It is
done where a program is lowered: what flows back is a sum of this kind as well, and is derived from the definition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from jaxte.algebra.product import Product, multiplied, product_of
from jaxte.lang import dtypes
from jaxte.lang.divisions import division
from jaxte.lang.expr import ZERO, Axis, Call, Const, Expr, Read, Reduce, call, cast, conjunction, conjuncts
from jaxte.lang.graphs import Members, among
from jaxte.lang.limits import CASES, FAR_FEWER
from jaxte.lang.operators import EQUAL, NEGATIVE, SELECT
from jaxte.lang.walk import free_axes, outermost, postorder, reads_of, substitute
from jaxte.lower.apart.differences import Parts
from jaxte.lower.apart.kronecker import digits_of, joined, table_of
from jaxte.lower.cost.policy import Policy
from jaxte.lower.cost.work import points
from jaxte.lower.recurrences.finals import Changed, changes
from jaxte.sets.intervals import known
from jaxte.tensors.tensor import Compute, Tensor

DIGITS = "sums over digits"


@dataclass(frozen=True)
class _Weighted:
    """A sum over ``inner`` of ``element``, weighted by digits of ``inner`` and of ``outer``.

    Attributes:
        digits: the weights of each digit, from the lowest on: rows for a digit of ``outer``, columns for one of ``inner``.
        element: what is summed, without the weights.
    """

    outer: Axis
    inner: Axis
    digits: tuple[np.ndarray, ...]
    element: Expr


def with_sums_over_digits(order: Sequence[Tensor], given: Members[Tensor], policy: Policy) -> Changed:
    """What stands for the tensors of ``order`` that are computed otherwise, and for those that read them.

    Args:
        order: all tensors, each after what it reads.
        given: those that exist already.
        policy: the platform.
    """
    own = [t for t in order if t not in given]
    met = {} if DIGITS in policy.without else {t: _sums(t, policy) for t in own if isinstance(t, Compute)}
    if not any(met.values()):
        return {}
    parts = Parts()

    def body(tensor: Compute, changed: Changed) -> Expr:
        table: dict[Expr, Expr] = {}
        for node, found in met[tensor].items():
            reads = {
                r: Read(changed[r.tensor], r.indices) for r in reads_of(found.element) if r.tensor in changed
            }
            table[node] = _in_steps(found, substitute(found.element, dict(reads)), tensor, parts)
        return substitute(tensor.body, table) if table else tensor.body

    changed = changes(own, body, {})
    for old, sums in met.items():
        if sums and isinstance(new := changed.get(old), Compute):
            new.as_planned_by([*new.planned_by, DIGITS])
    return changed


def _sums(tensor: Compute, policy: Policy) -> dict[Reduce, _Weighted]:
    found = {node: _weighted(node, tensor) for node in outermost(tensor.body)}
    return {n: own for n, own in found.items() if own is not None and _gains(own, tensor, policy)}


def _weighted(node: Reduce, tensor: Compute) -> _Weighted | None:
    """``node`` as a sum over digits; None where it is none."""
    if not node.is_sum or len(node.axes) != 1 or not dtypes.is_float(node.dtype):
        return None
    (inner,) = node.axes
    product = _with_signs(product_of(node.exprs[0], conjuncts(node.where)))
    weights = [e for e in (*product.guards, *(f.expr for f in product.factors)) if _is_of_digits(e, inner)]
    outer = {a for e in weights for a in free_axes(e)} - {inner}
    if len(outer) != 1 or any(f.inverse and among(f.expr, weights) for f in product.factors):
        return None
    (axis,) = outer
    others = [f for f in product.factors if not among(f.expr, weights)]
    guards = [g for g in product.guards if not among(g, weights)]
    element = multiplied(others) if others else Const(1.0)
    if guards:
        element = call(SELECT, conjunction(guards), element, Const(0.0))
    if not among(axis, tensor.axes) or axis in free_axes(element) or inner not in free_axes(element):
        return None
    table = table_of(weights, axis, inner)
    if table is None:
        return None
    return _Weighted(axis, inner, tuple(joined(digits_of(table))), cast(element, node.dtype))


def _with_signs(product: Product) -> Product:
    """``product`` with a factor ``select(c, x, -x)`` as ``x`` and a sign."""
    found = []
    for factor in product.factors:
        match factor.expr:
            case Call(op, (test, a, Call(minus, (b,)))) if op is SELECT and minus is NEGATIVE and a is b:
                sign = call(SELECT, test, Const(1), Const(-1))
                found += [type(factor)(sign, factor.inverse), type(factor)(a, factor.inverse)]
            case Call(op, (test, Call(minus, (b,)), a)) if op is SELECT and minus is NEGATIVE and a is b:
                sign = call(SELECT, test, Const(-1), Const(1))
                found += [type(factor)(sign, factor.inverse), type(factor)(a, factor.inverse)]
            case _:
                found.append(factor)
    return Product(tuple(found), product.guards)


def _is_of_digits(expr: Expr, inner: Axis) -> bool:
    """Whether ``expr`` is made of positions alone, of ``inner`` and of another axis, with quotients or bits among its operations."""
    nodes = postorder(expr)
    if any(isinstance(n, (Read, Reduce)) for n in nodes):
        return False
    axes = free_axes(expr)
    takes_apart = any(division(n) or (isinstance(n, Call) and n.op.name.startswith("bitwise")) for n in nodes)
    return takes_apart and len(axes) == 2 and inner in axes


def _gains(found: _Weighted, tensor: Compute, policy: Policy) -> bool:
    """Whether there are several digits of few terms each, which take far fewer operations."""
    if any(d.shape[0] != d.shape[1] or len(d) > CASES for d in found.digits):
        return False
    own = [d for d in found.digits if not np.array_equal(d, np.eye(len(d)))]
    if len(own) < 2 or all(bool((d == 1).all()) for d in own):
        return False
    terms = sum(int(np.count_nonzero(d)) / len(d) for d in own)
    length = prod(len(d) for d in found.digits)
    if len(own) < 2 or FAR_FEWER * terms > length:
        return False
    costs = policy.facts.intermediates
    elements = length * points(a for a in free_axes(found.element) if a is not found.inner)
    return (length - terms) * elements >= len(own) * (costs.loop + costs.element * elements)


def _in_steps(found: _Weighted, element: Expr, tensor: Compute, parts: Parts) -> Expr:
    """The sum at the position ``found.outer``, by a tensor for each digit that is part of ``tensor``."""
    free = free_axes(element)
    axes = [a for a in tensor.axes if a is found.outer or a in free]
    place = next(n for n, a in enumerate(axes) if a is found.outer)
    before, after = axes[:place], axes[place + 1 :]
    reading, last = element, _Digit.whole(found.inner)
    if not isinstance(element, Read):  # each element is read several times
        last = _Digit.whole(Axis(found.inner.name, 0, found.inner.extent))
        terms = substitute(element, {found.inner: last.digit})
        reading = parts.element(tensor, "terms", [*before, last.digit, *after], terms)
    lower, length = 1, prod(map(len, found.digits))
    for weights in found.digits:
        base = len(weights)
        if not np.array_equal(weights, np.eye(base)):
            names = [f"{found.outer.name}_{part}" for part in ("high", "digit", "low")]
            extents = (length // (lower * base), base, lower)
            own = _Digit(*(Axis(name, 0, n) for name, n in zip(names, extents, strict=True)))
            high, low = (axis if known(axis.extent) != 1 else ZERO for axis in (own.high, own.low))
            read = [substitute(reading, last.at(high * base + m, low, lower)) for m in range(base)]
            body = _chosen(own.digit, [_weighted_sum(row, read) for row in weights])
            reading = parts.element(tensor, "digits", [*before, *own.axes, *after], body)
            last = own
        lower *= base
    return substitute(reading, last.at(ZERO, found.outer, length))


@dataclass(frozen=True)
class _Digit:
    """A position by one of its digits, and those above and below."""

    high: Axis
    digit: Axis
    low: Axis

    @classmethod
    def whole(cls, axis: Axis) -> _Digit:
        """The position that is all of ``axis``."""
        one = Axis("one", 0, 1)
        return cls(one, axis, one)

    @property
    def axes(self) -> list[Axis]:
        """Those that have more than one position."""
        return [a for a in (self.high, self.digit, self.low) if known(a.extent) != 1]

    def at(self, high: Expr, low: Expr, lower: int) -> dict[Expr, Expr]:
        """What stands for the axes at the position ``high * lower + low``."""
        base, below = _number(self.digit), _number(self.low)
        found = {
            self.high: high * (lower // (base * below)) + low // (base * below),
            self.digit: low // below % base,
            self.low: low % below,
        }
        if lower < base * below:  # all of the position, of which no digit was summed yet
            found = {self.digit: high * lower + low}
        elif lower == base * below:
            found |= {self.high: high, self.digit: low // below}
        return {axis: index for axis, index in found.items() if known(axis.extent) != 1}


def _number(axis: Axis) -> int:
    extent = known(axis.extent)
    assert extent is not None
    return extent


def _weighted_sum(weights: np.ndarray, terms: Sequence[Expr]) -> Expr:
    """``terms`` times -1, 0 and 1, added up."""
    total: Expr = Const(0.0)
    begun = False
    for weight, term in zip(weights.tolist(), terms, strict=True):
        if weight:
            total = (
                (total + term if weight > 0 else total - term) if begun else (term if weight > 0 else -term)
            )
            begun = True
    return cast(total, terms[0].dtype)


def _chosen(digit: Axis, values: Sequence[Expr]) -> Expr:
    """Which of ``values`` the digit is the number of."""
    value = values[-1]
    for number in range(len(values) - 2, -1, -1):
        value = call(SELECT, call(EQUAL, digit, Const(number)), values[number], value)
    return value
