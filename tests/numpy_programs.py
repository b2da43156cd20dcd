"""Programs on which XLA and NumPy are known to agree: their values are NumPy's, for which nothing is lowered and nothing compiled.

A program is known by its key (tests/program_keys.py), so that what jaxte emits anew is compiled. ``numpy_programs.txt`` holds the keys, and how
often a program may be run before XLA's code for it is the cheaper one. With JAXTE_HYPOTHESIS=full, and by another release of JAX, everything is
compiled.

    JAXTE_VALUES=build/values.txt pytest; python -m tests.numpy_programs build/values.txt

(``make record``) runs what is not known by XLA and by NumPy, goes on with the results of NumPy where both agree, and records the programs of tests
that pass, and nothing else; with ``--more`` in addition to what is recorded. What fails there alone has its last digits looked at: nothing of it is
added, and it passes without.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
from hypothesis import settings
from jax.extend.core import ClosedJaxpr
from jax.stages import Lowered

from jaxte.lang.errors import JaxteError
from tests.numpy_evaluation import arrays_of, evaluated, inside
from tests.numpy_positions import Refused
from tests.program_keys import key

FILE = Path(__file__).with_name("numpy_programs.txt")
UNITS = 64  # in the last place of the largest element of a result, by which XLA and NumPy may differ
COMPILED, EACH = (
    30e-3,
    1e-3,
)  # seconds of the processor that XLA takes for a program, and for each operation of it
ELEMENTS = 1e9  # of results, which NumPy computes in a second where they are sums and products
CALLS = 40
new: dict[str, int] = {}
"""What a test of a run that records found."""
asked: dict[str, int] = {}
"""What such a test asked for and was known before."""


@cache
def recorded() -> Mapping[str, int]:
    """How often NumPy runs a program, by its key."""
    version, *lines = FILE.read_text(encoding="utf-8").splitlines()
    is_all_compiled = version != jax.__version__ or settings.default.max_examples >= 1000
    return {} if is_all_compiled else {own: int(often) for own, often in map(str.split, lines)}


def calls_of(program: ClosedJaxpr) -> int:
    """How often NumPy runs it."""
    if jax.default_backend() != "cpu" or program.jaxpr.effects or not (recorded() or new):
        return 0
    try:
        own = key(program)
    except JaxteError:  # what jaxte emits for it is refused, and so it will be where it is lowered
        return 0
    if own in recorded() and "JAXTE_VALUES" in os.environ:
        asked[own] = recorded()[own]
    return recorded().get(own) or new.get(own, 0)


def program_of(lowered: Lowered) -> ClosedJaxpr | None:
    """What was lowered, if its operations and types say all of it."""
    return getattr(lowered._lowering, "program", None)


def run(lowered: Lowered, compiled: Callable[[], Callable[..., Any]], *args: Any) -> Any:
    """What a lowered program returns, by NumPy or as it is ``compiled``."""
    program = program_of(lowered)
    if program is None:
        return compiled()(*args)
    found = results(program, jax.tree.leaves(args), lambda: jax.tree.leaves(compiled()(*args)))
    return jax.tree.unflatten(lowered.out_tree, found)


def results(program: ClosedJaxpr, args: Sequence[Any], compiled: Callable[[], list[Any]]) -> list[Any]:
    if calls_of(program):
        return arrays_of(program, args)
    found = compiled()
    return arrays_of(program, args) if is_new(program, args, found) else found


def is_new(program: ClosedJaxpr, args: Sequence[Any], expected: Sequence[Any]) -> bool:
    """Whether this run records, and NumPy finds what XLA found at a lower price."""
    if "JAXTE_VALUES" not in os.environ or program.jaxpr.effects or key(program) in recorded():
        return False
    operations, elements = map(sum, zip(*_sizes(program), strict=True))
    allowed = (COMPILED + EACH * operations) / 2
    if elements > allowed * ELEMENTS or any(not a.dtype.itemsize for a in program.out_avals):  # float0
        return False
    start = time.process_time()
    try:
        with np.errstate(all="ignore"):
            found = evaluated(program, args)
    except (
        Refused,
        TypeError,
        ValueError,
        np.exceptions.ComplexWarning,
    ):  # the last where a test lets none pass
        return False
    often = min(CALLS, int(allowed / (time.process_time() - start + 1e-9)))
    if often and all(map(agrees, found, map(np.asarray, expected))):
        new[key(program)] = often
    return key(program) in new


def add_to_record(has_passed: bool) -> None:
    """At the end of a test."""
    if has_passed and (new or asked):
        with open(os.environ["JAXTE_VALUES"], "a", encoding="utf-8") as file:
            file.writelines(f"{own} {often}\n" for own, often in {**asked, **new}.items())
    new.clear()
    asked.clear()


def _sizes(program: ClosedJaxpr, times: int = 1) -> Iterator[tuple[int, int]]:
    """Of each operation 1, and the elements of its results in all steps of the loops around it."""
    yield 0, 0
    for e in program.jaxpr.eqns:
        inner = inside(e) or e.params.get("jaxpr")
        if isinstance(inner, ClosedJaxpr):
            yield from _sizes(inner, times * e.params.get("length", 1))
        else:
            yield 1, times * sum(v.aval.size for v in e.outvars)


def agrees(found: np.ndarray, expected: np.ndarray) -> bool:
    if found.dtype.kind not in "fc":
        return bool(np.array_equal(found, expected))
    known = np.isfinite(expected)
    if not np.array_equal(np.where(known, 0, found), np.where(known, 0, expected), equal_nan=True):
        return False
    scale = np.abs(expected[known]).max(initial=0)
    allowed = UNITS * np.finfo(found.dtype).eps * scale
    zero = (found == 0) & (expected == 0)
    is_near = bool(np.all(np.abs(found[known] - expected[known]) <= allowed))
    return is_near and all(
        np.array_equal(*map(np.signbit, p))
        for p in zip(_parts(found[zero]), _parts(expected[zero]), strict=True)
    )


def _parts(array: np.ndarray) -> tuple[np.ndarray, ...]:
    return (array.real, array.imag) if array.dtype.kind == "c" else (array,)


def main(found: str, *options: str) -> None:
    known = dict(recorded()) if "--more" in options else {}
    for line in Path(found).read_text(encoding="utf-8").splitlines():
        own, often = line.split()
        known[own] = min(int(often), known.get(own, CALLS))
    rows = "".join(f"{own} {known[own]}\n" for own in sorted(known))
    FILE.write_text(f"{jax.__version__}\n{rows}", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
