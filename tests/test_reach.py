"""Each row changes three functions, or gains in three that it was not made for."""

from __future__ import annotations

import json

from jaxte.lower.program.rows import rows
from tests.lower.mechanism import as_named
from tests.lower.mechanisms import MECHANISMS
from tests.reach import PLATFORMS, RECORD

FEWEST = 3
RECORDED = json.loads(RECORD.read_text(encoding="utf-8"))
NAMES = [name for own in rows().values() for name, _ in own]


def changes(row: str) -> int:
    """The functions that a row changes on the platform on which it changes the most."""
    return max(RECORDED[p]["rows"].get(row, {"changes": 0})["changes"] for p in PLATFORMS)


def test_rows_have_three_functions() -> None:
    shown = {m.name for m in MECHANISMS if m.without is as_named}
    assert not {row for row in NAMES if changes(row) < FEWEST and row not in shown}


def test_the_record_knows_no_other_rows() -> None:
    assert {row for p in PLATFORMS for row in RECORDED[p]["rows"]} <= set(NAMES)
