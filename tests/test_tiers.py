"""``make test`` runs the same third of each grid everywhere, and leaves out only what takes long."""

from __future__ import annotations

from pathlib import Path

from tests.tiers import LONG, first_tier, read, recorded


def test_a_third_of_each_grid_and_all_that_has_no_parameters() -> None:
    names = [f"a.py::grid[{n}]" for n in range(9)] + [
        "a.py::alone",
        "a.py::pair[x]",
        "a.py::pair[y]",
        "b.py::grid[1]",
    ]
    found = first_tier(names, {})
    assert found == first_tier(reversed(names), {})
    assert sum(name.startswith("a.py::grid") for name in found) == 3
    assert {"a.py::alone", "b.py::grid[1]"} <= found
    assert sum(name.startswith("a.py::pair") for name in found) == 1


def test_long_ones_are_left_out() -> None:
    assert first_tier(["a.py::long", "a.py::short"], {"a.py::long": LONG, "a.py::short": 0.9 * LONG}) == {
        "a.py::short"
    }


def test_the_report_that_pytest_writes(tmp_path: Path) -> None:
    report = tmp_path / "tests.xml"
    report.write_text(
        '<testsuites><testsuite><testcase classname="tests.lang.test_dtypes" name="test_sum[x-1]" time="1.5"/>'
        "</testsuite></testsuites>",
        encoding="utf-8",
    )
    assert list(read(report)) == [("tests/lang/test_dtypes.py::test_sum[x-1]", 1.5)]


def test_the_record_names_tests_that_are_there() -> None:
    root = Path(__file__).parent.parent
    assert all((root / name.partition("::")[0]).exists() for name in recorded())
