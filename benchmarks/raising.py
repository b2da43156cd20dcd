"""te.grad beside jax.grad on the functions of benchmarks/raised: forward + backward, compile time, memory, errors.

    python benchmarks/raising.py [names] [--write]

Both programs are called in turn (A B A B ...), and the least processor time of all cores is kept, which other work on the machine
changes least. A function of which nothing is raised is the same program both ways; it is not timed and counts as 1.
``--write`` renews the table of docs/raising.md.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax

import jaxte as te
from raised import EXAMPLES, Example
from timing import markdown

PAGE = Path(__file__).parent.parent / "docs" / "raising.md"
BEGIN, END = "<!-- corpus -->", "<!-- /corpus -->"
SECONDS, MOST_ROUNDS = 0.4, 7
Figures = dict[str, Any]


def measure(example: Example) -> Figures:
    """Both gradients of one function."""
    args = example.arguments()
    floats = tuple(n for n, a in enumerate(args) if all(x.dtype.kind == "f" for x in jax.tree.leaves(a)))
    raised = te.adjoint(example.loss)
    report = te.explain(raised, *args)
    found: Figures = {
        "group": example.group,
        "regions": len(report.regions),
        "raised": report.raised_equations,
        "kept": report.kept_equations,
        "without_rule": sum(len(line.what) for line in report.kept if "no rule" in line.reason),
        "factor": 1.0,
    }
    if not report.regions:
        return found | {"reasons": sorted({line.reason for line in report.kept if line.reason})}
    functions = te.value_and_grad(example.loss, floats), jax.value_and_grad(example.loss, floats)
    made, seconds = zip(*(compiled(f, args) for f in functions), strict=True)
    results = [jax.block_until_ready(c(*args)) for c in made]
    ours, theirs = interleaved([lambda c=c: jax.block_until_ready(c(*args)) for c in made])
    temporaries = [c.memory_analysis().temp_size_in_bytes for c in made]
    names = ("compile_s", "jax_compile_s", "temporaries", "jax_temporaries")
    found |= dict(zip(names, (*seconds, *temporaries), strict=True))
    return found | {
        "ms": 1e3 * ours,
        "jax_ms": 1e3 * theirs,
        "factor": theirs / ours,
        "error": error(*results),
    }


def compiled(f: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, float]:
    """The compiled function, and the processor time that tracing, raising and compiling it took."""
    start = time.process_time()
    made = jax.jit(f).lower(*args).compile()
    return made, time.process_time() - start


def interleaved(calls: Sequence[Callable[[], Any]]) -> list[float]:
    """The least processor time of a call of each."""
    once = max(processor_time(call, 1) for call in calls)
    together = max(1, int(0.02 / max(once, 1e-6)))
    rounds = min(max(int(SECONDS / max(together * once, 1e-6)), 2), MOST_ROUNDS)
    taken = [[processor_time(call, together) for call in calls] for _ in range(rounds)]
    return [min(column) for column in zip(*taken, strict=True)]


def processor_time(call: Callable[[], Any], times: int) -> float:
    start = time.process_time()
    for _ in range(times):
        call()
    return (time.process_time() - start) / times


def error(found: Any, expected: Any) -> float:
    """The largest difference beside the largest element of each gradient."""
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True)
    return max(float(abs(a - b).max() / max(float(abs(b).max()), 1e-20)) if a.size else 0.0 for a, b in pairs)


def mean(factors: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, factors)) / len(factors)) if factors else float("nan")


def table(figures: dict[str, Figures]) -> str:
    """One row for each function of which something is raised."""
    header = ["function", "group", "factor", "te.grad", "jax.grad", "compile", "temporaries", "error"]
    shown = sorted((n for n, f in figures.items() if f["regions"]), key=lambda n: -figures[n]["factor"])
    return markdown(header, [_row(name, figures[name]) for name in shown])


def _row(name: str, f: Figures) -> list[str]:
    times = [f"{f['factor']:.2f}", f"{f['ms']:.2f} ms", f"{f['jax_ms']:.2f} ms"]
    compile_times = f"{f['compile_s']:.1f} / {f['jax_compile_s']:.1f} s"
    temporaries = f"{f['temporaries'] / 1e6:.1f} / {f['jax_temporaries'] / 1e6:.1f} MB"
    return [f"`{name}`", f["group"], *times, compile_times, temporaries, f"{f['error']:.0e}"]


def summary(figures: dict[str, Figures]) -> str:
    """The figures that the goals are about."""
    factors = {n: f["factor"] for n, f in figures.items()}
    solver = [factors[n] for n, f in figures.items() if f["group"] in ("PDE", "filter")]
    below = ", ".join(f"`{n}` {x:.2f}" for n, x in factors.items() if x < 0.97)
    equations = sum(f["raised"] + f["kept"] for f in figures.values())
    without = sum(f["without_rule"] for f in figures.values())
    untouched = sum(not f["regions"] for f in figures.values())
    return (
        f"{len(figures)} functions, of {untouched} of which nothing is raised. Geometric mean {mean(list(factors.values())):.2f} "
        f"(of those that are touched {mean([x for n, x in factors.items() if figures[n]['regions']]):.2f}); PDE and filters {mean(solver):.2f}. "
        f"Below 0.97: {below or 'none'}. {without} of {equations} equations are kept for lack of a rule."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--write", action="store_true", help="renew the table of docs/raising.md")
    parser.add_argument("--json", type=Path, help="write the figures to a file, after each function")
    options = parser.parse_args()
    figures: dict[str, Figures] = {}
    for name in options.names or EXAMPLES:
        figures[name] = measure(EXAMPLES[name])
        jax.clear_caches()
        print(f"{name:28} {figures[name]['factor']:8.2f}  {figures[name]['regions']} regions", flush=True)
        if options.json:
            options.json.write_text(json.dumps(figures, indent=1))
    written = f"{summary(figures)}\n\n{table(figures)}"
    print(written)
    if options.write:
        page = PAGE.read_text()
        before, after = page.partition(BEGIN)[0], page.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n{written}\n{END}{after}")


if __name__ == "__main__":
    main()
