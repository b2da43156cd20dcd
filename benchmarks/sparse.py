"""Sparse Jacobians and Hessians beside the package asdex: the same functions, in the same run.

    pip install asdex
    python benchmarks/sparse.py [--quick]

The 5-point Laplacian with an exponential on 512 x 512, a tridiagonal residual of a million unknowns, and the Hessian of a Rosenbrock chain of
100,000. For each: the time to set up (pattern, compilation, first call), and the medians of calls in turn, of both packages as they are called and
both inside ``jax.jit``; asdex finds the pattern by interpreting the jaxpr and colours it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import asdex
import jax
import jax.numpy as jnp
import numpy as np

import jaxte as te
from banded import laplacian, rosenbrock, tridiagonal
from timing import interleaved, markdown

ROUNDS = 25


def plain_laplacian(u: Any) -> Any:
    p = jnp.pad(u, 1)
    return p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * u + jnp.exp(u)


def plain_tridiagonal(x: Any) -> Any:
    p = jnp.pad(x, 1)
    return (3 - 2 * x) * x - p[:-2] - 2 * p[2:] + 1


def plain_rosenbrock(x: Any) -> Any:
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def set_up(make: Callable[[], Callable[[Any], Any]], x: Any) -> tuple[Callable[[], Any], float]:
    """The call, and the seconds until its first result."""
    start = time.perf_counter()
    call = make()
    jax.block_until_ready(call(x).data)
    return lambda: call(x).data, time.perf_counter() - start


def compared_times(times: dict[str, float]) -> list[str]:
    own, other = times["ours"], times["other"]
    return [f"{1e3 * own:.3g}", f"{1e3 * other:.3g}", f"{own / other:.2f}"]


def compared(name: str, builder: Any, plain: Any, shape: tuple[int, ...], second: bool) -> list[str]:
    """A row of the table."""
    x = jnp.asarray(np.random.default_rng(0).standard_normal(shape), "float32")
    fn = te.function(builder)
    own = fn.sparse_hessian if second else fn.sparse_jacobian
    theirs = asdex.hessian if second else asdex.jacobian
    ours, setup = set_up(lambda: lambda x: own(x, flat=True), x)
    # In one axis: asdex reshapes its matrix to the axes of the function, with indices that do not fit into 32 bits here.
    vector = x.ravel()
    made: list[Any] = []

    def make() -> Any:
        made.append(
            theirs(lambda v: jnp.ravel(plain(v.reshape(shape))).reshape(() if second else -1), vector)
        )
        return jax.jit(made[0])

    other, other_setup = set_up(make, vector)
    np.testing.assert_allclose(np.sort(ours()), np.sort(other()), rtol=1e-3, atol=1e-3)
    jitted = jax.jit(lambda x: own(x, flat=True))
    calls = {"ours": ours, "other": lambda: made[0](vector).data}
    jits = {"ours": lambda: jitted(x).data, "other": other}
    eager, within = (interleaved(both, ROUNDS) for both in (calls, jits))
    memory = jax.jit(lambda x: own(x, flat=True).data).lower(x).compile().memory_analysis()
    return [
        name,
        f"{len(ours()):,}",
        *(cell for times in (eager, within) for cell in compared_times(times)),
        f"{setup:.1f}",
        f"{other_setup:.1f}",
        f"{memory.temp_size_in_bytes / len(ours()):.1f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--only", default="", help="part of the name of a case")
    args = parser.parse_args()
    side, unknowns, chain = (64, 10_000, 2_000) if args.quick else (512, 1_000_000, 100_000)
    cases: list[tuple[str, Any, Any, tuple[int, ...], bool]] = [
        (f"Laplacian {side} x {side}", laplacian, plain_laplacian, (side, side), False),
        (f"Hessian of Rosenbrock {chain:,}", rosenbrock, plain_rosenbrock, (chain,), True),
        (f"tridiagonal {unknowns:,}", tridiagonal, plain_tridiagonal, (unknowns,), False),
    ]
    rows = []
    for name, builder, plain, shape, second in cases:
        if args.only not in name:
            continue
        rows.append(compared(name, builder, plain, shape, second))
        print(" | ".join(rows[-1]), flush=True)
    header = [
        "case",
        "non-zeros",
        "a call, ms",
        "asdex, ms",
        "ratio",
        "in jit, ms",
        "asdex in jit, ms",
        "ratio",
        "set up, s",
        "asdex, s",
        "temporary bytes a non-zero",
    ]
    print(markdown(header, rows))


if __name__ == "__main__":
    main()
