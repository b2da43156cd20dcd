"""What numbers with a name are used for is told apart, and thresholds become no more."""

from __future__ import annotations

from pathlib import Path

from tests.thresholds import CALCULATED, GIVEN, ROUNDING, TEXT, THRESHOLDS, kinds

MOST = 78  # thresholds of jaxte; a new one is rather a row of jaxte/lang/limits.py


def test_kinds_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "MOST = 3  # parts\nPRICE, HEIGHT = 2, 4\n_LONG = 9  # characters\nSLACK = 1e-6  # of rounding\nf(HEIGHT)\n"
    )
    (tmp_path / "b.py").write_text(
        f"from {tmp_path.name}.a import MOST as most, PRICE\nprint(n < 2 * most, PRICE * n, n == PRICE, max(0, n - PRICE))\n"
    )
    found = {kind: [n.name for n in own] for kind, own in kinds(tmp_path).items()}
    assert found == {
        THRESHOLDS: ["MOST"],
        TEXT: ["_LONG"],
        ROUNDING: ["SLACK"],
        CALCULATED: ["PRICE"],
        GIVEN: ["HEIGHT"],
    }


def test_thresholds_become_no_more() -> None:
    assert len(kinds()[THRESHOLDS]) <= MOST
