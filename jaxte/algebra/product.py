"""A summand as a product of factors under guards.

``sum of select(g, a, 0) * b / c`` adds up ``a * b / c`` at the points where ``g`` holds: guards that give zero
leave the product, and what remains is a list of factors, some of them divided by.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import and_, attrgetter

from jaxte.algebra.signs import Sign, is_finite_by_signs, sign
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.expr import (
    TRUE,
    ZERO,
    Axis,
    Call,
    Const,
    Expr,
    Reduce,
    as_expr,
    call,
    cast,
    conjunction,
    conjuncts,
)
from jaxte.lang.graphs import among
from jaxte.lang.limits import BEHIND, MOST_PARTS
from jaxte.lang.operators import DIVIDE, MULTIPLY, NEGATIVE, NOT, SELECT
from jaxte.lang.scalars.table import is_finite
from jaxte.lang.walk import depends_on, free_axes, reads_data, reads_of
from jaxte.sets.isl_text import is_decidable
from jaxte.tensors.inputs import Residual
from jaxte.tensors.recurrences.node import Recurrent
from jaxte.tensors.tensor import Compute, Extern, Tensor

_UNKNOWN = (Residual, Extern)  # may be infinite or NaN where the inputs are finite

_tensor = attrgetter("tensor")


@dataclass(frozen=True, slots=True)
class Factor:
    """A factor of a product; ``inverse`` ones are divided by, ``guard`` ones are predicates: 1 or 0."""

    expr: Expr
    inverse: bool = False
    guard: bool = False


_MINUS_ONE = as_expr(-1)


@dataclass(frozen=True, slots=True)
class Product:
    """``factors`` multiplied, at the points where the (affine) ``guards`` hold; zero elsewhere."""

    factors: tuple[Factor, ...]
    guards: tuple[Expr, ...]

    @property
    def is_conditional(self) -> bool:
        """Whether it counts at some points only, told by positions or by data."""
        return bool(self.guards) or any(f.guard for f in self.factors)

    def signed(self) -> tuple[int, list[Factor]]:
        """The sign, and the factors without those that are -1."""
        rest = [f for f in self.factors if f.expr is not _MINUS_ONE]
        return (-1) ** (len(self.factors) - len(rest)), rest


def product_of(body: Expr, conditions: Sequence[Expr] = (), whole: bool = False) -> Product:
    """``body`` under ``conditions`` as a product. Conditions on data become factors.

    Args:
        body: the product, or anything else as its only factor.
        conditions: where the product counts.
        whole: whether choices are factors as they are, since what they exclude may be infinite.
    """
    found: list[Factor] = []
    guards = [g for condition in conditions for g in conjuncts(condition)]
    stack = [(body, False)]
    while stack:
        node, inverse = stack.pop()
        if len(found) + len(stack) > MOST_PARTS:  # shared subexpressions would make them exponentially many
            found.append(Factor(node, inverse))
            continue
        match node:
            case Call(op, (a, b)) if op is MULTIPLY:
                stack += [(b, inverse), (a, inverse)]
            case Call(op, (a, b)) if op is DIVIDE and not inverse:
                stack += [(b, True), (a, False)]
            case Call(op, (a,)) if op is NEGATIVE:
                stack += [(a, inverse)]
                found.append(Factor(_MINUS_ONE))
            case Call(op, (test, a, b)) if op is SELECT and is_zero(b) and not inverse and not whole:
                guards += conjuncts(test)
                stack.append((a, False))
            case Call(op, (test, a, b)) if op is SELECT and is_zero(a) and not inverse and not whole:
                guards += conjuncts(call(NOT, test))
                stack.append((b, False))
            case _:
                found.append(Factor(node, inverse))
    distinct = list(dict.fromkeys(guards))
    found += [Factor(g, guard=True) for g in distinct if not is_decidable(g)]
    return Product(tuple(found), tuple(g for g in distinct if is_decidable(g)))


def is_zero(expr: Expr) -> bool:
    return isinstance(expr, Const) and not expr.value


def multiplied(factors: Sequence[Factor], guards: Sequence[Expr] = ()) -> Expr:
    """The product of ``factors``, zero where a guard does not hold."""
    above = [f.expr for f in factors if not f.inverse and not f.guard]
    result = _times(above) if above else as_expr(1)
    below = [f.expr for f in factors if f.inverse]
    if below:
        result = result / _times(below)
    tests = [*guards, *(f.expr for f in factors if f.guard)]
    return call(SELECT, conjunction(tests), result, ZERO) if tests else result


def _times(exprs: Sequence[Expr]) -> Expr:
    result, *others = exprs
    if others and isinstance(result, Const) and result.value == -1 and is_inexact(others[0].dtype):
        result = call(NEGATIVE, others.pop(0))
    for other in others:
        result = result * other
    return result


def split_outer(factors: Sequence[Factor], axes: Sequence[Axis]) -> tuple[list[Factor], list[Factor]]:
    """The factors that do not depend on the reduced ``axes``, which leave the sum, and the others."""
    outer = [f for f in factors if not f.guard and not depends_on(f.expr, axes)]
    return outer, [f for f in factors if not among(f, outer)]


def taken_outside(factors: Sequence[Factor], axes: Sequence[Axis]) -> tuple[list[Factor], list[Factor]]:
    """The factors over other axes than the reduced ``axes``, and those that stay inside of the sum, numbers among them."""
    outer = [f for f in split_outer(factors, axes)[0] if free_axes(f.expr)]
    return outer, [f for f in factors if not among(f, outer)]


def times_sum(
    outer: Sequence[Factor], inner: Sequence[Factor], node: Reduce, guards: Sequence[Expr] = ()
) -> Expr | None:
    """``outer`` times the sum of ``inner`` over the axes of ``node``, where ``guards`` hold; None where the dtype would be another one."""
    kept = multiplied(inner)
    if kept.dtype != node.dtype or kept.weak:
        return None
    scaled = multiplied([*outer, Factor(node.changed(exprs=(kept,), where=TRUE))], guards)
    return scaled if scaled.dtype == node.dtype and not scaled.weak else None


def summand(node: Reduce) -> tuple[Expr, list[Expr], list[Factor]]:
    """What a sum adds up, under which conditions, and the factors outside of it."""
    product = product_of(node.exprs[0], conjuncts(node.where))
    outer, inner = taken_outside(product.factors, node.axes)
    values = [f for f in inner if not f.guard]
    return multiplied(values), [*product.guards, *(f.expr for f in inner if f.guard)], outer


def in_common(products: Sequence[Sequence[Factor]]) -> list[Factor]:
    """The factors that all of ``products`` have, each as often as all have it."""
    return list(reduce(and_, map(Counter, products)).elements())


def without(factors: Sequence[Factor], shared: Sequence[Factor]) -> list[Factor]:
    """``factors`` without one of each of ``shared``."""
    left = Counter(shared)
    kept: list[Factor] = []
    for factor in factors:
        if left[factor]:
            left[factor] -= 1
        else:
            kept.append(factor)
    return kept


def may_be_infinite(factor: Factor) -> bool:
    """Whether a factor may be infinite or NaN where what it reads is finite."""
    if factor.guard:
        return False
    if factor.inverse and not (isinstance(factor.expr, Const) and factor.expr.value):
        return True
    return not _finite_itself(factor.expr)


def may_spoil(factor: Factor) -> bool:
    """Whether a factor may be infinite or NaN where the inputs are finite, also because a tensor that it reads may be: times zero it is NaN."""
    if factor.guard:
        return False
    return not stays_finite(factor.expr) or (factor.inverse and sign(factor.expr) is not Sign.POSITIVE)


def stays_finite(expr: Expr) -> bool:
    """Whether ``expr`` is finite wherever the inputs of the tensors that it reads are, overflow aside; what is read at positions that are data may be out of range."""
    return _finite_in_range(expr) and all(map(tensor_stays_finite, map(_tensor, reads_of(expr))))


@lru_cache(maxsize=4096)
def _finite_itself(expr: Expr) -> bool:
    return is_finite(expr) and not reads_data(expr)


@lru_cache(maxsize=4096)
def _finite_in_range(expr: Expr) -> bool:
    return is_finite_by_signs(expr) and not reads_data(expr)


@lru_cache(maxsize=2048)
def tensor_stays_finite(tensor: Tensor) -> bool:
    """The same of all elements of ``tensor``; what another program computed is as that program's definition says, functions of arrays may be anything."""
    seen = {tensor: None}
    for t in (stack := [tensor]):
        is_finite = _finite_in_range(t.body) if isinstance(t, Compute) else not isinstance(t, _UNKNOWN)
        if not is_finite or len(seen) > BEHIND:
            return False
        below = t.group.inside if isinstance(t, Recurrent) else t.inputs
        stack += [i for i in below if i not in seen]
        seen.update(dict.fromkeys(below))
    return True


def conditions_outside(node: Reduce) -> Reduce:
    """A sum of choices between an element and zero as one with a condition."""
    if not node.is_sum or node.reducer.arity > 1:
        return node
    found = product_of(node.exprs[0], conjuncts(node.where))
    if len(found.guards) == len(conjuncts(node.where)) or any(f.guard for f in found.factors):
        return node
    expr = cast(multiplied(found.factors), node.exprs[0].dtype)
    return node.changed(exprs=(expr,), where=conjunction(found.guards))
