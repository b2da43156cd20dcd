"""The page of what was measured."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from raising import mean
from timing import markdown
from unseen.measure import DEFAULT, EVERYTHING, PLAIN, SLOWER, WORTH, Figures, allowed, gains, is_below

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "docs" / "unseen.json"
PAGE = ROOT / "docs" / "results" / "unseen.md"
BEGIN, END = "<!-- unseen -->", "<!-- /unseen -->"
FITTED = "fitted"


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
    """What was written afterwards, then what the paces were fitted to."""
    fitted = {n: f for n, f in figures.items() if f["topic"].startswith(FITTED)}
    others = {n: f for n, f in figures.items() if n not in fitted}
    parts = []
    for own, what in ((others, "written afterwards"), (fitted, "that the paces were fitted to")):
        if own:
            parts += [f"## {len(own)} losses {what}", summary(own), table(own)]
    return "\n\n".join(parts)


def summary(figures: Mapping[str, Figures]) -> str:
    """The two figures that are asked for, and the means."""
    below = [n for n, f in figures.items() if is_below(f)]
    worth = [n for n, f in figures.items() if gains(f, EVERYTHING)]
    left = [n for n in worth if not gains(figures[n], DEFAULT)]
    late = [n for n, f in figures.items() if f["trace_s"][DEFAULT] > allowed(f)]
    factors = [f["factor"][DEFAULT] for f in figures.values()]
    other = [x for x in factors if x != 1.0]
    return (
        f"Below {SLOWER}: {len(below)} of {len(figures)} ({_names(below)}). Of the {len(worth)} where everything raised gains more than {WORTH}, "
        f"the default does in {len(worth) - len(left)} (not in {_names(left)}). Geometric mean of the default {mean(factors):.2f}, of the "
        f"{len(other)} whose program differs {mean(other):.2f}. Above the law of tracing: {_names(late)}."
    )


def _names(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


def table(figures: Mapping[str, Figures]) -> str:
    """One row a loss, the largest factors first."""
    header = ["loss", "topic", "te.grad", "all raised", "jax.grad", "trace", "temporaries", "error"]
    names = sorted(
        figures, key=lambda n: (-figures[n]["factor"][DEFAULT], -figures[n]["factor"][EVERYTHING], n)
    )
    return markdown(header, [_row(n, figures[n]) for n in names])


def _row(name: str, f: Figures) -> Sequence[str]:
    factor, trace, held = f["factor"], f["trace_s"], f["temporaries"]
    return [
        f"`{name}`",
        f["topic"].removeprefix(FITTED + "_"),
        f"{factor[DEFAULT]:.2f}{' by price' if f['by_price'] else ''}"
        if factor[DEFAULT] != 1.0
        else "the same program",
        f"{factor[EVERYTHING]:.2f}",
        f"{f['ms'][PLAIN]:.3g} ms",
        f"{trace[DEFAULT]:.2f} / {trace[PLAIN]:.2f} s",
        f"{held.get(DEFAULT, held[PLAIN]) / 1e6:.2f} / {held[PLAIN] / 1e6:.2f} MB",
        f"{f['error']:.0e}",
    ]
