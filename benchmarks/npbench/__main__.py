"""Kernels of NPBench by ``te.loops`` beside ``jax.grad`` of the same in JAX: forward + backward, temporaries, largest difference, seconds to derive.

    PYTHONPATH=.:benchmarks python -m npbench [names] [--write]

Both programs are called in turn on one core, and the median of the processor time is kept: of several cores, it has the time of threads that wait for
each other in it, which is half of a call of a few milliseconds, and another half an hour later. Figures of single kernels are added to
``build/npbench.json``; ``--write`` renews the table of docs/loops-kernels.md from them.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Sequence
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Any

import jax
import numpy as np

import jaxte as te
from npbench.applications import APPLICATIONS
from npbench.by_hand import BY_HAND
from npbench.kernels import KERNELS
from npbench.sizes import SIZES

ROOT = Path(__file__).parent.parent.parent
PAGE, FOUND = ROOT / "docs" / "loops-kernels.md", ROOT / "build" / "npbench.json"
BEGIN, END = "<!-- figures -->", "<!-- /figures -->"
BEYOND = ("floyd_warshall",)  # in another order than by hand
SECONDS, MOST = 4.0, 60  # of the clock for one kernel, and calls of each side
Figures = dict[str, Any]


def measured(name: str) -> Figures:
    """The figures of one kernel."""
    kernel = {**KERNELS, **APPLICATIONS}[name].run
    args = [_single(a) for a in SIZES[name](np.random.default_rng(0))]
    moving = [n for n, a in enumerate(args) if isinstance(a, np.ndarray) and a.dtype.kind == "f"]
    own = te.loops(kernel)
    begun = time.process_time()
    te.source(own, *args)
    derived = time.process_time() - begun
    sides = [_compiled(f, args, moving) for f in (own, BY_HAND[name])]
    given = [args[n] for n in moving]
    values = [np.concatenate([np.ravel(g) for g in side(*given)]) for side in sides]
    mine, other = _milliseconds(sides, given)
    shapes = " ".join("x".join(map(str, a.shape)) if isinstance(a, np.ndarray) else "" for a in args).split()
    return {
        "name": name,
        "shape": shapes[0],
        "jax": other,
        "te": mine,
        "jax_mb": sides[1].memory_analysis().temp_size_in_bytes / 1e6,
        "te_mb": sides[0].memory_analysis().temp_size_in_bytes / 1e6,
        "difference": float(abs(values[0] - values[1]).max() / abs(values[1]).max()),
        "derived": derived,
    }


def _single(value: Any) -> Any:
    return value.astype("float32") if isinstance(value, np.ndarray) and value.dtype.kind == "f" else value


def _compiled(f: Callable[..., Any], args: Sequence[Any], moving: Sequence[int]) -> Any:
    def loss(*own: Any) -> Any:
        filled = list(args)
        for n, a in zip(moving, own, strict=True):
            filled[n] = a
        return sum((leaf * leaf).sum() for leaf in jax.tree.leaves(f(*filled)))

    given = [args[n] for n in moving]
    return jax.jit(jax.grad(loss, tuple(range(len(moving))))).lower(*given).compile()


def _milliseconds(sides: Sequence[Any], args: Sequence[Any]) -> list[float]:
    found: list[list[float]] = [[] for _ in sides]
    end = time.perf_counter() + SECONDS
    for n in range(MOST):
        if n > 2 and time.perf_counter() > end:
            break
        for k, side in enumerate(sides):
            start = time.process_time()
            jax.block_until_ready(side(*args))
            found[k].append(time.process_time() - start)
    return [1e3 * median(seconds) for seconds in found]


def row(f: Figures) -> str:
    """One line of the table."""
    cells = [
        f["name"], f["shape"], f"{f['jax']:.2f}", f"{f['te']:.2f}", f"{f['jax'] / f['te']:.2f}", f"{f['jax_mb']:.2f}", f"{f['te_mb']:.2f}",
        f"{f['difference']:.0e}", f"{f['derived']:.1f}",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


HEADER = "| kernel | first array | jax.grad, ms | te.loops, ms | times | temporaries, MB | te.loops, MB | difference | deriving, s |"


def table(found: Sequence[Figures]) -> list[str]:
    """All lines, and what they come to."""
    factors = [f["jax"] / f["te"] for f in found]
    mean = exp(sum(map(log, factors)) / len(factors))
    said = f"{len(found)} kernels: {mean:.1f} times as fast in the geometric mean, {sum(x < 0.95 for x in factors)} below 0.95."
    return [HEADER, "|---" * 9 + "|", *map(row, sorted(found, key=lambda f: -f["jax"] / f["te"])), "", said]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="which kernels; all by default")
    parser.add_argument("--write", action="store_true", help=f"renew the table of {PAGE.name}")
    given = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    known = {f["name"]: f for f in json.loads(FOUND.read_text())} if FOUND.exists() else {}
    for name in given.names or ([] if given.write else [n for n in SIZES if n not in BEYOND]):
        known[name] = measured(name)
        print(row(known[name]), flush=True)
        jax.clear_caches()
        FOUND.parent.mkdir(exist_ok=True)
        FOUND.write_text(json.dumps(list(known.values()), indent=1))
    lines = table([known[n] for n in SIZES if n in known])
    print("\n".join(lines))
    if given.write:
        text = PAGE.read_text(encoding="utf-8")
        before, after = text.split(BEGIN)[0], text.split(END)[1]
        PAGE.write_text("\n".join([f"{before}{BEGIN}", *lines, f"{END}{after}"]), encoding="utf-8")


if __name__ == "__main__":
    main()
