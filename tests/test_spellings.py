"""Twenty functions cost the same in each of their spellings: XLA's counts for both passes are within 1.5 times of the best, values agree.

The counts are those of the program as it is handed over. What is beyond the limit there is compiled, together with the best: sums that are
written out term by term are one loop then, and count as what they read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
import pytest

import jaxte as te
from harness.sides import with_gradients
from tests.agreement import QUICK
from tests.spellings import FUNCTIONS, Spelling

LIMIT = 1.5
SLACK = (2000.0, 16384.0)


def lowered(spelling: Spelling, shapes: list[jax.ShapeDtypeStruct]) -> Any:
    fn = te.function(spelling)
    both = with_gradients(fn, tuple(range(len(shapes))))
    return jax.jit(both).lower([jax.eval_shape(fn, *shapes)], *shapes)


def counts(program: Any) -> tuple[float, float]:
    cost = program.cost_analysis()
    return cost.get("flops", 0.0), cost["bytes accessed"]


def beyond(found: Mapping[str, tuple[float, float]]) -> dict[str, str]:
    """The spellings whose flops or bytes are not within the limit of the best, with what they are."""
    least = [min(own[n] for own in found.values()) for n in range(2)]
    return {
        name: f"{own} beside {least}"
        for name, own in found.items()
        if any(c > LIMIT * max(m, s) + s for c, m, s in zip(own, least, SLACK, strict=True))
    }


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_spelling_costs_what_the_best_does(name: str) -> None:
    spellings, shapes = FUNCTIONS[name]
    assert len(spellings) >= 3
    structs = [jax.ShapeDtypeStruct(shape, "float32") for shape in shapes]
    programs = {s.__name__: lowered(s, structs) for s in spellings}
    if beyond({own: counts(program) for own, program in programs.items()}):
        found = {own: p.compile(compiler_options=QUICK) for own, p in programs.items()}
        assert not beyond({own: counts(program) for own, program in found.items()})


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_agree(name: str, rng: np.random.Generator) -> None:
    spellings, shapes = FUNCTIONS[name]
    arrays = [rng.standard_normal(shape).astype("float32") for shape in shapes]
    expected, *others = (
        np.asarray(jax.jit(te.function(s)).lower(*arrays).compile(compiler_options=QUICK)(*arrays))
        for s in spellings
    )
    for found in others:
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
