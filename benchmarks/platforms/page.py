"""docs/platforms.md from its figures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from platforms.topology import DEVICES
from timing import markdown

PLATFORMS = ("gpu", "tpu", "cpu")
_BELOW = 0.97
_HEADER = ["function", "pass", "speed", "seconds", "kernels", "MB", "temporaries MB", "what stands in it"]
_HEAD = """# Platforms

Programs for a GPU and a TPU, compiled by XLA's own compilers for a described device (`{gpu}`, `{tpu}`), which needs neither: suite,
corpus and functions that `te.grad` raises, beside plain JAX in the same compiler. `make platforms` makes an environment for each compiler and writes this page
(`python benchmarks/platforms --platform gpu --only sobel` takes some functions again). Figures of functions that are not listed were not taken yet.

**What is counted.** Kernels of the entry computation and of loops by their trips, bytes that they read and write (slices as slices, arrays of a TPU with
their tiles, nothing for what stays in the memory of the chip), temporaries as XLA plans them. **What is modelled**: the larger of bytes
over bandwidth and products over their rate, plus the start of each kernel (2.5 us on the GPU, 0.3 us on the TPU). The model knows nothing of atomics, occupancy, caches, of what cuDNN
chooses among its algorithms, nor of what a TPU does at the same time. `speed` is plain JAX's modelled time over jaxte's. By the clock, where there is a device:
`python benchmarks/platforms/clock.py --json clock.json --limit 540`, and `--judge` sets the two beside each other.

Forms are those of the platform that JAX lowers for, whatever the process runs on (docs/running.md). What the rows `gpu` and `tpu` of
`jaxte/lower/cost/platforms.py` say differs from the CPU's: pads, slices and products are left to be fused, edges are not apart, nothing is behind barriers,
partial sums have to save what one more kernel costs.
"""


def page(data: Mapping[str, Any]) -> str:
    """The page of all platforms that there are figures of."""
    parts = [_HEAD.format(**DEVICES)]
    for platform in PLATFORMS:
        if platform in data:
            parts.append(
                f"## {platform}: {DEVICES[platform]}\n\n{_means(data[platform])}\n\n{_table(data[platform])}\n"
            )
    return "\n".join(parts)


def ratio(found: Mapping[str, Any]) -> float | None:
    """Plain JAX's time over jaxte's; None where one of them was not compiled."""
    sides = [found.get(side, {}).get("seconds") for side in ("plain", "jaxte")]
    return None if None in sides else float(sides[0]) / float(sides[1])


def _passes(functions: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for name in sorted(functions):
        for which, found in functions[name].items():
            yield name, which, found


def _means(groups: Mapping[str, Any]) -> str:
    """The geometric mean of each group and pass, and what is below."""
    lines = []
    for group, functions in groups.items():
        for which in sorted({w for _, w, _ in _passes(functions)}):
            own = {n: r for n, w, f in _passes(functions) if w == which and (r := ratio(f)) is not None}
            if not own:
                continue
            mean = math.exp(sum(map(math.log, own.values())) / len(own))
            below = [f"{n} {r:.2f}" for n, r in sorted(own.items(), key=lambda item: item[1]) if r < _BELOW]
            lines.append(
                f"- {group}, {which}: {len(own)} functions, geometric mean {mean:.2f}; below {_BELOW}: {', '.join(below) or 'none'}"
            )
    return "\n".join(lines)


def _table(groups: Mapping[str, Any]) -> str:
    rows = [
        _row(name, which, found) for functions in groups.values() for name, which, found in _passes(functions)
    ]
    return markdown(_HEADER, rows)


def _row(name: str, which: str, found: Mapping[str, Any]) -> list[str]:
    """Each figure as jaxte / plain JAX."""
    sides = [found[side] for side in ("jaxte", "plain")]
    if any("error" in side for side in sides):
        return [f"`{name}`", which, "", *[""] * 4, "; ".join(s["error"] for s in sides if "error" in s)[:80]]
    own = ratio(found)
    return [
        f"`{name}`",
        which,
        f"{own:.2f}" if own else "",
        _pair(sides, "seconds", 1e6, " us"),
        _pair(sides, "kernels", 1, ""),
        _pair(sides, "bytes", 1e-6, ""),
        _pair(sides, "temporaries", 1e-6, ""),
        " / ".join(_operations(side) for side in sides),
    ]


def _pair(sides: Sequence[Mapping[str, Any]], what: str, scale: float, unit: str) -> str:
    digits = 0 if what == "kernels" else 1
    return " / ".join(f"{scale * side[what]:.{digits}f}" for side in sides) + unit


def _operations(side: Mapping[str, Any]) -> str:
    found = [f"{n} {k}" for k, n in side["operations"].items()]
    return ", ".join([*found, *([f"{side['trips']} trips"] if side["trips"] else [])]) or "none"
