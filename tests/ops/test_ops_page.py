"""The pages of operators have a measured row for every operator, and the table of compatibility has no other."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from exact.figures import with_column
from harness.clock import Budget
from jaxte import ops
from operators import basic_rows, further_rows, image_rows
from operators.measure import measured, with_least
from operators.page import further_page, page, ratio, rows_of
from operators.programs import same_program
from operators.reasons import REASONS, holds_more
from operators.row import ROWS
from tests.operators_table import LEVELS, SCATTERING
from tests.xla_counts import Fused

# importing the rows registers them
assert basic_rows and further_rows and image_rows
DOCS = Path(__file__).parents[2] / "docs"
FIGURES = json.loads((DOCS / "operators.json").read_text())


def test_every_operator_of_the_table_is_there_at_its_level() -> None:
    for level, names in LEVELS.items():
        for name in names.split():
            assert hasattr(ops, name), name
            assert level in {row.level for row in ROWS.values() if row.operator == name}, (level, name)


def test_every_operator_has_a_row() -> None:
    named = {name for names in LEVELS.values() for name in names.split()}
    assert {row.operator for row in ROWS.values()} == set(ops.__all__)
    assert named <= set(ops.__all__)
    # what is beyond the table stands behind it
    assert {row.operator for row in ROWS.values() if row.level != "+"} <= named


def test_the_page_shows_every_row_as_working() -> None:
    named = set()
    for path, made in (("operators.md", page), ("results/operators-further.md", further_page)):
        text = (DOCS / path).read_text(encoding="utf-8")
        assert text == with_column(made(FIGURES), "operators"), "make operators ONLY=--page writes it anew"
        named |= set(rows_of(text))
    assert named == set(ROWS) == set(FIGURES["rows"])
    assert all(figures["works"] for figures in FIGURES["rows"].values())


def test_scatters_are_left_only_where_positions_are_data() -> None:
    scattering = {name.partition(".")[0] for name, r in FIGURES["rows"].items() if r["scatters"]}
    assert scattering <= SCATTERING
    for figures in FIGURES["rows"].values():
        assert all("are data" in reason for reason in figures["scatters"])


def test_what_holds_more_than_plain_jax_says_why() -> None:
    above = {name for name, figures in FIGURES["rows"].items() if holds_more(figures)}
    assert {name for name in above if "temporaries: " not in FIGURES["rows"][name]["note"]} == set()
    assert set(REASONS) - above == set(), "reasons that nothing needs"


@pytest.mark.parametrize("name", ["relu", "take"])
def test_a_row_is_measured(name: str) -> None:
    found = measured(ROWS[name], Budget(0.0, 1, 1))
    assert found["works"] and (ratio(found, "forward") or 0) > 0
    assert bool(found["scatters"]) == (name == "take")


def test_the_least_times_of_the_same_programs_stand() -> None:
    def result(seconds: float, temporaries: int, form: str = "sum") -> dict:
        figures = {"seconds": {"jaxte": seconds, "idiomatic": 2.0}, "temporaries": {"jaxte": temporaries}}
        return {"forms": [form], "scatters": [], "passes": {"forward": figures}}

    def kept(new: dict, old: dict | None) -> float:
        return with_least(new, old)["passes"]["forward"]["seconds"]["jaxte"]

    assert kept(result(3.0, 8), None) == 3.0
    assert kept(result(3.0, 8), result(1.0, 8)) == 1.0
    assert kept(result(1.0, 8), result(3.0, 8)) == 1.0
    assert kept(result(3.0, 8), result(1.0, 16)) == 3.0, "another program"
    assert kept(result(3.0, 8), result(1.0, 8, "einsum")) == 3.0, "another form"


def test_programs_are_the_same_whatever_their_names() -> None:
    def text(fn) -> str:
        return Fused(jax.jit(fn).lower(np.ones((4, 5), np.float32))).as_text()

    first = text(lambda x: jnp.sum(jnp.exp(x) * 2, 1))

    def again(y):
        with jax.named_scope("elsewhere"):
            return jnp.sum(2 * jnp.exp(y), axis=-1)

    assert same_program(first, text(again)) == same_program(text(again), first)
    assert same_program(first, text(lambda z: jnp.sum(jnp.exp(z) * 2, 1)))
    assert not same_program(first, text(lambda x: jnp.sum(jnp.exp(x) * 3, 1)))
    assert not same_program(first, text(lambda x: jnp.sum(jnp.exp(x) * 2, 0)))
