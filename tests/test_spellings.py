"""Twenty functions cost the same in each of their spellings: XLA's counts for both passes are within 1.5 times of the best, values agree."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import jaxte as te
from tests.agreement import QUICKEST
from tests.spelled_counts import beyond, lowered
from tests.spellings import FUNCTIONS


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_spelling_costs_what_the_best_does(name: str) -> None:
    spellings, shapes = FUNCTIONS[name]
    assert len(spellings) >= 3
    structs = [jax.ShapeDtypeStruct(shape, "float32") for shape in shapes]
    assert not beyond({s.__name__: lowered(te.function(s), structs) for s in spellings})


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_agree(name: str, rng: np.random.Generator) -> None:
    spellings, shapes = FUNCTIONS[name]
    arrays = [rng.standard_normal(shape).astype("float32") for shape in shapes]
    expected, *others = (
        np.asarray(jax.jit(te.function(s)).lower(*arrays).compile(compiler_options=QUICKEST)(*arrays))
        for s in spellings
    )
    for found in others:
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
