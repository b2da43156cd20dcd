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


def separable(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """y[i, j] = sum over k, m of w[k] * w[m] * x[i + k, j + m]"""
    k, m = te.reduce_axis((0, 7), "k"), te.reduce_axis((0, 7), "m")
    return te.compute((26, 26), lambda i, j: te.sum(w[k] * w[m] * x[i + k, j + m], axis=(k, m)), "y")


def pooled(x: te.Tensor) -> te.Tensor:
    """An adaptive pool, axis by axis."""
    u, v = te.reduce_axis((0, 40), "u"), te.reduce_axis((0, 40), "v")
    inside = lambda k, i: te.logical_and(k >= i * 40 // 7, k < ((i + 1) * 40 + 6) // 7)  # noqa: E731
    return te.compute(
        (7, 7),
        lambda i, j: te.sum(x[u, v], axis=(u, v), where=te.logical_and(inside(u, i), inside(v, j))),
        "y",
    )


def test_partial_sums_are_rounded_at_the_end() -> None:
    """What is between two sums of 16-bit numbers is float32, so that these are taken in parts as any others are."""
    x, w = bfloat16((32, 32), -1.0, 1.0), bfloat16((7,), 0.0, 1.0)
    source = te.source(te.function(separable), jnp.asarray(x), jnp.asarray(w))
    forward, backward = source.split("def backward")
    assert "y_over_" in forward and forward.count(".astype(jnp.bfloat16)") == 1
    assert backward.count(".astype(jnp.bfloat16)") == 3  # dx, and two sums for dw
    exact = te.interpret(
        separable(X := te.placeholder((32, 32), "float64", "x"), W := te.placeholder((7,), "float64", "w")),
        {X: x.astype("float64"), W: w.astype("float64")},
    )
    found = np.asarray(te.function(separable)(jnp.asarray(x), jnp.asarray(w))).astype("float64")
    assert np.max(np.abs(found - exact)) <= 0.5 * UNIT * np.max(np.abs(exact))
    assert "y_over_" not in te.source(te.function(separable, platform="gpu"), jnp.asarray(x), jnp.asarray(w))


def test_pools_of_moving_bounds_are_rounded_at_the_end() -> None:
    x = bfloat16((40, 40), 0.0, 1.0)
    source = te.source(te.function(pooled), jnp.asarray(x))
    assert "y_u" in source and source.split("def backward")[0].count(".astype(jnp.bfloat16)") == 1
    X = te.placeholder((40, 40), "float64", "x")
    exact = te.interpret(pooled(X), {X: x.astype("float64")})
    found = np.asarray(te.function(pooled)(jnp.asarray(x))).astype("float64")
    assert np.max(np.abs(found - exact)) <= 0.5 * UNIT * np.max(np.abs(exact))
