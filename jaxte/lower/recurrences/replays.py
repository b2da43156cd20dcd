"""Recurrences whose positions are computed again within a recurrence from the other end: under which conditions, and from how many that are kept.

The binomial schedule of Griewank and Walther: which positions of a loop are kept in a few slots while another one goes back over it.

    A. Griewank, A. Walther: Revolve, an implementation of checkpointing for the reverse or adjoint mode of computational differentiation. ACM TOMS 26 (2000).

With ``c`` slots, the first position in one of them, ``C(c + r, c)`` positions are gone back over if none is computed more than ``r`` times. A loop between two
positions is split where both parts need no more than that, the second with a slot less. The slots are a stack: what lies behind the position that the loop from
the end has come to is not needed any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, prod

from jaxte.lang import dtypes
from jaxte.lang.expr import Expr
from jaxte.lang.graphs import Members
from jaxte.lang.limits import AGAIN
from jaxte.lower.recurrences.finals import Changed, changes, with_finals
from jaxte.sets.affine import normal
from jaxte.sets.intervals import known
from jaxte.sets.resolved import decided
from jaxte.tensors.recurrences.node import Kept, Recurrence, Recurrent, Replay, recurrences_in
from jaxte.tensors.recurrences.steps import step_of
from jaxte.tensors.tensor import Compute, Tensor

_BESIDE = 4  # states: those before and behind a step, the one behind that, and the slot of what is not kept


def slots_within(steps: int, states: int) -> int | None:
    """How many positions of ``steps`` are kept within a memory of ``states``; None where they are too few.

    >>> slots_within(1000, 20), slots_within(1000, 6)
    (16, None)
    """
    slots = min(steps - 1, states - _BESIDE)
    return slots if slots > 0 and comb(slots + AGAIN, slots) >= steps else None


def kept_of(group: Recurrence, states: int) -> tuple[Kept, ...]:
    """What is kept of ``group`` within a memory of ``states``; nothing where it cannot be gone back over in this way."""
    if group.reverse or not isinstance(group.extent, int):
        return ()
    step = step_of(group)
    if step.history or any(step.depth(state) > 1 for state in group.states):
        return ()
    slots = slots_within(group.extent, states)
    return () if slots is None else tuple(Kept(group, n, slots) for n in range(len(group.states)))


def position_bytes(group: Recurrence) -> int | None:
    """The memory of all tensors of ``group`` at one position; None where sizes are symbolic."""
    found = 0
    for state, place in zip(group.states, group.places, strict=True):
        rest = (*state.shape[:place], *state.shape[place + 1 :])
        if not all(isinstance(e, int) for e in rest):
            return None
        found += prod(e for e in rest if isinstance(e, int)) * dtypes.width(state.dtype)
    return found


def kept_in(given: Members[Tensor]) -> dict[Recurrence, tuple[Kept, ...]]:
    """The recurrences of which no more than some positions is there."""
    found: dict[Recurrence, tuple[Kept, ...]] = {}
    for tensor in given:
        if isinstance(tensor, Kept):
            found[tensor.group] = (*found.get(tensor.group, ()), tensor)
    return found


def replays(order: Sequence[Tensor], given: Members[Tensor]) -> Changed:
    """What stands for the tensors of ``order`` where the recurrences that read others compute these again.

    A recurrence that something else reads as well, or one that reads it in another way, is left: it is computed again in whole.
    """
    own = [t for t in order if t not in given]
    table: dict[Recurrence, Recurrence] = {}
    bodies: dict[Tensor, Expr] = {}
    for source, kept in kept_in(given).items():
        read = set(source.tensors)
        readers = [t for t in own if t not in read and any(r in read for r in t.inputs)]
        groups = recurrences_in(readers)
        without: dict[Tensor, Expr] = {
            t: with_finals(decided(t.body), read) for t in readers if isinstance(t, Compute)
        }
        others = [Compute(t.name, t.axes, without[t]) for t in without if isinstance(t, Compute)]
        if len(groups) != 1 or any(r in read for t in others for r in t.inputs):
            continue
        (group,) = groups
        made = Replay(group.states, group.definitions, group.places, group.reverse, source, kept)
        if group.reverse and reach_of(made) is not None:
            table[group] = made
            bodies.update(without)
    if not table:
        return {}
    return changes(own, lambda tensor, _: bodies.get(tensor, tensor.body), table)


def reach_of(group: Replay) -> int | None:
    """How many positions after its own a step of ``group`` reads of what it computes again, -1 for none but the one before; None for others."""
    step = step_of(group)
    if step.history:
        return None
    found = -1
    for own in step.slices.values():
        whole = own.source
        if isinstance(whole, Recurrent) and whole.group is group.source:
            if own.lengths or list(own.positions) != [group.source.places[whole.position]]:
                return None
            (position,) = own.positions.values()
            offset = known(normal(position - step.clock))
            if offset is None or not -1 <= offset <= 1:
                return None
            found = max(found, offset)
    read = {t for own in step.order for t in own.inputs}
    return None if any(t in read for t in group.source.tensors) else found


def restarts(steps: int, slots: int) -> tuple[list[int], list[int], list[int], list[int], list[int]]:
    """The tables of a loop of ``steps`` positions with ``slots``, one more of which holds what is not kept.

    Returns:
        The slot of each position in the loop forward; and, of each position that the loop from the end comes to, the slot that has what it is computed from,
        the position of that, and where the slots of the positions between stand in the last list.
    """
    found = descent(0, steps, [0], slots)
    forward = [0, *(found.get(t, slots) for t in range(1, steps))]
    stack = [0, *found]
    taken, first, offset = [0] * steps, [0] * steps, [0] * steps
    into: list[int] = []
    taken[-1], first[-1] = forward[-1], steps - 1  # the slot of what is not kept has the last one
    for t in range(steps - 2, -1, -1):
        while stack[-1] > t:
            stack.pop()
        taken[t], first[t], offset[t] = len(stack) - 1, stack[-1], len(into)
        found = descent(stack[-1], t + 1, stack, slots)
        into += [found.get(q, slots) for q in range(stack[-1], t)]
        stack += found
    return forward, taken, first, offset, into


def descent(low: int, high: int, stack: list[int], slots: int) -> dict[int, int]:
    """The positions from ``low`` to ``high`` that are kept on the way to the last one, with their slots, where those of ``stack`` are."""
    found: dict[int, int] = {}
    while high - low > 1 and (free := slots - len(stack) - len(found)) > 0:
        low += left(high - low, free + 1)
        found[low] = len(stack) + len(found)
    return found


def left(steps: int, slots: int) -> int:
    """How many of ``steps`` positions lie before the next one that is kept, of those that ``slots`` are for."""
    r = 1
    while comb(slots + r, slots) < steps:
        r += 1
    right_least, right_most = comb(slots + r - 2, slots - 1), comb(slots + r - 1, slots - 1)
    return max(1, steps - right_most, min(comb(slots + r - 1, slots), steps - right_least))


def computed_again(steps: int, slots: int) -> int:
    """How many steps are computed beside the loop forward."""
    return len(restarts(steps, slots)[-1])
