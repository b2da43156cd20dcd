"""Sums whose terms never meet: ``select(i == 0, a, 0) + select(i == 1, b, 0)`` is one choice, and is written as a stack.

The adjoint of a tensor that is read in several rows, ``W[0, k]``, ``W[1, k]``, is such a sum. Each term is zero outside of its own
row, so that nothing has to be added.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.affine import linear
from jaxte.errors import IndexExpressionError
from jaxte.expr import Axis, Call, Expr, call, conjunction, conjuncts
from jaxte.lower.factors import is_zero
from jaxte.operators import ADD, EQUAL, SELECT

_FEWEST, _MOST = 2, 64


def without_disjoint_sums(root: Expr, axes: Sequence[Axis]) -> Expr:
    """``root`` with terms that stand at different positions of one of ``axes`` as nested choices."""
    terms = _addends(root)
    if len(terms) < _FEWEST:
        return root
    for axis in axes:
        placed = [(_position(term, axis), term) for term in terms]
        own = {p: _sum([t for q, t in placed if q == p]) for p, _ in placed if p is not None}
        if len(own) < _FEWEST:
            continue
        others = [term for p, term in placed if p is None]
        if others and any(not isinstance(t, Call) or t.op is not SELECT for t in others):
            return root  # a term that is everywhere is added to everything anyway
        chosen = _chosen(axis, own, root)
        return _sum([*others, chosen])
    return root


def _addends(root: Expr) -> list[Expr]:
    found: list[Expr] = []
    stack = [root]
    while stack and len(found) < _MOST:
        node = stack.pop()
        if isinstance(node, Call) and node.op is ADD and node.dtype == root.dtype:
            stack += [node.args[1], node.args[0]]
        else:
            found.append(node)
    return found if not stack else [root]


def _sum(terms: Sequence[Expr]) -> Expr:
    total = terms[0]
    for term in terms[1:]:
        total = call(ADD, total, term)
    return total


def _position(term: Expr, axis: Axis) -> int | None:
    """``k`` if a term is zero unless ``axis == k``."""
    if not (isinstance(term, Call) and term.op is SELECT and is_zero(term.args[2])):
        return None
    return next((k for c in conjuncts(term.args[0]) if (k := _equals(c, axis)) is not None), None)


def _equals(condition: Expr, axis: Axis) -> int | None:
    """``k`` if ``condition`` is ``axis == k``."""
    if not (isinstance(condition, Call) and condition.op is EQUAL):
        return None
    try:
        form = linear(condition.args[0]) - linear(condition.args[1])
    except IndexExpressionError:
        return None
    factor = form.coefficient(axis)
    if abs(factor) != 1 or len(form.terms) != 1:
        return None
    return -form.constant * factor


def _chosen(axis: Axis, pieces: dict[int, Expr], root: Expr) -> Expr:
    """The piece at each position, zero at the others."""
    zero: Expr = next(t.args[2] for t in _addends(root) if _position(t, axis) is not None)  # type: ignore[attr-defined]
    result = zero
    for position in sorted(pieces, reverse=True):
        result = call(SELECT, call(EQUAL, axis, position), _inside(pieces[position], axis), result)
    return result


def _inside(term: Expr, axis: Axis) -> Expr:
    """A sum of terms as it is at its own position."""
    parts = []
    for part in _addends(term):
        assert isinstance(part, Call)
        rest = [c for c in conjuncts(part.args[0]) if _equals(c, axis) is None]
        parts.append(call(SELECT, conjunction(rest), part.args[1], part.args[2]) if rest else part.args[1])
    return _sum(parts)
