"""Choices by remainders: ``select(i % 2 == 0, A[i // 2], B[i // 2])`` is A and B side by side, stacked and reshaped.

Each branch is evaluated at the quotients of its own remainder only, so that nothing is computed for a branch that is not taken,
and no element asks for its remainder. Several dimensions are taken apart at once and put together by one reshape: XLA divides
the position of an element at each reshape, and two of them in a row take twice the time.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

from jaxte.lang.divisions import Quotient, divisions
from jaxte.lang.expr import Axis, Call, Const, Expr
from jaxte.lang.identity import among, identical
from jaxte.lang.operators import SELECT
from jaxte.lang.walk import postorder, reads_of
from jaxte.lower.arrays.steps import ALL, Index, Range, Reshape, Step
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.vocabulary import Value
from jaxte.lower.views.condition_box import residue_of, split_conditions
from jaxte.lower.views.mixed_radix import Digits, digits_of
from jaxte.lower.views.scope import Scope, is_inside
from jaxte.sets.index_forms import is_index

INTERLEAVED = "interleaved"
MOST_BRANCHES = 16  # each is an expression of its own
_Remainder = tuple[Axis, int]  # a dimension, and what it is divided by


def interleaved_value(
    body: Body, node: Call, scope: Scope
) -> Generator[tuple[Expr, Scope], Value, Value | None]:
    """The value of a choice among all remainders of dimensions; None where ``node`` is none."""
    splits: list[Digits] = []
    inner = scope
    for dim, base in _remainders(node, scope):
        splits.append(digits_of(dim, base))
        inner = inner.in_digits(splits[-1])
    if not splits:
        return None
    # Behind their guards reads may be in range that are padded elsewhere; nothing is copied for them.
    value = yield node, inner.reading(direct=all(is_inside(read, inner) for read in reads_of(node)))
    if value.literal or any(not among(d, value.dims) for s in splits for d in (s.high, s.low)):
        return None
    body.report.note(INTERLEAVED)
    return _joined(body, value, splits)


def is_interleaved(root: Expr, scope: Scope) -> bool:
    """Whether some part of ``root`` is a choice among all remainders of dimensions."""
    choices = (n for n in postorder(root) if isinstance(n, Call) and n.op is SELECT)
    return any(True for node in choices for _ in _remainders(node, scope))


def _joined(body: Body, value: Value, splits: Sequence[Digits]) -> Value:
    """An array over digits as one over the whole dimensions."""
    by_high = {s.high: s for s in splits}
    kept = [d for d in value.dims if all(d is not s.low for s in splits)]
    dims = [by_high[d].whole if d in by_high else d for d in kept]
    shape = [by_high[d].count if d in by_high else d.hi for d in kept]
    steps: list[Step] = [Reshape(tuple(shape))]
    if not all(s.exact for s in splits):
        inexact = {s.whole for s in splits if not s.exact}
        steps.append(Index(tuple(Range(None, d.hi) if d in inexact else ALL for d in dims)))
    return body.with_steps(value, steps, dims)


def _remainders(node: Expr, scope: Scope) -> Iterator[_Remainder]:
    """The dimensions among whose remainders ``node`` chooses, then those that what it chooses first chooses among."""
    taken: set[Axis] = set()
    while (found := _chain(node, scope)) is not None and found[0][0] not in taken:
        (dim, base), branches = found
        if any(isinstance(branch, Const) for branch in branches) or not any(
            is_index(index) and _divided(index, dim, base, scope)
            for branch in branches
            for index in _indices(branch)
        ):
            return
        taken.add(dim)
        yield dim, base
        node = branches[0]


def _chain(node: Expr, scope: Scope) -> tuple[_Remainder, list[Expr]] | None:
    """A choice of one branch for each remainder of a dimension, in any order; the last one may be for all others."""
    own: _Remainder | None = None
    branches: dict[int, Expr] = {}
    while isinstance(node, Call) and node.op is SELECT:
        parts = split_conditions(node.args[0], scope)
        found = residue_of(parts[0], scope) if parts is not None and len(parts) == 1 else None
        if found is None or (own is not None and not identical(found[:2], own)):
            break
        own, position = found[:2], found[2]
        branches.setdefault(position, node.args[1])
        node = node.args[2]
    if own is None or not 1 < own[1] <= MOST_BRANCHES or len(branches) < own[1] - 1:
        return None
    return own, [*branches.values(), node]


def _indices(branch: Expr) -> Iterator[Expr]:
    for read in reads_of(branch):
        yield from read.indices


def _divided(index: Expr, dim: Axis, base: int, scope: Scope) -> bool:
    """Whether ``index`` has the quotient of ``dim``, without which a mask on whole arrays is as good."""
    found = divisions(scope.index(index))
    return any(isinstance(d, Quotient) and d.number is dim and d.base == base for d in found)
