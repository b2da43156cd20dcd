"""What ``jax.grad`` emits beside what jaxte emits for the same function: operations, work, memory and time.

    python benchmarks/emitted.py                 # the Markdown table that the README shows
    python benchmarks/emitted.py --size quick --rounds 5

A short view of the suite: six of its cases, each beside one opponent, the function with its gradients. Operations are
counted in the program that XLA is given (StableHLO); flops, bytes and temporaries are XLA's own counts for the program it
compiled.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, replace
from typing import Any

import jax

from harness.case import IDIOMATIC, INDEXED, JAXTE, SIZE_NAMES, load
from harness.clock import Budget
from harness.measure import measure
from harness.passes import BOTH
from timing import markdown

HEADER = (
    "function and gradients",
    "by",
    "scatters, gathers",
    "Mflop",
    "MB accessed",
    "MB temporaries",
    "time",
    "speed",
)
# operations that accumulate or look up by index
SUSPECTS = ("scatter", "select_and_scatter", "gather", "while")


@dataclass(frozen=True)
class Pair:
    """A case of the suite, the opponent shown, and how that is spelt."""

    name: str
    opponent: str
    spelling: str


PAIRS = (
    Pair("stencil_5_point_rolled", IDIOMATIC, "`jnp.roll`"),
    Pair("nearest_upsampling", IDIOMATIC, "`jax.image.resize`"),
    Pair("conv1d_depthwise", INDEXED, "`x[:, i + k]`"),
    Pair("max_pool_2_2", IDIOMATIC, "`lax.reduce_window`"),
    Pair("conv2d_depthwise", IDIOMATIC, "`lax.conv`"),
    Pair("conv2d_stride_2", IDIOMATIC, "`lax.conv`"),
)


def measured(pair: Pair, size: str, rounds: int) -> tuple[str, dict[str, Any]]:
    """The title of a row, and the figures of jax.grad and of jaxte."""
    case = load(pair.name)
    case = replace(case, sides={side: case.sides[side] for side in (JAXTE, pair.opponent)}, left_out={})
    sides = measure(case, size, Budget(0.0, rounds, rounds))["passes"][BOTH]["sides"]
    errors = [figures["error"] for figures in sides.values() if "error" in figures]
    if errors:
        raise SystemExit(f"{pair.name}: {errors[0]}")
    return f"{case.title} ({pair.spelling})", {"jax.grad": sides[pair.opponent], JAXTE: sides[JAXTE]}


def row(title: str, by: str, figures: dict[str, Any], speed: float) -> tuple[str, ...]:
    found = [f"{n} {op}" for op, n in figures["operations"].items() if op in SUSPECTS]
    return (
        title,
        by,
        ", ".join(found) or "none",
        f"{figures['flops'] / 1e6:,.1f}",
        f"{figures['bytes'] / 1e6:,.1f}",
        f"{figures['temporaries'] / 1e6:,.1f}",
        f"{1e3 * figures['seconds']:.2f} ms",
        "1" if speed == 1 else f"{speed:.3g}",
    )


def table(results: dict[str, dict[str, Any]]) -> str:
    rows = []
    for title, sides in results.items():
        theirs = sides["jax.grad"]["seconds"]
        for by, figures in sides.items():
            rows.append(row("" if by == JAXTE else title, by, figures, theirs / figures["seconds"]))
    return markdown(HEADER, rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15, help="timed calls of each side")
    parser.add_argument("--size", choices=SIZE_NAMES, default="full", help="sizes of the cases")
    parser.add_argument("--json", help="write the figures to this file")
    args = parser.parse_args()
    results = dict(measured(pair, args.size, args.rounds) for pair in PAIRS)
    device = jax.devices()[0]
    print(
        f"float32, {device.device_kind}, jax {jax.__version__}, medians of {args.rounds} interleaved calls\n"
    )
    print(table(results))
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=2)


if __name__ == "__main__":
    main()
