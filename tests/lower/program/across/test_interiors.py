"""Steps of second order in time, with zeros around: work in proportion to the steps, and the values of plain JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.xla_counts import Fused

N = 24


def wave(steps: int) -> Callable[..., te.Tensor]:
    def build(u: te.Tensor, v: te.Tensor) -> te.Tensor:
        fields = [u, v]
        for _ in range(steps):
            a, b = fields[-2:]

            def step(i: Any, a: te.Tensor = a, b: te.Tensor = b) -> te.Expr:
                left, right = te.select(i > 0, b[i - 1], 0.0), te.select(i < N - 1, b[i + 1], 0.0)
                return 1.5 * b[i] - a[i] + 0.25 * (left + right)

            fields.append(te.compute((N,), step, "u"))
        return fields[-1]

    return build


def plain(steps: int) -> Callable[..., Any]:
    def run(u: Any, v: Any) -> Any:
        for _ in range(steps):
            around = jnp.pad(v, 1)
            u, v = v, 1.5 * v - u + 0.25 * (around[:-2] + around[2:])
        return v

    return run


def _both(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda u, v, h: jax.vjp(f, u, v)[1](h)


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_values(steps: int, rng: np.random.Generator) -> None:
    with jax.enable_x64(True):
        u, v, h = (rng.normal(size=N) for _ in range(3))
        own = te.function(wave(steps))
        np.testing.assert_allclose(own(u, v), plain(steps)(u, v), rtol=1e-12, atol=1e-13)
        for found, wanted in zip(_both(own)(u, v, h), _both(plain(steps))(u, v, h), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)


def test_work_is_proportional_to_the_steps(rng: np.random.Generator) -> None:
    u, v, h = (np.float32(rng.normal(size=N)) for _ in range(3))

    def flops(steps: int) -> float:
        program = jax.jit(_both(te.function(wave(steps)))).lower(u, v, h)
        return Fused(program).cost_analysis()["flops"] / steps

    assert flops(12) < 1.1 * flops(4)
