"""The binomial schedule of Griewank and Walther: which positions of a loop are kept in a few slots while another one goes back over it.

    A. Griewank, A. Walther: Revolve, an implementation of checkpointing for the reverse or adjoint mode of computational differentiation. ACM TOMS 26 (2000).

With ``c`` slots, the first position in one of them, ``C(c + r, c)`` positions are gone back over if none is computed more than ``r`` times. A loop between two
positions is split where both parts need no more than that, the second with a slot less. The slots are a stack: what lies behind the position that the loop from
the end has come to is not needed any more.
"""

from __future__ import annotations

from math import comb


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
