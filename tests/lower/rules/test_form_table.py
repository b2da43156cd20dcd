"""The table of forms: what it says of itself holds, and the order of its rows shows nowhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import jaxte as te
from jaxte.lower.body.candidates import GENERAL
from jaxte.lower.code.choice import Choice
from jaxte.lower.rules import form_table
from jaxte.lower.rules.form_table import FAMILIES
from jaxte.tensors.tensor import Compute
from tests.lowered import program_of, text_of

X = te.placeholder((64, 40), name="X")
W = te.placeholder((5, 40, 24), name="W")
K = te.placeholder((9, 40), name="K")
POSITIONS = te.placeholder((64,), "int32", "P")


def _adjoint(of: Compute, to: te.Tensor) -> te.Tensor:
    return te.gradient(of, [to], head=te.placeholder(of.shape, name="H"))[0]


def convolution() -> Compute:
    k, c = te.reduce_axis((0, 5), "k"), te.reduce_axis((0, 40), "c")
    return te.compute((60, 24), lambda t, o: te.sum(X[t + k, c] * W[k, c, o], [k, c]), "y")


def depthwise() -> Compute:
    k = te.reduce_axis((0, 9), "k")
    return te.compute((56, 40), lambda t, c: te.sum(X[t + k, c] * K[k, c], k), "y")


def prefix() -> Compute:
    k = te.reduce_axis((0, 64), "k")
    return te.compute((64, 40), lambda i, c: te.sum(X[k, c], k, where=k <= i), "y")


def accumulated() -> Compute:
    k = te.reduce_axis((0, 64), "k")
    return te.compute((10, 40), lambda a, c: te.sum(X[k, c], k, where=POSITIONS[k] == a), "y")


def pooled() -> Compute:
    k = te.reduce_axis((0, 3), "k")
    return te.compute((62, 40), lambda t, c: te.max(X[t + k, c], k), "y")


def band() -> Compute:
    c = te.reduce_axis((0, 40), "c")
    return te.compute((50, 15), lambda t, w: te.sum(X[t, c] * X[t + w, c], c), "y")


def few() -> Compute:
    k = te.reduce_axis((0, 3), "k")
    return te.compute((64,), lambda t: te.sum(X[t, k] * X[t, k], k), "y")


def shared_columns() -> Compute:
    k = te.reduce_axis((0, 64), "k")
    return te.compute((64,), lambda i: te.sum(X[k, 0], k, where=k <= 2 * i), "y")


DEFINITIONS: dict[str, Callable[[], te.Tensor]] = {
    "convolution": convolution,
    "its adjoint": lambda: _adjoint(convolution(), X),
    "depthwise": depthwise,
    "depthwise kernel": lambda: _adjoint(depthwise(), K),
    "prefix": prefix,
    "accumulated": accumulated,
    "pooled": pooled,
    "pooled adjoint": lambda: _adjoint(pooled(), X),
    "band": band,
    "few": few,
    "no form": shared_columns,
}


def choices(*tensors: te.Tensor) -> dict[str, Choice]:
    return {choice.tensor: choice for choice in program_of(*tensors).choices}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_the_order_of_the_rows_shows_nowhere(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = DEFINITIONS[name]()
    source, told = text_of(tensor), choices(tensor)
    monkeypatch.setattr(form_table, "FAMILIES", FAMILIES[::-1])
    assert text_of(tensor) == source
    for own in choices(tensor).values():
        before = told[own.tensor]
        assert own.form == before.form
        assert set(own.refused) == set(before.refused)
        assert set(own.estimates) == set(before.estimates)


@pytest.mark.parametrize("name", DEFINITIONS)
def test_candidates_have_names_of_the_table(name: str) -> None:
    listed = {form for family in FAMILIES for form in family.forms} | {GENERAL}
    for choice in choices(DEFINITIONS[name]()).values():
        assert {e.form for e in choice.estimates} <= listed


def test_every_form_is_in_one_row() -> None:
    forms = [form for family in FAMILIES for form in family.forms]
    assert len(forms) == len({*forms})


def test_what_takes_the_place_of_others_needs_no_excuse_of_theirs() -> None:
    refused = {form for form, _ in choices(_adjoint(convolution(), X))["dX"].refused}
    assert not refused & {"scan", "window", "block-skew", "scatter"}


def test_where_no_form_is_left_each_family_says_why() -> None:
    refused = dict(choices(shared_columns())["y"].refused)
    assert "scan" in refused


def test_every_form_has_a_line_in_the_documentation() -> None:
    page = (Path(__file__).parents[3] / "docs" / "forms.md").read_text(encoding="utf-8")
    names = {form for family in FAMILIES for form in family.forms}
    assert {name for name in names if f"`{name}`" not in page} == set()
