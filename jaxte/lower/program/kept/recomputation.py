"""Residuals as the user asked for them: all, none, those read once, named ones, or the best within a budget of bytes.

Any set of forward tensors will do, as long as what the backward pass reads can be computed from it and from the inputs. Inputs
and outputs of the function are in memory anyway; only what lies between is chosen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from jaxte.lang.errors import LoweringError
from jaxte.lang.graphs import reached
from jaxte.lower.cost.policy import Save
from jaxte.lower.program.kept.budget import Choices, best_choice, smallest_choice
from jaxte.lower.program.kept.operations import operations
from jaxte.sets.intervals import extent_of
from jaxte.tensors.tensor import Compute, Tensor

_UNKNOWN_WORK = 100  # operations for each element of what a function of arrays returns


def chosen_residuals(
    save: Save,
    forward: Sequence[Tensor],
    needed: Sequence[Tensor],
    at_hand: Collection[Tensor],
    required: Collection[Tensor],
    automatic: Iterable[Tensor],
    bytes_of: dict[Tensor, int],
) -> set[Tensor]:
    """The tensors of ``forward`` that are kept.

    Args:
        forward: all tensors of the forward pass, each after its inputs.
        needed: those that the backward pass reads.
        at_hand: inputs and outputs.
        required: those that cannot be computed again.
        automatic: those that the default keeps.
        bytes_of: of each tensor; a guess where sizes are symbolic.

    Raises:
        LoweringError: a tensor that is not there, or a budget below what is needed.
    """
    between = [t for t in forward if t not in at_hand]
    said = save.of(forward)
    kept = {t for t, keep in said.items() if keep and t not in at_hand}
    match save.mode:
        case "auto":
            kept |= {t for t in automatic if t not in at_hand and said.get(t, True)}
        case "all":
            kept |= {t for t in needed if t not in at_hand}
        case "single_use":
            kept |= {t for t in needed if t not in at_hand and _readers(t, forward) == 1}
        case "budget":
            assert save.budget is not None
            kept |= _within(save.budget, between, needed, required, bytes_of)
    return kept | set(required)


def _readers(tensor: Tensor, forward: Sequence[Tensor]) -> int:
    return sum(any(s is tensor for s in reader.inputs) for reader in forward)


def _within(
    budget: int,
    between: Sequence[Tensor],
    needed: Sequence[Tensor],
    required: Collection[Tensor],
    bytes_of: dict[Tensor, int],
) -> set[Tensor]:
    """The choice with the least work among those of at most ``budget`` bytes."""
    number = {t: n for n, t in enumerate(between)}
    choices = Choices(
        [[number[s] for s in dict.fromkeys(t.inputs) if s in number] for t in between],
        [work_of(t) for t in between],
        [bytes_of[t] for t in between],
        frozenset(number[t] for t in (*needed, *required) if t in number),
        frozenset(number[t] for t in required),
    )
    found = best_choice(choices, budget)
    if found is None:
        least = smallest_choice(choices)
        asked = 0 if least is None else least.bytes
        raise LoweringError(
            f"save={budget:,} bytes is below the {asked:,} that cannot be computed again "
            f"({', '.join(t.name for t in required)}); give at least as many"
        )
    return {between[n] for n in found.kept}


def work_of(tensor: Tensor) -> int:
    """The operations of computing ``tensor`` from what it reads; a guess where sizes are symbolic."""
    if isinstance(tensor, Compute):
        return operations(tensor, extent_of)
    elements = _UNKNOWN_WORK
    for extent in tensor.shape:
        elements *= extent_of(extent)
    return elements


def needed_for(
    wanted: Iterable[Tensor], kept: Collection[Tensor], at_hand: Collection[Tensor]
) -> tuple[list[Tensor], list[Tensor]]:
    """What is read and what is computed again to have ``wanted``: residuals, and tensors that are made from these."""

    def is_there(tensor: Tensor) -> bool:
        return tensor in kept or tensor in at_hand or not tensor.inputs

    found = reached(wanted, lambda tensor: () if is_there(tensor) else tensor.inputs)
    return [t for t in found if is_there(t)], [t for t in found if not is_there(t)]
