"""`make exact`: errors in units in the last place, the law, and the column of the pages. Every figure of the page is within the law, or has a cause."""

from __future__ import annotations

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from exact.figures import HEADER, known_figures, with_column
from exact.measure import measured
from exact.page import pages
from exact.reasons import CAUSES
from exact.subjects import Subject

DOCS = Path(__file__).parent.parent / "docs"


def subject(ours: float, theirs: float) -> Subject:
    """``x`` and ``2 * x``, the gradient so many units off."""
    unit = 2.0**-23

    def side(units: float) -> object:
        return lambda x: ([x], [(2 * x) * (1 + units * unit if x.dtype == jnp.float32 else 1)])

    draw = lambda seed: [np.random.default_rng(seed).uniform(1, 2, 8).astype("float32")]  # noqa: E731
    return Subject("sums", "own", side(ours), side(theirs), draw)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ours", "theirs", "breaks"), [(3, 0, False), (16, 0, True), (16, 12, False), (40, 12, True)]
)
def test_the_law(ours: float, theirs: float, breaks: bool) -> None:
    found = measured(subject(ours, theirs), "float32")
    assert found["values"] == [0.0, 0.0]
    assert found["gradients"][0] == pytest.approx(ours, abs=1.1)
    assert (found["worst"] > 1) == breaks


def test_the_column_stays_one_column() -> None:
    text = (DOCS / "operators.md").read_text(encoding="utf-8")
    assert with_column(text, "operators") == text
    bare = text.replace(f" {HEADER} |", "")
    assert bare.count("| `exp` |") == text.count("| `exp` |") and bare != text


def test_what_breaks_the_law_has_a_cause() -> None:
    known = known_figures()
    broken = {
        (name, dtype)
        for group in known.values()
        for name, by in group.items()
        for dtype, found in by.items()
        if found.get("worst", 0) > 1
    }
    assert {name for name, _ in broken} <= set(CAUSES)
    assert set(CAUSES) <= {name for name, _ in broken}, "a cause of what keeps the law"
    for path, text in pages(known).items():
        assert path.read_text(encoding="utf-8") == text
    assert json.loads((DOCS / "exactness.json").read_text(encoding="utf-8")) == known
