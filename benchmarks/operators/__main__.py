"""Measures every operator beside plain JAX and writes docs/operators.md.

python benchmarks/operators                      # all rows
python benchmarks/operators prod conv1d          # some operators; the other figures stay
python benchmarks/operators --slow               # the rows that miss their goal, again: the least times stand
python benchmarks/operators --page               # the page alone, from docs/operators.json
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import jax
from tqdm import tqdm

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

from exact.figures import with_column  # noqa: E402
from harness.clock import Budget  # noqa: E402
from harness.machine import machine  # noqa: E402
from harness.passes import BOTH  # noqa: E402
from operators import basic_rows, further_rows, image_rows  # noqa: E402
from operators.measure import TOLERANCE, measured, with_least  # noqa: E402
from operators.page import further_page, page, ratio  # noqa: E402
from operators.reasons import note_of  # noqa: E402
from operators.row import LEVELS, ROWS  # noqa: E402

# importing the rows registers them
assert basic_rows and image_rows and further_rows
FIGURES, PAGE = ROOT / "docs" / "operators.json", ROOT / "docs" / "operators.md"
FURTHER = ROOT / "docs" / "results" / "operators-further.md"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("operators", nargs="*", help="names of operators or rows; all by default")
    parser.add_argument("--slow", action="store_true", help="only rows that missed their goal before")
    parser.add_argument("--page", action="store_true", help="measure nothing")
    parser.add_argument(
        "--seconds", type=float, default=0.25, help="how long each side of each pass is timed"
    )
    options = parser.parse_args()
    known = json.loads(FIGURES.read_text())["rows"] if FIGURES.exists() else {}
    unknown = [n for n in options.operators if n not in ROWS and n not in {r.operator for r in ROWS.values()}]
    if unknown:
        parser.error(f"there is no operator {', '.join(unknown)}")
    chosen = (
        []
        if options.page
        else [n for n, r in ROWS.items() if not options.operators or {n, r.operator} & set(options.operators)]
    )
    if options.slow:
        chosen = [n for n in chosen if n not in known or _slow(known[n])]
    progress = tqdm(chosen, unit="row", disable=not sys.stderr.isatty())
    for name in progress:
        progress.set_description(name)
        found = measured(ROWS[name], Budget(options.seconds, 5, 400))
        known[name] = with_least(found, known.get(name)) if options.slow else found
        if options.operators or options.slow:
            print(f"{name:45} {ratio(known[name], BOTH) or 1:.2f}", flush=True)
        write(known)
    write(known)


def write(known: dict) -> None:
    """The figures and the page, after each row: what is measured is kept if the command is stopped."""
    order = sorted(ROWS, key=lambda n: list(LEVELS).index(ROWS[n].level))
    figures = {
        "machine": "{cores} cores of {processor}, JAX {jax}".format(**machine(), jax=jax.__version__),
        "tolerance": TOLERANCE,
        "rows": {n: known[n] | _stated(n, known[n]) for n in order if n in known},
    }
    FIGURES.write_text(json.dumps(figures, indent=1) + "\n")
    for path, text in ((PAGE, page(figures)), (FURTHER, further_page(figures))):
        path.write_text(with_column(text, "operators"), encoding="utf-8")


def _stated(name: str, result: dict) -> dict:
    return {"note": note_of(name, result, ROWS[name].note), "target": ROWS[name].target}


def _slow(result: dict) -> bool:
    value = ratio(result, BOTH)
    return value is not None and value < max(result["target"], 0.95)


if __name__ == "__main__":
    main()
