"""How often the derivation and lowering of one function passes from file to file: a measure of how its steps hang together.

    python benchmarks/crossings.py [--pairs N]     # N: the pairs of files with the most calls between them

Counts the calls of Python from a file of jaxte into another one while conv2d with stride 2 and its backward pass are derived and
lowered, once without counting before, so that what is imported and cached late does not count.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import jax

import jaxte as te

ROOT = str(Path(te.__file__).parent)


def strided(stride: int = 2) -> str:
    """The emitted module of conv2d 3x3 with a stride, both passes."""

    def conv2d(x: Any, w: Any) -> Any:
        n, h, v, _ = x.shape
        p, q, c = (
            te.reduce_axis((0, 3), "p"),
            te.reduce_axis((0, 3), "q"),
            te.reduce_axis((0, x.shape[3]), "c"),
        )
        shape = (n, (h - 3) // stride + 1, (v - 3) // stride + 1, w.shape[3])
        return te.compute(
            shape,
            lambda b, i, j, o: te.sum(
                x[b, stride * i + p, stride * j + q, c] * w[p, q, c, o], axis=[p, q, c]
            ),
            "y",
        )

    structs = (
        jax.ShapeDtypeStruct((8, 33, 33, 16), "float32"),
        jax.ShapeDtypeStruct((3, 3, 16, 32), "float32"),
    )
    return te.source(te.function(conv2d), *structs)


def crossings(run: Callable[[], object]) -> Counter[tuple[str, str]]:
    """Calls from one file of the package into another, by (caller, called), while ``run`` runs."""
    pairs: Counter[tuple[str, str]] = Counter()

    def seen(frame: FrameType, event: str, _: object) -> None:
        if event != "call" or frame.f_back is None:
            return
        caller, called = frame.f_back.f_code.co_filename, frame.f_code.co_filename
        if caller != called and caller.startswith(ROOT) and called.startswith(ROOT):
            pairs[caller[len(ROOT) + 1 :], called[len(ROOT) + 1 :]] += 1

    sys.setprofile(seen)
    try:
        run()
    finally:
        sys.setprofile(None)
    return pairs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=10, help="how many pairs of files to list")
    wanted = parser.parse_args().pairs
    strided(3)
    found = crossings(strided)
    print(f"{sum(found.values()):,} calls between files, {len(found)} pairs of files")
    for (caller, called), count in found.most_common(wanted):
        print(f"{count:>7,}  {caller} -> {called}")


if __name__ == "__main__":
    main()
