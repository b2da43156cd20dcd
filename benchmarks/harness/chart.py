"""A bar chart of how many times faster jaxte is than each opponent, on a logarithmic axis."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from harness import figures as f
from harness.case import BY_HAND, IDIOMATIC, INDEXED, TORCH
from harness.passes import BOTH, FORWARD

COLOURS = {IDIOMATIC: "#2b6cb0", INDEXED: "#dd8a2f", BY_HAND: "#4a9e5c", TORCH: "#8d6bb5"}


def draw(data: dict[str, Any], path: Path) -> None:
    """A column of bars for each pass."""
    cases = data["cases"]
    shown = [o for o in f.OPPONENTS if any(f.ratios(cases, which, o) for which in (BOTH, FORWARD))]
    figure = Figure(figsize=(15, 2.0 + 0.085 * len(cases) * max(len(shown), 1)), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for axis, which in zip(axes, (BOTH, FORWARD), strict=True):
        _bars(axis, cases, which, shown)
    axes[0].set_yticks(range(len(cases)), [case["title"] for case in cases], fontsize=8)
    axes[0].invert_yaxis()
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(shown) or 1, frameon=False
    )
    m = data["machine"]
    figure.suptitle(
        f"Times faster than … ({m['device']}, {m['processor']}, jax {m['versions']['jax']}, {m['date']}, "
        f"{data['size']} sizes)",
        fontsize=10,
    )
    figure.savefig(path, dpi=110)


def _bars(axis: Any, cases: Sequence[dict[str, Any]], which: str, shown: Sequence[str]) -> None:
    height = 0.84 / max(len(shown), 1)
    for number, opponent in enumerate(shown):
        places, values = [], []
        for row, case in enumerate(cases):
            value = f.ratio(case, which, opponent)
            if value is not None:
                places.append(row + (number - (len(shown) - 1) / 2) * height)
                values.append(value)
        # from 1 to the ratio: shorter than nothing would be slower
        widths = [value - 1 for value in values]
        axis.barh(places, widths, height, left=1, label=opponent, color=COLOURS[opponent])
    axis.set_xscale("log")
    axis.axvline(1, color="black", linewidth=0.8)
    axis.grid(axis="x", alpha=0.3)
    axis.set_title(which, fontsize=10)
    axis.margins(y=0.005)
