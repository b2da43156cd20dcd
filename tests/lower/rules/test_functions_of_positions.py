"""Functions of numbers and positions have their dimensions in the order of the expression: both passes read one array of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.xla_counts import Fused


def harmonics(a: te.Tensor, w: te.Tensor) -> te.Tensor:
    h = te.reduce_axis((0, 6), "h")
    return te.compute((40,), lambda t: te.sum(a[h] * te.sin(w[0] * (h + 1) * t), axis=h), "y")


def decays(a: te.Tensor, r: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, 8), "k")
    return te.compute(
        (3, 30), lambda b, t: te.sum(a[b, k] * te.exp(-te.exp(r[0]) * (k + 1) * t / 30), axis=k), "y"
    )


def lens(a: te.Tensor, z: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, 12), "k")
    path = lambda x: te.cast(x * x + k * k, "float32")  # noqa: E731
    return te.compute((20,), lambda x: te.sum(a[k] * te.sqrt(path(x) + z[0] * z[0]), axis=k), "y")


def steps(n: int) -> Any:
    return jnp.arange(n, dtype="float32")


CASES: dict[str, tuple[Callable[..., te.Tensor], Callable[..., Any], tuple[int, ...]]] = {
    "sine": (harmonics, lambda a, w: jnp.sin(w[0] * (steps(6) + 1) * steps(40)[:, None]) @ a, (6,)),
    "exponential": (
        decays,
        lambda a, r: a @ jnp.exp(-jnp.exp(r[0]) * (steps(8)[:, None] + 1) * steps(30) / 30),
        (3, 8),
    ),
    "sqrt": (
        lens,
        lambda a, z: jnp.sqrt(steps(20)[:, None] ** 2 + steps(12) ** 2 + z[0] ** 2) @ a,
        (12,),
    ),
}


@pytest.mark.parametrize("operation", CASES)
def test_both_passes_read_one_array(operation: str, rng: np.random.Generator) -> None:
    build, reference, shape = CASES[operation]
    a, w = rng.standard_normal(shape).astype("float32"), np.array([0.3], "float32")

    def both(f: Any) -> Any:
        def run(h: Any, *arrays: Any) -> Any:
            y, pull = jax.vjp(f, *arrays)
            return y, *pull(h)

        return jax.jit(run)

    h = rng.standard_normal(jax.eval_shape(reference, a, w).shape).astype("float32")
    compiled = Fused(both(te.function(build)).lower(h, a, w))
    whole = [
        shape
        for shape in re.findall(rf"f32\[([\d,]*)\]\S* {operation}\(", compiled.as_text())
        if "," in shape
    ]
    assert len(set(whole)) == 1  # one order of dimensions
    for own, theirs in zip(compiled(h, a, w), both(reference)(h, a, w), strict=True):
        np.testing.assert_allclose(own, theirs, rtol=2e-4, atol=1e-4 * np.abs(theirs).max())
