"""Clocks: calls in turn, A B A B ..., so that a change of the machine's pace meets all of them; medians."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

import jax


def seconds(call: Callable[[], Any]) -> float:
    """The time of one call, its result waited for."""
    start = time.perf_counter()
    jax.block_until_ready(call())
    return time.perf_counter() - start


def interleaved(calls: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """The median seconds of each of ``calls``, made in turn, after one call of each that does not count."""
    for call in calls.values():
        seconds(call)
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            taken[name].append(seconds(call))
    return {name: median(times) for name, times in taken.items()}


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose columns line up as plain text too."""
    widths = [max(len(row[n]) for row in (header, *rows)) for n in range(len(header))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in (header, *rows)
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])
