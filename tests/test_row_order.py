"""Rows of one level are asked in any order: what is written is the same, to the letter.

Two rows are held in their places: axes of extent 1 and residues are gone before factors are moved out of sums, and even functions are written alike
before calls are shared. Of the 551 functions of tests/reach.py and of the mechanisms, the 224 that a row of these levels changes were once written
both ways; two of them wanted these places.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import jax
import pytest

import jaxte as te
from harness.case import JAXTE, load
from harness.inputs import draw
from harness.sides import function
from jaxte.lang.rules import Rule
from jaxte.lower.program.rows import PASSES
from jaxte.lower.rewrites.table import AFTER_PADDING, BEFORE_PADDING
from jaxte.planning.graph import GRAPHS, LOOPS, PLAIN, READING, WHOLE
from jaxte.planning.sum_steps import FACTORS, TERMS, WHOLE_VALUES

LEVELS = (
    *(LOOPS, GRAPHS, READING, PLAIN, WHOLE),
    *(WHOLE_VALUES, FACTORS, TERMS),
    *(PASSES, BEFORE_PADDING, AFTER_PADDING),
)
FIRST, LAST = ("even functions",), ("factors outside",)
# in each of the first five, two rows of one level change something
CASES = ("lifted_pairs", "mahalanobis", "mesh_convolution", "rotary_pairs", "envelope", "l2_normalize")


def turned(level: Sequence[Rule[Any, Any]]) -> tuple[Rule[Any, Any], ...]:
    """The rows from the last to the first, those that are held in their places aside."""
    back = level[::-1]
    return tuple(sorted(back, key=lambda row: (row.name in LAST) - (row.name in FIRST)))


def in_place_of(monkeypatch: pytest.MonkeyPatch, turn: Callable[..., Any]) -> None:
    """Each level by ``turn``, wherever it has a name."""
    for module in [m for name, m in sys.modules.items() if name.partition(".")[0] == "jaxte"]:
        for name, value in list(vars(module).items()):
            if any(value is level for level in LEVELS):
                monkeypatch.setattr(module, name, turn(value))


def written(name: str) -> str:
    case = load(name)
    arrays = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in draw(case.inputs_at("full"))]
    return str(te.source(function(case, JAXTE), *arrays))


@pytest.mark.parametrize("name", CASES)
def test_the_order_of_rows_changes_no_text(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = written(name)
    in_place_of(monkeypatch, turned)
    assert written(name) == expected


def test_what_is_held_in_its_place_has_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = written("l2_normalize")
    in_place_of(monkeypatch, lambda level: tuple(reversed(level)))
    assert written("l2_normalize") != expected
