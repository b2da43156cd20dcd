"""What each fact of the platform's row in ``jaxte.lower.cost.platforms`` is worth here: a case with it and without it.

    python benchmarks/platform_facts.py [facts]
    python benchmarks/platform_facts.py written

Forward and backward passes of both programs are called in turn; medians. A fact holds where the program that relies on it is faster.

``written`` is the rate of that name: how many terms of a sum that is written out XLA compiles a second, the slope of the time for 16 to 128 of them,
and as how many terms the rest of a program counts.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

import jax
import numpy as np

import jaxte as te
from harness.case import IDIOMATIC, JAXTE, load
from harness.inputs import draw
from harness.sides import heads, with_gradients
from jaxte.lower.cost.platforms import PLATFORMS, platform_of
from timing import interleaved, markdown

CASES = {
    "drops_barriers": "cost_volume",
    "copies_for_products": "layer_norm",
    "fuses_places": "max_pool_2_2",
    "fuses_pads": "max_pool_3_1",
    "convolves_alone": "conv2d",
    "combines_singly": "chamfer",
    "divides_positions": "attention_window_long",
}
WRITTEN = "written"  # no fact, but a rate
Call = Callable[[], Any]


def of_segments(platform: str) -> Call:
    """64 segments of 5,000 rows with 32 columns."""
    i = te.reduce_axis((0, 5000), "i")

    def build(x: te.Tensor, o: te.Tensor) -> te.Tensor:
        return te.compute(
            (64, 32), lambda s, c: te.sum(x[i, c], axis=i, where=te.logical_and(i >= o[s], i < o[s + 1])), "y"
        )

    rng = np.random.default_rng(0)
    x = rng.standard_normal((5000, 32)).astype("float32")
    bounds = np.sort(rng.integers(0, 5000, 65)).astype("int32")
    fn = jax.jit(te.function(build, platform=platform))
    return lambda: fn(x, bounds)


def of_rows(platform: str) -> Call:
    """A thousand matrices added at positions that are data: relations of a graph of knowledge."""
    i = te.reduce_axis((0, 1024), "i")

    def build(x: te.Tensor, kind: te.Tensor) -> te.Tensor:
        return te.compute((20, 32, 32), lambda t, a, b: te.sum(x[i, a, b], axis=i, where=kind[i] == t), "y")

    rng = np.random.default_rng(0)
    x = rng.standard_normal((1024, 32, 32)).astype("float32")
    kind = rng.integers(0, 20, 1024).astype("int32")
    fn = jax.jit(te.function(build, platform=platform))
    return lambda: fn(x, kind)


# facts of no case: sums over segments whose bounds are data, and of rows at positions that are
OTHERS: dict[str, tuple[str, Callable[[str], Call]]] = {
    "lays_out_sums": ("segments", of_segments),
    "scatters_rows": ("rows", of_rows),
}


def of_case(name: str, platform: str) -> Call:
    case = load(name)
    args = draw(case.inputs_at("full"))
    both = jax.jit(
        with_gradients(te.function(case.sides[JAXTE], platform=platform), case.differentiated(args))
    )
    h = heads(case, IDIOMATIC, args)
    return lambda: both(h, *args)


def calls(fact: str, platform: str) -> dict[str, Call]:
    """The program that relies on the fact, and the one that does not."""
    made: dict[str, Call] = {}
    for value in (True, False):
        PLATFORMS[f"{fact}={value}"] = replace(platform_of(platform), **{fact: value})
        name = f"{fact}={value}"
        made[name] = OTHERS[fact][1](name) if fact in OTHERS else of_case(CASES[fact], name)
    return made


TERMS = (16, 32, 64, 128)
SHAPES = {"line": (4096,), "image": (64, 64), "volume": (16, 16, 16)}


def compiled(shape: tuple[int, ...], terms: int) -> Call:
    """Traces and compiles the sum of ``terms`` slices of an array, squared, with a factor each, as a new program at each call."""
    made = count()

    def call() -> None:
        own = 1.0 + next(made) / 1000  # a program that was not compiled before

        def shifted(x: jax.Array) -> jax.Array:
            ends = [slice(None)] * (len(shape) - 1)
            return sum(own * (k + 1) * x[(*ends, slice(k, k + shape[-1]))] ** 2 for k in range(terms))  # type: ignore[return-value]

        x = jax.ShapeDtypeStruct((*shape[:-1], shape[-1] + terms), np.dtype("float32"))
        jax.jit(shifted).lower(x).compile()

    return call


def written(rounds: int) -> None:
    """Prints the least squares line through the seconds that terms take to compile."""
    rows = []
    for name, shape in SHAPES.items():
        taken = interleaved({str(n): compiled(shape, n) for n in TERMS}, rounds)
        slope, rest = np.polyfit(TERMS, list(taken.values()), 1)
        seconds = ", ".join(f"{n} {1000 * own:.0f}" for n, own in zip(TERMS, taken.values(), strict=True))
        rows.append((name, seconds, f"{1 / slope:,.0f}", f"{rest / slope:.0f}"))
    print(markdown(("slices of a", "ms by terms", "terms a second", "terms that the rest counts as"), rows))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = [*CASES, *OTHERS]
    parser.add_argument("facts", nargs="*", help=f"by default all: {', '.join(known)}; or {WRITTEN}")
    parser.add_argument("--rounds", type=int, default=11, help="timed calls of each program")
    options = parser.parse_args()
    if options.facts == [WRITTEN]:
        written(options.rounds)
        return
    platform = jax.devices()[0].platform
    rows = []
    for fact in options.facts or known:
        relying, other = interleaved(calls(fact, platform), options.rounds).values()
        used = str(getattr(platform_of(platform), fact))
        rows.append(
            (fact, OTHERS[fact][0] if fact in OTHERS else CASES[fact], f"{other / relying:.2f}", used)
        )
    print(f"{jax.devices()[0].device_kind}, jax {jax.__version__}\n")
    print(markdown(("fact", "case", "times as fast with it", "in use"), rows))


if __name__ == "__main__":
    main()
