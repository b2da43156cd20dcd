"""What flows back to windows is a sum of slices: rows that are cut elsewhere than where they end lie askew, and are copied."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te


def diagonals(d: te.Tensor) -> te.Tensor:
    """Windows by their first position."""
    n, k, m = d.shape
    j = te.reduce_axis((0, k), "j")
    return te.compute(
        (n + k - 1, m),
        lambda i, c: te.sum(d[i - j, j, c], axis=j, where=(i - j >= 0) & (i - j < n)),
        "y",
    )


def turned(d: te.Tensor) -> te.Tensor:
    """The same with what is within a window first."""
    k, n, m = d.shape
    j = te.reduce_axis((0, k), "j")
    return te.compute(
        (n + k - 1, m),
        lambda i, c: te.sum(d[j, i - j, c], axis=j, where=(i - j >= 0) & (i - j < n)),
        "y",
    )


@pytest.mark.parametrize("f", [diagonals, turned])
def test_they_are_slices(f: Any, rng: np.random.Generator) -> None:
    d = np.float32(rng.normal(size=(60, 16, 8)))
    own = d if f is diagonals else np.ascontiguousarray(d.swapaxes(0, 1))
    text = te.source(te.function(f), own)
    forward = text[text.index("def forward") : text.index("def backward")]
    assert "reshape" not in forward and "jnp.sum" not in forward
    expected = np.zeros((75, 8))
    for j in range(16):
        expected[j : j + 60] += d[:, j]
    np.testing.assert_allclose(te.function(f)(own), expected, rtol=1e-5, atol=1e-5)


def test_spread_of_windows(rng: np.random.Generator) -> None:
    def loss(x: Any) -> Any:
        windows = jax.vmap(lambda s: jax.lax.dynamic_slice_in_dim(x, s, 16))(jnp.arange(48))
        return jnp.sum(windows.std(1))

    x = jnp.asarray(rng.normal(size=(64, 32)), "float32")
    raised = te.adjoint(loss, everything=True)
    backward = te.source(raised, x).partition("def backward")[2]
    assert "jnp.sum(dvar_1_padded" not in backward
    np.testing.assert_allclose(jax.grad(raised)(x), jax.grad(loss)(x), rtol=1e-4, atol=1e-5)


def relative(x: te.Tensor) -> te.Tensor:
    """Scores by how far back a position is, at the positions themselves."""
    _, _, m = x.shape
    return te.compute(x.shape, lambda b, i, j: te.select(j <= i, x[b, i, j - i + m - 1], 0.0), "y")


def sheared(x: te.Tensor) -> te.Tensor:
    """Rows moved to the right, each by its number, in several images."""
    _, n, m = x.shape
    return te.compute(
        (x.shape[0], n, m + n), lambda b, i, j: te.select((j >= i) & (j - i < m), x[b, i, j - i], 0.0), "y"
    )


@pytest.mark.parametrize("f", [relative, sheared])
def test_rows_of_a_batch_stay_where_they_are(f: Any, rng: np.random.Generator) -> None:
    """Each image is laid out askew by itself: with rows first and images within, all of it was turned there and back, which took twice the time."""
    x = np.float32(rng.normal(size=(6, 24, 24)))
    own = te.function(f)
    assert "transpose" not in str(te.source(own, x))
    rows, columns = np.indices((24, 24 if f is relative else 48))
    at = columns - rows + (23 if f is relative else 0)
    inside = (columns <= rows) & (at >= 0) if f is relative else (at >= 0) & (at < 24)

    def plain(x: Any) -> Any:
        return jnp.where(inside, x[:, rows, at.clip(0, 23)], 0.0)

    y, pull = jax.vjp(own, x)
    expected, plainly = jax.vjp(plain, x)
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_allclose(pull(y)[0], plainly(expected)[0], rtol=1e-6)
