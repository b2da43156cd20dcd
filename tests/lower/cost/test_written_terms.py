"""What XLA takes to compile terms that are written out is part of the estimate: of two forms that run about as long, the shorter text."""

from __future__ import annotations

from dataclasses import replace

import pytest

import jaxte as te
from jaxte.lower.arrays.node import nodes_below
from jaxte.lower.body.candidates import Candidate, chosen
from jaxte.lower.code.vocabulary import Statement
from jaxte.lower.cost.platforms import CPU, PLATFORMS
from jaxte.lower.cost.policy import Policy
from jaxte.lower.cost.work import Work, long_text
from jaxte.lower.program.plan import lower


@pytest.mark.parametrize(("gain", "form"), [(1.1, "few terms"), (5.0, "many terms")])
def test_many_terms_have_to_be_worth_it(gain: float, form: str) -> None:
    seconds = 1e-5
    many = Candidate("many terms", Work(tap=seconds * CPU.rates.tap) + long_text(80), None)
    few = Candidate("few terms", Work(tap=gain * seconds * CPU.rates.tap) + long_text(2), None)
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


def test_the_charge_is_the_share_of_a_call_beyond_sixteen_terms() -> None:
    """1,100 terms take a second, which 10,000 calls share."""
    assert long_text(16).seconds(CPU.rates) == 0
    assert long_text(16 + 1100).seconds(CPU.rates) == pytest.approx(1e-4)


@pytest.mark.parametrize("features", [1, 8])
def test_a_convolution_is_as_long_whatever_its_taps(features: int) -> None:
    """So it needs no charge: one call, and as many statements for 3 x 3 as for 15 x 15."""
    lengths = {taps: statements_of(taps, features) for taps in (3, 7, 15)}
    assert len(set(lengths.values())) == 1, lengths


def statements_of(taps: int, features: int) -> int:
    n = 64 - taps + 1
    x, w = te.placeholder((2, 64, 64, 8), name="x"), te.placeholder((taps, taps, 8, features), name="w")
    k, m, c = te.reduce_axis((0, taps), "k"), te.reduce_axis((0, taps), "m"), te.reduce_axis((0, 8), "c")
    y = te.compute(
        (2, n, n, features),
        lambda b, i, j, o: te.sum(x[b, i + k, j + m, c] * w[k, m, c, o], (k, m, c)),
        "y",
    )
    program = lower("f", y.inputs, [y], policy=Policy(forms={"y": "convolution"}))
    assert "convolution" in program.choices[0].form
    return sum(1 for s in program.statements if isinstance(s, Statement) for _ in nodes_below(s.source))
