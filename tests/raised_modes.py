"""Forward and reverse mode of JAX functions that are raised, at sizes at which they are interpreted within seconds.

    PYTHONPATH=.:benchmarks python -m tests.raised_modes [NAME ...]

takes every function of benchmarks/raised, with ``te.adjoint(f, everything=True)``: what :mod:`tests.both_modes` asks of definitions.
``tests/frontends/test_both_modes_raised.py`` takes a few of them.
"""

from __future__ import annotations

import math
import signal
import sys
import time
import warnings
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

import jaxte as te
from raised import EXAMPLES, Example
from tests.both_modes import disagreements

SECONDS = 60  # of a processor for one function, at three points
_ELEMENTS = 20_000  # of all arguments together
_SMALL = (4, 6, 8, 12, 16, 24, 32)


def small_arguments(example: Example) -> tuple[Any, ...] | None:
    """The first elements of the arguments along each axis: as few as the function takes; None where these are still many."""
    whole = jax.tree.map(np.asarray, example.make(np.random.default_rng(0)))
    with jax.enable_x64(False):
        for most in _SMALL:
            args = _cut(whole, {e: min(e, most) for e in _extents(whole)})
            if _takes(example, args):
                break
        else:
            args = _cut(whole, _one_by_one(example, whole))
    return args if sum(np.size(a) for a in jax.tree.leaves(args)) <= _ELEMENTS else None


def _extents(args: Any) -> list[int]:
    """The different extents, the largest first."""
    return sorted({e for a in jax.tree.leaves(args) for e in np.shape(a)}, reverse=True)


def _one_by_one(example: Example, whole: Any) -> dict[int, int]:
    """What each extent is cut to, one after the other: the fewest elements that the function takes."""
    lengths: dict[int, int] = {}
    for extent in _extents(whole):
        for length in (2, 4, 8, 16, extent // 16, extent // 8, extent // 4, extent // 2):
            if 1 < length < extent and _takes(example, _cut(whole, lengths | {extent: length})):
                lengths[extent] = length
                break
    return lengths


def _cut(whole: Any, lengths: Mapping[int, int]) -> Any:
    def cut(a: Any) -> Any:
        if not isinstance(a, np.ndarray):
            return a
        small = a[tuple(slice(0, lengths.get(extent)) for extent in a.shape)]
        return small % max(1, small.size) if a.dtype.kind == "i" else small  # positions stay near

    return jax.tree.map(cut, whole)


def _takes(example: Example, args: Any) -> bool:
    try:
        shapes = jax.tree.leaves(jax.eval_shape(example.function, *args))
    except (TypeError, ValueError, IndexError, ZeroDivisionError):
        return False
    return all(math.prod(s.shape) for s in shapes)


def check(name: str) -> list[str] | None:
    """What does not agree; None where there are no small arguments."""
    example = EXAMPLES[name]
    args = small_arguments(example)
    if args is None:
        return None
    with jax.enable_x64(True), warnings.catch_warnings():
        warnings.simplefilter("ignore", te.PerformanceWarning)
        found = disagreements(te.adjoint(example.function, everything=True), args)
        # plain JAX, too, drops what flows to positions behind the end of a smaller argument, and moves along with its last element
        return found if found and not disagreements(example.function, args) else []


def main(wanted: list[str]) -> int:
    """Prints a line for each function; returns how many disagree."""
    wrong = 0

    def late(*_: object) -> None:
        raise TimeoutError(f"more than {SECONDS} s")

    signal.signal(signal.SIGPROF, late)
    for name in wanted or EXAMPLES:
        begun = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            found = check(name)
            shown = "no small sizes" if found is None else "; ".join(found) or "agree"
        except Exception as error:
            found, shown = [str(error)], f"{type(error).__name__}: {error}".replace("\n", " ")[:300]
        signal.setitimer(signal.ITIMER_PROF, 0)
        wrong += bool(found)
        print(f"{name}: {shown} ({time.process_time() - begun:.1f} s)", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 100))
