"""What XLA takes to compile terms that are written out is part of the estimate: of two forms that run about as long, the shorter text."""

from __future__ import annotations

from dataclasses import replace

import pytest

import jaxte as te
from jaxte.lower.body.candidates import Candidate, chosen
from jaxte.lower.cost.platforms import CPU, PLATFORMS
from jaxte.lower.cost.policy import Policy
from jaxte.lower.cost.work import Work
from jaxte.lower.program.plan import lower


@pytest.mark.parametrize(("gain", "form"), [(1.1, "few terms"), (5.0, "many terms")])
def test_many_terms_have_to_be_worth_it(gain: float, form: str) -> None:
    seconds = 1e-5
    many = Candidate("many terms", Work(tap=seconds * CPU.rates.tap, written=64), None)
    few = Candidate("few terms", Work(tap=gain * seconds * CPU.rates.tap, written=2), None)
    assert chosen(Policy(), "y", [many, few], "").candidate.form == form


def test_a_window_of_a_small_array_is_summed_one_dimension_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """49 slices of a small array run as fast as two passes of 7, and take several times as long to compile."""
    x, k, m = te.placeholder((46, 46), name="x"), te.reduce_axis((0, 7), "k"), te.reduce_axis((0, 7), "m")
    y = te.compute((40, 40), lambda i, j: te.max(x[i + k, j + m], axis=(k, m)), "y")
    assert form_of(y, "cpu") == "separable slices"
    free = replace(CPU, rates=replace(CPU.rates, written=float("inf")))
    monkeypatch.setitem(PLATFORMS, "free", free)
    assert form_of(y, "free") == "shifted slices"


def form_of(y: te.Tensor, platform: str) -> str:
    (choice,) = lower("f", y.inputs, [y], policy=Policy(platform=platform)).choices
    return choice.form
