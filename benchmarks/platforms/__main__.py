"""Suite, corpus, raised functions and operators compiled for a GPU and a TPU that need not be there, beside plain JAX.

    python benchmarks/platforms --platform gpu                       # all groups; in the environment that has the compiler
    python benchmarks/platforms --platform tpu --group corpus        # one of cases, corpus, raised, operators
    python benchmarks/platforms --platform gpu --only sobel          # some functions; the other figures stay
    python benchmarks/platforms --page                               # docs/platforms.md alone, from docs/platforms.json

``make platforms`` makes an environment for each compiler and runs them all. Figures are written after each function.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
ROOT = Path(__file__).parents[2]
sys.path[0] = str(ROOT / "benchmarks")

import jax  # noqa: E402

from platforms.functions import GROUPS, Pair, listed, pairs  # noqa: E402
from platforms.kernels import figures  # noqa: E402
from platforms.page import page  # noqa: E402
from platforms.topology import DEVICES, compiled  # noqa: E402

FIGURES, PAGE = ROOT / "docs" / "platforms.json", ROOT / "docs" / "platforms.md"


def measured(pair: Pair, platform: str) -> dict[str, Any]:
    """Both programs of a pass, or what kept one from being compiled."""
    found: dict[str, Any] = {}
    for side, fn in (("jaxte", pair.ours), ("plain", pair.plain)):
        try:
            found[side] = figures(compiled(fn, pair.args, platform), platform)
        except jax.errors.JaxRuntimeError as error:  # what the compiler refuses stands in the table
            found[side] = {"error": str(error).splitlines()[0][:200]}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--platform", choices=DEVICES)
    parser.add_argument("--group", nargs="+", choices=GROUPS, default=GROUPS)
    parser.add_argument("--only", nargs="+", default=())
    parser.add_argument("--size", default="full", choices=("full", "quick", "tiny"))
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--json", type=Path, default=FIGURES)
    options = parser.parse_args()
    data = json.loads(options.json.read_text()) if options.json.exists() else {}
    for group in options.group if options.platform else ():
        for name in listed(group):
            if options.only and name not in options.only:
                continue
            start = time.perf_counter()
            found = {
                pair.which: measured(pair, options.platform)
                for pair in pairs(group, name, options.platform, options.size)
            }
            data.setdefault(options.platform, {}).setdefault(group, {})[name] = found
            ratios = [
                round(f["plain"]["seconds"] / f["jaxte"]["seconds"], 2)
                for f in found.values()
                if not any("error" in side for side in f.values())
            ]
            print(f"{options.platform} {group} {name:28} {ratios} {time.perf_counter() - start:.0f} s", flush=True)  # fmt: skip
            options.json.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n")
            jax.clear_caches()
    if options.page or options.json == FIGURES:
        PAGE.write_text(page(data))


if __name__ == "__main__":
    main()
