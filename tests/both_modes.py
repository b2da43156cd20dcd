"""Whether forward and reverse mode agree, in derivatives of the first and second order, wherever the function is asked.

JAX transforms the function as a user would, and each program that it binds is interpreted, not lowered and not compiled: derivations
are what is tested, and a program takes milliseconds. With directions ``v``, ``w`` and heads ``u`` drawn at random,

    <u, J v>  from  jax.jvp          =  <u J, v>  from  jax.vjp
    <w, H v>  from  jvp of the gradient  =  <w H, v>  from  vjp of the gradient,   H of a loss sum((f(x) - target)**2) / 2

at a random point, at a perfect fit, where heads are zero, and at ties, where elements are equal to each other or halves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxte as te
from jaxte.bridge.primitive.primitive import jaxte_p
from jaxte.bridge.primitive.program import Program
from jaxte.tensors.structure import topological_order

Arrays = Sequence[Any]


@contextmanager
def interpreted() -> Iterator[None]:
    """Programs that are bound eagerly give the values of their definitions."""
    before = jaxte_p.impl

    def run(*arrays: Any, program: Program, places: Any) -> list[Any]:
        closed = program.closed
        reached = set(topological_order(closed.outputs))
        feeds = {
            t: np.asarray(a)
            for t, a in zip(closed.inputs, arrays, strict=True)
            if t in reached or t.ndim == 0
        }
        feeds = {t: a for t, a in feeds.items() if t in reached}
        return [jnp.asarray(r) for r in te.interpret(list(closed.outputs), feeds)]

    jaxte_p.impl = run
    try:
        with jax.disable_jit():
            yield
    finally:
        jaxte_p.impl = before


def disagreements(fn: Callable[..., Any], args: Arrays, seed: int = 0, second: bool = True) -> list[str]:
    """What does not agree of ``fn`` at points made of ``args``, of which the floating ones are moved."""
    leaves, tree = jax.tree.flatten(tuple(args))
    leaves = [np.asarray(a, "float64") if np.asarray(a).dtype.kind == "f" else np.asarray(a) for a in leaves]
    moving = [n for n, a in enumerate(leaves) if a.dtype.kind == "f"]
    rng = np.random.default_rng(seed)

    def outputs(*some: Any) -> list[Any]:
        given: list[Any] = [jnp.asarray(a) for a in leaves]
        for n, x in zip(moving, some, strict=True):
            given[n] = x
        found = jax.tree.leaves(fn(*jax.tree.unflatten(tree, given)))
        return [y for y in found if jnp.issubdtype(y.dtype, jnp.floating)]

    here = [leaves[n] for n in moving]
    points = {
        "random": here,
        "halves": [np.round(2 * x) / 2 for x in here],
        "equal": [np.full_like(x, 0.5) for x in here],
    }
    found: list[str] = []
    with interpreted():
        for name, point in points.items():
            found += [
                f"{name}: {what}" for what in _at(outputs, [jnp.asarray(x) for x in point], rng, second)
            ]
    return found


def _at(
    outputs: Callable[..., list[Any]], x: list[Any], rng: np.random.Generator, second: bool
) -> Iterator[str]:
    def drawn(like: Arrays) -> list[Any]:
        return [jnp.asarray(rng.normal(size=a.shape), a.dtype) for a in like]

    v, w = drawn(x), drawn(x)
    y, moved = jax.jvp(outputs, x, v)
    u = drawn(y)
    _, pull = jax.vjp(outputs, *x)
    yield from _differ("jvp and vjp", _dot(u, moved), _dot(pull(u), v))
    if not second:
        return

    for name, target in (("away", [t + 0.3 for t in y]), ("at a perfect fit", y)):

        def gradient(*x: Any, target: Arrays = target) -> list[Any]:
            found, pull = jax.vjp(outputs, *x)
            return list(pull([a - t for a, t in zip(found, target, strict=True)]))

        _, curved = jax.jvp(gradient, x, v)
        _, pull = jax.vjp(gradient, *x)
        yield from _differ(f"forward and reverse over reverse {name}", _dot(w, curved), _dot(pull(w), v))


def _dot(a: Arrays, b: Arrays) -> float:
    return float(sum(np.sum(np.asarray(x) * np.asarray(y)) for x, y in zip(a, b, strict=True)))


def _differ(what: str, a: float, b: float) -> Iterator[str]:
    if not (abs(a - b) <= 1e-7 * max(1.0, abs(b)) or (np.isnan(a) and np.isnan(b))):
        yield f"{what}: {a} and {b}"
