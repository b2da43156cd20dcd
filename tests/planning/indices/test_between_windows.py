"""Sums over windows of what is read in windows itself: elements once, sums of slices of them, and gradients of as few terms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

N, S, K = 20, 4, 3


def matching(x: te.Tensor, y: te.Tensor) -> te.Tensor:
    """Absolute differences of blocks, at each disparity."""
    a = te.reduce_axis((0, K), "a")
    body = lambda b, i, s: te.sum(te.abs(x[b, i + a] - y[b, i + a + 2 * s]), axis=a)  # noqa: E731
    return te.compute((2, N - K - 2 * S, S), body, "y")


def correlation(x: te.Tensor, y: te.Tensor) -> te.Tensor:
    """Products of each window with those behind it."""
    a = te.reduce_axis((-1, K - 1), "a")
    body = lambda b, s, i: te.sum(x[b, i + a + 1] * y[b, s + i + a + 1], axis=a)  # noqa: E731
    return te.compute((2, S, N - K - S + 1), body, "y")


def patches(x: te.Tensor, y: te.Tensor) -> te.Tensor:
    """Weights by the distances of patches, which are read at two places."""
    a = te.reduce_axis((0, K), "a")
    far = lambda b, i, s: te.sum((x[b, i + a + 1] - x[b, i + s + a]) ** 2, axis=a)  # noqa: E731
    return te.compute((2, N - K - S + 1, S), lambda b, i, s: te.exp(-far(b, i, s)) * y[b, i], "y")


def _windows(x: Any, count: int, step: int = 1) -> Any:
    """``x[b, i + step * s]`` for each of ``count`` positions ``s``."""
    return jnp.stack([x[:, step * s : x.shape[1] - step * (count - 1 - s)] for s in range(count)], 2)


def _summed(d: Any, length: int) -> Any:
    return sum(d[:, a : a + length] for a in range(K))


def plain_matching(x: Any, y: Any) -> Any:
    d = jnp.abs(x[:, : N - 2 * S + 2, None] - _windows(y, S, 2))
    return _summed(d, N - K - 2 * S)


def plain_correlation(x: Any, y: Any) -> Any:
    d = x[:, : N - S + 1, None] * _windows(y, S)
    return jnp.moveaxis(_summed(d, N - K - S + 1), 2, 1)


def plain_patches(x: Any, y: Any) -> Any:
    d = (x[:, 1 : N - S + 2, None] - _windows(x, S)) ** 2
    return jnp.exp(-_summed(d, N - K - S + 1)) * y[:, : N - K - S + 1, None]


@pytest.mark.parametrize(
    ("definition", "plain"),
    [(matching, plain_matching), (correlation, plain_correlation), (patches, plain_patches)],
)
def test_elements_are_computed_once(definition: Callable[..., Any], plain: Callable[..., Any]) -> None:
    rng = np.random.default_rng(0)
    args = [rng.standard_normal((2, N)) for _ in range(2)]
    f = te.function(definition)
    text = f.source(*args)
    assert "_elements[b, " in text
    assert text.count("stack") <= 3  # one for each function that reads windows
    with jax.enable_x64(True):
        np.testing.assert_allclose(f(*args), plain(*args), rtol=1e-12)
        found, wanted = (
            jax.grad(lambda *a, fn=fn: jnp.sum(jnp.sin(fn(*a))), (0, 1))(*args) for fn in (f, plain)
        )
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_a_window_of_something_else_stays() -> None:
    x, w = te.placeholder((9,), name="x"), te.placeholder((3,), name="w")
    a = te.reduce_axis((0, 3), "a")
    y = te.compute((4, 3), lambda i, s: te.sum(x[i + a + s] * w[a], axis=a), "y")
    assert "_elements" not in te.source(y)
