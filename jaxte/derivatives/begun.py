"""Adjoints of loops that begin with what flows into the last step, in place of asking in each step whether it is the last.

    T[t] = (H if t == n - 1 else 0) + (f(T[t + 1]) if t < n - 1 else 0) + g[t]

    on[t] = f(T[t]),      T[t] = (on[t + 1] if t < n - 1 else H) + g[t]

Now ``on`` is what the loop hands on, and it begins with ``H``. At the first position it is what flows into the values that the loop itself began with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from jaxte.algebra.sums import Signed, addends, signed_terms, summed
from jaxte.lang.expr import Axis, Call, Const, Expr, Read, Reduce, as_expr, call, cast, conjunction, conjuncts
from jaxte.lang.graphs import among, identical, reached
from jaxte.lang.operators import COMPARISONS, SELECT
from jaxte.lang.walk import free_axes, reads_of, rewrite, substitute
from jaxte.sets.affine import linear, normal
from jaxte.sets.conditions import is_zero, same_condition
from jaxte.sets.index_forms import is_index, nonnegative_forms
from jaxte.sets.intervals import index_stays_in
from jaxte.sets.resolved import decided
from jaxte.tensors.bodies.range_checks import reads_inside
from jaxte.tensors.recurrences.node import State
from jaxte.tensors.recurrences.starts import guarded_read
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor

Equations = dict[State, Compute]


def begun(
    equations: Equations, places: Mapping[State, int], reverse: bool, wanted: Sequence[Tensor]
) -> tuple[Equations, dict[State, int], dict[Tensor, Tensor]]:
    """``equations`` that lead back to themselves as such, what is handed on among them; their places; and those of ``wanted`` that are what is handed on first.

    What is handed on may choose between a state before and what stood there before the first one, where what flows into that is handed on first: it would be made
    of the last of the adjoints else, which a loop that computes states again does not know before it ends.
    """
    for guarded in (True, False):
        own, at = dict(equations), dict(places)
        handed = _begin_with_heads(own, at, reverse, guarded)
        firsts = _firsts_of(handed, at, wanted)
        read = {
            r.tensor for first in firsts.values() if isinstance(first, Compute) for r in reads_of(first.body)
        }
        if not guarded or read >= set(handed):
            break
    return own, at, firsts


def _begin_with_heads(
    equations: Equations, places: dict[State, int], reverse: bool, guarded: bool
) -> Equations:
    """Makes such of ``equations``, that lead back to themselves, ``guarded`` where reads may stay in range by conditions.

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
        handed = parts.handed_on(own.axes if guarded else None) if parts.heads and parts.later else None
        if handed is None:
            continue
        whole = _state_of(handed, own, places)
        if whole is None:
            whole = State(f"{state.name}_on", state.shape, state.dtype)
            made[whole] = Compute(whole.name, own.axes, cast(handed, state.dtype))
            places[whole] = place
        before = Read(whole, [parts.before if a is parts.axis else a for a in own.axes])
        begun = guarded_read(whole, place, before, _start(own, place, parts), reverse)
        equations[state] = own.renewed(summed([begun, *parts.rest]))
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

    def handed_on(self, axes: Sequence[Axis] | None) -> Expr | None:
        """The terms that are there behind the first position, one position before them; None where something would be read out of range, whatever the conditions over ``axes``."""
        table: dict[Expr, Expr] = {self.axis: normal(self.axis - 1 if self.reverse else self.axis + 1)}
        total = rewrite(substitute(summed(self.later), table), _normal_positions)
        reads = reads_of(total)
        if not all(map(self._is_computed, reads)):
            return None
        if all(map(self._stays_inside, reads)):
            return total
        return total if axes is not None and reads_inside(axes, total) else None

    def _moving(self, read: Read) -> list[tuple[Expr, Expr]]:
        """The indices of ``read`` that depend on the position, and what they stay below."""
        every = zip(read.indices, map(as_expr, read.tensor.shape), strict=True)
        return [(i, e) for i, e in every if among(self.axis, free_axes(i))]

    def _is_computed(self, read: Read) -> bool:
        """Whether ``read`` is of no position that is computed later."""
        return not _reads_states(read.tensor) or all(i is self.axis for i, _ in self._moving(read))

    def _stays_inside(self, read: Read) -> bool:
        return all(is_index(i) and index_stays_in(i, e) for i, e in self._moving(read))

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


def _normal_positions(node: Expr) -> Expr:
    """``node`` with what it compares, or reads at, in normal form."""
    match node:
        case Read(tensor, indices):
            return Read(tensor, [normal(i) if is_index(i) else i for i in indices])
        case Call(op, (a, b)) if op in COMPARISONS and is_index(a) and is_index(b):
            return call(op, normal(a), normal(b))
    return node


def _reads_states(tensor: Tensor) -> bool:
    return any(isinstance(t, State) for t in topological_order([tensor]))


def _elements(term: Expr) -> list[Expr]:
    """The terms of what ``term`` reads, if it is a read of a definition at each of its elements; else ``term``."""
    match term:
        case Read(Compute() as own, indices):
            return addends(own.element(indices))
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
    value = substitute(summed(parts.heads), dict(zip(own.axes, axes, strict=True)))
    return Compute(f"{own.name}_init", axes, cast(value, own.dtype))


def _firsts_of(
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
    own = row.element(tensor.axes)
    return all(alike) and _are_same(_terms(own), _terms(tensor.body))


def _terms(body: Expr) -> list[Signed]:
    """The terms of ``body``, without choices by positions that are the same everywhere."""
    return signed_terms(rewrite(decided(body), _normal_positions), negated=True)


def _are_same(terms: Sequence[Signed], others: Sequence[Signed]) -> bool:
    """Whether two sums have the same terms, in whatever order."""
    left = [*others]
    for term, sign in terms:
        at = next((n for n, (other, own) in enumerate(left) if sign == own and _is_same(term, other)), None)
        if at is None:
            return False
        del left[at]
    return not left


def _is_same(term: Expr, other: Expr) -> bool:
    """Whether two terms are one, but for the names of what is summed over."""
    if term is other:
        return True
    if not isinstance(term, Reduce) or not isinstance(other, Reduce) or term.reducer is not other.reducer:
        return False
    alike = identical([(a.lo, a.hi) for a in term.axes], [(a.lo, a.hi) for a in other.axes])
    return alike and all(
        substitute(a, dict(zip(term.axes, other.axes, strict=True))) is b
        for a, b in zip(term.children, other.children, strict=True)
    )
