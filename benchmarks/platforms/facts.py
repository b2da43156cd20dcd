"""What each fact of a platform's row is worth: a case as the row says and the other way round, compiled for the described device.

    python benchmarks/platforms/facts.py --platform tpu                     # all facts that have a case; in the environment that has the compiler
    python benchmarks/platforms/facts.py --platform gpu tests_pads          # some, without the page
    python benchmarks/platforms/facts.py --platform tpu --write             # and docs/results/platforms-facts-tpu.md

Forward + backward, by the model of docs/platforms.md. A fact holds where the program that relies on it is faster; what a CPU makes of facts
is timed by ``python benchmarks/platform_facts.py``.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
ROOT = Path(__file__).parents[2]
if __name__ == "__main__":
    sys.path[0] = str(ROOT / "benchmarks")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

import jaxte as te  # noqa: E402
from harness.case import IDIOMATIC, JAXTE, load  # noqa: E402
from harness.inputs import draw  # noqa: E402
from harness.sides import heads, with_gradients  # noqa: E402
from jaxte.lower.cost.platforms import PLATFORMS, platform_of  # noqa: E402
from platforms.kernels import figures, parsed  # noqa: E402
from platforms.topology import DEVICES, compiled  # noqa: E402
from timing import markdown  # noqa: E402

# a case whose text depends on the fact; of a number the value that is compared with
CASES: dict[str, tuple[str, Any]] = {
    "drops_barriers": ("sobel", None),
    "copies_for_products": ("layer_norm", None),
    "fuses_places": ("max_pool_2_2", None),
    "combines_singly": ("chamfer", None),
    "computes_again": ("perona_malik", None),
    "tests_pads": ("stencil_5_point_padded", None),
    "fuses_products": ("gaussian_sum_4096", None),
    "groups_in_loops": ("conv2d_groups_4", None),
    "joins_apart": ("stencil_5_point_rolled", None),
    "copies_overlaps": ("cost_volume", None),
    "reads_windows_again": ("max_pool_7_1", None),
    "pads_rows": ("trilinear", None),
    "copies_transposed": ("histogram_intersection", None),
    "moves_lanes_apart": ("nearest_upsampling", None),
    "window_extrema": ("max_pool_3_1", 1),
    "fuses_rows": ("softmax", None),
    "sums_apart": ("squared_distances", None),
    "loop": ("discounted_returns", 0),
}
# what each trip of a `while` computes
TRIPS, SIDE = 1000, 256
LOOPS: dict[str, Any] = {
    "a vector, scaled": lambda x, _: lax.fori_loop(0, TRIPS, lambda _, x: 0.9 * x + 1, x),
    "a row written": lambda x, _: lax.scan(lambda x, _: (0.9 * x + 1, x), x, None, TRIPS)[1],
    "a matrix times the vector": lambda x, a: lax.fori_loop(0, TRIPS, lambda _, x: jnp.tanh(a @ x), x),
}
HEADER = ["fact", "the row says", "case", "times as fast as the other way", "us", "kernels", "MB"]
_FLIPPED = "the other way"


def programs(fact: str, platform: str) -> Iterator[tuple[str, Any, list[Any]]]:
    """The text of a case as the row says and the other way round, its passes and their arguments."""
    name, other = CASES[fact]
    row = platform_of(platform)
    PLATFORMS[_FLIPPED] = replace(row, **{fact: not getattr(row, fact) if other is None else other})
    case = load(name)
    args = draw(case.inputs_at("full"))
    argnums = case.differentiated(args)
    for own in (platform, _FLIPPED):
        fn = te.function(case.sides[JAXTE], platform=own)
        text = str(te.source(fn, *args))
        yield text, with_gradients(fn, argnums), [heads(case, IDIOMATIC, args), *args]


def line(fact: str, platform: str) -> list[str]:
    """The row of the table."""
    own, other = programs(fact, platform)
    name, says = f"`{CASES[fact][0]}`", str(getattr(platform_of(platform), fact))
    if own[0] == other[0]:
        return [f"`{fact}`", says, name, "the same program", "", "", ""]
    found = []
    for _, fn, args in (own, other):
        try:
            found.append(figures(compiled(fn, args, platform), platform))
        except jax.errors.JaxRuntimeError as error:  # what the compiler refuses stands in the table
            return [f"`{fact}`", says, name, str(error).splitlines()[0][:60], "", "", ""]
    first, second = found
    return [
        f"`{fact}`",
        says,
        name,
        f"{second['seconds'] / first['seconds']:.2f}",
        " / ".join(f"{1e6 * f['seconds']:.1f}" for f in found),
        " / ".join(str(f["kernels"]) for f in found),
        " / ".join(f"{f['bytes'] / 1e6:.1f}" for f in found),
    ]


def trip(name: str, platform: str) -> list[str]:
    """What a trip of a loop takes, by the model."""
    args = [jax.ShapeDtypeStruct((SIDE,), "float32"), jax.ShapeDtypeStruct((SIDE, SIDE), "float32")]
    text = parsed(compiled(LOOPS[name], args, platform).as_text(), platform)
    (loop,) = (i for body in text.bodies.values() for i in body if i.kind == "while")
    spent = text.of(loop.called("body"))
    return [name, str(spent.kernels), f"{1e6 * spent.seconds:.1f}"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("facts", nargs="*", help=f"by default all: {', '.join(CASES)}")
    parser.add_argument("--platform", choices=("gpu", "tpu"), required=True)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if unknown := [f for f in options.facts if f not in CASES]:
        parser.error(f"no case for {', '.join(unknown)}; there is one for each of {', '.join(CASES)}")
    table = []
    for fact in options.facts or CASES:
        table.append(line(fact, options.platform))
        print(*table[-1], sep=" | ", flush=True)
    trips = [trip(name, options.platform) for name in LOOPS if not options.facts]
    print(*trips, sep="\n")
    if options.write:
        page = ROOT / "docs" / "results" / f"platforms-facts-{options.platform}.md"
        head = (
            f"# Platforms: facts of the {options.platform}\n\n`python benchmarks/platforms/facts.py --platform {options.platform} --write`: what each fact of the row "
            f"`{options.platform}` of `jaxte/lower/cost/platforms.py` is worth, by the model of [platforms](../platforms.md) for {DEVICES[options.platform]}: a case as the row says / with the "
            "fact turned round, forward + backward.\n"
        )
        loops = f"A trip of a `while`, of a vector of {SIDE} elements:\n\n{markdown(['what it computes', 'kernels', 'us'], trips)}"
        page.write_text(f"{head}\n{markdown(HEADER, table)}\n\n{loops}\n")


if __name__ == "__main__":
    main()
