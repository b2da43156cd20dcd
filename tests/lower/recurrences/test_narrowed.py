"""Adjoints of which a box is read: the box, unless functions that the forward pass takes of whole arrays would be taken of slices again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.xla_counts import Fused

N, M = 64, 80


def transmitted(s: te.Tensor) -> te.Tensor:
    """What is left of light behind all that lies before."""
    k = te.reduce_axis((0, M), "k")
    depth = te.compute((N, M), lambda i, j: te.sum(s[i, k], axis=k, where=k < j), "depth")
    return te.compute((N, M), lambda i, j: te.exp(-depth[i, j]) * te.tanh(s[i, j]), "y")


def followed(s: te.Tensor) -> te.Tensor:
    """A function of what lies behind, and of the element itself."""
    k = te.reduce_axis((0, M), "k")
    rest = te.compute((N, M), lambda i, j: te.sum(s[i, k], axis=k, where=k > j), "rest")
    return te.compute((N, M), lambda i, j: te.exp(-rest[i, j]) * s[i, j] + te.tanh(rest[i, j]), "y")


def grown(s: te.Tensor) -> te.Tensor:
    """Functions of what has come before, two steps back."""
    k = te.reduce_axis((0, M), "k")
    before = te.compute((N, M), lambda i, j: te.sum(s[i, k] ** 2, axis=k, where=k + 1 < j), "before")
    return te.compute((N, M), lambda i, j: te.tanh(before[i, j]) * te.exp(-before[i, j]), "y")


def _shifted(x: Any, steps: int) -> Any:
    return jnp.pad(x, ((0, 0), (steps, 0)))[:, :M]


CASES: dict[str, tuple[Callable[..., te.Tensor], Callable[..., Any]]] = {
    "transmitted": (transmitted, lambda s: jnp.exp(-_shifted(jnp.cumsum(s, 1), 1)) * jnp.tanh(s)),
    "followed": (
        followed,
        lambda s: (lambda r: jnp.exp(-r) * s + jnp.tanh(r))(jnp.cumsum(s[:, ::-1], 1)[:, ::-1] - s),
    ),
    "grown": (grown, lambda s: (lambda b: jnp.tanh(b) * jnp.exp(-b))(_shifted(jnp.cumsum(s**2, 1), 2))),
}


@pytest.mark.parametrize("name", CASES)
def test_functions_are_taken_once_in_both_passes(name: str, rng: np.random.Generator) -> None:
    build, reference = CASES[name]
    s = rng.uniform(0, 0.1, size=(N, M)).astype("float32")
    h = rng.standard_normal((N, M)).astype("float32")

    def both(f: Any) -> Any:
        return jax.jit(lambda s, h: (lambda y, back: (y, *back(h)))(*jax.vjp(f, s)))

    program = Fused(both(te.function(build)).lower(s, h))
    assert program.cost_analysis()["transcendentals"] <= 2 * N * M
    for ours, theirs in zip(program(s, h), both(reference)(s, h), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)


def test_a_position_within_an_index_is_of_the_box_too() -> None:
    """Of both, one column is read: the position of the largest element was looked up where it had been before."""
    x = te.placeholder((3, 5), name="x")
    j = te.reduce_axis((0, 3), "j")
    v = te.compute((3, 5), lambda t, c: te.sin(x[t, c]), "v")
    at = te.compute((5,), lambda c: te.argmax(v[j, c], axis=j), "at")
    y = te.compute((3,), lambda t: te.select(at[2] <= t, v[at[2], 2], 0.0), "y")
    own = np.float32([[0, 0, 1, 0, 0], [0, 0, 3, 0, 0], [0, 0, 2, 0, 0]]) / 2
    np.testing.assert_allclose(te.evaluate(y, {x: own}), [0, np.sin(1.5), np.sin(1.5)], rtol=1e-6)
