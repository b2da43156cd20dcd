"""What ``jax.grad`` emits beside what jaxte emits for the same function: operations, work, memory and time.

    python benchmarks/emitted.py                 # the Markdown table that the README shows
    python benchmarks/emitted.py --rounds 5 --scale 4

Both sides compute the gradient of ``sum(h * f(x, ...))`` under ``jax.jit``. Operations are counted in the program
that XLA is given (StableHLO); flops, bytes and temporaries are XLA's own counts for the program it compiled.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jaxte as te
from timing import interleaved, markdown

Builder = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """One function twice: as JAX users write it, and as an index expression."""

    name: str
    plain: Builder
    indexed: Builder
    shapes: tuple[tuple[int, ...], ...]


# --- a stencil, iterated


def rolled_stencil(u: Any) -> Any:
    for _ in range(10):
        around = jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1)
        u = u + 0.1 * (around - 4 * u)
    return u


def stencil(u: te.Tensor) -> te.Tensor:
    n, m = u.shape
    for _ in range(10):

        def step(i: te.Axis, j: te.Axis, u: te.Tensor = u) -> te.Expr:
            around = u[(i - 1) % n, j] + u[(i + 1) % n, j] + u[i, (j - 1) % m] + u[i, (j + 1) % m]
            return u[i, j] + 0.1 * (around - 4 * u[i, j])

        u = te.compute((n, m), step, "u")
    return u


# --- windows of a sequence by advanced indexing


def gathered_windows(x: Any, w: Any) -> Any:
    taps = w.shape[0]
    at = jnp.arange(x.shape[1] - taps + 1)[:, None] + jnp.arange(taps)
    return jnp.einsum("btkc,kc->btc", x[:, at], w)


def windows(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, w.shape[0]), "k")
    shape = (x.shape[0], x.shape[1] - w.shape[0] + 1, x.shape[2])
    return te.compute(shape, lambda b, t, c: te.sum(x[b, t + k, c] * w[k, c], axis=k), "y")


# --- pooling


def reduce_window_max(x: Any) -> Any:
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


def max_pool(x: te.Tensor) -> te.Tensor:
    n, c, h, w = x.shape
    p, q = te.reduce_axis((0, 2), "p"), te.reduce_axis((0, 2), "q")
    return te.compute(
        (n, c, h // 2, w // 2),
        lambda n, c, i, j: te.max(x[n, c, 2 * i + p, 2 * j + q], axis=[p, q], ties="first"),
        "y",
    )


# --- a depthwise convolution


def grouped_conv(x: Any, w: Any) -> Any:
    return lax.conv_general_dilated(
        x,
        w[:, None],
        (1, 1),
        "VALID",
        feature_group_count=x.shape[1],
        dimension_numbers=("NCHW", "OIHW", "NCHW"),
    )


def depthwise_conv(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    n, c, h, width = x.shape
    p, q = te.reduce_axis((0, 3), "p"), te.reduce_axis((0, 3), "q")
    return te.compute(
        (n, c, h - 2, width - 2),
        lambda n, c, i, j: te.sum(x[n, c, i + p, j + q] * w[c, p, q], axis=[p, q]),
        "y",
    )


# --- a dense convolution, where XLA's own form is the one to keep


def strided_conv(x: Any, w: Any) -> Any:
    return lax.conv_general_dilated(
        x, w, (2, 2), ((1, 1), (1, 1)), dimension_numbers=("NCHW", "OIHW", "NCHW")
    )


def indexed_strided_conv(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    return te.ops.conv2d(x, w, strides=2, padding=1)


def cases(scale: int = 1) -> list[Case]:
    """The cases; ``scale`` divides their sizes."""
    return [
        Case(
            "5-point stencil, 10 steps (`jnp.roll`)", rolled_stencil, stencil, ((512 // scale, 512 // scale),)
        ),
        Case(
            "windows of 9 (`x[:, i + k]`)",
            gathered_windows,
            windows,
            ((8, 2048 // scale, 64), (9, 64)),
        ),
        Case(
            "max-pool 2x2 (`lax.reduce_window`)",
            reduce_window_max,
            max_pool,
            ((16, 32, 56 // scale, 56 // scale),),
        ),
        Case(
            "depthwise conv 3x3 (`lax.conv`)",
            grouped_conv,
            depthwise_conv,
            ((8, 64, 32 // scale, 32 // scale), (64, 3, 3)),
        ),
        Case(
            "dense conv 3x3, stride 2 (`lax.conv`)",
            strided_conv,
            indexed_strided_conv,
            ((8, 32, 56 // scale, 56 // scale), (64, 32, 3, 3)),
        ),
    ]


@dataclass(frozen=True)
class Emitted:
    """A compiled gradient: operations that accumulate or look up by index, XLA's counts, and its time."""

    operations: dict[str, int]
    flops: float
    bytes: float
    temporaries: int
    seconds: float


# What gradients of index code are suspected of. `while` is how loops over updates appear.
SUSPECTS = ("scatter", "select_and_scatter", "gather", "while")


def operations(stablehlo: str) -> dict[str, int]:
    """How often each of SUSPECTS stands in a program."""
    counts = {name: len(re.findall(rf"stablehlo\.{name}\"?[ (]", stablehlo)) for name in SUSPECTS}
    return {name: n for name, n in counts.items() if n}


def gradient(function: Builder, arity: int) -> Any:
    """The compiled gradient of ``sum(h * function(...))`` with respect to all its ``arity`` arguments."""
    return jax.jit(jax.grad(lambda h, *args: jnp.sum(h * function(*args)), tuple(range(1, arity + 1))))


def measure(case: Case, rounds: int) -> dict[str, Emitted]:
    """Both gradients on the same arrays; they have to agree."""
    rng = np.random.default_rng(0)
    args = [jnp.asarray(rng.standard_normal(shape), "float32") for shape in case.shapes]
    h = jnp.asarray(rng.standard_normal(jax.eval_shape(case.plain, *args).shape), "float32")
    both = {
        "jax.grad": gradient(case.plain, len(args)),
        "jaxte": gradient(te.function(case.indexed), len(args)),
    }
    check(case.name, *(run(h, *args) for run in both.values()))
    times = interleaved({side: lambda run=run: run(h, *args) for side, run in both.items()}, rounds)
    return {side: emitted(run.lower(h, *args), times[side]) for side, run in both.items()}


def check(name: str, expected: Sequence[Any], found: Sequence[Any]) -> None:
    for number, (a, b) in enumerate(zip(expected, found, strict=True)):
        error = float(jnp.linalg.norm((a - b).ravel()) / jnp.linalg.norm(a.ravel()))
        if not error < 1e-4:
            raise AssertionError(f"{name}: gradient {number} differs by {error:.1e}")


def emitted(lowered: Any, taken: float) -> Emitted:
    compiled = lowered.compile()
    cost = compiled.cost_analysis() or {}
    memory = compiled.memory_analysis()
    return Emitted(
        operations(lowered.as_text()),
        float(cost.get("flops", float("nan"))),
        float(cost.get("bytes accessed", float("nan"))),
        int(getattr(memory, "temp_size_in_bytes", 0)),
        taken,
    )


def table(results: dict[str, dict[str, Emitted]]) -> str:
    header = (
        "gradient of",
        "by",
        "scatters, gathers",
        "Mflop",
        "MB accessed",
        "MB temporaries",
        "time",
        "speed",
    )
    rows = []
    for name, sides in results.items():
        theirs = sides["jax.grad"].seconds
        for side, e in sides.items():
            ops = ", ".join(f"{n} {op}" for op, n in e.operations.items()) or "none"
            ratio = theirs / e.seconds
            rows.append(
                (
                    name if side == "jax.grad" else "",
                    side,
                    ops,
                    f"{e.flops / 1e6:,.1f}",
                    f"{e.bytes / 1e6:,.1f}",
                    f"{e.temporaries / 1e6:,.1f}",
                    f"{1e3 * e.seconds:.2f} ms",
                    "1" if side == "jax.grad" else f"{ratio:.3g}",
                )
            )
    return markdown(header, rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15, help="timed calls of each side")
    parser.add_argument("--scale", type=int, default=1, help="divides the sizes, for a quick look")
    parser.add_argument("--json", help="write the figures to this file")
    args = parser.parse_args()
    results = {case.name: measure(case, args.rounds) for case in cases(args.scale)}
    device = jax.devices()[0]
    print(
        f"float32, {device.device_kind}, jax {jax.__version__}, medians of {args.rounds} interleaved calls\n"
    )
    print(table(results))
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(
                {name: {s: asdict(e) for s, e in sides.items()} for name, sides in results.items()},
                file,
                indent=2,
            )


if __name__ == "__main__":
    main()
