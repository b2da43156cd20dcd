"""Random definitions: the interpreter, the emitted code, derived adjoints, ``jax.vjp`` and differences agree."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.agreement import at_random, check
from tests.random_definitions import Definition, definitions

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("x64")]


def examples(quick: int, full: int) -> settings:
    """How many examples `make test` and the full run draw."""
    count = full if settings.default.max_examples >= 1000 else quick
    return settings(max_examples=count, suppress_health_check=list(HealthCheck))


seldom = st.integers(0, 3).map(lambda n: n == 3)
ways: dict[str, Any] = {"residuals": st.booleans(), "optimised": seldom}


def check_at_random(definition: Definition, residuals: bool, optimised: bool) -> None:
    p = at_random(definition)
    if p is not None:
        check(p, residuals, optimised)


@examples(quick=80, full=900)
@given(definition=definitions(stages=(1, 1), kinds="bodies"), **ways)
def test_bodies(definition: Definition, residuals: bool, optimised: bool) -> None:
    check_at_random(definition, residuals, optimised)


@examples(quick=80, full=900)
@given(definition=definitions(stages=(1, 2)), **ways)
def test_patterns(definition: Definition, residuals: bool, optimised: bool) -> None:
    check_at_random(definition, residuals, optimised)


@examples(quick=65, full=700)
@given(definition=definitions(stages=(2, 3)), **ways)
def test_chains(definition: Definition, residuals: bool, optimised: bool) -> None:
    check_at_random(definition, residuals, optimised)


@examples(quick=20, full=150)
@given(definition=definitions(stages=(1, 1)), residuals=st.booleans())
def test_second_derivatives(definition: Definition, residuals: bool) -> None:
    p = at_random(definition, order=2)
    if p is not None:
        check(p, residuals, optimised=False, tolerance=1e-8)


TOLERANCES = {"float32": 1e-4, "complex128": 1e-9, "float16": 3e-2, "bfloat16": 2e-1}


@examples(quick=50, full=400)
@given(
    definition=st.one_of(
        definitions("float32", (1, 2)),
        definitions("complex128"),
        definitions("float16", (1, 1)),
        definitions("bfloat16", (1, 1)),
    ),
    residuals=st.booleans(),
)
def test_other_dtypes(definition: Definition, residuals: bool) -> None:
    p = at_random(definition)
    if p is not None:
        check(p, residuals, optimised=False, tolerance=TOLERANCES[definition.output.dtype])
