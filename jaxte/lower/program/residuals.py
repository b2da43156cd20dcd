"""What the forward pass keeps for the backward pass, and what the backward pass computes again.

Recurrences that are too long to keep: some of their positions are kept, and the backward loop computes the others again as it comes to them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from math import prod

from jaxte.lang import dtypes
from jaxte.lang.expr import Axis, Read, Reduce, Var, as_expr
from jaxte.lang.graphs import among, reached
from jaxte.lang.walk import postorder
from jaxte.lower.cost.policy import AUTO, DEFAULT, Policy
from jaxte.lower.program.recomputation import chosen_residuals, needed_for, sum_text
from jaxte.lower.recurrences.replays import computed_again, kept_of, position_bytes
from jaxte.lower.recurrences.sums import within_loops
from jaxte.lower.tiles.sizes import Large
from jaxte.meaning.feeds import sizes_in, told_sizes
from jaxte.planning.indices.shared_elements import is_kept
from jaxte.planning.indices.shared_places import is_window_function
from jaxte.sets.intervals import extent_of
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.recurrences.node import (
    Kept,
    Recurrence,
    Recurrent,
    Replay,
    definitions_in,
    recurrences_in,
    with_siblings,
)
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Extern, Tensor


def saved_tensors(
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    adjoints: Sequence[Tensor],
    policy: Policy = DEFAULT,
    made: Sequence[Tensor] = (),
) -> list[Tensor]:
    """The residuals: what the backward pass reads, less what it gets from the others at the price of a view.

    A tensor that has no reduction and reads nothing but residuals, inputs and tensors computed again is itself
    computed again: that costs no more than reading it from memory, and XLA fuses it into its readers. So is one
    that would be so with residuals that are smaller than itself, such as the maximum of each row for the logits
    less that maximum. Reads at positions that are data cost more than a stream, so what has them is kept. Outputs
    of the function are in memory anyway, so they are kept.

    So is a tensor that is too large to exist in whole (see ``lower.tile_sizes``), which both passes compute in tiles,
    as long as computing it once more costs less than writing and reading it, or a budget asks for it.

    ``made`` are tensors of the forward pass beside those of the outputs: what the forward function of an override keeps.
    """
    if not policy.save.is_default:
        return _as_asked(inputs, outputs, adjoints, policy, made)
    forward = with_siblings(topological_order([*inputs, *outputs, *made]))
    read, own = _backward_part(forward, adjoints)
    kept_anyway = {*inputs, *outputs}
    available = set(inputs)
    saved: dict[Tensor, None] = {}
    again = dict.fromkeys(_made_again(forward, read, kept_anyway, policy))
    for tensor in dict.fromkeys([t for t in forward if t in again or among(t, read)]):
        if tensor in again:
            own.append(tensor)
            saved.update((t, None) for t in tensor.inputs if t not in again)
        elif tensor in kept_anyway or (sources := _sources(tensor, available, policy)) is None:
            saved[tensor] = None
        else:
            own.append(tensor)
            saved.update(dict.fromkeys(sources))
            available.update(sources)
        available.add(tensor)
    add_sizes(saved, own, [*inputs, *outputs], outputs)
    return [t for t in forward if t in saved]


def _as_asked(
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    adjoints: Sequence[Tensor],
    policy: Policy,
    made: Sequence[Tensor],
) -> list[Tensor]:
    """The residuals as the user chose them."""
    automatic = saved_tensors(inputs, outputs, adjoints, replace(policy, save=AUTO), made)
    forward = with_siblings(topological_order([*inputs, *outputs, *made]))
    needed, own = _backward_part(forward, adjoints)
    at_hand = {*inputs, *outputs}
    segments = checkpoints(outputs, adjoints, needed, at_hand, policy)
    if segments:
        again = {t for kept in segments for t in kept.group.tensors}
        needed = [*(t for t in needed if t not in again), *(t for own in segments for t in own.inputs)]
        needed = [t for t in forward if t in set(needed)]
    sizes = {t: _size(t) for t in forward}
    save = policy.save
    if save.budget is not None:
        save = replace(save, budget=max(0, save.budget - sum(map(_size, segments))))
    kept = chosen_residuals(save, forward, needed, at_hand, made, automatic, sizes)
    read, made_again = needed_for(needed, kept, at_hand)
    saved = dict.fromkeys(read)
    add_sizes(saved, [*own, *made_again], [*inputs, *outputs], outputs)
    return [*(t for t in forward if t in saved), *segments]


def _backward_part(
    forward: Sequence[Tensor], adjoints: Iterable[Tensor]
) -> tuple[list[Tensor], list[Tensor]]:
    """The tensors of ``forward`` that the computation of ``adjoints`` reads, and the tensors that are its own."""
    known = set(forward)
    order = topological_order(adjoints, lambda tensor: () if tensor in known else tensor.inputs)
    read = known.intersection(order)
    return [t for t in forward if t in read], [t for t in order if t not in known]


def _made_again(
    forward: Sequence[Tensor], read: Sequence[Tensor], kept: set[Tensor], policy: Policy
) -> list[Tensor]:
    """The tensors that are too large to keep, with those of the same kind that they are made from."""
    large = Large(forward, {t for t in forward if isinstance(t, Placeholder)}, policy)
    found = {
        t for t in large.tensors if t not in kept and (large.has_to_be_tiled(t) or large.again(t, 1) <= 0)
    }
    needed = reached([t for t in read if t in found], lambda tensor: [t for t in tensor.inputs if t in found])
    return [t for t in forward if t in needed]


def _sources(tensor: Tensor, available: set[Tensor], policy: Policy) -> list[Tensor] | None:
    """The residuals that ``tensor`` can be computed again from, None if that costs more than to keep it."""
    if isinstance(tensor, Extern) and not tensor.inputs:
        return []  # an array that the module has
    if not isinstance(tensor, Compute) or is_kept(tensor):
        return None
    if not _is_stream(tensor) and not (policy.facts.fuses_products and is_window_function(tensor)):
        return None
    missing = [t for t in tensor.inputs if t not in available]
    if missing and sum(map(_size, missing)) >= _size(tensor):
        return None
    return [t for t in tensor.inputs if among(t, missing) or isinstance(t, Placeholder)]


def _is_stream(tensor: Compute) -> bool:
    """Whether each element takes a few operations on elements at positions that are known beforehand."""
    nodes = list(postorder(tensor.body))
    positions = [i for node in nodes if isinstance(node, Read) for i in node.indices]
    return not any(isinstance(node, Reduce) for node in nodes) and not any(
        isinstance(node, Read) for node in postorder(*positions)
    )


def _size(tensor: Tensor) -> int:
    """The bytes of ``tensor``, a guess where it depends on symbolic sizes."""
    return prod(map(extent_of, tensor.shape)) * dtypes.width(tensor.dtype)


def add_sizes(
    saved: dict[Tensor, None], own: Sequence[Tensor], sources: Sequence[Tensor], heads: Sequence[Tensor]
) -> None:
    """Adds what the symbolic sizes of the backward pass are read from, where neither residuals nor heads have them."""
    needed = {size for tensor in own for size in _sizes_within(tensor)}
    told = sizes_told([*saved, *heads])
    for tensor in sources:
        more = sizes_told([*saved, *heads, tensor]) if needed - told else told
        if needed & (more - told):
            saved[tensor] = None
            told = more


def sizes_told(tensors: Sequence[Tensor]) -> set[Var]:
    """The symbolic sizes that the shapes of ``tensors`` tell."""
    return {told.size for told in told_sizes([tensor.shape for tensor in tensors])}


def _sizes_within(tensor: Tensor) -> list[Var]:
    """The symbolic sizes in the shape and in the body of ``tensor``, in the ranges of its axes and the shapes that it reads too."""
    found = list(sizes_in(tensor.shape))
    for node in (n for own in definitions_in([tensor]) for n in postorder(own.body)):
        if isinstance(node, Var):
            found.append(node)
        axes: Sequence[Axis] = node.axes if isinstance(node, Reduce) else ()
        found += sizes_in([bound for axis in axes for bound in (axis.lo, axis.hi)])
        found += sizes_in(node.tensor.shape if isinstance(node, Read) else ())
    return found


def bytes_text(tensor: Tensor) -> str:
    """The memory of ``tensor`` in terms of its sizes."""
    return sum_text([([as_expr(e) for e in tensor.shape], dtypes.width(tensor.dtype))])


def checkpoints(
    outputs: Sequence[Tensor],
    adjoints: Sequence[Tensor],
    needed: Sequence[Tensor],
    at_hand: Collection[Tensor],
    policy: Policy,
) -> list[Recurrent]:
    """What is kept of recurrences that do not fit into the budget of residuals.

    Args:
        outputs, adjoints: what the forward and the backward pass compute.
        needed: what the backward pass reads of the forward pass.
        at_hand: inputs and outputs.
        policy: has the budget; without one, nothing is kept so.
    """
    left = policy.save.budget
    if left is None:
        return []
    found: list[Recurrent] = []
    groups = recurrences_in(t for t in needed if t not in at_hand)
    for group in groups:
        size, extent = position_bytes(group), group.extent
        if size is None or not isinstance(extent, int) or size * extent <= left:
            continue
        if any(t in at_hand for t in group.tensors):
            continue
        there = tuple(t for t in at_hand if isinstance(t, Kept) and t.group is group)
        own = there or kept_of(group, left // max(1, size))
        if own and _is_possible(group, own, outputs, adjoints, at_hand, policy):
            found += [*own, *group.finals]
            left -= size * (own[0].slots + 1)
    return found


def _is_possible(
    group: Recurrence,
    kept: Sequence[Kept],
    outputs: Sequence[Tensor],
    adjoints: Sequence[Tensor],
    at_hand: Collection[Tensor],
    policy: Policy,
) -> bool:
    """Whether neither pass has to have all positions of ``group``."""
    forward = _computed([*outputs, *kept, *group.finals], frozenset(), policy)
    inputs = frozenset(t for t in at_hand if not t.inputs)
    backward = _computed(adjoints, inputs | {*kept, *group.finals}, policy)
    is_replayed = any(isinstance(t, Recurrent) and isinstance(t.group, Replay) for t in backward)
    return is_replayed and not any(
        type(t) is Recurrent and t.group.states[0] is group.states[0] for t in (*forward, *backward)
    )


def _computed(results: Sequence[Tensor], given: frozenset[Tensor], policy: Policy) -> list[Tensor]:
    """What a program of ``results`` computes."""

    def sources(tensor: Tensor) -> Sequence[Tensor]:
        return () if tensor in given else tensor.inputs

    changed = within_loops(topological_order(results, sources), given, frozenset(results), policy)
    return topological_order([changed.get(t, t) for t in results], sources)


def schedule_text(kept: Kept) -> str:
    """At how many positions a recurrence is kept, and how many steps are computed again."""
    steps = kept.group.extent
    assert isinstance(steps, int)
    again = computed_again(steps, kept.slots)
    return f"before {kept.slots:,} of {steps:,} steps at a time, {again:,} steps computed again in the backward pass"
