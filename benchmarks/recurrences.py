"""Recurrences beside ``jax.grad`` of the ``lax.scan`` that one writes for them: forward + backward, temporaries, largest difference.

    python benchmarks/recurrences.py [names] [--write]

Both programs are called in turn, and the least processor time of all cores is kept, which other work on the machine changes little. ``--write``
renews the table of docs/loops.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jaxte as te

PAGE = Path(__file__).parent.parent / "docs" / "loops.md"
BEGIN, END = "<!-- figures -->", "<!-- /figures -->"
ROUNDS = 15
Side = Callable[..., Any]


def _axis(extent: int, name: str) -> Any:
    return te.reduce_axis((0, extent), name)


def rnn(steps: int = 256, batch: int = 8, n: int = 256) -> tuple[Side, Side, list[tuple[int, ...]]]:
    """Tanh of an input and a product."""

    def build(x: Any, W: Any) -> Any:
        j = _axis(n, "j")

        def cell(h: Any, t: Any, b: Any, i: Any) -> Any:
            return te.tanh(x[t, b, i] + te.sum(W[i, j] * h[t - 1, b, j], axis=j))

        return te.recurrence((steps, batch, n), cell, init=0.0)

    def scan(x: Any, W: Any) -> Any:
        def step(h: Any, row: Any) -> Any:
            h = jnp.tanh(row + h @ W.T)
            return h, h

        return lax.scan(step, jnp.zeros((batch, n)), x)[1]

    return build, scan, [(steps, batch, n), (n, n)]


def lstm(
    steps: int = 256, batch: int = 8, k: int = 64, n: int = 256
) -> tuple[Side, Side, list[tuple[int, ...]]]:
    """Four gates."""

    def build(x: Any, U: Any, W: Any) -> Any:
        def gate(h: Any, t: Any, b: Any, g: int, i: Any) -> Any:
            m, j = _axis(k, "m"), _axis(n, "j")
            return te.sum(U[g, i, m] * x[t, b, m], axis=m) + te.sum(W[g, i, j] * h[t - 1, b, j], axis=j)

        def cell(h: Any, c: Any, t: Any, b: Any, i: Any) -> Any:
            new = te.sigmoid(gate(h, t, b, 0, i)) * te.tanh(gate(h, t, b, 1, i))
            held = te.sigmoid(gate(h, t, b, 3, i)) * c[t - 1, b, i] + new
            return te.sigmoid(gate(h, t, b, 2, i)) * te.tanh(c[t, b, i]), held

        return te.recurrence((steps, batch, n), cell, init=0.0)[0]

    def scan(x: Any, U: Any, W: Any) -> Any:
        inputs, product = x @ U.reshape(4 * n, k).T, W.reshape(4 * n, n).T

        def step(carry: Any, row: Any) -> Any:
            h, c = carry
            a, b, o, f = jnp.split(row + h @ product, 4, axis=-1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(a) * jnp.tanh(b)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        nothing = jnp.zeros((batch, n))
        return lax.scan(step, (nothing, nothing), inputs)[1]

    return build, scan, [(steps, batch, k), (4, n, k), (4, n, n)]


def garch(steps: int = 5000) -> tuple[Side, Side, list[tuple[int, ...]]]:
    """The likelihood of returns whose variance follows the last ones."""

    def build(r: Any, p: Any) -> Any:
        def variance(v: Any, t: Any) -> Any:
            return 0.1 + p[0] + 0.1 * te.select(t >= 1, r[t - 1] ** 2, 0.1) + 0.8 * v[t - 1]

        v, t = te.recurrence((steps,), variance, init=0.3), _axis(steps, "t")
        return te.compute((), lambda: te.sum(te.log(v[t]) + r[t] ** 2 / v[t], axis=t))

    def scan(r: Any, p: Any) -> Any:
        def step(carry: Any, r: Any) -> Any:
            v, before = carry
            v = 0.1 + p[0] + 0.1 * before + 0.8 * v
            return (v, r**2), jnp.log(v) + r**2 / v

        return lax.scan(step, (0.3, 0.1), r)[1].sum()

    return build, scan, [(steps,), (1,)]


def stencil(steps: int = 1000, n: int = 128) -> tuple[Side, Side, list[tuple[int, ...]]]:
    """Euler steps of an advected, diffused quantity on a torus."""

    def build(u0: Any, c: Any) -> Any:
        def step(u: Any, t: Any, i: Any, k: Any) -> Any:
            up, down = u[t - 1, (i + 1) % n, k], u[t - 1, (i - 1) % n, k]
            around = up + down + u[t - 1, i, (k + 1) % n] + u[t - 1, i, (k - 1) % n]
            own = u[t - 1, i, k]
            return own + c[0] * (around - 4 * own) - c[1] * own * (up - down)

        return te.recurrence((steps, n, n), step, init=u0)

    def scan(u0: Any, c: Any) -> Any:
        def step(u: Any, _: None) -> Any:
            up, down = jnp.roll(u, -1, 0), jnp.roll(u, 1, 0)
            around = up + down + jnp.roll(u, -1, 1) + jnp.roll(u, 1, 1)
            u = u + c[0] * (around - 4 * u) - c[1] * u * (up - down)
            return u, u

        return lax.scan(step, u0, None, length=steps)[1]

    return build, scan, [(n, n), (2,)]


CASES = {"rnn": rnn, "lstm": lstm, "garch": garch, "stencil": stencil}


def row(name: str) -> str:
    """One line of the table."""
    build, scan, shapes = CASES[name]()
    rng = np.random.default_rng(0)
    args = [np.float32(rng.normal(size=s) * 0.05) for s in shapes]
    sides = [_compiled(f, args) for f in (te.function(build), scan)]
    found = [np.concatenate([np.ravel(g) for g in side(*args)]) for side in sides]
    off = abs(found[0] - found[1]).max() / abs(found[1]).max()
    own, other = _milliseconds(sides, args)
    mine, theirs = (side.memory_analysis().temp_size_in_bytes / 1e6 for side in sides)
    said = " ".join((CASES[name].__doc__ or "").split()).rstrip(".")
    shape = "x".join(map(str, shapes[0]))
    steps = CASES[name].__defaults__[0]
    return f"| {name}: {said.lower()}, {steps:,} steps, {shape} | {other:.1f} | {own:.1f} | {other / own:.2f} | {theirs:.1f} | {mine:.1f} | {off:.0e} |"


def _compiled(f: Side, args: Sequence[np.ndarray]) -> Any:
    def loss(*a: Any) -> Any:
        value = f(*a)
        return (value * value).sum()

    return jax.jit(jax.grad(loss, tuple(range(len(args))))).lower(*args).compile()


def _milliseconds(sides: Sequence[Any], args: Sequence[np.ndarray]) -> list[float]:
    least = [float("inf")] * len(sides)
    for _ in range(ROUNDS):
        for n, side in enumerate(sides):
            start = time.process_time()
            jax.block_until_ready(side(*args))
            least[n] = min(least[n], time.process_time() - start)
    return [1e3 * seconds for seconds in least]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *CASES], help="which cases; all by default")
    parser.add_argument("--write", action="store_true", help="renew the table of docs/loops.md")
    given = parser.parse_args()
    lines = [
        "| case | jax.grad, ms | te, ms | times | temporaries, MB | te, MB | difference |",
        "|---|---|---|---|---|---|---|",
        *map(row, given.names or CASES),
    ]
    print("\n".join(lines))
    if given.write:
        text = PAGE.read_text(encoding="utf-8")
        before, after = text.split(BEGIN)[0], text.split(END)[1]
        PAGE.write_text("\n".join([f"{before}{BEGIN}", *lines, f"{END}{after}"]), encoding="utf-8")


if __name__ == "__main__":
    main()
