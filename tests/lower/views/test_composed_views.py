"""Indices that compose views, a roll with windows or columns of an image: views in both passes, and nothing gathers or copies twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from harness.counts import operations
from harness.sides import with_gradients
from tests.xla_counts import Fused

W, N = 4, 3  # windows of 4 x 4, 3 x 3 of them
H = W * N
Indices = Callable[..., tuple[Any, ...]]

# shape read from, shape of the result, and where an element is read: in integers of NumPy and in axes alike
VIEWS: dict[str, tuple[tuple[int, ...], tuple[int, ...], Indices]] = {
    "shifted windows": (
        (2, H, H, 3),
        (2, N * N, W * W, 3),
        lambda b, a, t, c: (b, (a // N * W + t // W + 2) % H, (a % N * W + t % W + 2) % H, c),
    ),
    "their reverse": (
        (2, N * N, W * W, 3),
        (2, H, H, 3),
        lambda b, i, j, c: (
            b,
            (i - 2) % H // W * N + (j - 2) % H // W,
            (i - 2) % H % W * W + (j - 2) % H % W,
            c,
        ),
    ),
    "heads in windows": (
        (2, 4, H, H),
        (2, N * N, 2, W * W, 2),
        lambda b, a, g, t, d: (
            b,
            g * 2 + d,
            (a // N * W + t // W + 1) % H,
            (a % N * W + t % W + 1) % H,
        ),
    ),
    "windows backwards": (
        (2, H, H),
        (2, N * N, W * W),
        lambda b, a, t: (b, (H - 1 - (a // N * W + t // W) - 2) % H, (a % N * W + t % W + 1) % H),
    ),
    "columns": (
        (2, 2, 7, 8),
        (2, 18, 30),
        lambda b, f, s: (b, f // 9, s // 6 + f // 3 % 3, s % 6 + f % 3),
    ),
    "columns of a signal": ((2, 4, 16), (2, 14, 12), lambda b, t, f: (b, f // 3, t + f % 3)),
    "pixels to channels, rolled": (
        (2, 3, 8, 8),
        (2, 12, 4, 4),
        lambda b, c, i, j: (b, c // 4, (2 * i + c // 2 % 2 + 1) % 8, (2 * j + c % 2 + 1) % 8),
    ),
    "transposed and rolled": ((2, 12, 16), (2, 192), lambda b, f: (b, 11 - f % 12, (f // 12 + 5) % 16)),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_in_both_passes(name: str, rng: np.random.Generator) -> None:
    shape, out, at = VIEWS[name]
    x, head = rng.standard_normal(shape).astype("float32"), rng.standard_normal(out).astype("float32")
    places = at(*np.indices(out))
    fn = te.function(lambda t: te.compute(out, lambda *axes: t[at(*axes)], "y"))
    lowered = jax.jit(with_gradients(fn, (0,))).lower([head], x)
    assert not {"gather", "scatter", "dot_general", "reduce_window"} & set(operations(lowered.as_text()))
    compiled = Fused(lowered)
    value, dx = compiled([head], x)
    np.testing.assert_array_equal(value, x[places])
    expected = jnp.zeros(shape).at[places].add(head)
    np.testing.assert_allclose(dx, expected, rtol=1e-5, atol=1e-5)
    moved = 4 * 2 * (x.size + head.size)
    assert compiled.memory_analysis().temp_size_in_bytes <= 2 * moved
    assert compiled.cost_analysis()["bytes accessed"] <= 6 * moved


def test_columns_added_to_an_image(rng: np.random.Generator) -> None:
    """Of which each has a condition of its own, on the digits of the flat position."""
    x = te.placeholder((2, 18, 30), name="x")
    p, q = te.reduce_axis((0, 3), "p"), te.reduce_axis((0, 3), "q")

    def element(b: Any, c: Any, i: Any, j: Any) -> Any:
        inside = te.logical_and(te.logical_and(i - p >= 0, i - p < 5), te.logical_and(j - q >= 0, j - q < 6))
        return te.sum(x[b, c * 9 + p * 3 + q, (i - p) * 6 + j - q], axis=[p, q], where=inside)

    y = te.compute((2, 2, 7, 8), element, "y")
    text = te.source(y)
    assert ".at[" not in text and "x_padded" not in text
    array = rng.standard_normal(x.shape).astype("float32")
    images = array.reshape(2, 2, 3, 3, 5, 6)
    expected = np.zeros((2, 2, 7, 8), "float32")
    for a in range(3):
        for b in range(3):
            expected[:, :, a : a + 5, b : b + 6] += images[:, :, a, b]
    np.testing.assert_allclose(te.evaluate(y, {x: array}), expected, rtol=1e-5, atol=1e-5)
