"""Functions of an element and its neighbours, many of them, added up: one definition, and each weight computed once for both of its ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.xla_counts import Fused

AROUND = [(k, m) for k in (-1, 0, 1) for m in (-1, 0, 1) if (k, m) != (0, 0)]
LINE = [s for s in range(-8, 9) if s]
HALF = [(i, j, k) for i in (-1, 0, 1) for j in (-1, 0, 1) for k in (-1, 0, 1) if (i, j, k) > (0, 0, 0)]


def diffusion(x: Any) -> Any:
    """Two steps of Perona and Malik's, with eight neighbours."""
    for _ in range(2):
        flow = 0.0
        for s in AROUND:
            d = jnp.roll(x, s, (0, 1)) - x
            flow = flow + jnp.exp(-((d / 0.5) ** 2)) * d
        x = x + 0.1 * flow
    return jnp.sum(x**2)


def guided(x: Any, g: Any) -> Any:
    """A sequence averaged with weights of another one."""
    total = weights = 0.0
    for s in LINE:
        w = jnp.exp(-((g - jnp.roll(g, s)) ** 2))
        total, weights = total + w * jnp.roll(x, s), weights + w
    return jnp.sum((total / weights - x) ** 2)


def roughness(x: Any) -> Any:
    """Differences of neighbours in a volume, on a slope that flattens."""
    total = 0.0
    for s in HALF:
        total = total + jnp.log1p((x - jnp.roll(x, s, (0, 1, 2))) ** 2)
    return jnp.sum(total)


def oscillators(x: Any) -> Any:
    """Two steps of oscillators, each pulled by eight others."""
    for _ in range(2):
        x = x + 0.1 * sum(jnp.sin(jnp.roll(x, s, (0, 1)) - x) for s in AROUND)
    return jnp.sum(x**2)


# with how many dear functions XLA computes at most, both passes together
FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...], str, int]] = {
    "diffusion": (diffusion, ((34, 40),), "exponential", 16),
    "guided filter": (guided, ((1500,), (1500,)), "exponential", 16),
    "roughness of a volume": (roughness, ((12, 10, 14),), "log-plus-one", 13),
    "oscillators": (oscillators, ((32, 36),), "cosine", 24),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_weights_are_computed_once(name: str, rng: np.random.Generator) -> None:
    f, shapes, function, most = FUNCTIONS[name]
    args = [jnp.asarray(rng.normal(size=s).astype("float32")) for s in shapes]
    numbers = tuple(range(len(args)))
    own, jaxs = (Fused(jax.jit(jax.value_and_grad(g, numbers)).lower(*args)) for g in (te.adjoint(f), f))
    for a, b in zip(jax.tree.leaves(own(*args)), jax.tree.leaves(jaxs(*args)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-5 * float(abs(b).max()))
    texts = [c.as_text() for c in (own, jaxs)]
    assert texts[0].count(f" {function}(") <= most
    assert texts[0].count(" fusion(") <= texts[1].count(" fusion(")
    temporaries = [c.memory_analysis().temp_size_in_bytes for c in (own, jaxs)]
    assert temporaries[0] < temporaries[1]


def test_functions_that_are_read_otherwise_are_arrays() -> None:
    def loss(x: Any) -> Any:
        weights = [jnp.exp(-((x - jnp.roll(x, s, (0, 1))) ** 2)) for s in AROUND]
        return jnp.sum(sum(weights)) + jnp.sum(jnp.max(jnp.stack(weights), 0))

    x = jnp.sin(jnp.arange(32.0 * 32)).reshape(32, 32)
    np.testing.assert_allclose(te.grad(loss)(x), jax.grad(loss)(x), rtol=1e-4, atol=1e-5)


def test_rolls_along_three_axes_are_one_read() -> None:
    source = te.source(
        te.adjoint(lambda x: jnp.sum(jnp.exp(jnp.roll(x, (1, -2, 3), (0, 1, 2)))), everything=True),
        jnp.ones((12, 14, 16)),
    )
    assert "x0[(i - 1) % 12, (j + 2) % 14, (k + 13) % 16]" in source
