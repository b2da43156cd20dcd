"""Sums under conditions, with what they are multiplied by: what a term of a sum is, read through tensors that are such sums.

c[i] = sum over k of x[k] where k <= i,     -c[i - 3] / 4 where i >= 3      is   -1 times 1/4 times the sum over k of x[k] where k <= i - 3 and i >= 3
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from jaxte.algebra.product import Factor, is_zero, multiplied, product_of
from jaxte.algebra.sums import Signed
from jaxte.lang.expr import Call, Expr, Read, Reduce, call, conjunction, conjuncts
from jaxte.lang.operators import NOT, SELECT
from jaxte.lang.walk import depends_on, free_axes, substitute
from jaxte.sets.conditions import positive
from jaxte.sets.index_forms import is_index
from jaxte.sets.isl_text import is_decidable
from jaxte.tensors.tensor import Compute, Tensor


@dataclass(frozen=True, slots=True)
class Term:
    """``sign`` times ``weights`` times a sum."""

    sign: int
    weights: tuple[Factor, ...]
    node: Reduce

    def at(self, table: Mapping[Expr, Expr]) -> Term | None:
        """The term with other indices."""
        node = substitute(self.node, table)
        weights = [Factor(substitute(w.expr, table), w.inverse) for w in self.weights]
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
        case Reduce() if expr.reducer.name == "sum" and all(map(is_decidable, conjuncts(expr.where))):
            inner = sum_of(expr.exprs[0], known)
            if inner is None or inner.weights or inner.node.dtype != expr.dtype:
                return Term(1, (), expr)
            if depends_on(inner.node.where, expr.axes):
                return Term(1, (), expr)
            joined = Reduce(expr.reducer, inner.node.exprs, (*expr.axes, *inner.node.axes), expr.where)
            return replace(inner, node=under(joined, conjuncts(inner.node.where)))
    return None


def under(node: Reduce, conditions: Sequence[Expr]) -> Reduce:
    """``node`` where ``conditions`` hold as well."""
    where = conjunction(list(dict.fromkeys([*conjuncts(node.where), *conditions])))
    return Reduce(node.reducer, node.exprs, node.axes, where, node.position)
