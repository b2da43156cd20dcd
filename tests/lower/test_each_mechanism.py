"""Each rule that looks special, in three functions that it was not made for: what XLA counts with it and without it, and equal results."""

from __future__ import annotations

import re
from typing import Any

import jax
import numpy as np
import pytest

import jaxte as te
from tests.lower.mechanism import Mechanism, Positions, Sample, as_named
from tests.lower.mechanisms import MECHANISMS
from tests.xla_counts import Fused

_SEVERAL = r"stablehlo\.reduce\(.*\), \("  # a reduction of more than one operand
_STEPS = re.compile(r"def \w+_step\w*\(.*?\breturn\b", re.DOTALL)
_FUNCTIONS = re.compile(r"\b(cos|exp|log|logaddexp|sigmoid|sin|tanh)\(")
CASES = [
    pytest.param(mechanism, sample, id=f"{mechanism.name}: {sample.function.__name__}")
    for mechanism in MECHANISMS
    for sample in mechanism.samples
]


def arguments(sample: Sample) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [
        rng.integers(0, a.below, a.shape).astype("int32")
        if isinstance(a, Positions)
        else rng.standard_normal(a).astype("float32")
        for a in sample.arguments
    ]


def counted(sample: Sample, counts: str, without: str, platform: str) -> tuple[float, list[np.ndarray]]:
    """What is counted for the function with its gradients, and what it returns."""
    arrays = arguments(sample)
    asked = {tensor: form for tensor, form in (sample.forms or {}).items() if form != without}
    fn = te.function(sample.function, forms=asked, without=without or (), platform=platform)
    floats = [n for n, array in enumerate(arrays) if array.dtype.kind == "f"]

    def of_floats(*given: Any) -> Any:
        filled = dict(enumerate(arrays)) | dict(zip(floats, given, strict=True))
        return fn(*filled.values())

    def both(*given: Any) -> Any:
        found, pull = jax.vjp(of_floats, *given)
        return found, *pull(found)

    if counts in ("steps of loops", "functions in steps"):
        text = te.source(fn, *arrays)
        steps = [int(n) for n in re.findall(r"lax\.scan\(.*jnp\.arange\((\d+),", text)]
        functions = sum(len(_FUNCTIONS.findall(step)) for step in _STEPS.findall(text))
        run = jax.jit(both)(*(arrays[n] for n in floats))
        return float(sum(steps) if counts == "steps of loops" else functions), [np.asarray(r) for r in run]
    lowered = jax.jit(both).lower(*(arrays[n] for n in floats))
    compiled = Fused(lowered)
    results = [np.asarray(r) for r in compiled(*(arrays[n] for n in floats))]
    if counts == "values that are not finite":
        return float(sum(np.sum(~np.isfinite(r)) for r in results)), results
    if counts == "temporaries":
        return float(compiled.memory_analysis().temp_size_in_bytes), results
    if counts in ("flops", "bytes", "transcendentals"):
        return float(compiled.cost_analysis()["bytes accessed" if counts == "bytes" else counts]), results
    found = _SEVERAL if counts == "reductions of several arrays" else rf"stablehlo\.{counts}\b"
    return float(len(re.findall(found, lowered.as_text()))), results


@pytest.mark.parametrize(("mechanism", "sample"), CASES)
def test_it_serves_functions_that_it_was_not_made_for(
    mechanism: Mechanism, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism.small(monkeypatch)
    own, results = counted(sample, mechanism.counts, "", mechanism.platform)
    mechanism.without(monkeypatch)
    without = mechanism.name if mechanism.without is as_named else ""
    other, expected = counted(sample, mechanism.counts, without, mechanism.platform)
    assert other >= sample.gain * max(own, 1)
    for found, wanted in zip(results, expected, strict=True):
        if mechanism.counts == "values that are not finite":
            assert np.isfinite(found).all()
            wanted = np.where(np.isfinite(wanted), wanted, found)
        np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-3 * (1 + np.abs(wanted).max()))


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.name)
def test_three_functions(mechanism: Mechanism) -> None:
    assert len({sample.function for sample in mechanism.samples}) >= 3
