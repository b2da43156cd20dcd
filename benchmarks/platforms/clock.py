"""Suite, corpus and raised functions by the clock on the device that JAX sees: jaxte beside plain JAX, forward and with gradients.

    python benchmarks/platforms/clock.py --json clock.json --limit 540             # what fits into nine minutes
    python benchmarks/platforms/clock.py --json clock.json --limit 540 --group raised
    python benchmarks/platforms/clock.py --json clock.json --limit 0 --judge       # the model's ranking beside the clock's
    python benchmarks/platforms/clock.py --json clock.json --limit 0 --page        # renews docs/results/clock-gpu.md

It goes on where the file ends: functions that are in it are not measured again. Several functions are compiled at once, then measured one after the
other: both programs in turn, A B A B ..., each turn several calls that are queued and waited for together, medians of the turns. What a call of
nothing takes is in the file as ``call_s``: functions of about that time are bounded by the host. ``--judge`` sets docs/platforms.json beside it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[0] = str(ROOT / "benchmarks")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

from harness.passes import BOTH, FORWARD  # noqa: E402
from platforms.functions import GROUPS, listed, pairs  # noqa: E402

FIGURES = ROOT / "docs" / "platforms.json"
PAGE = ROOT / "docs" / "results" / "clock-gpu.md"
AT_ONCE = 12  # functions that are compiled together
TURN, SECONDS, MOST_ROUNDS = (
    0.004,
    0.25,
    25,
)  # seconds of one turn, of all turns of a pair, and how many there are
Sides = dict[str, Callable[[], Any]]


def prepared(group: str, name: str, size: str) -> dict[str, tuple[Sides, float]]:
    """The compiled passes of a function as calls, with the seconds that this took."""
    found = {}
    for pair in pairs(group, name, None, size):
        start = time.perf_counter()
        args = jax.tree.map(jnp.asarray, list(pair.args))
        made = {side: _call(fn, args) for side, fn in (("jaxte", pair.ours), ("plain", pair.plain))}
        found[pair.which] = made, time.perf_counter() - start
    return found


def _call(fn: Callable[..., Any], args: Sequence[Any]) -> Callable[[], Any]:
    compiled = jax.jit(fn).lower(*args).compile()
    return lambda: compiled(*args)


def seconds(call: Callable[[], Any], number: int) -> float:
    """Of one of ``number`` calls, which are queued and waited for together."""
    start = time.perf_counter()
    results = [call() for _ in range(number)]
    jax.block_until_ready(results)
    return (time.perf_counter() - start) / number


def interleaved(sides: Sides) -> dict[str, float]:
    """The median seconds of a call of each side."""
    once = {side: min(seconds(call, 1) for _ in range(3)) for side, call in sides.items()}
    number = {side: min(max(1, int(TURN / s)), 64) for side, s in once.items()}
    turns = sum(number[side] * once[side] for side in sides)
    rounds = min(max(int(SECONDS / turns), 5), MOST_ROUNDS)
    taken: dict[str, list[float]] = {side: [] for side in sides}
    for _ in range(rounds):
        for side, call in sides.items():
            taken[side].append(seconds(call, number[side]))
    return {side: median(times) for side, times in taken.items()}


def difference(sides: Sides) -> float:
    """The largest difference of the results beside the largest element of each."""
    ours, plain = (jax.tree.leaves(sides[side]()) for side in ("jaxte", "plain"))
    worst = 0.0
    for a, b in zip(ours, plain, strict=True):
        x, y = np.asarray(a, "float64"), np.asarray(b, "float64")
        if y.size:
            worst = max(worst, float(np.max(np.abs(x - y)) / max(float(np.max(np.abs(y))), 1e-20)))
    return worst


def device() -> dict[str, str]:
    own = jax.devices()[0]
    return {"platform": own.platform, "kind": own.device_kind, "jax": jax.__version__}


def judged(clock: dict[str, Any], model: dict[str, Any]) -> str:
    """How the model's ratios rank beside those of the clock: Spearman's coefficient, and whether both say which is ahead."""
    both = []
    for group, functions in clock["functions"].items():
        for name, passes in functions.items():
            for which, found in passes.items():
                own = model.get(group, {}).get(name, {}).get(which, {})
                if (
                    "jaxte" in found
                    and "seconds" in own.get("jaxte", {})
                    and "seconds" in own.get("plain", {})
                ):
                    ratio = own["plain"]["seconds"] / own["jaxte"]["seconds"]
                    both.append((found["plain"] / found["jaxte"], ratio, f"{name} {which}"))
    if len(both) < 3:
        return "too few functions are in both files"
    ranks = [np.argsort(np.argsort([pair[n] for pair in both])) for n in (0, 1)]
    same = sum((a > 0.97) == (b > 0.97) for a, b, _ in both)
    far = sorted(both, key=lambda pair: -abs(math.log(pair[0] / pair[1])))[:10]
    lines = [
        f"{len(both)} passes, rank correlation {np.corrcoef(ranks)[0, 1]:.2f}; {same} on the same side of 0.97"
    ]
    return "\n".join([*lines, *(f"  {name}: clock {a:.2f}, model {b:.2f}" for a, b, name in far)])


def mean(ratios: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, required=True, help="the file of figures, which grows")
    parser.add_argument(
        "--limit", type=float, default=540, help="seconds after which no further batch begins"
    )
    parser.add_argument("--group", nargs="+", choices=GROUPS, default=("corpus", "cases", "raised"))
    parser.add_argument("--only", nargs="+", default=())
    parser.add_argument("--size", default="full", choices=("full", "quick", "tiny"))
    parser.add_argument("--judge", action="store_true")
    parser.add_argument("--page", action="store_true", help=f"write {PAGE.name}")
    options = parser.parse_args()
    start = time.perf_counter()
    data = json.loads(options.json.read_text()) if options.json.exists() else {"functions": {}}
    if options.limit > 0:
        number = jnp.zeros(())
        nothing = _call(lambda x: x + 1, [number])
        data |= {
            "device": device(),
            "size": options.size,
            "call_s": min(seconds(nothing, 64) for _ in range(9)),
        }
    wanted = [(g, n) for g in options.group for n in listed(g) if not options.only or n in options.only]
    wanted = [(g, n) for g, n in wanted if n not in data["functions"].get(g, {})]
    slowest = 0.0
    while wanted and time.perf_counter() - start + slowest < options.limit:
        begun = time.perf_counter()
        batch, wanted = wanted[:AT_ONCE], wanted[AT_ONCE:]
        _batch(batch, options.size, data)
        options.json.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n")
        jax.clear_caches()
        slowest = max(slowest, time.perf_counter() - begun)
    print(summary(data), f"{len(wanted)} left", sep="\n")
    if options.page:
        PAGE.write_text(page(data), encoding="utf-8")
    if options.judge and FIGURES.exists():
        print(judged(data, json.loads(FIGURES.read_text()).get("gpu", {})))


def page(data: dict[str, Any]) -> str:
    """The page: means, and each function by the clock."""
    device, call = data["device"], 1e6 * data["call_s"]
    lines = [
        "# On a GPU by the clock",
        "",
        f"`{device['kind']}`, JAX {device['jax']}, float32, full sizes. A figure is plain JAX's time over jaxte's, forward and then forward with",
        "gradients, with jaxte's microseconds beside it: calls of both in turn, several queued at a time, medians. Starting a program that adds one",
        f"to a number takes {call:.0f} us, so that functions of about that time say little. The command is `python benchmarks/platforms/clock.py`;",
        "[Platforms](../platforms.md) has what XLA's compilers say of the same functions without a device.",
        "",
    ]
    for group, functions in data["functions"].items():
        measured = {n: f for n, f in functions.items() if any("jaxte" in p for p in f.values())}
        failed = [n for n, f in functions.items() if "failed" in f]
        own = {w: [_ratio(f[w]) for f in measured.values() if w in f] for w in (FORWARD, BOTH)}
        means = ", ".join(f"{mean(r):.2f} {w}" for w, r in own.items() if r)
        lines += [f"## {group}", "", f"{len(measured)} functions; geometric means {means}."]
        if failed:
            lines += [
                "",
                f"Not measured, for want of memory in plain JAX or in jaxte: {', '.join(sorted(failed))}.",
            ]
        lines += ["", "| function | forward | with gradients | us |", "| --- | --- | --- | --- |"]
        for name, found in sorted(measured.items()):
            cells = [f"{_ratio(found[w]):.2f}" if w in found else "" for w in (FORWARD, BOTH)]
            cells = [f"**{c}**" if c and float(c) < 0.95 else c for c in cells]
            us = " / ".join(f"{1e6 * found[w]['jaxte']:.0f}" for w in (FORWARD, BOTH) if w in found)
            lines.append(f"| {name.replace('_', ' ')} | {cells[0]} | {cells[1]} | {us} |")
        lines.append("")
    return "\n".join(lines)


def _ratio(found: dict[str, float]) -> float:
    return found["plain"] / found["jaxte"]


def _batch(batch: Sequence[tuple[str, str]], size: str, data: dict[str, Any]) -> None:
    """Compiles the functions of a batch together, then measures each; what fails says why."""
    with ThreadPoolExecutor(min(AT_ONCE, os.cpu_count() or 1)) as pool:
        made = {key: pool.submit(prepared, *key, size) for key in batch}
    for (group, name), future in made.items():
        found: dict[str, Any] = {}
        error = future.exception()
        if error is not None:
            found["failed"] = {"error": f"{type(error).__name__}: {error}"[:300]}
        else:
            for which, (sides, taken) in future.result().items():
                try:
                    found[which] = interleaved(sides) | {
                        "compile_s": taken,
                        "difference": difference(sides),
                    }
                except jax.errors.JaxRuntimeError as failure:  # more memory than there is
                    found["failed"] = {"error": f"{which}: {failure}"[:300]}
        data["functions"].setdefault(group, {})[name] = found
        ratios = [round(f["plain"] / f["jaxte"], 2) for f in found.values() if "jaxte" in f]
        print(group, name, ratios or found, flush=True)


def summary(data: dict[str, Any]) -> str:
    """Geometric means and what is below 0.97, by group and pass."""
    lines = [f"{data.get('device')}, a call of nothing {1e6 * data.get('call_s', float('nan')):.1f} us"]
    for group, functions in data["functions"].items():
        for which in sorted({w for passes in functions.values() for w in passes} - {"failed"}):
            own = {n: f[which]["plain"] / f[which]["jaxte"] for n, f in functions.items() if which in f}
            below = ", ".join(f"{n} {r:.2f}" for n, r in sorted(own.items(), key=lambda i: i[1]) if r < 0.97)
            lines.append(
                f"{group}, {which}: {len(own)} functions, mean {mean(list(own.values())):.2f}; below 0.97: {below or 'none'}"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
