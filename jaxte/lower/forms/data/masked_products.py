"""Sums over what data choose for each row of the result, of values that have columns: a product with a matrix of zeros and ones.

    y[s, c] = sum over i of select(o[s] <= i and i < o[s + 1], x[i, c], 0)

Whether a point counts is a matrix ``M[s, i]``, of which the general path makes an array with all columns. ``M @ x`` does not, but would make NaN of
what is left out where that is infinite, as ``0 * inf``. So the finite values are multiplied, and two more products count the infinities (and
NaN, which is both) that are chosen: where there is one of plus infinity it is added, and one of minus infinity too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jaxte.algebra.product import multiplied, product_of
from jaxte.lang import dtypes
from jaxte.lang.expr import TRUE, ZERO, Const, Expr, Reduce, call, cast, conjunction, conjuncts
from jaxte.lang.functions import isfinite, isnan
from jaxte.lang.graphs import among
from jaxte.lang.operators import ADD, EQUAL, GREATER, MULTIPLY, OR, SELECT, SUBTRACT
from jaxte.lang.walk import depends_on, free_axes, reads_of
from jaxte.lower.body.candidates import Candidate, Search, Wanted
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.spec import Refusal
from jaxte.lower.cost.general import NARROW
from jaxte.lower.cost.work import Work, points
from jaxte.lower.views.scope import Scope

MASKED = "product with a mask"
_EXACT = ("float32", "float64")
_PRODUCTS = 3  # of the finite values, and with each infinity


@dataclass(frozen=True)
class Masked:
    """``value`` summed where ``mask`` holds, which depends on other axes of the result; times ``guard``."""

    mask: Expr
    value: Expr
    guard: Expr


def recognise_mask(wanted: Wanted) -> Masked | Refusal:
    """The product with a mask that a sum is."""
    node = wanted.node
    if node.reducer.name != "sum" or node.dtype not in _EXACT:
        return Refusal("")
    product = product_of(node.exprs[0], conjuncts(node.where))
    tests = [*product.guards, *(f.expr for f in product.factors if f.guard)]
    inside = [t for t in tests if depends_on(t, node.axes)]
    if not any(reads_of(t) for t in inside):
        return Refusal("")
    mask = conjunction(inside)
    value = multiplied([f for f in product.factors if not f.guard])
    rows, columns = free_axes(mask), free_axes(value)
    if any(a not in rows or a not in columns for a in node.axes) or value.dtype != node.dtype:
        return Refusal("")
    own = [a for a in wanted.axes if a in rows and a not in columns]
    others = [a for a in wanted.axes if a in columns and a not in rows]
    if min(points(own), points(others), points(node.axes)) < NARROW:
        return Refusal("")
    return Masked(mask, value, conjunction([t for t in tests if not among(t, inside)]))


def mask_candidates(body: Body, spec: Masked, wanted: Wanted) -> Iterator[Candidate]:
    """Three products with the matrix of zeros and ones."""
    node = wanted.node

    def write() -> Search:
        body.report.note(MASKED)
        written = _products(node, spec)
        body.survey(written)
        value = yield written, Scope(wanted.axes, hits=wanted.scope.hits)
        return body.typed(value, node.dtype)

    everywhere = 2.0 * points(wanted.axes) * points(node.axes)
    matrix = dtypes.width(node.dtype) * points(free_axes(spec.mask))
    work = Work(dot=_PRODUCTS * everywhere, stream=2.0 * matrix, temporaries=matrix, kernel=2 * _PRODUCTS)
    yield Candidate(MASKED, work, write)


def _products(node: Reduce, spec: Masked) -> Expr:
    value, dtype = spec.value, node.dtype
    infinity = Const(float("inf"), dtype)
    finite = _product(node, spec.mask, call(SELECT, isfinite(value), value, ZERO))
    for op, bound in ((ADD, infinity), (SUBTRACT, Const(float("-inf"), dtype))):
        spoilt = call(OR, call(EQUAL, value, bound), isnan(value))
        count = _product(node, spec.mask, cast(spoilt, dtype))
        finite = call(op, finite, call(SELECT, call(GREATER, count, ZERO), infinity, ZERO))
    return call(SELECT, spec.guard, finite, ZERO)


def _product(node: Reduce, mask: Expr, value: Expr) -> Expr:
    return Reduce(node.reducer, (call(MULTIPLY, cast(mask, node.dtype), value),), node.axes, TRUE)
