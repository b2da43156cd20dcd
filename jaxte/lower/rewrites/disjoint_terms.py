"""Sums whose terms never meet: one choice, written as a stack or side by side.

``select(i < 2, a, 0) + select(i == 2, b, 0)`` is one: the adjoint of a tensor that is read in several rows, ``W[0, k]``, ``W[1, k]``. Each term is zero
outside of its own rows, so that nothing has to be added. ``select(i % 2 == 0, a, 0) + select(i % 2 == 1, b, 0)`` is a choice among residues: the adjoint of
a tensor that is read at strided positions, ``x[2 * i]`` and ``x[2 * i + 1]``, on several axes at once. What is chosen among all residues is written side by
side (``rules/interleaved.py``), where a sum has zeros put between the elements of each term first. A term that stands everywhere, and is read at the
quotient, ``cos(a[i // 2])``, is one of each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from jaxte.algebra.product import is_zero
from jaxte.algebra.sums import Signed, added, addends, signed_terms
from jaxte.lang.divisions import Quotient, divisions
from jaxte.lang.expr import ZERO, Axis, Call, Expr, Read, call, conjunction, conjuncts
from jaxte.lang.limits import MOST_TERMS
from jaxte.lang.operators import EQUAL, FLOOR_DIVIDE, GREATER_EQUAL, LESS, MOD, NOT, NOT_EQUAL, SELECT
from jaxte.lang.walk import reads_of, substitute
from jaxte.lower.views.condition_box import Box, box_of, intersect, residue_of
from jaxte.lower.views.scope import Scope
from jaxte.sets.affine import linear
from jaxte.sets.conditions import positive
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import constant, known

Span = tuple[int, int]


def without_disjoint_sums(root: Expr, axes: Sequence[Axis], scope: Scope) -> Expr:
    """``root`` with terms that stand at different positions of one of ``axes`` as nested choices."""
    terms = addends(root)
    if len(terms) < 2:
        return root
    for axis in axes:
        placed = _apart([(_span(term, axis, scope), term) for term in terms])
        own = {s: [t for r, t in placed if r == s] for s in sorted({s for s, _ in placed if s is not None})}
        if len(own) < 2:
            continue
        others = [term for span, term in placed if span is None]
        everywhere = any(not isinstance(t, Call) or t.op is not SELECT for t in others)
        if everywhere and any(stop - start > 1 for start, stop in own):
            return root  # a term that is everywhere is added to everything anyway; what few positions have is one array
        return added([(t, 1) for t in (*others, _chosen(axis, own, axes, scope))])
    return root


def _apart(placed: list[tuple[Span | None, Expr]]) -> list[tuple[Span | None, Expr]]:
    """``placed`` with no spans that overlap: those of a single position only, where there are others."""
    spans = sorted({span for span, _ in placed if span is not None})
    if all(before[1] <= after[0] for before, after in pairwise(spans)):
        return placed
    return [(span if span is not None and span[1] - span[0] == 1 else None, term) for span, term in placed]


def _span(term: Expr, axis: Axis, scope: Scope) -> Span | None:
    """The first position of ``axis`` at which a term may be other than zero, and the end; None if that is all or unknown."""
    if not (isinstance(term, Call) and term.op is SELECT and is_zero(term.args[2])):
        return None
    box: Box | None = Box(axis, constant(0), linear(axis.hi))
    parts = [positive(part) for part in conjuncts(term.args[0])]
    for found in (_box(part, axis, scope) for part in parts):
        box = intersect(box, found) if box is not None and found is not None else box
    if box is None or not (box.start.is_constant and box.stop.is_constant):
        return None
    start, stop = box.start.constant, box.stop.constant
    missing = {_missing(part, axis, scope) for part in parts}
    while start in missing:
        start += 1
    while stop - 1 in missing:
        stop -= 1
    return (start, stop) if start < stop and (start, stop) != (0, known(axis.hi)) else None


def _box(part: Expr, axis: Axis, scope: Scope) -> Box | None:
    """The consecutive positions of ``axis`` at which a condition holds, if it is on no other axis."""
    box = box_of(part, scope)
    return box if box is not None and box.dim is axis and box.step == 1 else None


def _missing(part: Expr, axis: Axis, scope: Scope) -> int | None:
    """``k`` if a condition is ``axis != k``."""
    if not (isinstance(part, Call) and part.op is NOT_EQUAL):
        return None
    box = _box(call(EQUAL, *part.args), axis, scope)
    return box.start.constant if box is not None and known(box.count) == 1 else None


def _chosen(axis: Axis, own: dict[Span, list[Expr]], axes: Sequence[Axis], scope: Scope) -> Expr:
    """The terms at their positions on ``axis``, and there on the other ``axes``, zero elsewhere."""
    spans = sorted(own)
    ends = [0, *(stop for _, stop in spans)]
    whole = [start for start, _ in spans] == ends[:-1] and ends[-1] == known(axis.hi)
    rest = [a for a in axes if a is not axis]
    sums = [added([(_inside(term, axis, span, scope), 1) for term in own[span]]) for span in spans]
    pieces = [(span, without_disjoint_sums(s, rest, scope)) for span, s in zip(spans, sums, strict=True)]
    result: Expr = pieces.pop()[1] if whole else own[spans[0]][0].args[2]  # type: ignore[attr-defined]
    for span, piece in reversed(pieces):
        result = call(SELECT, _within(axis, span), piece, result)
    return result


def _within(axis: Axis, span: Span) -> Expr:
    start, stop = span
    if stop - start == 1:
        return call(EQUAL, axis, start)
    return conjunction(
        [call(GREATER_EQUAL, axis, start), call(LESS, axis, stop)] if start else [call(LESS, axis, stop)]
    )


def _inside(term: Expr, axis: Axis, span: Span, scope: Scope) -> Expr:
    """A term as it is at its own positions."""
    assert isinstance(term, Call)
    rest = []
    for condition in conjuncts(term.args[0]):
        part = positive(condition)
        missing = _missing(part, axis, scope)
        outside = missing is not None and not span[0] <= missing < span[1]
        if _box(part, axis, scope) is None and not outside:
            rest.append(condition)
    return call(SELECT, conjunction(rest), term.args[1], term.args[2]) if rest else term.args[1]


_Class = tuple[int, int]  # what an axis is divided by, and the remainder


def with_residues_apart(root: Expr, axes: Sequence[Axis], scope: Scope) -> Expr:
    """``root`` with terms that stand at the residues of one of ``axes``, all of which have one, as nested choices."""
    terms = signed_terms(root, negated=True)
    if len(terms) < 2:
        return root
    terms = [(part, sign) for term, sign in terms for part in _branches(term, scope)]
    for axis in axes:
        classes = _classes(terms, axis, scope)
        if not classes:
            continue
        parts = [
            added([(_at(term, axis, own, scope), sign) for term, sign in classes[own]])
            for own in sorted(classes)
        ]
        *first, chosen = [with_residues_apart(part, axes, scope) for part in parts]
        for residue in reversed(range(len(first))):
            chosen = call(SELECT, call(EQUAL, call(MOD, axis, len(parts)), residue), first[residue], chosen)
        return chosen
    return root


def _branches(term: Expr, scope: Scope) -> list[Expr]:
    """A choice between even and odd positions as a term at either; any other term by itself."""
    match term:
        case Call(op, (condition, a, b)) if op is SELECT and not is_zero(a) and not is_zero(b):
            found = residue_of(positive(condition), scope)
            if found is not None and found[1] == 2:
                return [call(SELECT, condition, a, ZERO), call(SELECT, condition, ZERO, b)]
    return [term]


def _classes(terms: Sequence[Signed], axis: Axis, scope: Scope) -> dict[_Class, list[Signed]]:
    """The terms by the residue of ``axis`` that they stand at; nothing where that is not said, or a residue has none."""
    own = [_class(term, axis, scope) for term, _ in terms]
    bases = {c[0] for c in own if c is not None}
    if len(bases) != 1 or len(terms) > MOST_TERMS:
        return {}
    base = bases.pop()
    everywhere = [term for (term, _), c in zip(terms, own, strict=True) if c is None]
    found = [(base, residue) for residue in range(base)]
    if not (everywhere or all(c in own for c in found)):
        return {}
    if not all(_is_of_quotient(term, axis, base) for term in everywhere):
        return {}
    return {c: [t for t, o in zip(terms, own, strict=True) if o is None or o == c] for c in found}


def _is_of_quotient(term: Expr, axis: Axis, base: int) -> bool:
    """Whether something of ``term`` is read at the quotient of ``axis``, so that elements side by side read the same."""
    if isinstance(term, Call) and term.op is SELECT:
        return False
    return any(
        isinstance(d, Quotient)
        and d.base == base
        and is_index(d.number)
        and linear(d.number).terms.keys() == {axis}
        for d in divisions(term)
    )


def _class(term: Expr, axis: Axis, scope: Scope) -> _Class | None:
    found = {r for part in _choice(term)[0] if (r := _residue(part, axis, scope)) is not None}
    return found.pop() if len(found) == 1 else None


def _choice(term: Expr) -> tuple[list[Expr], Expr]:
    """Where a term stands, and what it is there."""
    match term:
        case Call(op, (condition, value, other)) if op is SELECT and is_zero(other):
            return conjuncts(condition), value
        case Call(op, (condition, other, value)) if op is SELECT and is_zero(other):
            return conjuncts(call(NOT, condition)), value
    return [], term


def _residue(condition: Expr, axis: Axis, scope: Scope) -> _Class | None:
    """The residue at which a condition holds, at all of its positions."""
    found = residue_of(positive(condition), scope)
    return found[1:] if found is not None and found[0] is axis and known(axis.hi) is not None else None


def _at(term: Expr, axis: Axis, own: _Class, scope: Scope) -> Expr:
    """A term as it is at a residue, its own if it has one."""
    conditions, value = _choice(term)
    if _class(term, axis, scope) is not None:
        rest = [part for part in conditions if _residue(part, axis, scope) is None]
        term = call(SELECT, conjunction(rest), value, ZERO) if rest else value
    return _with_plain_quotients(term, axis, own)


def _with_plain_quotients(term: Expr, axis: Axis, own: _Class) -> Expr:
    """``term`` with ``(axis + c) // base`` as ``axis // base + k``, which it is at one residue, and with neighbours as positions from there.

    So reads are seen to be inside: ``x[i + 1]`` at an even position below an even end, ``x[2 * (i // 2) + 1]``.
    """
    base, residue = own
    table: dict[Expr, Expr] = {}
    for found in divisions(term):
        if isinstance(found, Quotient) and found.base == base and (c := _steps_from(found.number, axis)):
            table[found.node] = call(FLOOR_DIVIDE, axis, base) + (residue + c) // base
    term = substitute(term, table) if table else term
    reads: dict[Expr, Expr] = {}
    for read in reads_of(term):
        steps = [_steps_from(index, axis) for index in read.indices]
        if any(steps):
            first = call(FLOOR_DIVIDE, axis, base) * base
            indices = [first + (residue + c) if c else i for c, i in zip(steps, read.indices, strict=True)]
            reads[read] = Read(read.tensor, tuple(indices))
    return substitute(term, reads) if reads else term


def _steps_from(index: Expr, axis: Axis) -> int:
    """``c`` of an index ``axis + c``; 0 of any other."""
    form = linear(index) if is_index(index) else None
    return form.constant if form is not None and form.terms == {axis: 1} else 0
