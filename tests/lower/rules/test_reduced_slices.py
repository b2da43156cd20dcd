"""What is reduced of slices is one array before it is reduced; XLA would copy each of the slices."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.xla_counts import Fused


def variation(x: te.Tensor) -> te.Tensor:
    n, m = x.shape
    i, j = te.reduce_axis((0, n - 1), "i"), te.reduce_axis((0, m - 1), "j")
    step = lambda: te.abs(x[i + 1, j] - x[i, j]) + te.abs(x[i, j + 1] - x[i, j])  # noqa: E731
    return te.compute((), lambda: te.sum(step(), axis=(i, j)), "y")


def plain_variation(x: jax.Array) -> jax.Array:
    return jnp.sum(jnp.abs(x[1:, :-1] - x[:-1, :-1]) + jnp.abs(x[:-1, 1:] - x[:-1, :-1]))


def roughness(x: te.Tensor) -> te.Tensor:
    n, m = x.shape
    j = te.reduce_axis((0, m - 2), "j")
    bend = lambda i: (x[i, j] - 2 * x[i, j + 1] + x[i, j + 2]) * te.tanh(x[i, j + 1])  # noqa: E731
    return te.compute((n,), lambda i: te.sum(bend(i), axis=j), "y")


def plain_roughness(x: jax.Array) -> jax.Array:
    return jnp.sum((x[:, :-2] - 2 * x[:, 1:-1] + x[:, 2:]) * jnp.tanh(x[:, 1:-1]), axis=1)


def steepest(x: te.Tensor) -> te.Tensor:
    n, m = x.shape
    i = te.reduce_axis((0, n - 1), "i")
    return te.compute((m,), lambda j: te.max(te.abs(x[i + 1, j] - x[i, j]), axis=i), "y")


def plain_steepest(x: jax.Array) -> jax.Array:
    return jnp.max(jnp.abs(x[1:] - x[:-1]), axis=0)


CASES = {
    "variation": (variation, plain_variation),
    "roughness": (roughness, plain_roughness),
    "steepest": (steepest, plain_steepest),
}


def temporaries(function: Callable[..., jax.Array], x: np.ndarray) -> int:
    compiled = Fused(jax.jit(function).lower(x))
    return int(compiled.memory_analysis().temp_size_in_bytes)


@pytest.mark.parametrize("name", CASES)
def test_one_array_in_place_of_the_slices(name: str, rng: np.random.Generator) -> None:
    build, plain = CASES[name]
    x = rng.standard_normal((96, 80)).astype("float32")
    own = te.function(build)
    np.testing.assert_allclose(own(x), plain(x), rtol=1e-5, atol=1e-4)
    held = temporaries(own, x)
    assert held < 1.3 * 96 * 80 * 4 and temporaries(plain, x) >= 1.8 * held
    slope = lambda f: jax.grad(lambda a: jnp.sum(f(a) ** 2))(x)  # noqa: E731
    np.testing.assert_allclose(slope(own), slope(plain), rtol=1e-3, atol=1e-2)


def test_small_and_whole_arrays_and_other_platforms_stay_as_they_are() -> None:
    a, b = te.placeholder((96, 80), name="a"), te.placeholder((96, 80), name="b")
    i, j = te.reduce_axis((0, 96), "i"), te.reduce_axis((0, 80), "j")
    whole = te.compute((), lambda: te.sum(te.exp(a[i, j]) * b[i, j], axis=(i, j)), "whole")
    small = variation(te.placeholder((20, 20), name="x"))
    assert "_apart(jnp" not in te.source(whole) + te.source(small)
    assert "_apart(jnp" in te.source(variation(a))
    x = np.zeros((96, 80), "float32")
    assert "_apart(jnp" not in te.function(variation, platform="gpu").source(x)
