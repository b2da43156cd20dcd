"""Long sums in float32 are as near to those in float64 as plain JAX's: sums over all states, and running sums of several rows with their gradients."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

pytestmark = pytest.mark.usefixtures("x64")


def test_a_sum_over_all_states(rng: np.random.Generator) -> None:
    """Of products of sixteen factors, one for each bit: the product of sums of two."""
    bits = 16
    w = rng.uniform(0.9, 1.1, bits).astype("float32")
    s = te.reduce_axis((0, 1 << bits), "s")

    def total(w: te.Tensor) -> te.Tensor:
        factors = [te.select((s >> q) % 2 < 1, w[q], -0.5 * w[q]) for q in range(bits)]
        return te.compute((), lambda: te.sum(prod(factors[1:], start=factors[0]), axis=s), "total")

    exact = np.prod(w.astype("float64") * 0.5)
    assert abs(float(te.function(total)(w)) / exact - 1) < 4e-6


def error(gradient: Callable[[Any], Any], frequencies: np.ndarray, exact: np.ndarray) -> float:
    found = np.asarray(gradient(jnp.asarray(frequencies, "float32")), "float64")
    return float(np.mean((found - exact) ** 2))


def test_running_sums_of_rows_in_phases(rng: np.random.Generator) -> None:
    """Oscillators: what is rounded in a sum turns a phase. The law is a factor of two, over eight draws of which each is noise."""

    def loss(f0: jax.Array) -> jax.Array:
        return jnp.sum((jnp.sin(2 * jnp.pi * jnp.cumsum(f0 / 16000, -1)) - 0.3) ** 2)

    own, plain = te.grad(loss), jax.grad(loss)
    draws = rng.uniform(100, 900, (8, 4, 8192)).astype("float32")
    pairs = [[error(g, f0, np.asarray(plain(f0.astype("float64")))) for g in (own, plain)] for f0 in draws]
    ours, theirs = np.sqrt(np.mean(pairs, axis=0))
    assert ours < 2 * theirs
