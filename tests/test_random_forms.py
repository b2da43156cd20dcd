"""Random definitions with each form forced on, and forced off: all of them are what the interpreter says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxte.bridge.primitive.module import load
from jaxte.lower.code.vocabulary import Program
from jaxte.lower.cost.policy import ANY, Policy
from jaxte.lower.program.emit import module_text
from jaxte.lower.program.plan import lower
from jaxte.tensors.tensor import Tensor
from tests.agreement import assert_close, compiled_run, inputs_of, interpreted, pullback_of
from tests.choices import Drawn
from tests.lower.evaluation.program import evaluate_program
from tests.random_definitions import Definition, definitions
from tests.random_windows import windowed
from tests.stages import FORMS, TEXT, compare

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("x64")]
PLATFORMS = ("cpu", "gpu", "tpu")


def offered(tensors: list[Tensor], policy: Policy) -> set[str]:
    """The names of the forms that were there to choose from."""
    program = lower("forward", inputs_of(tensors), tensors, policy)
    return {e.form for choice in program.choices for e in choice.estimates}


def run(tensors: list[Tensor], program: Program, feeds: Any) -> list[np.ndarray]:
    fn = load(module_text([program], "", "forced"), "forced", {})["forward"]
    results = compiled_run(fn, [feeds[t] for t in inputs_of(tensors)], optimised=False)
    return list(results) if len(tensors) > 1 else [results]


def policies(tensors: list[Tensor], seed: int) -> list[Policy]:
    """Each form that a definition offers, forced on and off."""
    platform = PLATFORMS[seed % 3]
    forms = sorted(offered(tensors, Policy(platform)))
    found = [Policy(platform, forms={ANY: form}) for form in forms]
    found += [Policy(platform, without=frozenset([form])) for form in forms if len(forms) > 2]
    return found


def check_forms(definition: Definition) -> None:
    p = pullback_of(definition.output, definition.feeds(), definition.variables, definition.seed)
    tensors = [p.output, *(p.adjoints if p.variables else [])]
    chosen = policies(tensors, definition.seed)
    if not chosen:
        return
    expected = [interpreted(t, p.feeds) for t in tensors]
    for policy in chosen:
        program = lower("forward", inputs_of(tensors), tensors, policy)
        nodes = evaluate_program(program, [p.feeds[t] for t in inputs_of(tensors)])
        compare(tensors, nodes, expected, f"{FORMS} with {policy}")
        for tensor, value, meaning in zip(tensors, run(tensors, program, p.feeds), expected, strict=True):
            assert_close(value, meaning, f"{TEXT}: {tensor.name} with {policy}")


def examples(quick: int, full: int) -> settings:
    return settings(max_examples=full if settings.default.max_examples >= 1000 else quick)


@examples(quick=30, full=700)
@given(definition=definitions(stages=(1, 2)))
def test_forms_of_random_definitions(definition: Definition) -> None:
    check_forms(definition)


@st.composite
def windows(draw: st.DrawFn) -> Definition:
    output = windowed(Drawn(draw))
    return Definition(output, draw(st.integers(0, 2**16)))  # type: ignore[arg-type]


@examples(quick=15, full=400)
@given(definition=windows())
def test_forms_of_windows(definition: Definition) -> None:
    check_forms(definition)
