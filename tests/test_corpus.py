"""The functions of benchmarks/corpus, in the spelling that a user writes first, beside plain JAX.

Values and gradients agree, and what XLA counts for both passes is at most 1.5 times what it counts for ``jax.vjp`` of the idiomatic
form. A function that is not there yet says so in its file (``ABOVE``), with its factor and the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import numpy as np
import pytest

from harness.case import CORPUS, IDIOMATIC, JAXTE, Case, load, names
from harness.counts import operations
from harness.inputs import draw
from harness.measure import difference
from harness.sides import function, heads, with_gradients
from tests.xla_counts import Fused

LIMIT = 1.5
FUNCTIONS = pytest.mark.parametrize(
    "name", names(CORPUS), scope="module"
)  # all tests of a function together, in one process
DATA = ("gather", "scatter", "sort", "while")  # operations at positions that are data, and loops
# flops and bytes that do not grow with the sizes
SLACK = {"flops": 1000.0, "bytes": 8192.0, "temporaries": 8192.0}


@dataclass(frozen=True)
class Counted:
    """What a side returns, and what XLA counts for it."""

    results: list[np.ndarray]
    counts: dict[str, float]
    operations: dict[str, int]


def counted(case: Case, side: str) -> Counted:
    """The function with its gradients, at small sizes."""
    args = draw(case.inputs_at("quick"))
    both = with_gradients(function(case, side), case.differentiated(args))
    h = heads(case, IDIOMATIC, args)
    # XLA counts before LLVM, which takes most of the time, sees the loops
    lowered = jax.jit(both).lower(h, *args)
    compiled = Fused(lowered)
    cost: dict[str, Any] = compiled.cost_analysis()
    held = float(compiled.memory_analysis().temp_size_in_bytes)
    counts = {"flops": cost.get("flops", 0.0), "bytes": cost["bytes accessed"], "temporaries": held}
    return Counted([np.asarray(x) for x in compiled(h, *args)], counts, operations(lowered.as_text()))


@cache
def both_sides(name: str) -> dict[str, Counted]:
    return {side: counted(load(name), side) for side in (JAXTE, IDIOMATIC)}


@FUNCTIONS
def test_values_and_gradients(name: str) -> None:
    found = both_sides(name)
    assert len(found[JAXTE].results) == len(found[IDIOMATIC].results)
    assert difference(found[IDIOMATIC].results, found[JAXTE].results) < load(name).tolerance


@FUNCTIONS
def test_counts(name: str) -> None:
    case, found = load(name), both_sides(name)
    for what, slack in SLACK.items():
        own, theirs = found[JAXTE].counts[what], found[IDIOMATIC].counts[what]
        limit, reason = case.above.get(what, (LIMIT, ""))
        assert own <= limit * max(theirs, slack) + slack, f"{what}: {own:,.0f} beside {theirs:,.0f}"
        if reason:
            assert own > LIMIT * max(theirs, slack) + slack, f"{what}: ABOVE is not needed any more"


@FUNCTIONS
def test_operations(name: str) -> None:
    case, found = load(name), both_sides(name)
    for what in DATA:
        own, theirs = (found[side].operations.get(what, 0) for side in (JAXTE, IDIOMATIC))
        assert (own > theirs) == (what in case.above), f"{what}: {own} beside {theirs}"


def test_names_are_those_of_one_folder() -> None:
    assert not set(names()) & set(names(CORPUS))
