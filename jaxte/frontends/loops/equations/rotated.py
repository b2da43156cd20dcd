"""What a step makes of the step before alone, made at the end of that step and handed on: the rotation of a loop.

    un[t] = (u0 if t == 0 else edges(u[t - 1]))       w[t] = edges(u[t]),   un[t] = (u0 if t == 0 else w[t - 1])
    u[t] = step(un[t])                                 u[t] = step(un[t])

Now ``un`` is what the loop hands on and begins with, and no step asks whether it is the first. Where the loop has ``w`` already, as a force that both ends of
a step need, it is computed once.

Choices by whether there is a step before stand within those by other conditions before that: the inner choice is between a state and what it begins with,
which a loop makes by handing that to its first step.

    ey[t, i] = (ey[t - 1, i] if t >= 1 and i >= 1 else fict[t] if i == 0 else ey0[i])
    ey[t, i] = ((ey[t - 1, i] if t >= 1 else ey0[i]) if i >= 1 else fict[t])
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from jaxte.lang.expr import TRUE, Axis, Call, Expr, Read, Reduce, as_expr, call, cast, conjunction, conjuncts
from jaxte.lang.functions import logical_not, select
from jaxte.lang.graphs import among
from jaxte.lang.operators import SELECT
from jaxte.lang.walk import all_of, free_axes, reads_of, reductions, rewrite, substitute, with_indices
from jaxte.sets.affine import normal
from jaxte.sets.conditions import same_condition
from jaxte.sets.domain import IntegerSet
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import known
from jaxte.sets.resolved import decided
from jaxte.tensors.compute import defined
from jaxte.tensors.recurrences.node import State
from jaxte.tensors.recurrences.starts import guarded_read
from jaxte.tensors.tensor import Compute, Tensor


@dataclass(frozen=True, eq=False)
class Row:
    """One tensor of a recurrence under way: its state, and its value over axes, that of the clock at ``place``, where ``domain`` holds."""

    state: State
    axes: tuple[Axis, ...]
    body: Expr
    domain: Expr = TRUE
    place: int = 0

    @property
    def clock(self) -> Axis:
        return self.axes[self.place]

    def at(self, time: Expr, state: State) -> Read:
        """``state``, which has the same axes, at another time."""
        return Read(state, [normal(time) if n == self.place else a for n, a in enumerate(self.axes)])

    def definition(self) -> Compute:
        value = self.body if self.domain is TRUE else select(self.domain, self.body, 0)
        return defined([self.state.name], self.axes, [cast(value, self.state.dtype)])[0]


def rotated(rows: Sequence[Row]) -> list[Row]:
    """``rows``, with others behind them that hand on what one of them makes of the step before."""
    found, more = list(rows), list[Row]()
    states = frozenset(row.state for row in rows)
    for n, row in enumerate(rows):
        if not _asks_for_first(row, states):
            continue
        first, later = _at(row, as_expr(0)), _later(row, states)
        if later is None or any(r.tensor in states for r in reads_of(first)):
            continue
        own = next((r for r in rows if r is not row and _is(r, later, row.axes)), None)
        if own is None:
            if later.dtype != row.state.dtype or not reads_of(first):
                continue
            own = replace(row, state=State(row.state.name, row.state.shape, row.state.dtype), body=later)
            more.append(own)
        before = row.at(row.clock - 1, own.state)
        found[n] = replace(row, body=_begun_with(row, before, first))
    return [*found, *more]


def _begun_with(row: Row, before: Read, first: Expr) -> Expr:
    """``before``, and ``first`` in the first step: a tensor of it, that the loop begins with, where it is an array."""
    value = cast(first, row.state.dtype)
    if not reads_of(first):
        return select(row.clock >= 1, before, value)
    axes = tuple(Axis(a.name, 0, as_expr(1) if n == row.place else a.extent) for n, a in enumerate(row.axes))
    value = substitute(value, dict(zip(row.axes, axes, strict=True)))
    (start,) = defined([f"{row.state.name}_init"], axes, [value])
    state = before.tensor
    assert isinstance(state, State)
    return guarded_read(state, row.place, before, start, False)


def _asks_for_first(row: Row, states: Collection[Tensor]) -> bool:
    """Whether ``row`` reads states of the step before alone, and makes something of them where there is one."""
    reads = [r for r in reads_of(row.body) if r.tensor in states]
    steps = known(row.clock.extent)
    if not reads or row.domain is not TRUE or steps is None or steps < 2:
        return False
    if any(normal(r.indices[row.place] - row.clock + 1) is not as_expr(0) for r in reads):
        return False
    plain = rewrite(row.body, lambda node: _without_start(node, row, states))
    tests = [n.args[0] for n in all_of(Call, plain) if n.op is SELECT]
    tests += [n.where for n in reductions(plain)]
    return any(row.clock in free_axes(test) for test in tests)


def _without_start(node: Expr, row: Row, states: Collection[Tensor]) -> Expr:
    """The state where ``node`` chooses between it and what it begins with, as any loop does."""
    match node:
        case Call(op, (test, Read() as taken, _)) if op is SELECT and taken.tensor in states:
            return taken if same_condition(test, row.clock >= 1) else node
    return node


def _later(row: Row, states: Collection[Tensor]) -> Expr | None:
    """What ``row`` is at the next step, in terms of this one; None where it asks for more than what states hold, or for one element."""
    clock = row.clock
    beyond = Axis(clock.name, 1, clock.hi)
    axes = [beyond if a is clock else a for a in row.axes]
    own = simplified(decided(substitute(row.body, {clock: beyond})), axes, [])
    table: dict[Expr, Expr] = {}
    for read in reads_of(own):
        if read.tensor in states:
            table[read] = Read(
                read.tensor, [clock if n == row.place else i for n, i in enumerate(read.indices)]
            )
    value = substitute(own, table)
    return None if beyond in free_axes(value) or isinstance(value, Read) else value


def _at(row: Row, number: Expr) -> Expr:
    """``row`` at one step."""
    own = decided(substitute(row.body, {row.clock: number}))
    return simplified(own, [a for a in row.axes if a is not row.clock], [])


def simplified(body: Expr, axes: Sequence[Axis], given: Sequence[Expr]) -> Expr:
    """``body`` where ``given`` holds, without choices that this decides."""
    match body:
        case Call(op, (test, taken, other)) if op is SELECT and not reads_of(test):
            inside, outside = [*given, test], [*given, logical_not(test)]
            if IntegerSet(axes, inside).is_empty():
                return simplified(other, axes, given)
            if IntegerSet(axes, outside).is_empty():
                return simplified(taken, axes, given)
            return select(test, simplified(taken, axes, inside), simplified(other, axes, outside))
    return body


def _is(row: Row, value: Expr, axes: Sequence[Axis]) -> bool:
    """Whether ``row`` is ``value`` over ``axes``, by whatever axes it adds up."""
    if len(row.axes) != len(axes) or any(
        a.extent is not b.extent for a, b in zip(row.axes, axes, strict=True)
    ):
        return False
    own = substitute(row.body, dict(zip(row.axes, axes, strict=True)))
    return _canonical(decided(own)) is _canonical(value)


_BOUND: dict[tuple[int, Expr, Expr], Axis] = {}


def _canonical(body: Expr) -> Expr:
    """``body`` with reduced axes that are the same for equal sums."""

    def rule(node: Expr) -> Expr:
        if not isinstance(node, Reduce):
            return node
        inner = sum(len(n.axes) for n in reductions(*node.exprs, node.where))
        axes = [
            _BOUND.setdefault((inner + n, a.lo, a.hi), Axis(f"r{inner + n}", a.lo, a.hi))
            for n, a in enumerate(node.axes)
        ]
        table: dict[Expr, Expr] = dict(zip(node.axes, axes, strict=True))
        exprs = [substitute(e, table) for e in node.exprs]
        return node.changed(exprs=exprs, axes=axes, where=substitute(node.where, table))

    return rewrite(body, rule)


def with_firsts_inside(row: Row, states: Collection[Tensor]) -> Row:
    """``row`` with such choices, and with positions in one form."""
    body = with_indices(row.body, lambda i: normal(i) if is_index(i) else i)
    return replace(row, body=rewrite(body, lambda node: _inside(node, row, states)))


def _inside(node: Expr, row: Row, states: Collection[Tensor]) -> Expr:
    match node:
        case Call(op, (test, Read() as taken, Call(inner, _) as other)) if (
            op is SELECT is inner and taken.tensor in states
        ):
            parts = conjuncts(test)
            first = [c for c in parts if same_condition(c, row.clock >= 1)]
            rest = conjunction([c for c in parts if not among(c, first)])
            if not 0 < len(first) < len(parts) or reads_of(rest):
                return node
            taken_there, elsewhere = (
                simplified(other, row.axes, [rest]),
                simplified(other, row.axes, [logical_not(rest)]),
            )
            if taken_there is not other and elsewhere is not other:
                return call(SELECT, rest, call(SELECT, first[0], taken, taken_there), elsewhere)
    return node
