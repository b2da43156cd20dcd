"""te.grad, jax.grad and all that has a rule, side by side, on losses that were not there when the rules were made.

    python benchmarks/unseen                     # all; half an hour on two cores
    python benchmarks/unseen weno_flux triangles
    python benchmarks/unseen --topic physics     # one module of losses
    python benchmarks/unseen --missing           # what has no figures yet
    python benchmarks/unseen --page              # measure nothing

Renews docs/unseen.json and docs/results/unseen.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import jax
import jax.numpy as jnp

sys.path.insert(0, str(Path(__file__).parents[1]))

import jaxte as te
from unseen import LOSSES
from unseen.measure import DEFAULT, EVERYTHING, PLAIN, Figures, allowed, measured, traced
from unseen.page import known, write


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("--topic", nargs="+", default=())
    parser.add_argument("--missing", action="store_true", help="only what has no figures")
    parser.add_argument("--page", action="store_true", help="measure nothing")
    options = parser.parse_args()
    warm()
    for name, own in LOSSES.items():
        asked = (not options.names or name in options.names) and (
            not options.topic or own.topic in options.topic
        )
        if options.page or not asked or (options.missing and name in known()):
            continue
        found = measured(own)
        print(line(name, found), flush=True)
        write(known() | {name: found})
    write(known())
    return 0


def warm() -> None:
    """What is loaded once is not a part of tracing."""
    for f in (jax.grad, te.grad):
        traced(f(lambda x: jnp.sum(jnp.cumsum(x[1:] * x[:-1]) ** 2)), (jnp.ones(3000),))


def line(name: str, f: Figures) -> str:
    late = "  LATE" if f["trace_s"][DEFAULT] > allowed(f) else ""
    traces = "/".join(f"{f['trace_s'][kind]:.2f}" for kind in (DEFAULT, EVERYTHING, PLAIN))
    return (
        f"{name:26} default {f['factor'][DEFAULT]:6.2f}  everything {f['factor'][EVERYTHING]:6.2f}  of {f['ms'][PLAIN]:7.2f} ms  "
        f"{f['regions']} regions, {f['loops']} loops{', by price' if f['by_price'] else ''}  trace {traces}{late}  error {f['error']:.0e}"
    )


if __name__ == "__main__":
    sys.exit(main())
