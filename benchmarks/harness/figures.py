"""What the measurements say: ratios to jaxte, goals, geometric means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp, log
from typing import Any

from harness.case import BY_HAND, IDIOMATIC, INDEXED, JAXTE, TORCH

Result = dict[str, Any]
OPPONENTS = (IDIOMATIC, INDEXED, BY_HAND, TORCH)
# the least ratio of each case, and the least geometric mean; torch is there to compare, not to reach
LEAST = {IDIOMATIC: 0.95, BY_HAND: 0.9}
LEAST_MEAN = {IDIOMATIC: 4.0, INDEXED: 10.0}
# XLA rounds buffers up to its alignment, so temporaries of a few cache lines are none
NEGLIGIBLE = 4096


def sides(result: Result, which: str) -> dict[str, Result]:
    return result.get("passes", {}).get(which, {}).get("sides", {})


def seconds(result: Result, which: str, side: str) -> float | None:
    return sides(result, which).get(side, {}).get("seconds")


def ratio(result: Result, which: str, opponent: str) -> float | None:
    """How many times faster jaxte is; None where one of both has no time."""
    ours, theirs = seconds(result, which, JAXTE), seconds(result, which, opponent)
    return theirs / ours if ours and theirs else None


def why_not(result: Result, which: str, side: str) -> str:
    """Why a side has no time, in a word or two; empty where it has one, or where the case has no such side."""
    found = sides(result, which).get(side, {})
    if "error" in found:
        return "failed"
    if side in result.get("left_out", {}):
        return "left out"
    return "failed" if result.get("error") and "seconds" not in found and (found or side == JAXTE) else ""


def temporaries(result: Result, which: str, side: str) -> int | None:
    return sides(result, which).get(side, {}).get("temporaries")


def holds_more(result: Result, which: str) -> bool:
    """Whether jaxte's temporaries are above those of the idiomatic form."""
    ours, theirs = temporaries(result, which, JAXTE), temporaries(result, which, IDIOMATIC)
    return ours is not None and theirs is not None and ours > theirs + NEGLIGIBLE


def floor(result: Result, which: str, rates: dict[str, float]) -> float | None:
    """The least time of a pass: inputs and outputs once, the least flops at the rate of a product."""
    figures = result.get("passes", {}).get(which)
    if not figures or "flops_at_least" not in figures:
        return None
    moved, worked = figures["bytes_at_least"], figures["flops_at_least"]
    return max(moved / rates["bytes_per_second"], worked / rates["flops_per_second"])


def missed(result: Result, which: str) -> list[str]:
    """The goals that a case does not reach, as text."""
    found = [
        f"{ratio_text(value)} of {opponent}"
        for opponent, least in LEAST.items()
        if (value := ratio(result, which, opponent)) is not None and value < least
    ]
    if holds_more(result, which):
        found.append("temporaries above idiomatic")
    ours = sides(result, which).get(JAXTE, {})
    own, other = (sides(result, which).get(s, {}).get("compile_seconds") for s in (JAXTE, IDIOMATIC))
    if own is not None and other is not None and own > 2 * other + 1:
        found.append(f"compiles in {own:.1f} s")
    return [*found, ours["error"]] if "error" in ours else found


def geometric_mean(values: Sequence[float]) -> float | None:
    return exp(sum(map(log, values)) / len(values)) if values else None


def ratios(results: Sequence[Result], which: str, opponent: str) -> list[float]:
    found = (ratio(result, which, opponent) for result in results)
    return [value for value in found if value is not None]


def means(results: Sequence[Result], which: str) -> dict[str, float | None]:
    return {opponent: geometric_mean(ratios(results, which, opponent)) for opponent in OPPONENTS}


def losses(results: Sequence[Result], which: str) -> Iterator[tuple[str, list[str]]]:
    """Cases with what they miss."""
    for result in results:
        if goals := missed(result, which):
            yield result["title"], goals


def ratio_text(value: float) -> str:
    """Two digits that tell; three for what is many times faster."""
    return f"{value:.0f}" if value >= 9.95 else f"{value:.1f}" if value >= 0.995 else f"{value:.2f}"
