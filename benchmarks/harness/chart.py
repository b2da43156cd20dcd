"""A bar chart of how many times faster jaxte is than each opponent, on a logarithmic axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from harness import figures as f
from harness.case import BY_HAND, IDIOMATIC, INDEXED, TORCH
from harness.passes import BOTH, FORWARD

COLOURS = {IDIOMATIC: "#2b6cb0", INDEXED: "#dd8a2f", BY_HAND: "#4a9e5c", TORCH: "#8d6bb5"}
GAP = 0.6  # between cases, in bars


@dataclass(frozen=True)
class Band:
    """A case with a bar for each opponent that it has: none is kept free for those that it has not."""

    case: dict[str, Any]
    opponents: tuple[str, ...]
    top: float

    @property
    def bottom(self) -> float:
        return self.top + max(len(self.opponents), 1) + GAP

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2

    def bars(self) -> Iterator[tuple[float, str]]:
        """The place of each opponent's bar."""
        for number, opponent in enumerate(self.opponents):
            yield self.top + GAP / 2 + 0.5 + number, opponent


def draw(data: dict[str, Any], path: Path) -> None:
    """A column of bars for each pass."""
    cases = data["cases"]
    shown = [o for o in f.OPPONENTS if any(f.ratios(cases, which, o) for which in (BOTH, FORWARD))]
    bands = _bands(cases, shown)
    length = bands[-1].bottom if bands else 1.0
    figure = Figure(figsize=(15, 2.0 + 0.105 * length), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.1)
    axes = figure.subplots(1, 2, sharey=True)
    for axis, which in zip(axes, (BOTH, FORWARD), strict=True):
        _column(axis, bands, which)
    axes[0].set_yticks([band.middle for band in bands], [band.case["title"] for band in bands], fontsize=8)
    axes[0].set_ylim(length, 0)
    handles = [axes[0].barh([0], [0], color=COLOURS[opponent]) for opponent in shown]
    figure.legend(handles, shown, loc="outside lower center", ncols=len(shown) or 1, frameon=False)
    m = data["machine"]
    figure.suptitle(
        f"How many times faster jaxte is than … ({m['device']}, {m['processor']}, jax {m['versions']['jax']}, "
        f"{m['date']}, {data['size']} sizes)",
        fontsize=10,
    )
    figure.savefig(path, dpi=110)


def _bands(cases: Sequence[dict[str, Any]], shown: Sequence[str]) -> list[Band]:
    bands: list[Band] = []
    for case in cases:
        own = tuple(o for o in shown if any(_stands(case, which, o) for which in (BOTH, FORWARD)))
        bands.append(Band(case, own, bands[-1].bottom if bands else 0.0))
    return bands


def _stands(case: dict[str, Any], which: str, opponent: str) -> bool:
    """Whether the case has this opponent, measured or not."""
    return opponent in f.sides(case, which) or bool(f.why_not(case, which, opponent))


def _column(axis: Any, bands: Sequence[Band], which: str) -> None:
    for number, band in enumerate(bands):
        if number % 2:
            axis.axhspan(band.top, band.bottom, color="black", alpha=0.045, linewidth=0)
        for place, opponent in band.bars():
            _bar(
                axis,
                place,
                opponent,
                f.ratio(band.case, which, opponent),
                _reason(band.case, which, opponent),
            )
    axis.set_xscale("log")
    axis.xaxis.set_major_formatter("{x:g}")
    axis.axvline(1, color="black", linewidth=0.8)
    axis.grid(axis="x", alpha=0.3)
    axis.set_title(which, fontsize=10)
    # room for the figures beside the longest bars
    axis.margins(x=0.09)


def _reason(case: dict[str, Any], which: str, opponent: str) -> str:
    """Why there is no bar."""
    return f.why_not(case, which, opponent) or "jaxte failed"


def _bar(axis: Any, place: float, opponent: str, value: float | None, reason: str) -> None:
    """From 1 to the ratio, which stands at its end: a bar to the left is an opponent that is faster."""
    near = {"fontsize": 6, "va": "center", "textcoords": "offset points"}
    if value is None:
        axis.annotate(reason, (1, place), xytext=(3, 0), color=COLOURS[opponent], style="italic", **near)
        return
    axis.barh([place], [value - 1], 0.84, left=1, color=COLOURS[opponent])
    side, towards = ("left", 2) if value >= 1 else ("right", -2)
    axis.annotate(f.ratio_text(value), (value, place), xytext=(towards, 0), ha=side, **near)
