"""Pages of what ``on_device.py`` measured on a GPU: losses by te.grad's default beside jax.grad, suite and operators beside plain JAX.

python benchmarks/platforms/device_page.py clock.json ...     # renews docs/results/clock-gpu-losses.md and clock-gpu-operators.md
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[2] / "docs" / "results"
GAP = 1e-6  # seconds from the end of a kernel to the start of the next one
SLOWER, LEAST = 0.95, 0.04
KINDS = {"now": "", "x16": "16 copies"}
LOSSES = (
    "# Losses on a GPU by the clock",
    "Value and gradient by `te.grad` with its default choice beside `jax.grad`, of the functions of benchmarks/raised and benchmarks/unseen: as they are written, which is for two cores\n"
    "of a CPU, and with 16 copies of their arguments. Where nothing is raised the program is plain JAX's, and stands nowhere here.",
)
OPERATORS = (
    "# Suite and operators on a GPU by the clock",
    "Forward, and forward and backward, beside plain JAX, at full sizes: functions of the suite and operators whose programs are not the same text.",
)
HOW = """`device` is plain JAX's time over jaxte's where the device is kept busy: what the profiler says of the kernels, and 1 us from one to the next. `call` is the same
for who calls the function, several calls queued, medians of calls in turn; starting a program that adds one to a number takes {call:.0f} us, by which most programs are bounded. Of each, at
least 4 % are listed. Programs are exported where there is no device (`python benchmarks/platforms/exported.py FOLDER --group raised unseen operators cases`), and
compiled and timed where there is one (`python benchmarks/platforms/on_device.py FOLDER --json clock.json`), which needs JAX and NumPy alone.
"""


@dataclass(frozen=True)
class Beside:
    """A function by plain JAX and by jaxte.

    Attributes:
        which: the size, or the pass.
        device, call: how many times as long plain JAX takes, on the device and for who calls it.
        us: microseconds of jaxte's on the device.
        kernels: of plain JAX and of jaxte.
    """

    group: str
    name: str
    which: str
    device: float
    call: float
    us: float
    kernels: tuple[float, float]


def rows(data: dict[str, Any], groups: Sequence[str]) -> list[Beside]:
    """The functions of ``groups`` of which both programs were measured and are not the same."""
    found = []
    for key, case in data["cases"].items():
        file, _, passes = key.partition("|")
        group, *name, kind = file.split(".")
        both = [case["programs"].get(case["texts"].get(which), {}) for which in ("plain", "now")]
        if group in groups and kind in KINDS and all("busy" in own and "seconds" in own for own in both):
            (plain, own), times = both, [own["busy"] + GAP * own["kernels"] for own in both]
            which = (KINDS[kind] or "as written") if groups[0] == "raised" else passes
            ratios = times[0] / times[1], plain["seconds"] / own["seconds"]
            kernels = plain["kernels"], own["kernels"]
            found.append(Beside(group, ".".join(name), which, *ratios, 1e6 * times[1], kernels))
    return sorted(found, key=lambda own: (own.name, own.group, own.which))


def mean(ratios: Iterable[float]) -> float:
    logs = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(logs) / max(1, len(logs)))


def page(data: dict[str, Any], groups: Sequence[str], told: tuple[str, str]) -> str:
    found = rows(data, groups)
    lines = [told[0], "", f"`{data['device']}`, JAX {data['jax']}, float32. {told[1]}"]
    lines += [HOW.format(call=1e6 * data["call_s"])]
    for key in dict.fromkeys((r.group if groups[0] != "raised" else "", r.which) for r in found):
        own = [r for r in found if (r.group if key[0] else "", r.which) == key]
        below = sorted((r for r in own if r.device < SLOWER), key=lambda r: r.device)
        named = ", ".join(f"{r.name} {r.device:.2f}" for r in below) or "none"
        lines.append(
            f"- {' '.join(filter(None, key))}: {len(own)} programs, geometric mean {mean(r.device for r in own):.2f} on the device, "
            f"{mean(r.call for r in own):.2f} by the call; below {SLOWER} on the device: {named}"
        )
    lines += ["", "| function | | device | call | us | kernels |", "| --- | --- | --- | --- | --- | --- |"]
    for r in found:
        if abs(math.log(r.device)) > LEAST:
            device = f"**{r.device:.2f}**" if r.device < SLOWER else f"{r.device:.2f}"
            kernels = f"{r.kernels[1]:.0f} for {r.kernels[0]:.0f}"
            lines.append(
                f"| {r.name.replace('_', ' ')} | {r.which} | {device} | {r.call:.2f} | {r.us:.0f} | {kernels} |"
            )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    figures: dict[str, Any] = {}
    for path in sys.argv[1:]:
        own = json.loads(Path(path).read_text())
        figures = own | {"cases": {**figures.get("cases", {}), **own["cases"]}}
    for file, groups, told in (
        ("clock-gpu-losses.md", ("raised", "unseen"), LOSSES),
        ("clock-gpu-operators.md", ("cases", "operators"), OPERATORS),
    ):
        (RESULTS / file).write_text(page(figures, groups, told), encoding="utf-8")
