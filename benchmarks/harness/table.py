"""The Markdown report: where it was measured, a table for each pass, XLA's counts, what is missed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from harness import figures as f
from harness.case import BY_HAND, IDIOMATIC, INDEXED, JAXTE, SIDES, TORCH
from harness.passes import BOTH, FORWARD, PASSES

Result = dict[str, Any]
TIMES = ("case", "jaxte", "idiomatic", "indexed", "by hand", "torch", "of the floor", "compile, s")
COUNTS = ("case", "side", "Mflop", "MB accessed", "MB temporaries", "operations")


def report(data: Result) -> str:
    """The times of both passes and what is missed, for the figures that the suite wrote."""
    results, rates = data["cases"], data["ceilings"]
    parts = [where(data)]
    for which in (BOTH, FORWARD):
        parts += [f"### {which.capitalize()}", times(results, which, rates), summary(results, which)]
    notes = list(remarks(results))
    if notes:
        parts += ["### Not run, or not reached", "\n".join(f"- {note}" for note in notes)]
    return "\n\n".join(parts) + "\n"


def counts_report(data: Result) -> str:
    """What XLA counts for the same figures, which is a page of its own."""
    return "\n\n".join([where(data), counts(data["cases"], BOTH)]) + "\n"


def where(data: Result) -> str:
    m, rates = data["machine"], data["ceilings"]
    versions = ", ".join(f"{name} {v}" for name, v in m["versions"].items())
    return (
        f"{m['date']}; {m['processor']}, {m['cores']} cores; {m['platform']}: {m['device']}; {m['system']}; {versions}. "
        f"float32, {data['size']} sizes, interleaved medians. Ceilings of this run: "
        f"{rates['bytes_per_second'] / 1e9:.1f} GB/s (read and written, in place), "
        f"{rates['flops_per_second'] / 1e9:.0f} GFLOP/s (matrix product)."
    )


def times(results: Sequence[Result], which: str, rates: dict[str, float]) -> str:
    """Milliseconds of jaxte, and how many times faster it is than each opponent; what misses its goal is bold."""
    rows = [_times_row(result, which, rates) for result in results]
    goals = f.LEAST | f.LEAST_MEAN
    mean_cells = [_shown(mean, goals.get(o, 0.0)) for o, mean in f.means(results, which).items()]
    cells = [TIMES, *rows, ("geometric mean", "", *mean_cells, "", "")]
    ran = {name for result in results for name in f.sides(result, which)}
    none = {INDEXED, BY_HAND, TORCH} - ran  # a column in which nothing stands
    shown = [n for n, name in enumerate(TIMES) if name not in none]
    header, *body = ([row[n] for n in shown] for row in cells)
    return markdown(header, body)


def _times_row(result: Result, which: str, rates: dict[str, float]) -> tuple[str, ...]:
    ours, least = f.seconds(result, which, JAXTE), f.floor(result, which, rates)
    share = f"{least / ours:.0%}" if ours and least else ""
    own = milliseconds(ours) if ours else f.why_not(result, which, JAXTE)
    compiled = [f.sides(result, which).get(s, {}).get("compile_seconds") for s in (JAXTE, IDIOMATIC)]
    both = " / ".join("-" if c is None else f"{c:.2f}" for c in compiled)
    return (result["title"], own, *(_ratio_cell(result, which, o) for o in f.OPPONENTS), share, both)


def _ratio_cell(result: Result, which: str, opponent: str) -> str:
    value = f.ratio(result, which, opponent)
    if value is None:
        return f.why_not(result, which, opponent)
    return _shown(value, f.LEAST.get(opponent, 0.0))


def _shown(value: float | None, goal: float) -> str:
    """A ratio, bold below its goal."""
    if value is None:
        return ""
    text = f.ratio_text(value)
    return f"**{text}**" if value < goal else text


def counts(results: Sequence[Result], which: str) -> str:
    """XLA's counts for jaxte, the idiomatic form and the one by hand."""
    rows = []
    for result in results:
        title = result["title"]
        for side in (JAXTE, IDIOMATIC, BY_HAND):
            found = f.sides(result, which).get(side, {})
            if "seconds" in found:
                rows.append(
                    (title, side, *_counts_cells(found, side == JAXTE and f.holds_more(result, which)))
                )
                title = ""
    return markdown(COUNTS, rows)


def _counts_cells(found: Result, above: bool) -> tuple[str, ...]:
    loop = " a round" if found.get("looped") else ""
    held = "unknown" if found["temporaries"] is None else f"{found['temporaries'] / 1e6:,.1f}"
    operations = ", ".join(f"{n} {op}" for op, n in found["operations"].items())
    return (
        "unknown" if found["flops"] is None else f"{found['flops'] / 1e6:,.1f}{loop}",
        "unknown" if found["bytes"] is None else f"{found['bytes'] / 1e6:,.1f}{loop}",
        f"**{held}**" if above else held,
        operations or "elementwise and reductions",
    )


def summary(results: Sequence[Result], which: str) -> str:
    """How many cases reach each goal."""
    parts = []
    for opponent, least in f.LEAST.items():
        values = f.ratios(results, which, opponent)
        reached = sum(value >= least for value in values)
        parts.append(f"{reached} of {len(values)} cases reach {least} of the {opponent} form")
    compared = [r for r in results if f.temporaries(r, which, IDIOMATIC) is not None]
    above = sum(f.holds_more(r, which) for r in compared)
    return "; ".join([*parts, f"{above} of {len(compared)} hold more temporaries than it"]) + "."


def remarks(results: Sequence[Result]) -> list[str]:
    """A line for each case of which a side did not run, or that misses a goal."""
    found = [(result["title"], list(_remarks(result))) for result in results]
    return [f"{title}: {'. '.join(own)}" for title, own in found if own]


def _remarks(result: Result) -> Iterator[str]:
    if result.get("error"):
        yield result["error"]
    for side in SIDES:
        if side in result.get("left_out", {}) and side != "torch":
            yield f"{side} left out: {result['left_out'][side]}"
    for side, spelling in result.get("spellings", {}).items():
        yield f"{side} is {spelling}"
    missed = {which: f.missed(result, which) for which in PASSES}
    for which in PASSES:
        for side, figures in f.sides(result, which).items():
            if "error" in figures and side != JAXTE:
                yield f"{which} of {side}: {figures['error']}"
        if missed[which]:
            yield f"{which}: {'; '.join(missed[which])}"
    if result.get("holds_back") and any(missed.values()):
        yield result["holds_back"]


def milliseconds(seconds: float) -> str:
    if seconds >= 10:
        return f"{seconds:,.3g} s"
    return f"{1e3 * seconds:,.0f} ms" if seconds >= 0.1 else f"{1e3 * seconds:.3g} ms"


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; cells hold no line breaks and no bars."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "/") for cell in row) + " |" for row in lines)
