"""Suite and corpus on all platforms side by side: the CPU by the clock, GPU and TPU by the model of their compiled programs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from timing import markdown

DOCS = Path(__file__).resolve().parents[2] / "docs"
CLOCKED = {"cases": DOCS / "performance.json", "corpus": DOCS / "corpus.json"}  # of the CPU
PASSES = ("forward", "forward + backward")
_ORDER = ("cpu", "gpu", "tpu")
_COLOURS = {"cpu": "#2b6cb0", "gpu": "#4a9e5c", "tpu": "#dd8a2f"}
_BELOW = 0.97

Speeds = Mapping[str, Mapping[tuple[str, str, str], float]]  # by platform; of a group, a function and a pass


def speeds(data: Mapping[str, Any]) -> Speeds:
    """Plain JAX's time over jaxte's: of the clock for the CPU, and of the figures ``data`` of compiled programs."""
    found: dict[str, dict[tuple[str, str, str], float]] = {"cpu": {}}
    for group, path in CLOCKED.items():
        for case in json.loads(path.read_text())["cases"]:
            for which, taken in case["passes"].items():
                sides = [taken["sides"].get(side, {}).get("seconds") for side in ("idiomatic", "jaxte")]
                if all(sides):
                    found["cpu"][group, case["name"], which] = sides[0] / sides[1]
    for platform in _ORDER[1:]:
        own = found.setdefault(platform, {})
        for group in CLOCKED:
            for name, passes in data.get(platform, {}).get(group, {}).items():
                for which, taken in passes.items():
                    sides = [taken.get(side, {}).get("seconds") for side in ("plain", "jaxte")]
                    if all(sides):
                        own[group, name, which] = sides[0] / sides[1]
    return found


def summary(found: Speeds) -> str:
    """A row for each group and pass: the geometric mean on each platform, and how many are below."""
    rows = [
        [
            group,
            which,
            *(_told([r for (g, _, w), r in found[p].items() if (g, w) == (group, which)]) for p in _ORDER),
        ]
        for group in CLOCKED
        for which in PASSES
    ]
    return markdown(["", "pass", "cpu, by the clock", "gpu, by the model", "tpu, by the model"], rows)


def _told(ratios: Iterable[float]) -> str:
    own = list(ratios)
    if not own:
        return ""
    mean = math.exp(sum(map(math.log, own)) / len(own))
    return f"**{mean:.2f}** ({sum(r < _BELOW for r in own)} of {len(own)} below {_BELOW})"


def whole(found: Speeds) -> str:
    """The page with a row for each function."""
    keys = sorted({(group, name) for own in found.values() for group, name, _ in own})
    rows = [
        [
            f"`{name}`",
            group,
            *(_shown(found[p].get((group, name, which))) for which in PASSES for p in _ORDER),
        ]
        for group, name in keys
    ]
    columns = [f"{which}: {p}" for which in PASSES for p in _ORDER]
    return (
        "# Platforms side by side\n\nPlain JAX's time over jaxte's: on the CPU by the clock, on GPU and TPU by the model of "
        f"[platforms](../platforms.md).\n\n{markdown(['function', 'group', *columns], rows)}\n"
    )


def _shown(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


def draw(found: Speeds, path: Path) -> None:
    """What share of the functions is at least so many times as fast, a line for each platform."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.2), layout="constrained")
    for axes, which in zip(figure.subplots(1, 2, sharey=True), PASSES, strict=True):
        for platform in _ORDER:
            own = sorted((r for (_, _, w), r in found[platform].items() if w == which), reverse=True)
            shares = [100 * (n + 1) / len(own) for n in range(len(own))]
            axes.plot(
                shares, own, color=_COLOURS[platform], label=f"{platform} ({len(own)} functions)", linewidth=2
            )
        axes.axhline(1, color="black", linewidth=0.8)
        axes.set(
            title=which,
            xlabel="% of the functions, which are at least as fast",
            yscale="log",
            xlim=(0, 100),
            ylim=(0.25, 100),
        )
        axes.set_yticks([0.3, 0.5, 1, 2, 5, 10, 30, 100], ["0.3", "0.5", "1", "2", "5", "10", "30", "100"])
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
    figure.supylabel("times as fast as plain JAX")
    figure.savefig(path, dpi=110)
