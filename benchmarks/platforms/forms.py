"""What each form of each reduction takes on the device that JAX sees, beside what the platform's row says: the rates judged by the clock.

    python benchmarks/platforms/forms.py --json forms.json --limit 240             # what fits into four minutes, of suite and corpus
    python benchmarks/platforms/forms.py --json forms.json --limit 0               # what the file says: the widest errors, the choices that lose

A form is timed in a loop over equal inputs within one program, so that starting the program, which takes longer than most forms do on an
accelerator, is shared by all turns. What a turn of nothing takes is in the file as ``turn_s``.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[0] = str(ROOT / "benchmarks")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

import jaxte as te  # noqa: E402
from harness.case import CORPUS, JAXTE, SUITE, load, names  # noqa: E402
from harness.inputs import draw  # noqa: E402
from jaxte.bridge import tuning  # noqa: E402
from jaxte.bridge.functions.evaluate import as_function  # noqa: E402

AT_ONCE, TURNS, MOST_BYTES, ROUNDS = 8, 16, 2**31, 7
MOST_SECONDS = 0.2  # of one form as it is estimated; what is slower is not timed
Call = Callable[[], Any]
Row = dict[str, Any]


def rows_of(group: str, name: str, size: str) -> list[tuple[Row, dict[str, Call], int]]:
    """The reductions of a function that have several forms: their estimates, each form compiled, and the turns of a call."""
    case = load(name)
    function = as_function(te.function(case.sides[JAXTE]))
    compiled, arrays = function._compiled(draw(case.inputs_at(size)), {})
    policy, seen, found = compiled.graph.policy, set(), []
    for program, values in tuning._passes(compiled.graph, arrays):
        tensors = tuning._computed(program, [tensor for _, tensor in program.params])
        for choice in program.choices:
            for key in dict.fromkeys(e.key for e in choice.estimates):
                own = {e.form: e for e in choice.estimates if e.key == key}
                timed = [form for form, e in own.items() if e.seconds < MOST_SECONDS]
                tensor = next(
                    (t for t in tensors.get(choice.tensor, ()) if tuning._has(t, key, policy)), None
                )
                if len(timed) < 2 or key in seen or tensor is None:
                    continue
                seen.add(key)
                row = {"group": group, "function": name, "tensor": tuning._shortened(repr(tensor))}
                row["forms"] = {f: {"estimate": own[f].seconds, "chosen": own[f].chosen} for f in timed}
                found.append((row, *_compiled(tensor, key, timed, values, policy)))
    return found


def _compiled(
    tensor: Any, key: str, forms: Sequence[str], values: Mapping[Any, Any], policy: Any
) -> tuple[dict[str, Call], int]:
    needed = [*tensor.inputs, *(t for t in tuning._parameters_of(tensor) if t in values)]
    inputs = tuning._values(needed, values, policy)
    size = sum(a.nbytes for a in inputs.values()) + math.prod(tensor.shape) * 4
    turns = max(1, min(TURNS, MOST_BYTES // max(1, size)))
    stacked = [jnp.stack([a] * turns) for a in inputs.values()]
    calls: dict[str, Call] = {}
    for form in forms:
        forced = replace(policy, forms={}, without=frozenset(), measured={key: {form: 1.0}})
        run = tuning._runner(tuning.lower("one", list(inputs), [tensor], forced))
        calls[form] = looped(run, stacked)
    return calls, turns


def looped(run: Callable[..., Any], stacked: Sequence[Any]) -> Call:
    """``run`` of each row of ``stacked``, as one compiled program."""
    compiled = jax.jit(lambda *xs: jax.lax.map(lambda x: run(*x), xs)).lower(*stacked).compile()
    return lambda: compiled(*stacked)


def seconds(call: Call) -> float:
    start = time.perf_counter()
    jax.block_until_ready(call())
    return time.perf_counter() - start


def measure(row: Row, calls: dict[str, Call], turns: int) -> None:
    """Adds the median seconds of a turn of each form, taken in turn."""
    for call in calls.values():
        jax.block_until_ready(call())
    taken: dict[str, list[float]] = {form: [] for form in calls}
    for _ in range(ROUNDS):
        for form, call in calls.items():
            taken[form].append(seconds(call) / turns)
    for form, times in taken.items():
        row["forms"][form]["clock"] = median(times)


def summary(data: dict[str, Any]) -> str:
    """How far each form's estimates are from the clock, and what is lost by each choice."""
    turn = data.get("turn_s", 0.0)
    errors: dict[str, list[float]] = {}
    lost = []
    for row in data["rows"]:
        clocks = {f: max(v["clock"] - turn, 1e-7) for f, v in row["forms"].items() if "clock" in v}
        for form, clock in clocks.items():
            errors.setdefault(form, []).append(clock / row["forms"][form]["estimate"])
        chosen = next((f for f, v in row["forms"].items() if v["chosen"] and f in clocks), None)
        if chosen:
            best = min(clocks, key=lambda f: clocks[f])
            lost.append((clocks[chosen] / clocks[best], clocks[chosen] - clocks[best], chosen, best, row))
    lines = [f"{data.get('device')}, a turn of nothing {1e6 * turn:.1f} us", "", "clock over estimate:"]
    for form, ratios in sorted(errors.items()):
        own = sorted(ratios)
        lines.append(f"  {form}: {len(own)}, median {median(own):.2f}, {own[0]:.2f} to {own[-1]:.2f}")
    lines.append("choices that lose more than a fifth and 3 us:")
    for ratio, more, chosen, best, row in sorted(lost, key=lambda x: -x[0]):
        if ratio > 1.2 and more > 3e-6:
            text = ", ".join(
                f"{f} {1e6 * v.get('clock', math.nan):.0f} (est. {1e6 * v['estimate']:.0f})"
                for f, v in row["forms"].items()
            )
            lines.append(f"  {ratio:.1f} {row['function']}: {chosen}, best {best}; {text} | {row['tensor']}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--limit", type=float, default=240, help="seconds after which no batch begins")
    parser.add_argument("--only", nargs="+", default=())
    parser.add_argument("--size", default="full", choices=("full", "quick", "tiny"))
    options = parser.parse_args()
    start = time.perf_counter()
    data = json.loads(options.json.read_text()) if options.json.exists() else {"rows": [], "done": []}
    if options.limit > 0:
        nothing = looped(lambda x: x + 1, [jnp.zeros((TURNS, 8))])
        seconds(nothing)
        own = jax.devices()[0]
        data |= {"device": own.device_kind, "jax": jax.__version__, "size": options.size}
        data["turn_s"] = min(seconds(nothing) for _ in range(20)) / TURNS
    wanted = [
        (g, n)
        for g in (SUITE, CORPUS)
        for n in names(g)
        if n not in data["done"] and (not options.only or n in options.only)
    ]
    while wanted and time.perf_counter() - start < options.limit:
        batch, wanted = wanted[:AT_ONCE], wanted[AT_ONCE:]
        with ThreadPoolExecutor(min(AT_ONCE, os.cpu_count() or 1)) as pool:
            made = {key: pool.submit(rows_of, *key, options.size) for key in batch}
        for (_, name), future in made.items():
            data["done"].append(name)
            if future.exception() is not None:
                print(name, repr(future.exception())[:200], flush=True)
                continue
            for row, calls, turns in future.result():
                measure(row, calls, turns)
                data["rows"].append(row)
        options.json.write_text(json.dumps(data, indent=1) + "\n")
        jax.clear_caches()
    print(summary(data), f"{len(wanted)} left", sep="\n")


if __name__ == "__main__":
    main()
