"""The pages docs/operators.md and docs/results/operators-further.md, from the figures of the rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import exp, log
from typing import Any

from harness.case import IDIOMATIC, JAXTE
from harness.passes import BOTH, FORWARD
from operators.measure import TINY, Result
from operators.row import LEVELS, formula, signature

_PAIR = "\u00a0/\u00a0"  # of numbers, which a narrow column would break in three
HEAD = """# Operators

Written by `make operators`; do not edit. `te.ops` has {operators} operators, measured here in {rows} rows, in float32 on {machine}.

Each takes Tensors, or arrays under every transformation of JAX, in layouts NCHW and NHWC where it has one. It is defined by the
expression of one element in `jaxte/ops/`, a few lines, and differentiated by the system; none calls `jax.grad` or has an adjoint by
hand. `nms` and the mask that `dropout` draws of a key are loops or random bits, which are no index expressions: they are calls of
JAX whose results are integers or booleans, without gradient. So are the copies of `device_copy` and `on_device`, whose adjoint is
`jax.device_put`'s own.

**Columns.** *Status*: `works` where value and gradient agree with plain JAX within {tolerance:.0e} of the largest element.
*Adjoint*: the forms that the adjoints were lowered to, `none` without a gradient. *Scatter*: what is left of scatters, with the
reason. *Error*: largest difference in the value and in the gradient, over the largest element. *Forward*, *both*: how many times as
fast as plain JAX forward, and forward + backward (the least of interleaved runs); `=` where XLA compiles both to the same
instructions, so that the ratio is 1. *Temporaries*: of jaxte and of plain JAX, forward + backward, in MB.

{summary}

Levels 1 to 3 are on this page; comparisons, choices, reductions, resizing, layouts, losses and what is beyond the table are on [a second
one](results/operators-further.md), with the notes.
"""
FURTHER_HEAD = """# Operators, further levels

Written by `make operators`; do not edit. What the columns mean is said on [the first page](../operators.md).
"""
_FIRST = ("1", "2", "3")  # the levels of the first page


def page(figures: Mapping[str, Any]) -> str:
    """The first page as text."""
    results: Mapping[str, Result] = figures["rows"]
    operators = {name.partition(".")[0] for name in results}
    head = HEAD.format(
        operators=len(operators),
        rows=len(results),
        machine=figures["machine"],
        tolerance=figures["tolerance"],
        summary=summary(results),
    )
    return "\n".join([head, *_levels(results, _FIRST)])


def further_page(figures: Mapping[str, Any]) -> str:
    """The second page as text: the other levels, and the notes of all rows."""
    results: Mapping[str, Result] = figures["rows"]
    parts = [FURTHER_HEAD, *_levels(results, [level for level in LEVELS if level not in _FIRST])]
    notes = [f"- `{name}`: {r['note']}" for name, r in results.items() if r["note"]]
    return "\n".join(parts + (["## Notes\n", *notes, ""] if notes else []))


def _levels(results: Mapping[str, Result], levels: Iterable[str]) -> Iterator[str]:
    for level in levels:
        own = {name: r for name, r in results.items() if r["level"] == level}
        if own:
            title = LEVELS[level]
            yield f"## Level {level}: {title}\n" if level != "+" else f"## {title.capitalize()}\n"
            yield _definitions(own)
            yield _figures(own)


def summary(results: Mapping[str, Result]) -> str:
    """The goals and what became of them."""
    timed = {name: ratio(r, BOTH) for name, r in results.items()}
    timed = {name: x for name, x in timed.items() if x is not None}
    table = [x for name, x in timed.items() if results[name]["level"] in ("1", "2", "3", "4")]
    below = [f"`{name}` {x:.2f}" for name, x in timed.items() if x < 0.95]
    far = [
        f"`{n}` {x:.1f}" for n, x in timed.items() if results[n]["target"] > 1 and x < results[n]["target"]
    ]
    works = sum(r["works"] for r in results.values())
    mean = exp(sum(map(log, table)) / len(table)) if table else 1.0
    lines = [
        f"{works} of {len(results)} rows work. {len(timed) - len(below)} of {len(timed)} timed rows reach 0.95 of plain JAX forward + "
        f"backward; the geometric mean of levels 1 to 4 is {mean:.2f}, rows that are the same program counted as 1.",
    ]
    if below:
        lines.append(f"Below 0.95: {', '.join(below)}.")
    if far:
        lines.append(
            f"Below the goal of 3 for depthwise and grouped convolutions, pools, LRN, resize and blurs: {', '.join(far)}."
        )
    return "\n\n".join(lines)


def ratio(result: Result, which: str) -> float | None:
    """How many times as fast as plain JAX; None where nothing was timed."""
    figures = result["passes"].get(which, {})
    if "seconds" not in figures:
        return None
    taken = figures["seconds"]
    if figures["same"] or max(taken.values()) < TINY:
        return 1.0
    return float(taken[IDIOMATIC] / taken[JAXTE])


def _shown_ratio(result: Result, which: str) -> str:
    value = ratio(result, which)
    if value is None:
        return "–"
    return "=" if result["passes"][which]["same"] else f"{value:.2f}" if value < 9.95 else f"{value:.0f}"


def _definitions(rows: Mapping[str, Result]) -> str:
    names = dict.fromkeys(name.partition(".")[0] for name in rows)
    lines = [f"| {_code(signature(n))} | {_code(formula(n))} |" for n in names]
    return "\n".join(["| signature | formula |", "|---|---|", *lines, ""])


def _figures(rows: Mapping[str, Result]) -> str:
    head = "| row | status | adjoint | scatter | error | forward | both | temporaries |"
    return "\n".join([head, "|---|---|---|---|---|---|---|---|", *_lines(rows), ""])


def _lines(rows: Mapping[str, Result]) -> Iterator[str]:
    for name, r in rows.items():
        passes = r["passes"]
        errors = _PAIR.join(f"{passes[w]['error']:.0e}" for w in (FORWARD, BOTH) if w in passes)
        held = passes[BOTH if BOTH in passes else FORWARD]["temporaries"]
        memory = " / ".join(f"{held[side] / 1e6:.2f}" for side in (JAXTE, IDIOMATIC))
        cells = (
            f"`{name}`",
            "works" if r["works"] else "**differs**",
            ", ".join(r["forms"]) if BOTH in passes and r["forms"] else "none",
            _cell("; ".join(r["scatters"])) or "no",
            errors,
            _shown_ratio(r, FORWARD),
            _shown_ratio(r, BOTH),
            memory,
        )
        yield f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _code(text: str) -> str:
    """Code in a table; one with a bar is HTML, since Markdown is of two minds about a bar in code."""
    return f"<code>{text.replace('|', '&#124;')}</code>" if "|" in text else f"`{text}`"


def rows_of(text: str) -> Sequence[str]:
    """The names of the rows of a page, for the test that compares them with the operators."""
    return [
        line.split("`")[1]
        for line in text.splitlines()
        if line.startswith("| `") and ("| works" in line or "| **differs" in line)
    ]
