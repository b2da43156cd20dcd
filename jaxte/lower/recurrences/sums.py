"""Sums over all positions of a recurrence that its loop adds up: ``dc = sum over t, i of du[t, i] * u[t, i]`` is a state of the loop that makes ``du``,

    S[t] = S[t - 1] + (sum over i of du[t, i] * u[t, i]),      dc = S at the last position.

After the loop, such a sum reads every position of ``du`` and ``u`` from memory once more; in the loop they are at hand. A product of two arrays
whose result is large stays behind the loop: there it is one product of all positions, and a step would read and write all of its result.
Which of the two takes less time is estimated with the rates of the platform.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from jaxte.derivatives.rebuilt import Rebuilt
from jaxte.lang import dtypes
from jaxte.lang.errors import DefinitionError
from jaxte.lang.expr import TRUE, Axis, Expr, Read, Reduce, as_expr, call, cast
from jaxte.lang.identity import Members, among
from jaxte.lang.operators import ADD, SELECT
from jaxte.lang.walk import free_axes, postorder, reads_of, substitute
from jaxte.lower.cost.policy import Policy
from jaxte.lower.cost.work import points
from jaxte.lower.recurrences.changes import Changed, changes, renewed
from jaxte.lower.recurrences.finals import finals_only
from jaxte.lower.tiles.carried_sums import outermost
from jaxte.sets.affine import normal
from jaxte.sets.intervals import extent_of
from jaxte.tensors.graph import topological_order
from jaxte.tensors.recurrences.node import Recurrence, Recurrent, State
from jaxte.tensors.recurrences.steps import Step, step_of
from jaxte.tensors.shapes import same_extent
from jaxte.tensors.tensor import Compute, Tensor


@dataclass(frozen=True)
class _Sum:
    """A sum in the body of a tensor, as a state of a recurrence: its last value is the sum."""

    node: Reduce
    state: State
    definition: Compute


def within_loops(
    order: Sequence[Tensor], given: Members[Tensor], results: Members[Tensor], policy: Policy
) -> Changed:
    """What stands for the tensors of a program that has recurrences, where their loops do more, or stack less.

    Args:
        order: all tensors, each after what it reads.
        given: those that exist already.
        results: those that have to exist in the end.
        policy: has the rates of the platform.
    """
    if not any(isinstance(t, Recurrent) and t not in given for t in order):
        return {}
    sums = sums_in_loops(order, given, policy)
    made = [sums.get(t, t) for t in results]
    again = topological_order(made, lambda t: () if t in given else t.inputs)
    return renewed(sums, finals_only(again, given, frozenset(made)))


def sums_in_loops(order: Sequence[Tensor], given: Members[Tensor], policy: Policy) -> Changed:
    """What stands for the tensors of ``order`` where sums over positions are part of the loops that make what they read.

    Args:
        order: all tensors, each after what it reads.
        given: those that exist already.
        policy: has the rates of the platform.
    """
    own = [t for t in order if t not in given]
    groups = list(dict.fromkeys(t.group for t in own if isinstance(t, Recurrent)))
    found: dict[Recurrence, list[_Sum]] = {group: [] for group in groups}
    reaches = {group: _Reach(group, own) for group in groups}
    home: dict[Reduce, tuple[Recurrence, int]] = {}
    for tensor in own:
        for node in outermost(tensor.body) if isinstance(tensor, Compute) else ():
            group = next((g for g in reversed(groups) if reaches[g].is_met(node)), None)
            if group is None or node in home or reaches[group].is_beyond(node):
                continue
            made = _in_loop(tensor, node, group, policy)
            if made is not None:
                home[node] = group, len(group.states) + len(found[group])
                found[group].append(made)

    def body(tensor: Compute, known: Changed) -> Expr:
        table: dict[Expr, Expr] = {}
        for node in outermost(tensor.body):
            if node in home:
                group, number = home[node]
                whole = known[group.tensors[0]]
                assert isinstance(whole, Recurrent)
                axes = [a for a in tensor.axes if a in free_axes(node)]
                table[node] = Read(whole.group.finals[number], axes)
        return substitute(tensor.body, table)

    longer = {group: _with(group, sums) for group, sums in found.items() if sums}
    return changes(own, body, longer) if longer else {}


class _Reach:
    """The tensors that are made of those of a recurrence: by definitions alone, or by other recurrences and functions too."""

    def __init__(self, group: Recurrence, order: Sequence[Tensor]) -> None:
        self.near: set[Tensor] = set(group.tensors)
        self.far: set[Tensor] = set()
        for tensor in order:
            if tensor in self.near:
                continue
            if any(t in self.far for t in tensor.inputs):
                self.far.add(tensor)
            elif any(t in self.near for t in tensor.inputs):
                (self.near if isinstance(tensor, Compute) else self.far).add(tensor)

    def is_met(self, node: Reduce) -> bool:
        return any(r.tensor in self.near for r in reads_of(node))

    def is_beyond(self, node: Reduce) -> bool:
        return any(r.tensor in self.far for r in reads_of(node))


def _in_loop(tensor: Compute, node: Reduce, group: Recurrence, policy: Policy) -> _Sum | None:
    """``node`` as a state of ``group``; None where it cannot be one, or would take longer."""
    if node.reducer.name != "sum":
        return None
    for axis in node.axes:
        if axis.lo is not as_expr(0) or not same_extent(axis.hi, group.extent):
            continue
        made = _state(tensor, node, axis, group)
        longer = _with(group, [made])
        try:
            step = step_of(longer)
        except DefinitionError:  # it reads other positions than those that a step has
            continue
        if _is_plain(step, group) and _is_faster(step, made, group, policy):
            return made
    return None


def _state(tensor: Compute, node: Reduce, axis: Axis, group: Recurrence) -> _Sum:
    """``S[t, ..] = S[t - 1, ..] +`` the sum over the other axes at ``t``."""
    axes = [a for a in tensor.axes if a in free_axes(node)]
    clock = Axis(axis.name, 0, axis.hi)
    rest = tuple(a for a in node.axes if a is not axis)
    (expr,), where = node.exprs, node.where
    part: Expr = Reduce(node.reducer, (expr,), rest, where) if rest else expr
    if not rest and where is not TRUE:
        part = call(SELECT, where, expr, cast(as_expr(0), expr.dtype))
    state = State(f"{tensor.name}_sum", (group.extent, *(a.hi for a in axes)), node.dtype)
    step = 1 if group.reverse else -1
    at = normal(clock + step)
    inside = (clock < as_expr(group.extent) - 1) if group.reverse else (clock >= 1)
    before = call(SELECT, inside, Read(state, (at, *axes)), cast(as_expr(0), node.dtype))
    total = cast(call(ADD, before, substitute(part, {axis: clock})), node.dtype)
    states = dict(zip(group.tensors, group.states, strict=True))
    (definition,) = Rebuilt({**states, **{s: s for s in group.states}}).parts(
        [Compute(state.name, (clock, *axes), total)]
    )
    assert isinstance(definition, Compute)
    return _Sum(node, state, definition)


def _with(group: Recurrence, sums: Sequence[_Sum]) -> Recurrence:
    """``group`` with more states."""
    return Recurrence(
        (*group.states, *(s.state for s in sums)),
        (*group.definitions, *(s.definition for s in sums)),
        (*group.places, *(0 for _ in sums)),
        group.reverse,
    )


def _added(step: Step, group: Recurrence) -> list[Compute]:
    """What a step computes beside what one of ``group`` does."""
    before = {t.body for t in step_of(group).order}
    return [t for t in step.order if t.body not in before]


def _is_plain(step: Step, group: Recurrence) -> bool:
    """Whether what is added is elementwise but for its own sum, at positions that are no data."""
    for tensor in _added(step, group):
        nodes = list(postorder(tensor.body))
        sums = [n for n in nodes if isinstance(n, Reduce)]
        outer = tensor is step.results[-1]
        if len(sums) > outer or any(reads_of(i) for n in nodes if isinstance(n, Read) for i in n.indices):
            return False
    return True


def _is_faster(step: Step, made: _Sum, group: Recurrence, policy: Policy) -> bool:
    """Whether to add up in each step takes less time than to read all positions after the loop."""
    rates = policy.rates
    there = {*step.slices, *step.results[:-1]}
    there |= {t for (state, _), t in step.carried.items() if state is not made.state}
    read = {t for own in _added(step, group) for t in own.inputs if t in there}
    at_once = float(sum(map(_bytes, read)))
    count = extent_of(as_expr(group.extent))
    speed = rates.spill if count * at_once > rates.cache else rates.stream
    result = points(made.definition.axes[1:]) * dtypes.width(made.state.dtype)
    in_step = 1 / rates.kernel + 3 * result / rates.stream
    return in_step < at_once / speed


def _bytes(tensor: Tensor) -> int:
    return prod(extent_of(as_expr(e)) for e in tensor.shape) * dtypes.width(tensor.dtype)
