"""Measures how exact every function is beside plain JAX, and writes docs/exactness.md.

python benchmarks/exact                              # all groups, in float32 and bfloat16; about forty minutes on two cores
python benchmarks/exact --group sums raised          # some groups: suite, corpus, raised, operators, sums
python benchmarks/exact conv2d rosenbrock            # some functions; the other figures stay
python benchmarks/exact --missing                    # what has no figure yet
python benchmarks/exact --broken                     # what broke the law, again
python benchmarks/exact --page                       # the pages alone, from docs/exactness.json

The column "exact" of docs/performance.md, docs/corpus.md, docs/raising.md and docs/operators.md is of the same figures.
Ends with status 1 if a function that was measured breaks the law.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import jax
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).parents[1]))

from exact.figures import FIGURES, PAGES, Known, breaks, known_figures, with_column
from exact.measure import DTYPES, measured
from exact.page import PAGE, pages
from exact.subjects import GROUPS, Subject, subjects


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="of functions; all by default")
    parser.add_argument("--group", nargs="+", choices=GROUPS, default=GROUPS)
    parser.add_argument("--dtype", nargs="+", choices=DTYPES, default=DTYPES)
    parser.add_argument("--missing", action="store_true", help="only what has no figure")
    parser.add_argument("--broken", action="store_true", help="only what broke the law")
    parser.add_argument("--page", action="store_true", help="measure nothing")
    options = parser.parse_args()
    known = known_figures()
    chosen = [] if options.page else _chosen(options, known)
    failed = False
    progress = tqdm(chosen, unit="function", disable=not sys.stderr.isatty())
    for subject, dtype in progress:
        progress.set_description(subject.name)
        found = measured(subject, dtype)
        known[subject.group].setdefault(subject.name, {})[dtype] = found
        broken = breaks(found)
        failed |= broken
        print(
            f"{subject.group:9} {subject.name:36} {dtype:9} {_told(found)}{'  <<<' if broken else ''}",
            flush=True,
        )
        jax.clear_caches()
        write(known)
    write(known)
    for group, path in ((group, PAGE.parent / name) for group, own in PAGES.items() for name in own):
        path.write_text(with_column(path.read_text(encoding="utf-8"), group), encoding="utf-8")
    return int(failed)


def _chosen(options: argparse.Namespace, known: Known) -> list[tuple[Subject, str]]:
    everything = [s for group in options.group for s in subjects(group)]
    unknown = set(options.names) - {s.name for s in everything}
    if unknown:
        raise SystemExit(f"there is no function {', '.join(sorted(unknown))} in {', '.join(options.group)}")
    for group in options.group:  # what is gone has no figures
        here = {s.name for s in everything if s.group == group}
        known[group] = {name: found for name, found in known[group].items() if name in here}
    found = [
        (s, d) for s in everything for d in options.dtype if not options.names or s.name in options.names
    ]
    if options.missing:
        found = [(s, d) for s, d in found if d not in known[s.group].get(s.name, {})]
    if options.broken:
        found = [(s, d) for s, d in found if known[s.group].get(s.name, {}).get(d, {}).get("worst", 0) > 1]
    return found


def _told(found: dict) -> str:
    if "worst" not in found:
        return found["reason"]
    errors = [
        f"{what} {found[what][0]:.1f} / {found[what][1]:.1f}"
        for what in ("values", "gradients")
        if what in found
    ]
    return f"{found['worst']:8.2f}  " + ", ".join(errors) + found.get("error", "")


def write(known: Known) -> None:
    """The figures and the page, after each function: what is measured is kept if the command is stopped."""
    order = {group: list(found) for group, found in known.items()}
    FIGURES.write_text(
        json.dumps({g: {n: known[g][n] for n in names} for g, names in order.items()}, indent=1) + "\n"
    )
    for path, text in pages(known).items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
