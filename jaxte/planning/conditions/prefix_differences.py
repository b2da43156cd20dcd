"""Differences of prefix sums: sums over what is in one prefix and not in the other.

    c[i] = sum over k of x[k] where k <= i,     c[i + 16] - c[i]                                   is   sum over k of x[k] where i < k and k <= i + 16
    c[i, j] = sum over k, l of x[k, l] where k <= i and l <= j,
    c[i + 3, j + 3] - c[i, j + 3] - c[i + 3, j] + c[i, j]     is   sum over k, l of x[k, l] where i < k and k <= i + 3 and j < l and l <= j + 3

The windows that these are need no prefixes, lose no digits to them, and their adjoints are windows. Integer sets decide: one set of positions has to hold the other,
and all but one of the conditions of the smaller one, so that the difference is a set of conditions again. Prefixes that something else reads as well, and
sums over windows that are more than half of all or grow with the result, stay differences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import prod

from jaxte.algebra.sums import Signed, added, signed_terms
from jaxte.lang.expr import TRUE, Axis, Call, Expr, Read, Reduce, call, conjuncts
from jaxte.lang.graphs import among, identical
from jaxte.lang.operators import ADD, DIVIDE, MULTIPLY, NEGATIVE, NOT, SELECT, SUBTRACT
from jaxte.lang.walk import depends_on, free_axes, postorder, reads_of, reductions, rewrite, substitute
from jaxte.planning.conditions.counted_points import with_tight_axes
from jaxte.planning.conditions.moving_windows import Term, sum_of, term_of, under, with_windows
from jaxte.sets.conditions import positive, prune
from jaxte.sets.domain import IntegerSet
from jaxte.sets.index_forms import nonnegative_forms
from jaxte.sets.intervals import extent
from jaxte.sets.isl_text import is_decidable
from jaxte.tensors.compute import extract_reductions
from jaxte.tensors.tensor import Compute, Tensor

# additions of windows that take as long as an element of a prefix sum and one of its adjoint, as measured: more than three windows of 16, or one of 4,096
_PREFIX = 50
_WINDOW = 5  # what a window takes beside its additions
_DOUBLED = 4  # additions that take as long as two slices added in memory


def window_bodies(order: Iterable[Tensor], outputs: Sequence[Tensor]) -> dict[Tensor, Expr]:
    """New bodies, without prefixes, of the tensors among ``order`` in which differences of prefix sums stand."""
    computes = [t for t in order if isinstance(t, Compute)]
    kept: set[Tensor] = {*outputs}
    while True:
        new, missed = _window_bodies(computes, kept)
        if not missed:
            return {t: _with_own_sums(t, body) for t, body in new.items() if isinstance(t, Compute)}
        kept |= missed


def _with_own_sums(tensor: Compute, body: Expr) -> Expr:
    """``body`` with its sums as tensors where a function is taken of one: the adjoint would sum each window again for each of the positions in it."""
    return body if _is_linear(body) else extract_reductions(tensor.name, tensor.axes, body)


def _is_linear(node: Expr) -> bool:
    """Whether ``node`` is linear in the sums that it has."""
    if isinstance(node, Reduce) or not node.reduces:
        return True
    match node:
        case Call(op, args) if op in (ADD, SUBTRACT, NEGATIVE):
            return all(map(_is_linear, args))
        case Call(op, (test, taken, other)) if op is SELECT:
            return not test.reduces and _is_linear(taken) and _is_linear(other)
        case Call(op, (a, b)) if op is MULTIPLY:
            return not (a.reduces and b.reduces) and _is_linear(a) and _is_linear(b)
        case Call(op, (a, b)) if op is DIVIDE:
            return not b.reduces and _is_linear(a)
    return False


def _window_bodies(
    order: Sequence[Compute], kept: Container[Tensor]
) -> tuple[dict[Tensor, Expr], set[Tensor]]:
    """The new bodies where all prefixes but the ``kept`` ones are replaced, and those prefixes that are needed after all."""
    new: dict[Tensor, Expr] = {}
    sums: dict[Tensor, Term] = {}
    missed: set[Tensor] = set()
    for tensor in order:
        own = _sum_at(tensor, tensor.body, sums, kept)
        if own is None and _may_hold_differences(tensor.body, sums):
            body = _without_prefixes(tensor.body, sums)
            missed |= {r.tensor for r in reads_of(body) if r.tensor in sums and r.tensor not in new}
            if body is not tensor.body:
                new[tensor] = body
                own = _sum_at(tensor, body, sums, kept)
        if own is not None:
            sums[tensor] = own
    return new, missed or _dear(order, new, sums)


def _sum_at(tensor: Compute, body: Expr, sums: Mapping[Tensor, Term], kept: Container[Tensor]) -> Term | None:
    """The sum up to a position of its own that each element of ``tensor`` is, which may be read through."""
    if tensor in kept or tensor.part_of != tensor.name or tensor.override is not None:
        return None
    own = term_of(body, 1, sums)
    return own if own is not None and depends_on(own.node.where, tensor.axes) else None


def _may_hold_differences(body: Expr, prefixes: Mapping[Tensor, Term]) -> bool:
    """Whether ``body`` reads ``prefixes``, or has two sums up to positions itself."""
    conditional = 0
    for node in postorder(body):
        if isinstance(node, Read) and node.tensor in prefixes:
            return True
        conditional += isinstance(node, Reduce) and node.is_sum and node.where is not TRUE
    return conditional > 1


def _without_prefixes(body: Expr, prefixes: Mapping[Tensor, Term]) -> Expr:
    """``body`` with differences of ``prefixes`` as sums of what they leave; as it is where these have no form."""
    made: set[Expr] = set()

    def rule(node: Expr) -> Expr:
        new: Expr | None = None
        match node:
            case Call(op, _) if op in (ADD, SUBTRACT):
                new = _with_differences(node, prefixes, made)
            case Call(op, (test, taken, other)) if op is SELECT and is_decidable(test):
                new = _in_one(test, term_of(taken, 1, prefixes), term_of(other, 1, prefixes), made)
            case Read():  # at a position that does not move it is a sum like any other
                own = sum_of(node, prefixes)
                new = None if own is None or _moves(own.node) else added([own.signed()])
        return node if new is None or (new.dtype, new.weak) != (node.dtype, node.weak) else new

    new = rewrite(body, rule)
    sums = [n for n in reductions(new) if n in made]
    return new if all(map(_has_form, sums)) else body


def _moves(node: Reduce) -> bool:
    """Whether the conditions of a reduction move with anything but its own axes."""
    return bool(free_axes(node.where).keys() - {*node.axes})


def _with_differences(node: Expr, prefixes: Mapping[Tensor, Term], made: set[Expr]) -> Expr | None:
    """``node``, a sum, with terms of which one is a part of the other as what this leaves; None where there are none."""
    terms = [(signed, term_of(*signed, prefixes)) for signed in signed_terms(node, negated=True)]
    found = False
    while (pair := _first_pair(terms)) is not None:
        first, second, joined = pair
        terms[first] = joined.signed(), joined
        del terms[second]
        made.add(joined.node)
        found = True
    return added(_positive_first([signed for signed, _ in terms])) if found else None


def _first_pair(terms: Sequence[tuple[Signed, Term | None]]) -> tuple[int, int, Term] | None:
    """The places of the first two terms of which one is a part of the other, and what this leaves."""
    for (n, (_, a)), (m, (_, b)) in combinations(enumerate(terms), 2):
        joined = None if a is None or b is None else _difference(a, b)
        if joined is not None:
            return n, m, joined
    return None


def _positive_first(terms: Sequence[Signed]) -> list[Signed]:
    """``terms`` from the first that is added on, so that no negation is needed."""
    first = next((n for n, (_, sign) in enumerate(terms) if sign > 0), 0)
    return [terms[first], *terms[:first], *terms[first + 1 :]]


def _difference(a: Term, b: Term) -> Term | None:
    """The sum of two terms of opposite signs, where the positions of one are among those of the other."""
    if a.sign == b.sign or Counter(a.weights) != Counter(b.weights):
        return None
    renamed = _renamed(b.node, a.node)
    if renamed is None:
        return None
    rest = _left_by(a.node, renamed)
    if rest is not None:
        return Term(a.sign, a.weights, under(a.node, rest))
    rest = _left_by(renamed, a.node)
    return None if rest is None else Term(b.sign, a.weights, under(renamed, rest))


def _renamed(node: Reduce, like: Reduce) -> Reduce | None:
    """``node`` over the axes of ``like``, where both add the same."""
    if not identical([(a.lo, a.hi) for a in node.axes], [(a.lo, a.hi) for a in like.axes]):
        return None
    table: dict[Expr, Expr] = dict(zip(node.axes, like.axes, strict=True))
    exprs, where = [substitute(e, table) for e in node.exprs], substitute(node.where, table)
    return like.changed(exprs=exprs, where=where) if exprs[0] is like.exprs[0] else None


def _left_by(whole: Reduce, part: Reduce) -> list[Expr] | None:
    """What is asked of positions of ``whole`` that ``part`` does not have; None where it has others, or that is no one condition."""
    axes = list(dict.fromkeys([*whole.axes, *free_axes(whole.where), *free_axes(part.where)]))
    own, other = conjuncts(whole.where), prune(conjuncts(part.where), axes)
    inner, outer = IntegerSet(axes, other), IntegerSet(axes, own)
    if not all(inner.implies(c) for c in own if not among(c, other)):
        return None
    missing = [c for c in other if not among(c, own) and not outer.implies(c)]
    return [positive(call(NOT, missing[0]))] if len(missing) == 1 else None


def _in_one(test: Expr, taken: Term | None, other: Term | None, made: set[Expr]) -> Expr | None:
    """A choice between two sums as one of them, where its positions are those of the other one when this is chosen."""
    if taken is None or other is None or taken.sign != other.sign:
        return None
    renamed = _renamed(other.node, taken.node) if Counter(taken.weights) == Counter(other.weights) else None
    if renamed is None:
        return None
    for own, another, chosen in ((taken.node, renamed, call(NOT, test)), (renamed, taken.node, test)):
        free = [a for e in (own.where, another.where, test) for a in free_axes(e)]
        axes = list(dict.fromkeys([*own.axes, *free]))
        there = [IntegerSet(axes, [*conjuncts(n.where), positive(chosen)]) for n in (own, another)]
        if there[0].is_equal(there[1]):
            made.add(own)
            return added([replace(taken, node=own).signed()])
    return None


def _has_form(node: Reduce) -> bool:
    """Whether each axis of a sum has bounds that stay, or move from one end as those of prefixes do, or are a window's."""
    tight = with_tight_axes(node)
    windows = with_windows(tight)
    for axis in (a for a in windows.axes if among(a, tight.axes)):
        forms = [nonnegative_forms(c) for c in _moving(windows, axis)]
        if any(len(f) != 1 for f in forms) or len({f[0].coefficient(axis) > 0 for f in forms}) > 1:
            return False
    return True


def _moving(node: Reduce, axis: Axis) -> list[Expr]:
    """The conditions on ``axis`` that move with what ``node`` does not reduce."""
    return [c for c in conjuncts(node.where) if depends_on(c, (axis,)) and free_axes(c).keys() - {*node.axes}]


def _work(node: Reduce) -> float:
    """The additions for each element of a sum over windows: one axis after the other, by doubling where that is less."""
    tight = with_tight_axes(node)
    windows = with_windows(tight)
    total = 0.0
    for axis in windows.axes:
        width = extent(axis)
        if not among(axis, tight.axes):
            total += _WINDOW + min(width, _DOUBLED * width.bit_length())
        else:
            total += _PREFIX if _moving(windows, axis) else width
    return total


def _dear(order: Sequence[Compute], new: Mapping[Tensor, Expr], sums: Mapping[Tensor, Term]) -> set[Tensor]:
    """The prefixes of which so many windows are asked that they take longer than the prefixes."""
    work: dict[Tensor, float] = {}
    for tensor in order:
        if tensor in new:
            old = {*postorder(tensor.body)}
            found = [n for n in reductions(new[tensor]) if n not in old]
            own = prod(map(extent, tensor.axes)) * sum(map(_work, found))
            for prefix in {r.tensor for r in reads_of(tensor.body) if r.tensor in sums}:
                work[prefix] = work.get(prefix, 0) + own
    return {t for t in order if t in work and work[t] > _PREFIX * prod(map(extent, t.axes))}
