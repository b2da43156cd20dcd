"""te.grad beside jax.grad on the functions of benchmarks/raised: forward + backward, compile time, memory, errors.

    python benchmarks/raising.py [names] [--write] [--json figures.json] [--enzyme]

Both programs are called in turn, for 20 ms each (A B A B ...), and the second least processor time of all cores is kept, which other work on the
machine changes little. A function of which nothing is raised is the same program both ways; it is not timed and counts as 1.
``--write`` renews the table of docs/results/raising.md. ``--enzyme`` sets Enzyme-JAX beside them, where enzyme-ad is installed: a process
for each function, since it compiles for up to a minute, and ends some of them. ``--json`` keeps figures from run to run.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax

import jaxte as te
from exact.figures import with_column
from raised import EXAMPLES, Example
from timing import markdown

PAGE = Path(__file__).parent.parent / "docs" / "results" / "raising.md"
BEGIN, END = "<!-- corpus -->", "<!-- /corpus -->"
SECONDS, MOST_ROUNDS = 0.8, 7
TURN = 0.02  # seconds of calls of one program, before it is the other's turn
ENZYME_SECONDS = 300
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
    found["loops"] = len(report.loops)
    if not (report.regions or report.loops or report.parts):
        return found | {"reasons": sorted({line.reason for line in report.kept if line.reason})}
    functions = te.value_and_grad(example.loss, floats), jax.value_and_grad(example.loss, floats)
    made, seconds = zip(*(compiled(f, args) for f in functions), strict=True)
    results = [jax.block_until_ready(c(*args)) for c in made]
    (ours, theirs), clock = beside(made, args)
    temporaries = [c.memory_analysis().temp_size_in_bytes for c in made]
    names = ("compile_s", "jax_compile_s", "temporaries", "jax_temporaries")
    found |= dict(zip(names, (*seconds, *temporaries), strict=True))
    return found | {
        "ms": 1e3 * ours,
        "jax_ms": 1e3 * theirs,
        "factor": theirs / ours,
        "clock_factor": clock[1] / clock[0],
        "error": error(*results),
    }


def measure_enzyme(example: Example) -> Figures:
    """The raised gradient beside that of Enzyme-JAX, which differentiates what XLA is given."""
    args = example.arguments()
    floats = tuple(n for n, a in enumerate(args) if all(x.dtype.kind == "f" for x in jax.tree.leaves(a)))
    enzyme = importlib.import_module("enzyme_ad.jax").enzyme_jax_ir()(example.loss)
    functions = te.value_and_grad(example.loss, floats), jax.value_and_grad(enzyme, floats)
    made, seconds = zip(*(compiled(f, args) for f in functions), strict=True)
    results = [jax.block_until_ready(c(*args)) for c in made]
    ours, theirs = beside(made, args)[0]
    return {
        "enzyme_factor": theirs / ours,
        "enzyme_ms": 1e3 * theirs,
        "enzyme_compile_s": seconds[1],
        "enzyme_error": error(*results),
    }


def in_own_process(name: str) -> Figures:
    """:func:`measure_enzyme` of one function in a process of its own."""
    command = [sys.executable, __file__, name, "--enzyme-here"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=ENZYME_SECONDS)
    except subprocess.TimeoutExpired:
        return {"enzyme_failure": f"more than {ENZYME_SECONDS} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {"enzyme_failure": f"code {done.returncode}: {last[:200]}"}
    found: Figures = json.loads(lines[-1])
    return found


def beside(made: Sequence[Any], args: Sequence[Any]) -> tuple[list[float], list[float]]:
    """The processor time of each of several compiled functions, and the time by the clock."""
    return interleaved([lambda c=c: jax.block_until_ready(c(*args)) for c in made])


def compiled(f: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, float]:
    """The compiled function, and the processor time that tracing, raising and compiling it took."""
    start = time.process_time()
    made = jax.jit(f).lower(*args).compile()
    return made, time.process_time() - start


def interleaved(calls: Sequence[Callable[[], Any]]) -> tuple[list[float], list[float]]:
    """The second least times of a call of each, of all processors and by the clock: the least processor time is at times that of calls whose
    threads are counted with the next."""
    once = [max(min(times(call, 1)[0] for _ in range(3)), 1e-6) for call in calls]
    together = [max(1, int(TURN / seconds)) for seconds in once]
    turns = sum(number * seconds for number, seconds in zip(together, once, strict=True))
    rounds = min(max(int(SECONDS / turns), 3), MOST_ROUNDS)
    taken = [
        [times(call, number) for call, number in zip(calls, together, strict=True)] for _ in range(rounds)
    ]
    columns = list(zip(*taken, strict=True))
    return tuple([sorted(pair[kind] for pair in column)[1] for column in columns] for kind in (0, 1))  # type: ignore[return-value]


def times(call: Callable[[], Any], number: int) -> tuple[float, float]:
    """Of one of ``number`` calls: the time of all processors, and by the clock."""
    start, clock = time.process_time(), time.perf_counter()
    for _ in range(number):
        call()
    return (time.process_time() - start) / number, (time.perf_counter() - clock) / number


def error(found: Any, expected: Any) -> float:
    """The largest difference beside the largest element of each gradient."""
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True)
    return max(float(abs(a - b).max() / max(float(abs(b).max()), 1e-20)) if a.size else 0.0 for a, b in pairs)


def mean(factors: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, factors)) / len(factors)) if factors else float("nan")


def table(figures: dict[str, Figures]) -> str:
    """One row for each function of which something is raised."""
    header = [
        "function",
        "group",
        "factor",
        "by the clock",
        "te.grad",
        "jax.grad",
        "Enzyme",
        "compile",
        "temporaries",
        "error",
    ]
    shown = sorted((n for n, f in figures.items() if "ms" in f), key=lambda n: -figures[n]["factor"])
    return markdown(header, [_row(name, figures[name]) for name in shown])


def _row(name: str, f: Figures) -> list[str]:
    clock = f"{f['clock_factor']:.2f}" if "clock_factor" in f else ""
    shown = [f"{f['factor']:.2f}", clock, f"{f['ms']:.2f} ms", f"{f['jax_ms']:.2f} ms"]
    shown.append(
        f"{f['enzyme_factor']:.2f}" if "enzyme_factor" in f else "fails" if "enzyme_failure" in f else ""
    )
    compile_times = f"{f['compile_s']:.1f} / {f['jax_compile_s']:.1f} s"
    temporaries = f"{f['temporaries'] / 1e6:.1f} / {f['jax_temporaries'] / 1e6:.1f} MB"
    return [f"`{name}`", f["group"], *shown, compile_times, temporaries, f"{f['error']:.0e}"]


def summary(figures: dict[str, Figures]) -> str:
    """The figures that the goals are about."""
    factors = {n: f["factor"] for n, f in figures.items()}
    solver = [factors[n] for n, f in figures.items() if f["group"] in ("PDE", "filter")]
    clock = [f.get("clock_factor", f["factor"]) for f in figures.values()]
    below = ", ".join(f"`{n}` {x:.2f}" for n, x in factors.items() if x < 0.97)
    equations = sum(f["raised"] + f["kept"] for f in figures.values())
    without = sum(f["without_rule"] for f in figures.values())
    untouched = sum("ms" not in f for f in figures.values())
    enzyme = [f["enzyme_factor"] for f in figures.values() if "enzyme_factor" in f]
    failed = sum("enzyme_failure" in f for f in figures.values())
    slower = ", ".join(
        f"`{n}` {f['enzyme_factor']:.2f}" for n, f in figures.items() if f.get("enzyme_factor", 1) < 1
    )
    return (
        f"{len(figures)} functions, of {untouched} of which nothing is raised. Geometric mean {mean(list(factors.values())):.2f} "
        f"(of those that are touched {mean([x for n, x in factors.items() if 'ms' in figures[n]]):.2f}, by the clock of all {mean(clock):.2f}); PDE and filters {mean(solver):.2f}. "
        f"Below 0.97: {below or 'none'}. {without} of {equations} equations are kept for lack of a rule."
    ) + (
        f" Beside Enzyme-JAX: {mean(enzyme):.2f} over {len(enzyme)}, behind it: {slower or 'none'}; {failed} it does not compile."
        if enzyme
        else ""
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("--write", action="store_true", help="renew the table of docs/results/raising.md")
    parser.add_argument(
        "--json",
        type=Path,
        help="a file of figures: those in it are kept, and it is written after each function",
    )
    parser.add_argument(
        "--enzyme", action="store_true", help="Enzyme-JAX beside the functions that are raised"
    )
    parser.add_argument("--enzyme-here", action="store_true", help="of one function, in this process")
    options = parser.parse_args()
    if options.enzyme_here:
        print(json.dumps(measure_enzyme(EXAMPLES[options.names[0]])))
        return
    figures: dict[str, Figures] = {}
    if options.json and options.json.exists():
        figures = json.loads(options.json.read_text())
    for name in options.names or EXAMPLES:
        if not options.enzyme:
            figures[name] = measure(EXAMPLES[name])
            jax.clear_caches()
        elif "ms" in figures[name]:
            figures[name] |= in_own_process(name)
        own = figures[name]
        print(
            f"{name:28} {own['factor']:8.2f}  {own['regions']} regions",
            own.get("enzyme_factor", ""),
            flush=True,
        )
        if options.json:
            options.json.write_text(json.dumps(figures, indent=1))
    ordered = {name: figures[name] for name in EXAMPLES if name in figures}
    written = f"{summary(ordered)}\n\n{table(ordered)}"
    print(written)
    if options.write:
        page = PAGE.read_text()
        before, after = page.partition(BEGIN)[0], page.partition(END)[2]
        PAGE.write_text(with_column(f"{before}{BEGIN}\n{written}\n{END}{after}", "raised"))


if __name__ == "__main__":
    main()
