"""The page of what was measured."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from raising import mean
from timing import markdown
from wild.measure import Figures, breaks_law, is_solved

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "docs" / "wild.json"
PAGE = ROOT / "docs" / "wild.md"
BEGIN, END = "<!-- wild -->", "<!-- /wild -->"
BELOW = 0.95


def known() -> dict[str, Figures]:
    """The figures that were measured before."""
    found: dict[str, Figures] = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    return found


def write(figures: Mapping[str, Figures]) -> None:
    """Renews the figures, and the page where it is there."""
    FIGURES.write_text(json.dumps(dict(sorted(figures.items())), indent=1) + "\n")
    if PAGE.exists():
        page = PAGE.read_text()
        before, after = page.partition(BEGIN)[0], page.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n{told(figures)}\n{END}{after}")


def told(figures: Mapping[str, Figures]) -> str:
    """The means, what is below, and two tables."""
    losses = {n: f for n, f in figures.items() if "#" not in f["source"]}
    threads = {n: f for n, f in figures.items() if n not in losses}
    libraries = {f["source"] for f in losses.values()}
    return "\n\n".join(
        [
            f"## {len(losses)} losses of {len(libraries)} libraries",
            summary(losses),
            table(losses),
            f"## {len(threads)} threads",
            summary(threads) + " " + solved(threads),
            table(threads, with_thread=True),
        ]
    )


def summary(figures: Mapping[str, Figures]) -> str:
    """Geometric means of all and of what is touched, and what is below."""
    factors = {name: f["factor"] for name, f in figures.items()}
    touched = [f["factor"] for f in figures.values() if not f["same"]]
    below = [f"`{n}` {x:.2f}" for n, x in sorted(factors.items(), key=lambda item: item[1]) if x < BELOW]
    slow = [
        f"`{n}` {f['trace_s']:.2f} s for {f['jax_trace_s']:.2f}" for n, f in figures.items() if breaks_law(f)
    ]
    traced = mean([f["trace_s"] / f["jax_trace_s"] for f in figures.values()])
    return (
        f"Geometric mean of all {mean(list(factors.values())):.2f}, of the {len(touched)} whose program differs {mean(touched):.2f}. "
        f"Below {BELOW}: {', '.join(below) or 'none'}. Tracing and lowering take {traced:.2f} times as long as for `jax.grad` in the mean; "
        f"longer than 1.3 times and 0.2 s (2 times and 1 s where something is raised): {', '.join(slow) or 'none'}."
    )


def solved(figures: Mapping[str, Figures]) -> str:
    """How many threads are solved."""
    count = sum(map(is_solved, figures.values()))
    nans = [f for f in figures.values() if not f["finite"][1]]
    finite = sum(f["finite"][0] for f in nans)
    return f"{count} of {len(figures)} are solved: {finite} of {len(nans)} gradients with NaN are finite, the others at least twice as fast."


def table(figures: Mapping[str, Figures], with_thread: bool = False) -> str:
    """One row a loss, the largest factors first."""
    header = [
        "loss",
        "factor",
        "by the clock",
        "te.grad",
        "jax.grad",
        "trace",
        "compile",
        "temporaries",
        "error",
    ]
    header[1:1] = ["thread" if with_thread else "library"]
    names = sorted(figures, key=lambda n: (-figures[n]["factor"], n))
    return markdown(header, [_row(n, figures[n]) for n in names])


def _row(name: str, f: Figures) -> Sequence[str]:
    ours, theirs = f["finite"]
    nan = "" if theirs else ", finite for NaN" if ours else ", NaN in both"
    times = ["", "", "the same program", ""]
    if not f["same"]:
        times = [
            f"{f['factor']:.2f}",
            f"{f['clock_factor']:.2f}",
            f"{f['ms']:.3g} ms",
            f"{f['jax_ms']:.3g} ms",
        ]
    return [
        f"`{name}`: {f['what']}{nan}",
        f["source"],
        *times,
        f"{f['trace_s']:.2f} / {f['jax_trace_s']:.2f} s",
        f"{f['compile_s']:.1f} / {f['jax_compile_s']:.1f} s",
        f"{f['temporaries'] / 1e6:.2f} / {f['jax_temporaries'] / 1e6:.2f} MB",
        f"{f['error']:.0e}",
    ]
