"""Which tests ``make test`` runs: what takes less than 0.2 seconds, and a fixed third of each grid. ``make test-all`` runs everything.

A grid is a test with parameters. Which third is a matter of the names alone, so that every run of every machine runs the same one.

    pytest --junitxml=build/tests.xml; python -m tests.tiers build/tests.xml

renews ``tests/seconds.json``, the tests that take as long or longer, and prints the slowest 30.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

SECONDS = Path(__file__).parent / "seconds.json"
LONG = 0.2  # seconds: one in six of the tests below a second takes longer, and two thirds of the time of all of them
SHOWN = 30


def recorded() -> Mapping[str, float]:
    """The seconds of the tests that take long."""
    return json.loads(SECONDS.read_text(encoding="utf-8"))["seconds"]  # type: ignore[no-any-return]


def first_tier(names: Iterable[str], seconds: Mapping[str, float]) -> set[str]:
    """The names of the tests that ``make test`` runs, of all ``names``."""
    grids: dict[str, list[str]] = {}
    for name in names:
        grids.setdefault(name.partition("[")[0], []).append(name)
    return {name for grid in grids.values() for name in _third(grid) if seconds.get(name, 0.0) < LONG}


def _third(grid: Sequence[str]) -> Sequence[str]:
    """A third of a grid, and at least one of its tests; all of what has no parameters."""
    if len(grid) == 1:
        return grid
    shuffled = sorted(grid, key=lambda name: (zlib.crc32(name.encode()), name))
    return shuffled[: -(-len(grid) // 3)]


def read(report: Path) -> Iterator[tuple[str, float]]:
    """The name and the seconds of each test of a report in JUnit's format."""
    for case in ElementTree.parse(report).iter("testcase"):
        module, name = case.attrib["classname"], case.attrib["name"]
        yield f"{module.replace('.', '/')}.py::{name}", float(case.attrib["time"])


def main(report: str) -> None:
    taken = dict(read(Path(report)))
    slowest = sorted(taken, key=lambda name: -taken[name])
    listed = {name: round(taken[name], 1) for name in sorted(taken) if taken[name] >= LONG}
    told = {"total": round(sum(taken.values())), "tests": len(taken), "seconds": listed}
    SECONDS.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for name in slowest[:SHOWN]:
        print(f"{taken[name]:6.1f} s  {name}")


if __name__ == "__main__":
    main(*sys.argv[1:])
