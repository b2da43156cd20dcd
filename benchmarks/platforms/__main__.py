"""Suite, corpus, raised functions and operators compiled for a GPU and a TPU that need not be there, beside plain JAX.

    python benchmarks/platforms --platform gpu                       # all groups; in the environment that has the compiler
    python benchmarks/platforms --platform tpu --group corpus        # one of cases, corpus, raised, operators
    python benchmarks/platforms --platform gpu --only sobel          # some functions; the other figures stay
    python benchmarks/platforms --platform gpu --stale               # cases whose emitted text is not the one that was measured, figures by an earlier model
    python benchmarks/platforms --page                               # docs/platforms.md alone, from docs/platforms.json

``make platforms`` makes an environment for each compiler and runs them all. Figures are written after each function.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from contextlib import closing
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
ROOT = Path(__file__).parents[2]
sys.path[0] = str(ROOT / "benchmarks")

from platforms.compilations import Compilations  # noqa: E402
from platforms.functions import GROUPS, listed  # noqa: E402
from platforms.kernels import is_earlier  # noqa: E402
from platforms.page import page, ratio, tables  # noqa: E402
from platforms.side_by_side import draw, speeds, whole  # noqa: E402
from platforms.texts import HASHED, TEXTS, text_hash  # noqa: E402
from platforms.topology import DEVICES  # noqa: E402

FIGURES, PAGE = ROOT / "docs" / "platforms.json", ROOT / "docs" / "platforms.md"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--platform", choices=DEVICES)
    parser.add_argument("--group", nargs="+", choices=GROUPS, default=GROUPS)
    parser.add_argument("--only", nargs="+", default=())
    parser.add_argument(
        "--missing", action="store_true", help="only functions that the file has no figures of"
    )
    parser.add_argument("--size", default="full", choices=("full", "quick", "tiny"))
    parser.add_argument(
        "--limit", type=float, default=60, help="seconds that a program may take to be compiled"
    )
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--json", type=Path, default=FIGURES)
    parser.add_argument(
        "--stale",
        action="store_true",
        help="only functions whose emitted text changed since, or whose figures are by an earlier model",
    )
    parser.add_argument(
        "--texts",
        type=Path,
        help="a folder to keep the compiled texts in, for benchmarks/platforms/kernels.py",
    )
    options = parser.parse_args()
    data = json.loads(options.json.read_text()) if options.json.exists() else {}
    wanted = [(g, n) for g in options.group for n in listed(g) if not options.only or n in options.only]
    if options.missing:
        known = data.get(options.platform, {})
        wanted = [(g, n) for g, n in wanted if n not in known.get(g, {})]
    if options.stale:
        known, taken = data.get(TEXTS, {}).get(options.platform, {}), data.get(options.platform, {})
        wanted = [
            (g, n)
            for g, n in wanted
            if is_earlier(taken.get(g, {}).get(n, {}), options.platform)
            or (g in HASHED and text_hash(n, options.platform) != known.get(n))
        ]
    with closing(Compilations(options.limit, options.texts)) as compilations:
        for group, name in wanted if options.platform else ():
            start = time.perf_counter()
            found = compilations.of(group, name, options.platform, options.size)
            data.setdefault(options.platform, {}).setdefault(group, {})[name] = found
            if group in HASHED:
                own = text_hash(name, options.platform, options.size)
                data.setdefault(TEXTS, {}).setdefault(options.platform, {})[name] = own
            ratios = [r and round(r, 2) for f in found.values() for r in [ratio(f)]]
            print(f"{options.platform} {group} {name:28} {ratios} {time.perf_counter() - start:.0f} s", flush=True)  # fmt: skip
            options.json.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n")
    if options.page or options.json == FIGURES:
        beside = speeds(data)
        PAGE.write_text(page(data, beside))
        (PAGE.parent / "results" / "platforms-side-by-side.md").write_text(whole(beside))
        draw(beside, PAGE.with_suffix(".png"))
        for path, text in tables(data).items():
            (PAGE.parent / path).write_text(text)


if __name__ == "__main__":
    main()
