"""The times and costs that jaxte keeps to, each beside its budget.

    make bench
    python benchmarks/run.py --json figures.json
    python benchmarks/run.py --runs 1 --sizes 50 100 200    # a quick look

Times are medians over fresh processes. Those of deriving and importing are processor time, which is what they take on
an idle core, with the wall time beside; costs are counts and do not vary. Ends with status 1 when a budget is missed.
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
LARGEST_PER_NODE = 5e-3  # seconds for each tensor or level of a large graph


@dataclass(frozen=True)
class Row:
    """One figure; it is to be at most ``budget``. ``wall`` is the time that passed, in the same unit."""

    what: str
    figure: float
    budget: float
    unit: str
    wall: float | None = None

    @property
    def ok(self) -> bool:
        return self.figure <= self.budget

    def cells(self) -> tuple[str, ...]:
        wall = "" if self.wall is None else self._shown(self.wall)
        return self.what, self._shown(self.figure), wall, self._shown(self.budget), "yes" if self.ok else "NO"

    def _shown(self, value: float) -> str:
        return f"{value:.3g} {self.unit}".strip() if isinstance(value, float) else f"{value:,} {self.unit}"


def timed(what: str, name: str, runs: int, budget: float, unit: str = "s") -> Row:
    scale = {"s": 1.0, "ms": 1e3}[unit]
    taken = latency.cold(name, runs)
    return Row(what, scale * taken["cpu"], budget, unit, scale * taken["wall"])


def cold_rows(runs: int) -> Iterator[Row]:
    yield timed("conv2d, stride 2, padding 1: differentiate, lower, emit, cold", "conv2d", runs, 50.0, "ms")
    yield timed("digits network: define, differentiate, lower, emit, cold", "digits", runs, 1.0)
    yield timed("`import jaxte` after `import jax`", "import", runs, 0.3)


def graph_rows(runs: int, sizes: Sequence[int]) -> Iterator[Row]:
    """That large graphs work, and that the time per tensor does not grow with their number."""
    for name, what, unit in (
        ("chain", "graph of {:,} tensors", "tensors"),
        ("deep", "expression {:,} levels deep", "levels"),
    ):
        found = [
            timed(f"{what.format(n)}: define, differentiate, emit", f"{name}:{n}", runs, LARGEST_PER_NODE * n)
            for n in sizes
        ]
        yield from found
        growth = found[-1].figure / found[0].figure * sizes[0] / sizes[-1]
        yield Row(f"time for each of {sizes[-1]:,} {unit} over that of {sizes[0]:,}", growth, 1.5, "")


def call_row(runs: int) -> Row:
    taken = latency.cold("call", runs)
    return Row(
        "call of a compiled function, beyond bare `jax.jit`",
        1e6 * (taken["jaxte"] - taken["jit"]),
        30.0,
        "us",
    )


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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5, help="fresh processes for each time")
    parser.add_argument("--sizes", type=int, nargs="+", default=[500, 1000, 2000], help="sizes of the graphs")
    parser.add_argument("--json", help="write the figures to this file")
    args = parser.parse_args()
    found = list(rows(args.runs, args.sizes))
    print(markdown(("what", "figure", "wall", "budget", "ok"), [row.cells() for row in found]))
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump([{**asdict(row), "ok": row.ok} for row in found], file, indent=2)
    return 0 if all(row.ok for row in found) else 1


if __name__ == "__main__":
    sys.exit(main())
