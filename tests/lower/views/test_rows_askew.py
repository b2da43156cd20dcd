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
