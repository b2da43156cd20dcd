"""Recurrences that are too long to keep: some of their positions are kept, and the backward loop computes the others again as it comes to them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from jaxte.lower.arrays.binomial import computed_again
from jaxte.lower.cost.policy import Policy
from jaxte.lower.recurrences.replays import kept_of, position_bytes
from jaxte.lower.recurrences.sums import within_loops
from jaxte.tensors.graph import topological_order
from jaxte.tensors.recurrences.node import Kept, Recurrence, Recurrent, Replay
from jaxte.tensors.tensor import Tensor


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
    groups = dict.fromkeys(t.group for t in needed if isinstance(t, Recurrent) and t not in at_hand)
    for group in groups:
        size, extent = position_bytes(group), group.extent
        if size is None or not isinstance(extent, int) or size * extent <= left:
            continue
        if any(t in at_hand for t in group.tensors):
            continue
        own = kept_of(group, left // max(1, size))
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
