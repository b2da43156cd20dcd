"""Forward and reverse mode agree in the first and second order: programs of the benchmarks, operators, random definitions.

Quick runs take a part of each list, told by names; JAXTE_HYPOTHESIS=full takes all of them.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import settings

import jaxte as te
from harness.case import CORPUS, JAXTE, SUITE, load, names
from harness.inputs import draw
from harness.sides import function
from tests import ops_cases, ops_cases_images, ops_cases_more, ops_cases_networks
from tests.both_modes import disagreements, interpreted
from tests.natural_programs import PROGRAMS
from tests.ops_registry import CASES
from tests.random_shared import shared

pytestmark = pytest.mark.usefixtures("x64")
REGISTERED = (ops_cases, ops_cases_images, ops_cases_more, ops_cases_networks)


def some(of: Iterable[str], every: int) -> list[str]:
    """About one of ``every`` names; all in full runs."""
    step = 1 if settings.default.max_examples >= 1000 else every
    return [name for name in of if zlib.crc32(name.encode()) % step == 0]


@pytest.mark.parametrize("name", some([*names(SUITE), *names(CORPUS)], 8))
def test_benchmarks(name: str) -> None:
    case = load(name)
    assert not disagreements(function(case, JAXTE), draw(case.inputs_at("tiny")))


@pytest.mark.parametrize("name", some(CASES, 16))
def test_operators(name: str, rng: np.random.Generator) -> None:
    assert not disagreements(CASES[name].run, CASES[name].arrays(rng))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_in_the_natural_spelling(name: str) -> None:
    builder, arrays = PROGRAMS[name]
    assert not disagreements(te.function(builder), arrays)


@pytest.mark.parametrize("seed", range(4000) if settings.default.max_examples >= 1000 else (1, 2, 6, 7))
def test_random_definitions_with_shared_factors(seed: int) -> None:
    definition = shared(seed)
    x, positions = definition.arrays(np.random.default_rng(seed))
    own = te.function(definition.builder)
    assert not disagreements(own, (x, positions), seed)
    v = jnp.asarray(np.random.default_rng(seed + 1).normal(size=x.shape))
    with interpreted():
        found = jax.jvp(lambda x: own(x, positions), (jnp.asarray(x),), (v,))
    expected = jax.jvp(lambda x: definition.plain(x, positions), (jnp.asarray(x),), (v,))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)
