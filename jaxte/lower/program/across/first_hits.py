"""Gradients of maxima over windows that lie side by side, without the winners.

The adjoint of such a maximum, the first of equal elements chosen, is

    dx[i] = select(i % 2 == winner[i // 2], h[i // 2], 0),   winner[p] = min(select(x[2 * p + k] == y[p], k, none) for k)

Each remainder of ``i`` is one position of the window, so ``i % 2 == winner[i // 2]`` is whether ``x == y`` there and at no
position before it. Written so, as a choice by remainders (see ``interleaved``), each element takes the comparisons of the
positions before its own, and no integer is computed. With the winners XLA on the CPU fuses them into the gradient: all of the
comparisons, and a gather, for each element. That takes three to twelve times as long for windows in two or three
dimensions, the last one among them; as long for windows in one dimension, and less where channels come last, which a loop then
runs over. So there, and on other platforms, where it was not measured, the winners stay.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from jaxte.lang.divisions import Remainder, divisions
from jaxte.lang.expr import (
    FALSE,
    Axis,
    Call,
    Const,
    Expr,
    Read,
    Reduce,
    as_expr,
    call,
    conjunction,
    conjuncts,
)
from jaxte.lang.graphs import Members
from jaxte.lang.limits import MOST_TERMS
from jaxte.lang.operators import AND, EQUAL, FLOOR_DIVIDE, NOT, OR, SELECT
from jaxte.lang.walk import depends_on, nodes_outside, substitute
from jaxte.lower.cost.policy import ANY, Policy
from jaxte.lower.forms.window.unrolled import numbered_conditions
from jaxte.lower.rules.interleaved import INTERLEAVED
from jaxte.lower.tiles.tiling import Tiling
from jaxte.sets.affine import linear, normal
from jaxte.sets.index_forms import is_index, nonnegative_forms
from jaxte.tensors.tensor import Compute, Tensor


def without_winners(planned: Tiling, results: Members[Tensor], policy: Policy) -> Tiling:
    """``planned`` with gradients of maxima by comparisons, and without the winners that nothing reads then."""
    computed = [t for t in planned.order if isinstance(t, Compute)]
    winners = {t for t in computed if _is_winner(t)}
    known = {*planned.stand_ins, *planned.stand_ins.values()}
    found: dict[Tensor, Compute] = {}
    for tensor in computed:
        if tensor not in known and any(t in winners for t in tensor.inputs) and _is_wanted(tensor, policy):
            body = _with_comparisons(tensor, winners, policy)
            if body is not tensor.body:
                found[tensor] = Compute(tensor.name, tensor.axes, body)
    return planned.with_definitions(found, winners, results)


def _is_winner(tensor: Compute) -> bool:
    node = tensor.body
    return isinstance(node, Reduce) and node.is_extremum and node.dtype.startswith("int")


def _is_wanted(tensor: Compute, policy: Policy) -> bool:
    """Whether the user named the form, or may have it."""
    named = policy.forms.get(tensor.name, policy.forms.get(ANY))
    return named == INTERLEAVED or (policy.facts.fuses_places and INTERLEAVED not in policy.without)


def _with_comparisons(tensor: Compute, winners: Members[Tensor], policy: Policy) -> Expr:
    """The body of ``tensor`` with choices by a winner as choices by remainders, where that is worth it."""
    table: dict[Expr, Expr] = {}
    for node in nodes_outside(tensor.body, (Read, Reduce)):
        match node:
            case Call(op, (condition, taken, other)) if op is SELECT:
                choice = _choice(condition, taken, other, winners)
                if choice is not None and _is_worth_it(choice, tensor, policy):
                    table[node] = choice.by_remainders()
    return substitute(tensor.body, table)


def _is_worth_it(choice: _Choice, tensor: Compute, policy: Policy) -> bool:
    if policy.forms.get(tensor.name, policy.forms.get(ANY)) == INTERLEAVED:
        return True
    # Along one axis of a window, comparisons take as long as winners.
    return len(choice.digits) > 1 and any(d.axis is tensor.axes[-1] for d in choice.digits)


@dataclass(frozen=True, slots=True)
class _Digit:
    """An axis of which a position in a window is the remainder ``node``, and the window's own position the quotient."""

    axis: Axis
    node: Expr
    base: int


@dataclass(frozen=True, slots=True)
class _Choice:
    """``select(position == winner, taken, other)`` under conditions on windows.

    Attributes:
        digits: the axes that run through windows.
        position: of an element in its window, in terms of the remainders.
        hits: by position, whether it is the first that counts.
        guards: conditions that are the same throughout a window.
    """

    digits: tuple[_Digit, ...]
    position: Expr
    hits: Mapping[int, Expr]
    guards: tuple[Expr, ...]
    taken: Expr
    other: Expr

    def by_remainders(self) -> Expr:
        inside = self._from(0, {})
        return call(SELECT, conjunction(self.guards), inside, self.other) if self.guards else inside

    def _from(self, n: int, fixed: Mapping[Expr, Expr]) -> Expr:
        """What is chosen where the first ``n`` remainders are ``fixed``: by the next one."""
        if n == len(self.digits):
            return call(SELECT, self.hits[_number(self.position, fixed)], self.taken, self.other)
        own = self.digits[n]
        branches = [self._from(n + 1, {**fixed, own.node: as_expr(r)}) for r in range(own.base)]
        result = branches.pop()
        for r, branch in reversed(list(enumerate(branches))):
            result = call(SELECT, call(EQUAL, own.node, r), branch, result)
        return result


def _choice(condition: Expr, taken: Expr, other: Expr, winners: Members[Tensor]) -> _Choice | None:
    """The choice by a winner that ``condition`` makes; None if it makes none, or one that has no comparisons."""
    parts = conjuncts(condition)
    found = next(((n, *pair) for n, part in enumerate(parts) if (pair := _compared(part, winners))), None)
    if found is None:
        return None
    n, position, read = found
    guards = (*parts[:n], *parts[n + 1 :])
    digits = _digits(position)
    guards = tuple([_of_windows(guard, digits) for guard in guards])
    if not digits or not _are_windows(digits, (*read.indices, *guards, taken, other)):
        return None
    hits = _hits(read)
    every = itertools.product(*(range(d.base) for d in digits))
    numbers = [
        _number(position, {d.node: as_expr(r) for d, r in zip(digits, rs, strict=True)}) for rs in every
    ]
    if hits is None or sorted(numbers) != sorted(hits):
        return None
    return _Choice(digits, position, hits, guards, taken, other)


def _compared(condition: Expr, winners: Members[Tensor]) -> tuple[Expr, Read] | None:
    match condition:
        case Call(op, (position, Read(tensor=tensor) as read)) if op is EQUAL and is_index(position):
            return (position, read) if tensor in winners else None
    return None


def _digits(position: Expr) -> tuple[_Digit, ...]:
    """The remainders in ``position``, if it has nothing else and they are few; none otherwise."""
    found: list[_Digit] = []
    for divided in divisions(position):
        match divided:
            case Remainder(Axis() as axis, int() as base):
                found.append(_Digit(axis, divided.node, base))
    alone = substitute(position, {d.node: as_expr(0) for d in found})
    if depends_on(alone, [d.axis for d in found]) or len({d.axis for d in found}) < len(found):
        return ()
    if not linear(alone).is_constant or prod(d.base for d in found) > MOST_TERMS:
        return ()
    return tuple(found)


def _number(position: Expr, fixed: Mapping[Expr, Expr]) -> int:
    return linear(substitute(position, fixed)).constant


def _of_windows(guard: Expr, digits: Collection[_Digit]) -> Expr:
    """``guard`` as a condition on windows, where it is an end between two of them: ``i <= 5`` of windows of two is ``i // 2 <= 2``."""
    forms = nonnegative_forms(guard)
    for d in digits:
        if len(forms) == 1 and forms[0].terms.keys() == {d.axis}:
            factor, constant = forms[0].coefficient(d.axis), forms[0].constant
            if (factor, constant % d.base) in ((1, 0), (-1, d.base - 1)):
                return factor * call(FLOOR_DIVIDE, d.axis, d.base) + constant // d.base >= 0
    return guard


def _are_windows(digits: Collection[_Digit], exprs: Sequence[Expr]) -> bool:
    """Whether ``exprs`` are the same throughout a window: they have the axes' quotients only."""
    table: dict[Expr, Expr] = {}
    for d in digits:
        table[call(FLOOR_DIVIDE, d.axis, d.base)] = as_expr(0)
    axes = [d.axis for d in digits]
    return not any(depends_on(substitute(expr, table), axes) for expr in exprs)


def _hits(read: Read) -> dict[int, Expr] | None:
    """By position, whether the winner that is read is there."""
    winner = read.tensor
    assert isinstance(winner, Compute)
    node = winner.body
    assert isinstance(node, Reduce)
    extents = [normal(a.extent) for a in node.axes]
    if not all(isinstance(e, Const) for e in (*extents, *(a.lo for a in node.axes))):
        return None
    if prod(int(e) for e in extents) > MOST_TERMS:
        return None
    taps = itertools.product(*(range(int(a.lo), int(a.hi)) for a in node.axes))
    found = numbered_conditions(node, [dict(zip(node.axes, map(as_expr, t), strict=True)) for t in taps])
    if found is None:
        return None
    place = dict(zip(winner.axes, read.indices, strict=True))
    hits: dict[int, Expr] = {}
    before: Expr = FALSE
    for number, condition in found:
        own = substitute(condition, place)
        hits[number] = call(AND, own, call(NOT, before))
        before = call(OR, before, own)
    return hits
