"""Reads at positions that are data, behind guards that keep the positions in range.

``select(0 <= I[i] and I[i] < n, X[I[i]], 0)`` never shows what X[I[i]] is out of range: any element will do there, and a
gather that takes the nearest one is several times faster than one that fills in NaN.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxte.lang.expr import Call, Expr, Read, Reduce, as_expr, conjuncts
from jaxte.lang.operators import SELECT
from jaxte.lang.walk import postorder, reads_of
from jaxte.sets.affine import Linear, linear
from jaxte.sets.conditions import nonnegative_forms
from jaxte.sets.index_forms import linear_or_none

Key = tuple[frozenset[tuple[Expr, int]], int]


def guarded_reads(root: Expr, conditions: Sequence[Expr] = ()) -> frozenset[Read]:
    """The reads below ``root`` whose positions are data and in range wherever their values count.

    Args:
        conditions: where one of them does not hold, the value of ``root`` does not count.
    """
    wanted = [r for r in reads_of(root) if any(reads_of(i) for i in r.indices)]
    if not wanted:
        return frozenset()
    known: dict[Expr, frozenset[Key]] = {root: frozenset(key for c in conditions for key in _keys(c))}
    for node in reversed(list(postorder(root))):  # every node after all that it stands below
        own = known[node]
        for child, conditions in _edges(node):
            held = own | {key for c in conditions for key in _keys(c)}
            known[child] = known[child] & held if child in known else held
    return frozenset(r for r in wanted if _is_kept(r, known[r]))


def _edges(node: Expr) -> Iterator[tuple[Expr, list[Expr]]]:
    """The nodes below ``node``, each with the conditions outside of which its value does not count."""
    match node:
        case Call(op, (condition, taken, other)) if op is SELECT:
            yield condition, []
            yield taken, conjuncts(condition)
            yield other, []
        case Reduce():
            yield node.where, []
            for expr in node.exprs:
                yield expr, conjuncts(node.where)
        case _:
            for child in node.children:
                yield child, []


def _keys(condition: Expr) -> list[Key]:
    return [_key(form) for form in nonnegative_forms(condition)]


def _key(form: Linear) -> Key:
    return frozenset(form.terms.items()), form.constant


def _is_kept(read: Read, known: frozenset[Key]) -> bool:
    for index, extent in zip(read.indices, read.tensor.shape, strict=True):
        if not reads_of(index):
            continue
        form = linear_or_none(index)
        if form is None:
            return False
        limits = [form, linear(as_expr(extent)) - form - Linear({}, 1)]
        if not all(_key(limit) in known for limit in limits):
            return False
    return True
