"""Which forward tensors to keep within a budget of bytes, so that the least work is done again.

A tensor that the backward pass needs is kept, or computed again from its sources, which are then needed in turn. Without a budget, at a
price of ``p`` operations for each byte, the cheapest choice is a minimal cut (project selection: Picard 1976; of residuals: the min-cut
partitioner of PyTorch's AOTAutograd). Which price meets a budget is found by the Lagrangian dual, which bounds the best choice from below
(Fisher 1981, "The Lagrangian relaxation method for solving integer programming problems"), and what gap is left is closed by branch and
bound: on a tensor that one of the two choices next to the budget keeps and the other does not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

_MOST_NODES = 400  # of the search; the best choice found so far is taken after these


@dataclass(frozen=True)
class Choices:
    """Tensors by number.

    Attributes:
        sources: those that each is computed from; what is there anyway is left out.
        work: what computing each again costs.
        size: bytes of each.
        needed: those that the backward pass reads.
        kept: those that have to be kept.
        again: those that have to be computed again.
    """

    sources: Sequence[Sequence[int]]
    work: Sequence[int]
    size: Sequence[int]
    needed: frozenset[int]
    kept: frozenset[int] = frozenset()
    again: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Choice:
    """What is kept, with its bytes, and the work of computing the rest again."""

    kept: frozenset[int]
    bytes: int
    work: int


def best_choice(choices: Choices, budget: int) -> Choice | None:
    """The least work with at most ``budget`` bytes kept; None if there is no choice within it."""
    incumbent: Choice | None = None
    open_nodes = [choices]
    for _ in range(_MOST_NODES):
        if not open_nodes:
            break
        node = open_nodes.pop()
        low, high, bound = _dual(node, budget)
        if high is None or (incumbent is not None and bound >= incumbent.work):
            continue
        if incumbent is None or high.work < incumbent.work:
            incumbent = high
        if low is None or bound >= incumbent.work:
            continue
        apart = (low.kept ^ high.kept) - node.kept - node.again
        if apart:
            chosen = max(apart, key=lambda n: (choices.size[n], n))
            open_nodes.append(replace(node, kept=node.kept | {chosen}))
            open_nodes.append(replace(node, again=node.again | {chosen}))
    return incumbent


def smallest_choice(choices: Choices) -> Choice | None:
    """The choice with the fewest bytes, and of those the one with the least work; None where too much is excluded."""
    most_work = 1 + sum(choices.work)
    return _cut(choices, 1, most_work)


def _dual(choices: Choices, budget: int) -> tuple[Choice | None, Choice | None, float]:
    """The choices of least cost next to the budget, above it and within it, and a lower bound of the work within it."""
    above = _cut(choices, 1 + sum(choices.size), 1)
    if above is None or above.bytes <= budget:
        return None, above, 0 if above is None else above.work
    within = smallest_choice(choices)
    if within is None or within.bytes > budget:
        return above, None, float("inf")
    while True:
        # At the price at which both cost the same, either a third one costs less, or these are the ends of the dual.
        work, size = within.work - above.work, above.bytes - within.bytes
        found = _cut(choices, size, work)
        assert found is not None
        if found.work * size + found.bytes * work >= within.work * size + within.bytes * work:
            return above, within, -(-(within.work * size + (within.bytes - budget) * work) // size)
        if found.bytes > budget:
            above = found
        else:
            within = found


def _cut(choices: Choices, per_work: int, per_byte: int) -> Choice | None:
    """The choice that costs least where an operation costs ``per_work`` and a byte ``per_byte``; None if none is allowed."""
    count = len(choices.work)
    forbidden = 1 + per_work * sum(choices.work) + per_byte * sum(choices.size)
    start, end = 2 * count, 2 * count + 1
    flow = _Flow(2 * count + 2)
    for n in range(count):
        keep = forbidden if n in choices.again else per_byte * choices.size[n]
        again = forbidden if n in choices.kept else per_work * choices.work[n]
        flow.edge(n, count + n, keep)  # n: needed; count + n: computed again
        flow.edge(count + n, end, again)
        for source in choices.sources[n]:
            flow.edge(count + n, source, 2 * forbidden * (count + 1))
    for n in choices.needed:
        flow.edge(start, n, 2 * forbidden * (count + 1))
    if flow.maximum(start, end) >= forbidden:
        return None
    reached = flow.reached(start)
    kept = frozenset(n for n in range(count) if n in reached and count + n not in reached)
    again_too = [n for n in range(count) if count + n in reached]
    return Choice(kept, sum(choices.size[n] for n in kept), sum(choices.work[n] for n in again_too))


class _Flow:
    """Maximal flows by shortest augmenting paths in layers (Dinic 1970)."""

    def __init__(self, nodes: int) -> None:
        self._edges: list[list[int]] = [[] for _ in range(nodes)]
        self._to: list[int] = []
        self._left: list[int] = []

    def edge(self, a: int, b: int, capacity: int) -> None:
        for start, end, left in ((a, b, capacity), (b, a, 0)):
            self._edges[start].append(len(self._to))
            self._to.append(end)
            self._left.append(left)

    def maximum(self, start: int, end: int) -> int:
        total = 0
        while (level := self._levels(start))[end] >= 0:
            following = [0] * len(self._edges)
            while pushed := self._augment(start, end, level, following):
                total += pushed
        return total

    def reached(self, start: int) -> set[int]:
        """The side of ``start`` of the smallest minimal cut."""
        return {n for n, depth in enumerate(self._levels(start)) if depth >= 0}

    def _levels(self, start: int) -> list[int]:
        level = [-1] * len(self._edges)
        level[start] = 0
        queue = deque([start])
        while queue:
            node = queue.popleft()
            for e in self._edges[node]:
                if self._left[e] > 0 and level[self._to[e]] < 0:
                    level[self._to[e]] = level[node] + 1
                    queue.append(self._to[e])
        return level

    def _augment(self, start: int, end: int, level: Sequence[int], following: list[int]) -> int:
        """One path along the layers, and what flows through it."""
        path: list[int] = []
        node = start
        while node != end:
            if following[node] == len(self._edges[node]):
                if node == start:
                    return 0
                node = self._to[path.pop() ^ 1]
                following[node] += 1
                continue
            e = self._edges[node][following[node]]
            if self._left[e] > 0 and level[self._to[e]] == level[node] + 1:
                path.append(e)
                node = self._to[e]
            else:
                following[node] += 1
        pushed = min(self._left[e] for e in path)
        for e in path:
            self._left[e] -= pushed
            self._left[e ^ 1] += pushed
        return pushed
