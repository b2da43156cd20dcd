"""te.grad beside jax.grad on the functions of benchmarks/raised: forward + backward, compile time, memory, errors.

    python benchmarks/raising.py [names] [--write] [--json FILE]

Each function is compiled both ways in a process of its own, and called in turn (A B A B ...); medians. ``--write`` renews
docs/raised.md and docs/raised.json.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax

import jaxte as te
from harness.clock import Budget, interleaved
from raised import EXAMPLES, Example
from timing import markdown

DOCS = Path(__file__).parent.parent / "docs"
BUDGET = Budget(0.4, 7, 200)
Figures = dict[str, Any]


def measure(example: Example) -> Figures:
    """Both gradients of one function."""
    args = example.arguments()
    floats = tuple(n for n, a in enumerate(args) if all(x.dtype.kind == "f" for x in jax.tree.leaves(a)))
    ours, theirs = te.value_and_grad(example.loss, floats), jax.value_and_grad(example.loss, floats)
    made, seconds = zip(*(compiled(f, args) for f in (ours, theirs)), strict=True)
    results = [jax.block_until_ready(c(*args)) for c in made]
    calls = {n: lambda c=c: jax.block_until_ready(c(*args)) for n, c in zip("AB", made, strict=True)}
    once = {n: min(_once(call) for _ in range(2)) for n, call in calls.items()}
    taken = interleaved(calls, once, BUDGET)
    report = te.explain(te.grad(example.loss), *args)
    return {
        "group": example.group,
        "jaxte_ms": 1e3 * taken["A"].median,
        "jax_ms": 1e3 * taken["B"].median,
        "factor": taken["B"].median / taken["A"].median,
        "compile_s": seconds[0],
        "jax_compile_s": seconds[1],
        "temporaries": made[0].memory_analysis().temp_size_in_bytes,
        "jax_temporaries": made[1].memory_analysis().temp_size_in_bytes,
        "error": error(*results),
        "regions": len(report.regions),
        "raised": report.raised_equations,
        "kept": report.kept_equations,
        "without_rule": sum(len(line.what) for line in report.kept if "no rule" in line.reason),
    }


def compiled(f: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    made = jax.jit(f).lower(*args).compile()
    return made, time.perf_counter() - start


def _once(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def error(found: Any, expected: Any) -> float:
    """The largest difference beside the largest element of each gradient."""
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True)
    return max(float(abs(a - b).max() / max(float(abs(b).max()), 1e-20)) if a.size else 0.0 for a, b in pairs)


def _in_process(name: str) -> Figures:
    return measure(EXAMPLES[name])


def mean(factors: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, factors)) / len(factors)) if factors else float("nan")


def table(figures: dict[str, Figures]) -> str:
    header = [
        "function",
        "group",
        "factor",
        "te.grad",
        "jax.grad",
        "compile",
        "temporaries",
        "regions",
        "error",
    ]
    rows = [
        [
            f"`{name}`",
            f["group"],
            f"{f['factor']:.2f}" if f["regions"] else "= (nothing raised)",
            f"{f['jaxte_ms']:.2f} ms",
            f"{f['jax_ms']:.2f} ms",
            f"{f['compile_s']:.1f} / {f['jax_compile_s']:.1f} s",
            f"{f['temporaries'] / 1e6:.1f} / {f['jax_temporaries'] / 1e6:.1f} MB",
            str(f["regions"]),
            f"{f['error']:.0e}",
        ]
        for name, f in sorted(figures.items(), key=lambda item: -item[1]["factor"])
    ]
    return markdown(header, rows)


def summary(figures: dict[str, Figures]) -> str:
    """The figures that the goals are about. A function of which nothing is raised is the same program and counts as 1."""
    factors = {n: f["factor"] if f["regions"] else 1.0 for n, f in figures.items()}
    solver = [factors[n] for n, f in figures.items() if f["group"] in ("PDE", "filter")]
    below = {n: round(x, 2) for n, x in factors.items() if x < 0.97}
    equations = sum(f["raised"] + f["kept"] for f in figures.values())
    without = sum(f["without_rule"] for f in figures.values())
    return (
        f"{len(figures)} functions: geometric mean {mean(list(factors.values())):.2f}; PDE and filters {mean(solver):.2f}; "
        f"below 0.97: {below or 'none'}; {equations - without} of {equations} equations raised or kept by choice"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--write", action="store_true", help="renew the page in docs/")
    parser.add_argument("--json", type=Path, help="write the figures to a file")
    options = parser.parse_args()
    figures: dict[str, Figures] = {}
    context = multiprocessing.get_context("spawn")
    for name in options.names or EXAMPLES:
        with context.Pool(1) as pool:
            figures[name] = pool.apply(_in_process, (name,))
        f = figures[name]
        print(f"{name:28} {f['factor']:8.2f}  {f['jaxte_ms']:8.2f} {f['jax_ms']:8.2f} ms  regions {f['regions']}  "
              f"compile {f['compile_s']:.1f} / {f['jax_compile_s']:.1f}  error {f['error']:.0e}", flush=True)  # fmt: skip
    print(table(figures), summary(figures), sep="\n\n")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
