"""Derivatives of recurrences: a recurrence of what depends on later positions, and ordinary tensors of everything else.

The definitions of a recurrence read states where they mean themselves. So they are differentiated as any graph whose inputs are states and what
else is read, for heads that are states too: the total adjoints ``T`` of

    h[t] = F(h[t - 1], x[t]):      T[t] = H[t] + T[t + 1] * dF[t + 1] / dh[t],      dx[t] = T[t] * dF[t] / dx[t]

The first equation is a definition that reads itself, from the other end; the second is an ordinary tensor over all positions: the gradient of
a weight is one sum over all of them. What the slopes are made of reads the states as they were computed. Tensors that no circle leads back
to are no part of the new recurrence (:func:`solved`): they are computed before it, or after it.

Forward mode is the same with tangents for heads, and runs from the same end as the recurrence itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from jaxte.algebra.product import is_zero
from jaxte.algebra.without_effect import extrema_without_effect
from jaxte.autodiff.sums.blocks import zero_adjoint, zeros
from jaxte.autodiff.sums.cheap import merge
from jaxte.autodiff.terms.beside import within_steps
from jaxte.derivatives.begun import begun
from jaxte.derivatives.overrides import Override
from jaxte.derivatives.rebuilt import Rebuilt
from jaxte.derivatives.solved_states import as_compute, reached_states, solved, states_below
from jaxte.derivatives.stand_ins import stand_in
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.walk import reads_of
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.recurrences.inner import copied_by
from jaxte.tensors.recurrences.nests import Clocked
from jaxte.tensors.recurrences.node import Recurrence, Recurrent, State, recurrences_in
from jaxte.tensors.shapes import Extent
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor

Accumulate = Callable[..., tuple[dict[Tensor, Tensor], Any]]
"""See :func:`jaxte.derivatives.accumulation.accumulate`."""


class Recursion(Override):
    """The derivative of the tensors of one recurrence, together.

    ``outputs`` are those of its tensors that something flows into, or that a tangent is asked of.
    """

    @property
    def group(self) -> Recurrence:
        first = self.outputs[0]
        assert isinstance(first, Recurrent)
        return first.group


def recursions(
    order: Sequence[Tensor], known: Mapping[Tensor, Override], accumulate: Accumulate
) -> dict[Tensor, Override]:
    """The derivative of every recurrence in ``order``, for those of its tensors whose derivative is not ``known``."""
    groups: dict[Recurrence, list[Recurrent]] = {}
    for tensor in order:
        if isinstance(tensor, Recurrent) and tensor not in known and is_inexact(tensor.dtype):
            groups.setdefault(tensor.group, []).append(tensor)
    found: dict[Tensor, Override] = {}
    for group, outputs in groups.items():

        def adjoints(
            outs: Sequence[Tensor],
            inputs: Sequence[Tensor],
            heads: Sequence[Tensor],
            group: Recurrence = group,
        ) -> list[Tensor]:
            return adjoints_of(group, outs, inputs, heads, accumulate)

        sources = tuple(t for t in group.inputs if is_inexact(t.dtype))
        own = Recursion(tuple(outputs), sources, adjoints, region=True)
        found.update((t, own) for t in outputs)
    return found


def adjoints_of(
    group: Recurrence,
    outs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    heads: Sequence[Tensor],
    accumulate: Accumulate,
) -> list[Tensor]:
    """The adjoint of each of ``inputs`` for the ``heads`` of some tensors of ``group``."""
    prefix = heads[0].shape[: heads[0].ndim - outs[0].ndim]
    given = {out.position: head for out, head in zip(outs, heads, strict=True) if isinstance(out, Recurrent)}
    given = {n: head for n, head in given.items() if not _is_nothing(head)}
    idle = _idle(group, given)
    moving = [n for n in _reached_by(group, given) if n not in idle]
    if not moving:
        return [zero_adjoint(t, prefix) for t in inputs]
    states = [group.states[n] for n in moving]
    totals = [State(f"d{s.name}", (*prefix, *s.shape), s.dtype) for s in states]
    apart = _Apart(group)
    definitions = [apart.definitions[n] for n in moving]
    leaves = [*states, *(apart.leaves[t] for t in inputs)]
    with within_steps(dict(zip(group.states, group.places, strict=True))):
        flows, _ = accumulate(definitions, totals, leaves, None, None)
    rows = [(t, flows[leaf]) for t, leaf in zip([*states, *inputs], leaves, strict=True) if leaf in flows]
    parts = dict(zip([t for t, _ in rows], apart.joined([flow for _, flow in rows]), strict=True))
    equations: dict[State, Compute] = {}
    for n, state, total in zip(moving, states, totals, strict=True):
        own_heads = [given[n]] if n in given else []
        own_parts = [parts[state]] if state in parts and not _is_nothing(parts[state]) else []
        if own_heads or own_parts:
            whole = merge(group.tensors[n], own_heads, own_parts, prefix)
        else:
            whole = zeros(total.name, total.shape, total.dtype)
        equations[total] = as_compute(whole, total.name)
    places = {t: len(prefix) + group.places[n] for t, n in zip(totals, moving, strict=True)}
    wanted = [parts[t] for t in inputs if t in parts]
    equations, places, firsts = begun(equations, places, not group.reverse, wanted)
    beside = _within_steps(equations, places, wanted)
    found = solved(equations, places, not group.reverse, beside)
    found |= {inner: found[state] for inner, state in beside.items()}
    found |= {own: found[state] for own, state in _equal_to(equations, wanted).items()}
    found |= {own: Rebuilt(found).parts([first])[0] for own, first in firsts.items()}
    made = Rebuilt(found).parts(wanted)
    by_input = dict(zip([t for t in inputs if t in parts], made, strict=True))
    return [by_input[t] if t in by_input else zero_adjoint(t, prefix) for t in inputs]


def tangents_of(
    own: Recursion,
    moving: Mapping[Tensor, Tensor],
    prefix: Sequence[Extent],
    jvp_graph: Callable[..., list[Tensor]],
) -> dict[Tensor, Tensor]:
    """The tangent of each output of ``own`` from those of what is ``moving``."""
    group = own.group
    asked = [t.position for t in own.outputs if isinstance(t, Recurrent)]
    idle = _idle(group, asked)
    numbers = [n for n, s in enumerate(group.states) if is_inexact(s.dtype) and n not in idle]
    states = [group.states[n] for n in numbers]
    dots = [State(f"{s.name}_dot", (*prefix, *s.shape), s.dtype) for s in states]
    apart = _Apart(group)
    definitions = [apart.definitions[n] for n in numbers]
    leaves = [*states, *(apart.leaves[t] for t in moving)]
    with within_steps(dict(zip(group.states, group.places, strict=True))):
        found = jvp_graph(definitions, leaves, [*dots, *moving.values()], prefix=prefix)
    bodies = apart.joined(found)
    equations = {d: as_compute(b, d.name) for d, b in zip(dots, bodies, strict=True)}
    places = {d: len(prefix) + group.places[n] for d, n in zip(dots, numbers, strict=True)}
    tensors = solved(equations, places, group.reverse)
    return {group.tensors[n]: tensors[d] for n, d in zip(numbers, dots, strict=True)}


def _within_steps(
    equations: dict[State, Compute], places: dict[State, int], wanted: Sequence[Tensor]
) -> dict[Tensor, State]:
    """States for the tensors of recurrences within the steps of ``equations`` that ``wanted`` read, too, so that these inner loops are not run once more.

    Their equations and places are added to the others.
    """
    groups = recurrences_in(topological_order([*equations.values()]))
    if not groups:
        return {}
    read = set(topological_order([*wanted]))
    clocked = Clocked(places, equations.values())
    found: dict[Tensor, State] = {}
    for tensor in (t for group in groups for t in group.tensors if t in read):
        place = clocked.place(tensor)
        if place is not None:
            state = found[tensor] = State(tensor.name, tensor.shape, tensor.dtype)
            equations[state] = as_compute(tensor, tensor.name)
            places[state] = place
    return found


def _reached_by(group: Recurrence, given: Collection[int]) -> list[int]:
    """The states that something flows into where it does into those that are ``given``."""
    states = dict.fromkeys(group.states)
    reads = {s: states_below(own, states) for s, own in zip(group.states, group.definitions, strict=True)}
    found = {group.states[n] for n in given}
    for n in given:
        found |= reached_states(reads, group.states[n])
    return [n for n, s in enumerate(group.states) if s in found and is_inexact(s.dtype)]


def _idle(group: Recurrence, asked: Collection[int]) -> set[int]:
    """The states through which nothing flows to those that are ``asked`` for: extrema that the others are the same for."""
    return extrema_without_effect(group.states, group.definitions, group.inside) - {*asked}


class _Apart:
    """The definitions of a recurrence as functions of states and of leaves, apart from the graph that they stand in.

    Its inputs may be computed from each other, and nothing must flow on from one to another within.

    Attributes:
        leaves: what stands for each input.
        definitions: over these.
    """

    def __init__(self, group: Recurrence) -> None:
        self.leaves = {t: t if isinstance(t, Placeholder) else stand_in(t) for t in group.inputs}
        table: dict[Tensor, Tensor] = {**self.leaves, **{s: s for s in group.states}}
        # a gradient that was given for a definition may read the tensors of the recurrence as they were computed
        table.update(zip(group.tensors, group.states, strict=True))
        self.definitions = Rebuilt(table).parts(group.definitions)
        pairs = zip((*group.states, *self.definitions), (*group.tensors, *group.tensors), strict=True)
        self._back: dict[Tensor, Tensor] = {**{new: old for old, new in self.leaves.items()}, **dict(pairs)}
        for own, whole in zip(self.definitions, group.tensors, strict=True):
            if isinstance(own, Compute) and (inner := copied_by(own)) is not None:
                self._back[inner] = whole

    def joined(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """``tensors``, made of these definitions, in the graph: they read states and definitions as they were computed."""
        return Rebuilt(self._back).parts(tensors)


def _equal_to(equations: Mapping[State, Compute], graph: Sequence[Tensor]) -> dict[Tensor, State]:
    """The tensors of ``graph`` that a state is, by its definition from others: what the loop computes is not computed again behind it."""
    rows = {s: own for s, own in equations.items() if any(r.tensor in equations for r in reads_of(own.body))}
    found: dict[Tensor, State] = {}
    for tensor in topological_order(graph) if rows else ():
        if isinstance(tensor, Compute):
            own = next((s for s, row in rows.items() if _is_equal(tensor, row)), None)
            if own is not None:
                found[tensor] = own
    return found


def _is_equal(one: Compute, other: Compute) -> bool:
    if one is other:
        return True
    if (
        one.ndim != other.ndim
        or one.dtype != other.dtype
        or {r.tensor for r in reads_of(one.body)} != {r.tensor for r in reads_of(other.body)}
    ):
        return False
    alike = all(a.extent is b.extent for a, b in zip(one.axes, other.axes, strict=True))
    return alike and one.element(other.axes) is other.body


def _is_nothing(tensor: Tensor) -> bool:
    return isinstance(tensor, Compute) and is_zero(tensor.body)
