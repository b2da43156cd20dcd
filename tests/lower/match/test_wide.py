"""Long sums and products of 16-bit numbers are computed in float32 and rounded once."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import jaxte as te

UNIT = 2.0**-7  # of bfloat16


def bfloat16(shape: tuple[int, ...], low: float, high: float) -> np.ndarray:
    drawn = np.random.default_rng(0).uniform(low, high, shape)
    return np.asarray(jnp.asarray(drawn, jnp.bfloat16))


def test_products_before_and_after_each_factor() -> None:
    """The gradient of a product, of what comes before an element and behind it."""
    x = bfloat16((256,), 0.9, 1.1)
    k = te.reduce_axis((0, 256), "k")
    fn = te.function(lambda x: te.compute((), lambda: te.prod(x[k], axis=k), "y"))
    wide = x.astype("float64")
    exact = np.prod(wide) / wide
    found = np.asarray(jax.grad(lambda x: fn(x))(jnp.asarray(x))).astype("float64")
    assert np.max(np.abs(found - exact)) < 2 * UNIT * np.max(exact)


def test_sums_for_each_tap() -> None:
    """All sums of products of slices in one pass, whose accumulators are as wide as those of a convolution."""

    def smoothed(x: te.Tensor, w: te.Tensor) -> te.Tensor:
        k = te.reduce_axis((0, 9), "k")
        return te.compute((4, 504, 32), lambda b, t, c: te.sum(x[b, t + k, c] * w[k, c], axis=k), "y")

    shapes = [jax.ShapeDtypeStruct(s, jnp.bfloat16) for s in ((4, 512, 32), (9, 32))]
    source = te.source(te.function(smoothed), *shapes)
    assert "[jnp.float32(0)] * 9" in source and "jnp.bfloat16(0)]" not in source


def test_running_sums() -> None:
    x = bfloat16((4, 4096), 0.0, 1.0)
    k = te.reduce_axis((0, 4096), "k")
    fn = te.function(lambda x: te.compute((4, 4096), lambda i, j: te.sum(x[i, k], axis=k, where=k <= j), "y"))
    exact = np.cumsum(x.astype("float64"), 1)
    found = np.asarray(fn(jnp.asarray(x))).astype("float64")
    assert np.max(np.abs(found - exact)) < 0.5 * UNIT * np.max(exact)


def test_recurrences_of_adjoints() -> None:
    """The gradient of a running product obeys a recurrence, each step of which would be rounded to 16 bits."""
    x = bfloat16((2048,), 0.99, 1.01)
    k = te.reduce_axis((0, 2048), "k")
    fn = te.function(lambda x: te.compute((2048,), lambda j: te.prod(x[k], axis=k, where=k <= j), "y"))
    found = np.asarray(jax.grad(lambda x: jnp.sum(fn(x).astype("float32")))(jnp.asarray(x))).astype("float64")
    with jax.enable_x64(True):
        wide = jnp.asarray(x.astype("float64"))
        exact = np.asarray(jax.grad(lambda x: jnp.sum(jnp.cumprod(x)))(wide))
    assert np.max(np.abs(found - exact)) < 2 * UNIT * np.max(exact)
