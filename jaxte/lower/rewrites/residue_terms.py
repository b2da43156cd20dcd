"""Sums of terms at all residues of an axis: ``select(i % 2 == 0, a, 0) + select(i % 2 == 1, b, 0)`` is a choice among residues.

The adjoint of a tensor that is read at strided positions, ``x[2 * i]`` and ``x[2 * i + 1]``, is such a sum, on several axes at once. Each
element has one of the terms, and what is chosen among all residues is written side by side (``forms/pieces/interleaved.py``), where
a sum has zeros put between the elements of each term first.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.algebra.product import is_zero
from jaxte.algebra.sums import added, addends
from jaxte.lang.divisions import Quotient, divisions
from jaxte.lang.expr import Axis, Call, Expr, call, conjunction, conjuncts
from jaxte.lang.operators import EQUAL, FLOOR_DIVIDE, MOD, SELECT
from jaxte.lang.walk import substitute
from jaxte.lower.limits import MOST_TERMS
from jaxte.lower.views.condition_box import residue_of
from jaxte.lower.views.scope import Scope
from jaxte.sets.affine import linear
from jaxte.sets.conditions import positive
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import known

_Class = tuple[int, int]  # what an axis is divided by, and the remainder


def with_residues_apart(root: Expr, axes: Sequence[Axis], scope: Scope) -> Expr:
    """``root`` with terms that stand at the residues of one of ``axes``, all of which have one, as nested choices."""
    terms = addends(root)
    if len(terms) < 2:
        return root
    for axis in axes:
        classes = _classes(terms, axis, scope)
        if classes is None:
            continue
        base = next(iter(classes))[0]
        parts = [
            added([(_without(term, axis, scope), 1) for term in classes[base, residue]])
            for residue in range(base)
        ]
        *first, chosen = [with_residues_apart(part, axes, scope) for part in parts]
        for residue in reversed(range(base - 1)):
            chosen = call(SELECT, call(EQUAL, call(MOD, axis, base), residue), first[residue], chosen)
        return chosen
    return root


def _classes(terms: Sequence[Expr], axis: Axis, scope: Scope) -> dict[_Class, list[Expr]] | None:
    """The terms by the residue of ``axis`` that they stand at; None where one stands at several, or a residue has none."""
    found: dict[_Class, list[Expr]] = {}
    for term in terms:
        own = _class(term, axis, scope)
        if own is None:
            return None
        found.setdefault(own, []).append(term)
    bases = {base for base, _ in found}
    return found if len(bases) == 1 and bases <= {len(found)} and len(found) <= MOST_TERMS else None


def _class(term: Expr, axis: Axis, scope: Scope) -> _Class | None:
    if not (isinstance(term, Call) and term.op is SELECT and is_zero(term.args[2])):
        return None
    found = {own for part in conjuncts(term.args[0]) if (own := _residue(part, axis, scope)) is not None}
    return found.pop() if len(found) == 1 else None


def _residue(condition: Expr, axis: Axis, scope: Scope) -> _Class | None:
    """The residue at which a condition holds, at all of its positions."""
    found = residue_of(positive(condition), scope)
    return found[1:] if found is not None and found[0] is axis and known(axis.hi) is not None else None


def _without(term: Expr, axis: Axis, scope: Scope) -> Expr:
    """A term as it is at its own residue."""
    assert isinstance(term, Call)
    own = _class(term, axis, scope)
    assert own is not None
    rest = [part for part in conjuncts(term.args[0]) if _residue(part, axis, scope) is None]
    inside = call(SELECT, conjunction(rest), term.args[1], term.args[2]) if rest else term.args[1]
    return _with_plain_quotients(inside, axis, own)


def _with_plain_quotients(term: Expr, axis: Axis, own: _Class) -> Expr:
    """``term`` with ``(axis + c) // base`` as ``axis // base + k``, which it is at one residue, so that reads are seen to be inside."""
    base, residue = own
    table: dict[Expr, Expr] = {}
    for found in divisions(term):
        if isinstance(found, Quotient) and found.base == base and is_index(found.number):
            form = linear(found.number)
            if form.terms == {axis: 1} and form.constant:
                table[found.node] = call(FLOOR_DIVIDE, axis, base) + (residue + form.constant) // base
    return substitute(term, table) if table else term
