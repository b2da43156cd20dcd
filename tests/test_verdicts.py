"""What estimates and warnings say of the functions of the corpus, beside what was measured: the page of verdicts is true, and nine in ten of them are right."""

from __future__ import annotations

import pytest

from harness.case import CORPUS, names
from verdicts import HEAD, ONE_VERDICT, RESULTS, Row, measured, recorded, row, table

SMALL = ("unfold", "discounted_returns", "contact_map")  # quickly derived


def test_nine_verdicts_in_ten_are_right() -> None:
    rows = recorded()
    assert sum(own.is_right for own in rows) >= ONE_VERDICT * len(rows)


def test_each_function_has_one() -> None:
    assert {own.name for own in recorded()} == set(names(CORPUS))


def test_the_ratios_are_those_that_were_measured() -> None:
    ratios = measured()
    off = [own.name for own in recorded() if abs(own.measured - ratios[own.name]) > 0.01]
    assert not off, f"renew them: python benchmarks/verdicts.py {' '.join(off)} --write"


def test_the_page_has_the_rows() -> None:
    assert (RESULTS / "verdicts.md").read_text() == HEAD + table(recorded()) + "\n"


@pytest.mark.parametrize("name", SMALL)
def test_estimates_are_those_of_the_emitted_programs(name: str) -> None:
    known = {own.name: own for own in recorded()}[name]
    found = row(name, known.measured)
    assert found.warned == known.warned
    assert found.estimated == pytest.approx(known.estimated, rel=0.1)


@pytest.mark.parametrize(
    ("measured", "estimated", "warned", "is_right"),
    [
        (0.5, 0.6, True, True),
        (0.5, 2.0, False, False),
        (2.0, 1.8, False, True),
        (2.0, 1.8, True, False),
        (2.0, 0.7, False, False),
        (1.1, 0.7, True, True),
    ],
)
def test_what_is_right(measured: float, estimated: float, warned: bool, is_right: bool) -> None:
    assert Row("f", measured, estimated, warned).is_right == is_right
