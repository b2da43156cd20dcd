"""Sums over all positions of a recurrence that its loop adds up: ``dc = sum over t, i of du[t, i] * u[t, i]`` is a state of the loop that makes ``du``,

    S[t] = S[t - 1] + (sum over i of du[t, i] * u[t, i]),      dc = S at the last position.

After the loop, such a sum reads every position of ``du`` and ``u`` from memory once more; in the loop they are at hand. A product of matrices
stays behind the loop: there it is one product of all positions. For other sums, which of the two takes less time is estimated with the rates of the
platform: a step reads and writes all of the result, and starts one more operation.

A step that makes ``du[t]`` of ``du[t + 1]`` and what belongs to position ``t + 1`` adds up what belongs to ``t + 1``, too, where it would have to read
more for ``t``; what belongs to the last position is added behind the loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from jaxte.lang import dtypes
from jaxte.lang.errors import DefinitionError
from jaxte.lang.expr import Call, Expr, Read, Reduce, as_expr, call, cast
from jaxte.lang.graphs import Members, among
from jaxte.lang.operators import ADD
from jaxte.lang.walk import free_axes, outermost, postorder, reads_of, substitute
from jaxte.lower.cost.general import is_contraction
from jaxte.lower.cost.policy import Policy
from jaxte.lower.cost.work import expensive_calls, is_expensive, points
from jaxte.lower.recurrences.before_loops import before_loops
from jaxte.lower.recurrences.finals import (
    Changed,
    StandIns,
    bytes_of_any,
    changes,
    finals_only,
    made_in_steps,
)
from jaxte.lower.recurrences.narrowed import narrowed, narrowed_states
from jaxte.lower.recurrences.over_positions import found_again, rows_in_loops, shared_sums
from jaxte.lower.recurrences.replays import kept_in, replays
from jaxte.lower.recurrences.slanted import straightened
from jaxte.lower.recurrences.totals import Total, is_along, total_of, with_totals
from jaxte.sets.intervals import extent_of
from jaxte.tensors.recurrences.node import Kept, Recurrence, Recurrent, recurrences_in
from jaxte.tensors.recurrences.step import Step
from jaxte.tensors.recurrences.steps import step_of, step_with
from jaxte.tensors.structure import CANONICAL, topological_order
from jaxte.tensors.tensor import Compute, Tensor


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
    own = StandIns(order, given, results, found_again(order, given, results))
    if not any(isinstance(t, Recurrent) and t not in given for t in order):
        own.change(narrowed(own.needed, given, own.results))
        return own.changed
    again = frozenset(t for group in kept_in(given) for t in group.tensors)
    own.change(made_in_steps(own.needed, given, again))
    if not again:
        own.change(before_loops(own.needed, given, policy))
    cut = {t.group for t in own.results if isinstance(t, Kept)}
    own.change(shared_sums(own.needed, given))
    own.change(sums_in_loops(own.needed, given, own.results, policy, again, cut))
    if again:
        own.change(rows_in_loops(own.needed, given, again))
    for step in (narrowed, narrowed_states, finals_only):
        own.change(step(own.needed, given, own.results))
    own.change((replays if again else straightened)(own.needed, given))
    return own.changed


def sums_in_loops(
    order: Sequence[Tensor],
    given: Members[Tensor],
    results: Members[Tensor],
    policy: Policy,
    again: Members[Tensor],
    cut: Members[Recurrence],
) -> Changed:
    """What stands for the tensors of ``order`` where sums over positions are part of the loops that make what they read.

    Args:
        order: all tensors, each after what it reads.
        given: those that exist already.
        results: those that have to exist in the end.
        policy: has the rates of the platform.
        again: tensors that are not to be read behind a loop, as they are computed again within one.
        cut: recurrences that are kept at some positions only.
    """
    own = [t for t in order if t not in given]
    groups = recurrences_in(own)
    found: dict[Recurrence, list[Total]] = {group: [] for group in groups}
    reaches = {group: _Reach(group, own) for group in groups}
    home: dict[Reduce, tuple[Recurrence, int]] = {}
    rests: dict[Reduce, Expr | None] = {}
    readers = _readers(own, results)
    for tensor in (t for t in own if isinstance(t, Compute)):
        for node in outermost(tensor.body):
            group = next((g for g in reversed(groups) if reaches[g].is_met(node)), None)
            if group is None or node in home or reaches[group].is_beyond(node):
                continue
            always = group in cut or any(t in again for t in group.inputs)
            alone = [
                t for t in group.tensors if readers[t] == 1 and any(r.tensor is t for r in reads_of(node))
            ]
            made = _in_loop(tensor, node, reaches[group], policy, always, alone)
            if made is not None:
                home[node] = group, len(group.states) + len(found[group])
                found[group].append(made)
                rests[node] = made.rest

    def body(tensor: Compute, known: Changed) -> Expr:
        table: dict[Expr, Expr] = {}
        for node in outermost(tensor.body):
            if node in home:
                group, number = home[node]
                whole = known[group.tensors[0]]
                assert isinstance(whole, Recurrent)
                axes = [a for a in tensor.axes if a in free_axes(node)]
                total: Expr = Read(whole.group.finals[number], axes)
                rest = rests[node]
                table[node] = total if rest is None else cast(call(ADD, total, rest), node.dtype)
        return substitute(tensor.body, table)

    longer = {group: with_totals(group, sums) for group, sums in found.items() if sums}
    return changes(own, body, longer) if longer else {}


def _readers(order: Sequence[Tensor], results: Members[Tensor]) -> Counter[Tensor]:
    """How many reads there are of each tensor, by definitions and by others; one that is a result is read once more."""
    found = Counter(t for t in order if t in results)
    for tensor in order:
        if isinstance(tensor, Compute):
            found.update(r.tensor for r in dict.fromkeys(reads_of(tensor.body)))
        else:
            found.update(tensor.inputs)
    return found


class _Reach:
    """The tensors that are made of those of a recurrence: by definitions alone, or by other recurrences and functions too."""

    def __init__(self, group: Recurrence, order: Sequence[Tensor]) -> None:
        self.group = group
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

    def is_met_between(self, node: Reduce) -> bool:
        """Whether ``node`` reads what definitions make of the tensors."""
        return any(r.tensor in self.near and not isinstance(r.tensor, Recurrent) for r in reads_of(node))

    def is_beyond(self, node: Reduce) -> bool:
        return any(r.tensor in self.far for r in reads_of(node))


def _in_loop(
    tensor: Compute, node: Reduce, reach: _Reach, policy: Policy, always: bool, alone: Sequence[Tensor]
) -> Total | None:
    """``node`` as a state of the recurrence that it reads; None where it cannot be one, or, unless it ``always`` is, would take longer.

    Tensors that it ``alone`` reads are not stacked for it then.
    """
    group = reach.group
    free = [a for a in tensor.axes if a in free_axes(node)]
    is_product = is_contraction(node) and points(free) > 1
    if not node.is_sum or (not always and is_product and not expensive_calls(node.exprs)):
        return None
    for axis in node.axes:
        if not is_along(axis, group):
            continue
        options: list[tuple[Total, Step]] = []
        for is_late in (False, True):
            if is_late and reach.is_met_between(node):
                continue  # what is made of them would have to exist for the position behind the loop
            made = total_of(tensor, node, axis, group, is_late)
            try:
                step = step_with(group, with_totals(group, [made]))
            except DefinitionError:  # it reads other positions than those that a step has
                continue
            if len(step.history) == len(step_of(group).history):
                options.append((made, step))
        options = [(made, step) for made, step in options if always or _is_plain(step)]
        if not options:
            continue
        made, step = min(options, key=lambda option: _bytes_more(option[1], group))
        again = _computed_anyway(step)
        if always or ((again or not is_product) and _is_faster(step, made, group, policy, alone, again)):
            return made
    return None


def _added(step: Step) -> list[Compute | Recurrent]:
    """What a step computes for the last of its states alone."""
    others = set(topological_order(step.results[:-1]))
    return [t for t in step.order if t not in others]


def _is_plain(step: Step) -> bool:
    """Whether what is added is elementwise but for its own sum, at positions that are no data."""
    for tensor in _added(step):
        if not isinstance(tensor, Compute):
            return False
        nodes = list(postorder(tensor.body))
        sums = [n for n in nodes if isinstance(n, Reduce)]
        outer = tensor is step.results[-1]
        if len(sums) > outer or any(reads_of(i) for n in nodes if isinstance(n, Read) for i in n.indices):
            return False
    return True


def _computed_anyway(step: Step) -> float:
    """The calls of functions in what is added that a step computes for its other results, too."""
    added = [t for t in _added(step) if isinstance(t, Compute)]
    others = {key for t in step.order if isinstance(t, Compute) and not among(t, added) for key in _calls(t)}
    return sum(count for t in added for key, count in _calls(t).items() if key in others)


def _calls(tensor: Compute) -> dict[object, float]:
    """The dear functions in a definition, whatever their axes are called, with how many there are to compute."""
    found: dict[object, float] = {}
    for node in postorder(tensor.body):
        axes = free_axes(node)
        if (
            isinstance(node, Call)
            and is_expensive(node)
            and not node.reduces
            and 0 < len(axes) <= len(CANONICAL)
        ):
            key = substitute(node, dict(zip(axes, CANONICAL, strict=False))), tuple(a.extent for a in axes)
            found[key] = expensive_calls([node]) * points([*axes])
    return found


def _is_faster(
    step: Step, made: Total, group: Recurrence, policy: Policy, alone: Sequence[Tensor], again: float
) -> bool:
    """Whether to add up in each step takes less time than to read all positions after the loop, and to stack those that are read for this alone."""
    rates = policy.rates
    there = {*step.slices, *step.results[:-1]}
    there |= {t for (state, _), t in step.carried.items() if state is not made.state}
    read = {t for own in _added(step) for t in own.inputs if t in there}
    at_once = sum(map(bytes_of_any, read))
    count = extent_of(as_expr(group.extent))
    speed = rates.spill if count * at_once > rates.cache else rates.stream
    result = points(made.definition.axes[1:]) * dtypes.width(made.state.dtype)
    between = [t for t in _added(step)[:-1] if isinstance(t, Compute)]
    calls = sum(expensive_calls([t.body]) * points(t.axes) for t in between)
    stacked = sum(map(bytes_of_any, alone)) // max(count, 1)
    # in the first cache the result is as near as a register
    moved = result if result <= policy.facts.near else 3 * result
    in_step = (1 - len(alone)) / rates.step + moved / rates.stream + calls / rates.transcendental
    behind = count * (at_once + 2 * stacked) / speed + count * again / rates.transcendental
    return count * in_step <= behind + 1 / rates.kernel


def _bytes_more(step: Step, group: Recurrence) -> int:
    """What ``step`` reads that one of ``group`` does not."""
    known = {own.key for own in step_of(group).slices.values()}
    return sum(bytes_of_any(part) for part, own in step.slices.items() if own.key not in known)
