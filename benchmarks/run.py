"""The times and costs that jaxte keeps to, each beside its budget.

    make bench
    python benchmarks/run.py --json figures.json
    python benchmarks/run.py --runs 1 --sizes 50 100 200    # a quick look

Times are medians over fresh processes; costs are counts and do not vary. Ends with status 1 when a budget is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import latency
from timing import markdown

# iterations and elements for strides 1, 2 and 3
COST_BUDGETS = {1: (6105, 437), 2: (2273, 599), 3: (1049, 599)}


@dataclass(frozen=True)
class Row:
    """One figure; it is to be at most ``budget``."""

    what: str
    figure: float
    budget: float
    unit: str

    @property
    def ok(self) -> bool:
        return self.figure <= self.budget

    def cells(self) -> tuple[str, ...]:
        shown = [f"{value:.3g}" if isinstance(value, float) else f"{value:,}" for value in (self.figure, self.budget)]
        return self.what, f"{shown[0]} {self.unit}", f"{shown[1]} {self.unit}", "yes" if self.ok else "NO"


def cold_rows(runs: int) -> Iterator[Row]:
    conv = latency.cold("conv2d", runs)
    yield Row("conv2d, stride 2, padding 1: differentiate, lower, emit, cold", 1e3 * conv["all"], 50.0, "ms")
    yield Row("digits network: define, differentiate, lower, emit, cold", latency.cold("digits", runs)["all"], 1.0, "s")
    yield Row("import jaxte, after import jax", latency.cold("import", runs)["import"], 0.3, "s")


def graph_rows(runs: int, sizes: Sequence[int]) -> Iterator[Row]:
    """That large graphs work, and that the time per tensor does not grow with their number."""
    for what, unit in (("chain", "tensors"), ("deep", "levels")):
        taken = {n: latency.cold(f"{what}:{n}", runs)["all"] for n in sizes}
        first, last = min(sizes), max(sizes)
        label = {"chain": "graph of {:,} tensors", "deep": "expression {:,} levels deep"}[what]
        for n, seconds in taken.items():
            yield Row(f"{label.format(n)}: define, differentiate, emit", seconds, 5e-3 * n, "s")
        growth = taken[last] / taken[first] * first / last
        yield Row(f"time per one of {last:,} {unit} over that of {first:,}", growth, 1.5, "")


def call_row(runs: int) -> Row:
    taken = latency.cold("call", runs)
    return Row("call of a compiled function, beyond bare jax.jit", 1e6 * (taken["jaxte"] - taken["jit"]), 30.0, "us")


def cost_rows() -> Iterator[Row]:
    for stride, (iterations, memory) in COST_BUDGETS.items():
        found = latency.costs(stride)
        where = f"adjoints of conv2d X(1,2,10,10), W(2,2,3,3), stride {stride}"
        yield Row(where, found[0], iterations, "iterations")
        yield Row(where, found[1], memory, "elements")


def rows(runs: int, sizes: Sequence[int]) -> Iterator[Row]:
    yield from cold_rows(runs)
    yield from graph_rows(runs, sizes)
    yield call_row(runs)
    yield from cost_rows()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="fresh processes for each time")
    parser.add_argument("--sizes", type=int, nargs="+", default=[500, 1000, 2000], help="sizes of the graphs")
    parser.add_argument("--json", help="write the figures to this file")
    args = parser.parse_args()
    found = list(rows(args.runs, args.sizes))
    print(markdown(("what", "figure", "budget", "ok"), [row.cells() for row in found]))
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump([{**asdict(row), "ok": row.ok} for row in found], file, indent=2)
    return 0 if all(row.ok for row in found) else 1


if __name__ == "__main__":
    sys.exit(main())
