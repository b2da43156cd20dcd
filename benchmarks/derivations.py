"""How many calls of Python it takes to derive and to lower programs that take long: a count that is the same in every run.

    python benchmarks/derivations.py            # as large as people wrote them
    python benchmarks/derivations.py --small    # what the tests count

The text of the value and of all gradients is asked for; what is imported and cached late is not counted. Of a function of JAX that te.grad
raises, by estimate, the calls of jaxte's own functions are counted while it is traced and lowered: those of JAX are others in each release.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable
from types import FrameType

import jax
import jax.numpy as jnp

import crossings
import jaxte as te

Program = tuple[te.Tensor, list[te.Tensor]]


def flips(bits: int) -> Program:
    """The sum over all states of the products of the neighbours that differ in one bit."""
    s = te.reduce_axis((0, 1 << bits), "s")
    x = te.placeholder((1 << bits,), name="x")
    body = x[s ^ 1]
    for bit in range(1, bits):
        body = body * x[s ^ (1 << bit)]
    return te.compute((), lambda: te.sum(body, axis=s), "y"), [x]


def lattice(steps: int) -> Program:
    """A binomial lattice with early exercise, backwards."""
    x = te.placeholder((steps + 1,), name="x")
    value: te.Tensor = x
    for step in range(steps):
        value = te.compute(
            (steps - step,),
            lambda i, v=value: te.maximum(0.5 * (v[i] + v[i + 1]) * 0.99, x[i]),
            f"v{step}",
        )
    return value, [x]


def quotients(terms: int) -> Program:
    """The square of a sum of elements at nested quotients and remainders."""
    i, draw = te.reduce_axis((0, 200), "i"), random.Random(0)
    x = te.placeholder((64,), name="x")
    total: te.Expr = te.const(0.0)
    for _ in range(terms):
        a, b, c, d, e, f, g = (draw.randrange(2, 40) for _ in range(7))
        total = total + x[(((i // a) % b + (i // c) % d) // 2 % e + (i // f) % g) % 64]
    return te.compute((), lambda: te.sum(total * total, axis=i), "y"), [x]


def kernels(steps: int) -> Program:
    """Convolutions without padding, one after the other, with the same kernel."""
    size = 66 + 2 * steps
    x, w = te.placeholder((size, size), name="x"), te.placeholder((3, 3), name="w")
    value: te.Tensor = x
    for step in range(steps):
        size -= 2
        k, m = te.reduce_axis((0, 3), "k"), te.reduce_axis((0, 3), "l")
        value = te.compute(
            (size, size),
            lambda i, j, v=value, k=k, m=m: te.sum(te.tanh(v[i + k, j + m]) * w[k, m], axis=[k, m]),
            f"v{step}",
        )
    return value, [x, w]


def extrema(levels: int) -> Program:
    """Maxima of minima of neighbours around the end, nested."""
    x = te.placeholder((40,), name="x")

    def element(i: te.Axis) -> te.Expr:
        value = x[i]
        for d in range(1, levels + 1):
            value = te.maximum(value * 0.9, te.minimum(x[(i + d) % 40], value + x[(i - d) % 40]))
        return value

    return te.compute((40,), element, "y"), [x]


def steps(count: int) -> Program:
    """Steps of a row of numbers, each made of its neighbours."""
    x, w = te.placeholder((64,), name="x"), te.placeholder((count,), name="w")
    value: te.Tensor = x
    for step in range(count):
        value = te.compute(
            (64,),
            lambda i, v=value, step=step: te.tanh(v[te.maximum(i - 1, 0)] * 0.5 + v[i]) * w[step],
            f"h{step}",
        )
    return value, [x, w]


PROGRAMS: dict[str, tuple[Callable[[int], Program], int, int]] = {
    "flips": (flips, 16, 6),
    "lattice": (lattice, 96, 8),
    "quotients": (quotients, 10, 3),
    "kernels": (kernels, 48, 4),
    "extrema": (extrema, 15, 3),
    "steps": (steps, 96, 24),
}
"""Each with its size, and a small one."""


def derived(program: Program) -> str:
    """The text of the value and of the gradients."""
    y, inputs = program
    gradients = te.differentiate(y, inputs, head=te.placeholder(y.shape, name="H"))
    return te.source([y, *gradients])


def advection(steps: int) -> object:
    """te.grad of semi-Lagrangian steps and diffusion, lowered by JAX: raised in part, which prices of the whole program decide."""

    def energy(q: jax.Array, u: jax.Array, v: jax.Array) -> jax.Array:
        n, m = q.shape
        rows, columns = jnp.meshgrid(jnp.arange(n), jnp.arange(m), indexing="ij")
        for _ in range(steps):
            x, y = (rows - u) % n, (columns - v) % m
            i, j = jnp.floor(x).astype(int) % n, jnp.floor(y).astype(int) % m
            a, b, below, right = x - jnp.floor(x), y - jnp.floor(y), (i + 1) % n, (j + 1) % m
            q = (1 - a) * ((1 - b) * q[i, j] + b * q[i, right]) + a * (
                (1 - b) * q[below, j] + b * q[below, right]
            )
            around = sum(jnp.roll(q, shift, axis) for shift in (1, -1) for axis in (0, 1))
            q = q + 0.1 * (around - 4 * q)
        return jnp.sum(q**2)

    return jax.jit(te.grad(energy)).lower(*3 * [jax.ShapeDtypeStruct((64, 64), "float32")])


def calls(run: Callable[[], object], within: str = "") -> int:
    """How many functions of Python ``run`` calls, of those in files below ``within``."""
    count = 0

    def seen(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        count += event == "call" and frame.f_code.co_filename.startswith(within)

    sys.setprofile(seen)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="programs that take a tenth of a second")
    small = parser.parse_args().small
    crossings.strided(3)
    print(f"conv2d {calls(crossings.strided)}")
    for name, (make, size, little) in PROGRAMS.items():
        derived(make(3))
        print(f"{name} {calls(lambda: derived(make(little if small else size)))}", flush=True)  # noqa: B023
    advection(1)
    print(f"advection {calls(lambda: advection(1 if small else 3), crossings.ROOT)}")


if __name__ == "__main__":
    main()
