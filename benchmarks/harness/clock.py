"""Clocks for calls of very different lengths: in turn, in a new order each round, each as often as its budget allows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from statistics import median
from typing import Any

Call = Callable[[], Any]


@dataclass(frozen=True)
class Budget:
    """How long to measure.

    Attributes:
        seconds: for each call that is timed.
        least, most: rounds, whatever they take; but a call of many times its seconds is timed once.
    """

    seconds: float
    least: int
    most: int

    def rounds(self, once: float) -> int:
        if once > 5 * self.seconds > 0:
            return 1
        return min(max(int(self.seconds / max(once, 1e-9)), self.least), self.most)


FULL, QUICK = Budget(0.5, 3, 300), Budget(0.06, 3, 20)


@dataclass(frozen=True)
class Taken:
    """Seconds of one call over the rounds."""

    median: float
    least: float
    rounds: int


def seconds(call: Call) -> float:
    """The time of one call, which waits for its own result."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def interleaved(calls: Mapping[str, Call], once: Mapping[str, float], budget: Budget) -> dict[str, Taken]:
    """The times of each of ``calls``, which took ``once`` when they were made before.

    Slow calls make fewer rounds; they are spread over those of the fast ones, so that all sides meet the same changes of
    the machine's pace. Each round has an order of its own, the same in every run: what a call finds in the caches depends on
    the one before it.
    """
    rounds = {name: budget.rounds(once[name]) for name in calls}
    longest = max(rounds.values(), default=0)
    times: dict[str, list[float]] = {name: [] for name in calls}
    order, shuffled = list(calls), Random(0)
    for now in range(longest):
        shuffled.shuffle(order)
        for name in order:
            if (now + 1) * rounds[name] // longest > now * rounds[name] // longest:
                times[name].append(seconds(calls[name]))
    return {name: Taken(median(t), min(t), len(t)) for name, t in times.items()}
