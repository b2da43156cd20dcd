"""te.grad beside jax.grad on losses of other libraries and on threads: renews docs/wild.json and docs/wild.md.

    python benchmarks/wild                       # all; about half an hour on two cores
    python benchmarks/wild pix_ssim euler_by_rolls
    python benchmarks/wild --missing             # what has no figures yet
    python benchmarks/wild --group threads       # one module of losses
    python benchmarks/wild --everything NAMES    # what te.adjoint(everything=True) gains; nothing is written

Each module of losses runs in a process of its own. Both programs are called in turn for 20 ms each, and the second least processor time
of all cores is kept. A loss whose program is the same counts as 1.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
from pathlib import Path

import jax

sys.path.insert(0, str(Path(__file__).parents[1]))

from wild.measure import Figures, measured
from wild.page import known, write
from wild.registry import LOSSES

GROUPS = ("networks", "images", "physics", "particles", "densities", "solvers", "threads")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("--group", nargs="+", choices=GROUPS, default=GROUPS)
    parser.add_argument("--missing", action="store_true", help="only what has no figures")
    parser.add_argument("--everything", action="store_true", help="all that has a rule is raised")
    parser.add_argument("--page", action="store_true", help="measure nothing")
    parser.add_argument("--here", action="store_true", help="in this process")
    options = parser.parse_args()
    if options.page:
        write(known())
        return 0
    if options.here:
        return sum(_group(group, options) for group in options.group)
    passed = [a for a in sys.argv[1:] if a not in ("--group", *GROUPS)]
    runs = [
        subprocess.run(
            [sys.executable, str(Path(__file__).parent), *passed, "--here", "--group", group], check=False
        )
        for group in options.group
    ]
    return max(run.returncode for run in runs)


def _group(group: str, options: argparse.Namespace) -> int:
    """Measures the losses of a module; 1 if one of them failed."""
    importlib.import_module(f"wild.{group}")
    failed = 0
    for name, own in LOSSES.items():
        if (options.names and name not in options.names) or (options.missing and name in known()):
            continue
        try:
            found = measured(own, options.everything)
        except Exception as problem:  # a library's own failure is one row, not the end of all
            print(f"{name:26} {type(problem).__name__}: {str(problem)[:300]}", flush=True)
            failed = 1
            continue
        print(_line(name, found), flush=True)
        if not options.everything:
            write(known() | {name: found})
        jax.clear_caches()
    return failed


def _line(name: str, f: Figures) -> str:
    finite = "" if all(f["finite"]) else f"  finite: {f['finite']}"
    return (
        f"{name:26} {f['factor']:6.2f}  {f['regions']} regions, {f['loops']} loops, {f['parts']} parts, {f['guarded']} guarded  "
        f"trace {f['trace_s']:.2f}/{f['jax_trace_s']:.2f}  compile {f['compile_s']:.1f}/{f['jax_compile_s']:.1f}  "
        f"MB {f['temporaries'] / 1e6:.2f}/{f['jax_temporaries'] / 1e6:.2f}  error {f['error']:.0e}{finite}"
    )


if __name__ == "__main__":
    sys.exit(main())
