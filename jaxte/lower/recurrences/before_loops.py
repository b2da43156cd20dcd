"""What no state decides is computed before a loop, at all positions together.

    da[t, s] = da[t + 1, s] * sigmoid(a[t, s] - v[t, s]) + ...      reads g[t, s] = sigmoid(a[t, s] - v[t, s])

The slopes of a step are made of what the loop of the forward pass has left, for all steps. Before the loop they are one operation over all positions; in each step, where they are of
elements beside their own, small loops with conditions at the edges, which XLA does not put into vectors: functions take three to five times as long there. What has no edges is as fast in a step, and
no array is written for it.

So is what is gathered at positions that no state decides, ``logB[s, obs[t]]``: XLA makes a gather a part of the loop that reads it, and computes none of that in vectors then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from jaxte.algebra.sums import operations
from jaxte.lang import dtypes
from jaxte.lang.expr import Axis, Call, Const, Expr, Read, Reduce, as_expr, call, cast, conjunction
from jaxte.lang.graphs import Members, among
from jaxte.lang.limits import FUNCTION, MANY_ELEMENTS, MOST_HELD
from jaxte.lang.operators import GREATER, GREATER_EQUAL, LESS, LESS_EQUAL, SELECT
from jaxte.lang.walk import depends_on, free_axes, postorder, reads_of, rewrite, substitute, with_tensors
from jaxte.lower.cost.policy import Policy
from jaxte.lower.cost.work import expensive_calls, points
from jaxte.lower.recurrences.finals import Changed, changes
from jaxte.sets.intervals import known
from jaxte.tensors.bodies.contexts import guards_of
from jaxte.tensors.bodies.range_checks import reads_inside
from jaxte.tensors.recurrences.nests import Clocked
from jaxte.tensors.recurrences.node import Recurrence, recurrences_in
from jaxte.tensors.tensor import Compute, Tensor

BEFORE = "functions before loops"
# axes by their places, for parts that are equal
_CANONICAL = tuple(Axis(f"p{n}", 0, 2**40) for n in range(8))


def before_loops(order: Sequence[Tensor], given: Members[Tensor], policy: Policy) -> Changed:
    """What stands for the tensors of ``order`` where loops read what is computed before them. The arguments are those of ``within_loops``."""
    if BEFORE in policy.without:
        return {}
    own = [t for t in order if t not in given]
    table = {group: made for group in recurrences_in(own) if (made := _Known(group, policy).taken_out())}
    return changes(own, lambda tensor, _: tensor.body, table) if table else {}


@dataclass(frozen=True)
class _Known:
    """What a recurrence computes without its states.

    Attributes:
        group: the recurrence.
        policy: has the facts of the platform.
    """

    group: Recurrence
    policy: Policy
    _made: dict[object, Compute] = field(default_factory=dict)

    def taken_out(self) -> Recurrence | None:
        """The recurrence that reads it; None where there is none."""
        group = self.group
        if any(not isinstance(t, Compute) for t in group.inside) or known(as_expr(group.extent)) is None:
            return None
        clocked = Clocked(dict(zip(group.states, group.places, strict=True)), group.definitions)
        changed: dict[Tensor, Compute] = {}
        for tensor in group.inside:
            assert isinstance(tensor, Compute)
            place = clocked.place(tensor)
            clock = None if place is None else tensor.axes[place]
            body = tensor.body if clock is None else self._body(tensor, clock)
            body = with_tensors(body, changed)
            if body is not tensor.body:
                changed[tensor] = tensor.renewed(body)
        if not changed:
            return None
        return Recurrence(
            group.states, tuple(changed.get(t, t) for t in group.definitions), group.places, group.reverse
        )

    def _body(self, tensor: Compute, clock: Axis) -> Expr:
        """That of ``tensor`` with reads of what is computed before."""
        if next(self._parts(tensor.body, clock), None) is None:
            return tensor.body
        body = rewrite(tensor.body, _one_way)
        found = frozenset(self._parts(body, clock))
        # what is made of another part by a few operations is made in the step
        parts = [
            p
            for p in postorder(body)
            if p in found and (_gathers(p) or operations(p, found - {p}) >= FUNCTION)
        ]
        guards = guards_of(body, set(parts))
        table: dict[Expr, Expr] = {}
        for part in parts:
            held = [c for c in guards.get(part, ()) if not self._is_met(c)]
            axes = [a for a in tensor.axes if depends_on(part, (a,))]
            made = self._before(tensor.name, part, axes, held)
            if made is not None:
                table[part] = Read(made, axes)
        return substitute(body, table) if table else tensor.body

    def _parts(self, body: Expr, clock: Axis) -> Iterator[Expr]:
        """The largest parts of ``body`` that no state decides, and that are gathered, or that the ``clock`` decides and that take a function at edges."""
        moves: dict[Expr, bool] = {}
        for node in postorder(body):
            read = isinstance(node, Read) and node.tensor in self._moving
            moves[node] = read or any(moves[child] for child in node.children)
            for child in node.children if moves[node] and not isinstance(node, Reduce) else ():
                if not moves[child] and isinstance(child, (Call, Read)) and _is_before(child, clock):
                    yield child

    @cached_property
    def _moving(self) -> frozenset[Tensor]:
        """What a step makes."""
        return frozenset({*self.group.states, *self.group.inside})

    @cached_property
    def _stacked(self) -> int:
        """Bytes of the states at all positions."""
        return sum(points(d.axes) * dtypes.width(d.dtype) for d in self.group.definitions)

    def _is_met(self, condition: Expr) -> bool:
        return any(r.tensor in self._moving for r in reads_of(condition))

    def _before(self, name: str, part: Expr, axes: Sequence[Axis], held: Sequence[Expr]) -> Compute | None:
        """``part`` as a tensor over ``axes``, zero where what is ``held`` does not hold; None where it would be too large, or read outside."""
        size = points(axes)
        step = size // max(known(as_expr(self.group.extent)) or 1, 1)
        most = max(MOST_HELD, self._stacked) if _gathers(part) else MOST_HELD
        if size * dtypes.width(part.dtype) > most or len(axes) > len(_CANONICAL):
            return None
        if self.policy.facts.cheap_steps and step > MANY_ELEMENTS and not _gathers(part):
            return None
        own = [Axis(a.name, 0, a.hi) for a in axes]
        inside = [c for c in held if all(among(a, axes) for a in free_axes(c))]
        value = call(SELECT, conjunction(inside), part, cast(as_expr(0), part.dtype)) if inside else part
        element = substitute(value, dict(zip(axes, own, strict=True)))
        # what stands in a sum is over its axes, too
        if not free_axes(part).keys() <= set(axes) or any(known(a.lo) != 0 for a in axes):
            return None
        if not reads_inside(own, element):
            return None
        key = substitute(element, dict(zip(own, _CANONICAL, strict=False))), tuple(a.hi for a in own)
        if key not in self._made:
            self._made[key] = Compute(f"{name}_known", own, element)
        return self._made[key]


def _one_way(node: Expr) -> Expr:
    """A comparison of positions with the smaller side first, so that conditions of several places are the same."""
    match node:
        case Call(op, (a, b)) if op is GREATER and a.weak and b.weak:
            return call(LESS, b, a)
        case Call(op, (a, b)) if op is GREATER_EQUAL and a.weak and b.weak:
            return call(LESS_EQUAL, b, a)
    return node


def _is_before(part: Call | Read, clock: Axis) -> bool:
    """Whether ``part``, which no state decides, is better computed before the loop."""
    if part.weak or part.reduces:
        return False
    if _gathers(part):
        return dtypes.width(part.dtype) > 1
    if not isinstance(part, Call) or not dtypes.is_inexact(part.dtype) or not depends_on(part, (clock,)):
        return False
    return bool(expensive_calls([part])) and _is_at_edges(part, clock)


def _gathers(part: Expr) -> bool:
    """Whether ``part`` reads at positions that are data."""
    return any(reads_of(i) for read in reads_of(part) for i in read.indices)


def _is_at_edges(part: Expr, clock: Axis) -> bool:
    """Whether ``part`` is a choice by position, or of elements beside its own: in a step XLA asks for each element where it is."""
    choices = any(isinstance(n, Call) and n.op is SELECT and n.args[0].weak for n in postorder(part))
    indices = [i for read in reads_of(part) for i in read.indices if not depends_on(i, (clock,))]
    return choices or any(not isinstance(i, (Axis, Const)) for i in indices)
