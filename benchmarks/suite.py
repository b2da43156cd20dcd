"""jaxte beside other forms of the same functions: times, XLA's counts, and the distance to what the machine can do.

    python benchmarks/suite.py                               # all cases; about eleven minutes on two cores
    python benchmarks/suite.py --quick                       # small sizes and few rounds: within five minutes
    python benchmarks/suite.py --case conv2d max_pool_2_2    # some of them
    python benchmarks/suite.py --corpus                      # the functions of benchmarks/corpus instead, whose page is docs/corpus.md
    python benchmarks/suite.py --case conv2d --update        # and the other figures from the folder of the results
    python benchmarks/suite.py --write                       # also into docs/performance.md
    python benchmarks/suite.py --case ssim --update --write  # a selection into the page, beside the figures that it has

Writes suite.md, suite.json and suite.png into --out. Each case is a file of benchmarks/cases and runs in a process of its
own. It measures on the device that JAX sees: JAX_PLATFORMS=cpu or cuda chooses one.
"""

from __future__ import annotations

import argparse
import difflib
import json
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tqdm import tqdm

from exact.figures import with_column
from harness import chart
from harness.case import CORPUS, SUITE, names
from harness.processes import run, run_case
from harness.table import counts_report, report

DOCUMENT = Path(__file__).parent.parent / "docs" / "performance.md"
CORPUS_DOCUMENT = DOCUMENT.with_name("corpus.md")
COUNTS = DOCUMENT.parent / "results"
RESULTS = Path("benchmarks/results")
BEGIN, END = "<!-- suite -->", "<!-- /suite -->"
LIMITS = {"full": 600.0, "quick": 40.0, "tiny": 60.0}


def machine_now(size: str) -> dict[str, Any]:
    """The machine and its ceilings."""
    found = run("machine", "-", size, 120.0)
    if "error" in found:
        raise SystemExit(f"the machine could not be measured: {found['error']}")
    return found


def measured(
    machine: dict[str, Any], chosen: list[str], size: str, limit: float, rounds: int
) -> Iterator[dict[str, Any]]:
    """The figures of the ``chosen`` cases with the machine and its ceilings, again after each case.

    The ceilings are measured before the cases and after them; the higher ones stand, since a busy machine can only lower them.
    """
    data = {"size": size, "cases": []} | machine
    progress = tqdm(chosen, unit="case", file=sys.stderr, disable=not sys.stderr.isatty())
    for name in progress:
        progress.set_description(name)
        data["cases"].append({"name": name, "title": name} | run_case(name, size, limit, rounds))
        yield data
    after = machine_now(size)["ceilings"]
    data["ceilings"] = {rate: max(value, after[rate]) for rate, value in data["ceilings"].items()}
    yield data


def check_same(old: dict[str, Any], size: str, machine: dict[str, Any]) -> None:
    """Figures stand beside each other only if they are of the same sizes, processor and device."""
    was, now = ((s, m["processor"], m["device"]) for s, m in ((old["size"], old["machine"]), (size, machine)))
    if was != now:
        raise SystemExit(
            f"the figures in --out are of another machine or of other sizes: {', '.join(was)}"
            f"; these are {', '.join(now)}. Choose another --out"
        )


def updated(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """``old`` with the cases of ``new``; the higher ceilings stand here too."""
    cases = {case["name"]: case for case in (*old["cases"], *new["cases"])}
    rates = {rate: max(value, old["ceilings"][rate]) for rate, value in new["ceilings"].items()}
    return new | {"ceilings": rates, "cases": [cases[name] for name in sorted(cases)]}


def save(data: dict[str, Any], folder: Path) -> str:
    """The three files, and the text."""
    folder.mkdir(parents=True, exist_ok=True)
    text = f"{report(data)}\n### What XLA counts, forward + backward\n\n{counts_report(data)}"
    (folder / "suite.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    (folder / "suite.md").write_text(text, encoding="utf-8")
    chart.draw(data, folder / "suite.png")
    return text


def write_document(data: dict[str, Any], folder: Path, document: Path, counted: Path) -> None:
    """Put the times between the markers of ``document``, the counts between those of ``counted``, and the other two files beside the first."""
    group = CORPUS if document == CORPUS_DOCUMENT else "suite"
    for page, text in ((document, report(data)), (counted, counts_report(data))):
        head, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
        _, _, tail = rest.partition(END)
        page.write_text(with_column(f"{head}{BEGIN}\n{text}{END}{tail}", group), encoding="utf-8")
    for suffix in (".json", ".png"):
        shutil.copyfile(folder / f"suite{suffix}", document.with_suffix(suffix))


def counts_page(document: Path) -> Path:
    """The page of XLA's counts of the same functions."""
    return COUNTS / f"{document.stem}-counts.md"


def document_of(cases: list[str]) -> Path:
    """The page of the suite or of the corpus, whichever ``cases`` are of."""
    known = names(CORPUS)
    folders = {name in known for name in cases}
    if len(folders) > 1:
        raise SystemExit(
            "some of these cases are of the suite and some of the corpus: measure them one after the other"
        )
    return CORPUS_DOCUMENT if True in folders else DOCUMENT


def case_name(text: str) -> str:
    """``text`` as it is, if a case is called so."""
    known = [*names(), *names(CORPUS)]
    if text in known:
        return text
    close = " or ".join(difflib.get_close_matches(text, known, 3, 0.4))
    hint = f"did you mean {close}?" if close else f"the cases are {', '.join(known)}"
    raise argparse.ArgumentTypeError(f"there is no case {text!r}; {hint}")


def figures_of(path: Path) -> dict[str, Any]:
    """The figures that the suite wrote to ``path``."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError) as error:
        raise SystemExit(f"{path} holds no figures of the suite: {error}") from None
    if not {"machine", "size", "cases", "ceilings"} <= set(found):
        raise SystemExit(f"{path} holds no figures of the suite")
    return found


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, few rounds")
    parser.add_argument("--size", choices=LIMITS, help="sizes of the cases; tiny is for tests")
    parser.add_argument("--corpus", action="store_true", help="functions as a user spells them first")
    parser.add_argument("--case", nargs="+", metavar="NAME", type=case_name, help="only these cases")
    parser.add_argument(
        "--rounds", type=int, default=0, help="timed calls of each side; by default as time allows"
    )
    parser.add_argument("--limit", type=float, help="seconds for one case")
    parser.add_argument(
        "--out", type=Path, help=f"folder of the results, by default {RESULTS} or {RESULTS}/corpus"
    )
    parser.add_argument(
        "--write", action="store_true", help="put the table into docs/performance.md, or docs/corpus.md"
    )
    parser.add_argument(
        "--update",
        action="store_true",
        help="keep the figures of other cases: of those in --out, else of the page",
    )
    parser.add_argument("--from", dest="saved", type=Path, help="report the figures of this suite.json again")
    return parser.parse_args()


def main() -> int:
    args = arguments()
    # so that a terminated suite ends the worker of the moment too
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if args.saved:
        start = figures_of(args.saved)
        chosen = [case["name"] for case in start["cases"]]
    else:
        chosen = args.case or names(CORPUS if args.corpus else SUITE)
    document = document_of(chosen)
    out = args.out or (RESULTS if document == DOCUMENT else RESULTS / "corpus")
    kept = None
    if args.update:
        there = out / "suite.json"
        kept = figures_of(there if args.out or there.exists() else document.with_suffix(".json"))
    if args.saved:
        size, runs = start["size"], iter([start])
    else:
        size = args.size or ("quick" if args.quick else "full")
        start = machine_now(size)
        runs = measured(start, chosen, size, args.limit or LIMITS[size], args.rounds)
    if kept:
        check_same(kept, size, start["machine"])
    for found in runs:
        data = updated(kept, found) if kept else found
        # after each case, so that what is measured stands even if the run is stopped
        text = save(data, out)
    if args.write:
        write_document(data, out, document, counts_page(document))
    print(text)
    return 1 if any(case.get("error") for case in data["cases"]) else 0


if __name__ == "__main__":
    sys.exit(main())
