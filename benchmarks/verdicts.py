"""The verdicts of estimates and warnings on the functions of the corpus, beside the ratios that were measured.

    python benchmarks/verdicts.py [names]         # prints the table
    python benchmarks/verdicts.py --write         # renews docs/results/verdicts.md and verdicts.json, about five minutes; with names, their rows

Nothing is compiled or timed: the price of each program comes from its jaxpr (``jaxte/bridge/price``), the measured ratio of both passes to the idiomatic form from docs/corpus.json.
"""

from __future__ import annotations

import argparse
import json
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax

import jaxte as te
from harness.case import CORPUS, IDIOMATIC, JAXTE, Case, load, names
from harness.inputs import draw
from harness.sides import function, heads, with_gradients
from jaxte.bridge.price.amounts import seconds
from jaxte.bridge.price.programs import amounts_of
from jaxte.lower.cost.paces import CPU_PACES

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results"
SLOWER, FASTER = 0.95, 1.3  # ratios below, and above which a verdict is wrong that says otherwise
MARGIN = 1.15  # of an estimated ratio
ONE_VERDICT = 0.9  # of the functions: as many verdicts are to be right


@dataclass(frozen=True)
class Row:
    """One function.

    Attributes:
        name: of the case.
        measured: the time of the idiomatic form over that of jaxte, both passes.
        estimated: the same by their prices.
        warned: whether jaxte warned of one of its passes.
    """

    name: str
    measured: float
    estimated: float
    warned: bool

    @property
    def is_right(self) -> bool:
        """Whether the estimate calls it faster where it is, and not where it is slower; and whether nothing is warned of where it is faster."""
        if self.measured < SLOWER:
            return self.estimated < MARGIN
        return self.measured <= FASTER or (self.estimated >= 1 and not self.warned)


def row(name: str, measured: float) -> Row:
    case = load(name)
    args = draw(case.inputs_at("full"))
    with warnings.catch_warnings(record=True) as met:
        warnings.simplefilter("always")
        own, plain = (price(case, side, args) for side in (JAXTE, IDIOMATIC))
    warned = any(issubclass(w.category, te.PerformanceWarning) for w in met)
    return Row(name, round(measured, 2), round(plain / own, 2), warned)


def price(case: Case, side: str, args: tuple[Any, ...]) -> float:
    """The estimate of a side with its gradients."""
    both = with_gradients(function(case, side), case.differentiated(args))
    return seconds(amounts_of(jax.make_jaxpr(both)(heads(case, IDIOMATIC, args), *args)), CPU_PACES)


def measured() -> dict[str, float]:
    """The ratios of both passes that docs/corpus.json holds."""
    found = json.loads((ROOT / "docs" / "corpus.json").read_text())
    sides = {own["name"]: own["passes"]["forward + backward"]["sides"] for own in found["cases"]}
    return {name: own[IDIOMATIC]["seconds"] / own[JAXTE]["seconds"] for name, own in sides.items()}


def ratio(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def table(rows: list[Row]) -> str:
    lines = ["| function | measured | estimated | warned of | verdict |", "| --- | --- | --- | --- | --- |"]
    for own in sorted(rows, key=lambda r: (r.is_right, r.name)):
        said = "right" if own.is_right else "**wrong**"
        lines.append(
            f"| {own.name} | {ratio(own.measured)} | {ratio(own.estimated)} | {'yes' if own.warned else ''} | {said} |"
        )
    right = sum(own.is_right for own in rows)
    return "\n".join([*lines, "", f"{right} of {len(rows)} verdicts are right."])


HEAD = """# Verdicts beside measurements

Of each function of the [corpus](../corpus.md): how many times as fast both passes were measured to be as the idiomatic form, what the [price of both programs](../design/prices.md) says, and whether a
`te.PerformanceWarning` was given. A verdict is right where the estimate is below 1.15 for what is slower than 0.95 of the idiomatic form, and where it is 1 or more, without a warning, for what is
1.3 times as fast and faster. `python benchmarks/verdicts.py --write` renews this page; it times nothing.

"""


def recorded() -> list[Row]:
    """The rows of the page."""
    return [Row(**own) for own in json.loads((RESULTS / "verdicts.json").read_text())]


def write(rows: dict[str, Row]) -> None:
    kept = sorted(rows.values(), key=lambda own: own.name)
    (RESULTS / "verdicts.json").write_text(json.dumps([asdict(own) for own in kept], indent=1) + "\n")
    (RESULTS / "verdicts.md").write_text(HEAD + table(kept) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    ratios = measured()
    rows = [row(name, ratios[name]) for name in given.names or names(CORPUS) if name in ratios]
    print(table(rows))
    if given.write:
        write({own.name: own for own in [*(recorded() if given.names else []), *rows]})


if __name__ == "__main__":
    main()
