"""Adjoints of loops that begin with what flows into the last step, in place of asking in each step whether it is the last.

    T[t] = (H if t == n - 1 else 0) + (f(T[t + 1]) if t < n - 1 else 0) + g[t]

    on[t] = f(T[t]),      T[t] = (on[t + 1] if t < n - 1 else H) + g[t]

Now ``on`` is what the loop hands on, and it begins with ``H``. At the first position it is what flows into the values that the loop itself began with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from jaxte.algebra.sums import addends
from jaxte.lang.expr import Axis, Call, Const, Expr, Read, as_expr, call, cast, conjunction, conjuncts
from jaxte.lang.graphs import among, reached
from jaxte.lang.operators import ADD, SELECT
from jaxte.lang.walk import free_axes, reads_of, substitute, with_indices
from jaxte.sets.affine import linear, normal
from jaxte.sets.index_forms import is_index, nonnegative_forms
from jaxte.sets.intervals import index_stays_in
from jaxte.tensors.recurrences.earlier import decided, is_zero, same_condition
from jaxte.tensors.recurrences.node import State
from jaxte.tensors.recurrences.starts import guarded_read
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor


def begin_with_heads(
    equations: dict[State, Compute], places: dict[State, int], reverse: bool
) -> dict[State, Compute]:
    """Makes such of ``equations``, that lead back to themselves.

    What is handed on is added to them, and to ``places``, and returned with its equations.
    """
    reads = {
        s: [t for t in topological_order([own]) if isinstance(t, State) and t in equations]
        for s, own in equations.items()
    }
    made: dict[State, Compute] = {}
    for state in [s for s in equations if s in reached(reads[s], reads.__getitem__)]:
        own, place = equations[state], places[state]
        parts = _Parts(own.axes[place], reverse)
        for term in addends(own.body):
            parts.take(term)
        handed = parts.handed_on() if parts.heads and parts.later else None
        if handed is None:
            continue
        whole = _state_of(handed, own, places)
        if whole is None:
            whole = State(f"{state.name}_on", state.shape, state.dtype)
            made[whole] = Compute(whole.name, own.axes, cast(handed, state.dtype))
            places[whole] = place
        before = Read(whole, [parts.before if a is parts.axis else a for a in own.axes])
        begun = guarded_read(whole, place, before, _start(own, place, parts), reverse)
        equations[state] = own.renewed(_sum([begun, *parts.rest]))
    equations.update(made)
    return made


@dataclass
class _Parts:
    """The terms of an adjoint along ``axis``.

    Attributes:
        heads: those that are there at the first position of the loop backward alone, at this position.
        later: those that are there at all others, without the condition that says so.
        rest: all others.
    """

    axis: Axis
    reverse: bool
    heads: list[Expr] = field(default_factory=list)
    later: list[Expr] = field(default_factory=list)
    rest: list[Expr] = field(default_factory=list)

    @property
    def first(self) -> Expr:
        return normal(self.axis.hi - 1) if self.reverse else as_expr(0)

    @property
    def before(self) -> Expr:
        """The position that is computed before that of ``axis``."""
        return normal(self.axis + 1 if self.reverse else self.axis - 1)

    def take(self, term: Expr) -> None:
        elements = _elements(term)
        if all(map(self._is_head, elements)) and not any(_reads_states(r.tensor) for r in reads_of(term)):
            self.heads += [decided(substitute(e, {self.axis: self.first})) for e in elements]
            return
        match term:
            case Call(op, (test, value, Const(0) as zero)) if op is SELECT:
                others = [c for c in conjuncts(test) if not self._is_behind(c)]
                if len(others) < len(conjuncts(test)):
                    self.later.append(call(SELECT, conjunction(others), value, zero) if others else value)
                    return
        self.rest.append(term)

    def handed_on(self) -> Expr | None:
        """The terms that are there behind the first position, one position before them; None where something would be read out of range."""
        table: dict[Expr, Expr] = {self.axis: normal(self.axis - 1 if self.reverse else self.axis + 1)}
        total = with_indices(substitute(_sum(self.later), table), lambda i: normal(i) if is_index(i) else i)
        return total if all(map(self._is_known, reads_of(total))) else None

    def _is_known(self, read: Read) -> bool:
        """Whether ``read`` is in range at all positions, and of none that is computed later."""
        moving = [
            (i, e)
            for i, e in zip(read.indices, read.tensor.shape, strict=True)
            if among(self.axis, free_axes(i))
        ]
        if not all(is_index(i) and index_stays_in(i, as_expr(e)) for i, e in moving):
            return False
        return not _reads_states(read.tensor) or all(i is self.axis for i, _ in moving)

    def _is_head(self, term: Expr) -> bool:
        match term:
            case Call(op, (test, _, Const(0))) if op is SELECT:
                return any(self._is_first(c) for c in conjuncts(test))
        return False

    def _is_first(self, condition: Expr) -> bool:
        forms = nonnegative_forms(condition)
        return len(forms) == 2 and any(is_zero(f - linear(self.axis) + linear(self.first)) for f in forms)

    def _is_behind(self, condition: Expr) -> bool:
        inside = self.before < self.axis.hi if self.reverse else self.before >= 0
        return same_condition(condition, inside)


def _reads_states(tensor: Tensor) -> bool:
    return any(isinstance(t, State) for t in topological_order([tensor]))


def _elements(term: Expr) -> list[Expr]:
    """The terms of what ``term`` reads, if it is a read of a definition at each of its elements; else ``term``."""
    match term:
        case Read(Compute() as own, indices):
            return addends(substitute(own.body, dict(zip(own.axes, indices, strict=True))))
    return [term]


def _state_of(handed: Expr, own: Compute, places: Mapping[State, int]) -> State | None:
    """The state that ``handed`` reads at each of its elements."""
    match handed:
        case Read(State() as state, indices) if (
            state in places and state.dtype == own.dtype and len(indices) == own.ndim
        ):
            return state if all(i is a for i, a in zip(indices, own.axes, strict=True)) else None
    return None


def _start(own: Compute, place: int, parts: _Parts) -> Tensor:
    """What the loop backward begins with."""
    axes = tuple(Axis(a.name, 0, as_expr(1) if n == place else a.hi) for n, a in enumerate(own.axes))
    value = substitute(_sum(parts.heads), dict(zip(own.axes, axes, strict=True)))
    return Compute(f"{own.name}_init", axes, cast(value, own.dtype))


def _sum(terms: Sequence[Expr]) -> Expr:
    return reduce(lambda a, b: call(ADD, a, b), terms)


def firsts_of(
    handed: Mapping[State, Compute], places: Mapping[State, int], wanted: Sequence[Tensor]
) -> dict[Tensor, Tensor]:
    """What flows into the values that a loop begins with, where the loop backward hands it on, as reads of that."""
    found: dict[Tensor, Tensor] = {}
    for tensor in [t for t in wanted if isinstance(t, Compute)]:
        for state, row in handed.items():
            if _is_first_of(tensor, row, places[state]):
                found[tensor] = tensor.renewed(Read(state, tensor.axes))
    return found


def _is_first_of(tensor: Compute, row: Compute, place: int) -> bool:
    """Whether ``tensor`` is ``row`` at the positions along ``place`` that it has itself, of one axis fewer positions."""
    if tensor.ndim != row.ndim or tensor.dtype != row.dtype:
        return False
    alike = [a.hi is b.hi for n, (a, b) in enumerate(zip(tensor.axes, row.axes, strict=True)) if n != place]
    return all(alike) and substitute(row.body, dict(zip(row.axes, tensor.axes, strict=True))) is tensor.body
