"""What waits for nothing but what it is read by is raised with that: powers of a decay with the scan that they are for, whose input is a product that stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxte as te


def _after(a: Any, b: Any) -> Any:
    return a[0] * b[0], b[0] * a[1] + b[1]


def decayed(x: Any, w: Any, decay: Any) -> Any:
    u = x @ w
    return lax.associative_scan(_after, (jnp.broadcast_to(jax.nn.sigmoid(decay), u.shape), u))[1]


def turned(x: Any, w: Any, decay: Any) -> Any:
    """The same of complex numbers, and a product behind it."""
    u = (x @ w).astype("complex64")
    factor = jnp.broadcast_to(jnp.exp(-jnp.abs(decay) + 1j * decay), u.shape)
    return jnp.real(lax.associative_scan(_after, (factor, u))[1] @ w.T.astype("complex64"))


def blurred(x: Any, w: Any, decay: Any) -> Any:
    """A smoothed weight, by which what a product makes is multiplied before it is smoothed too."""
    smooth = lambda u: (jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1)) / 4  # noqa: E731
    weight = smooth(smooth(jnp.broadcast_to(decay, (len(x), len(decay)))))
    return smooth(smooth(weight * (x @ w)))


def read_before(x: Any, w: Any, decay: Any) -> Any:
    """A product reads the smoothed array, which stays a region of its own."""
    smooth = lambda u: (jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1)) / 4  # noqa: E731
    y = smooth(smooth(x))
    return smooth(smooth(y @ w)) * decay + jnp.sum(y)


CASES: dict[str, tuple[Callable[..., Any], int]] = {
    "powers of a decay": (decayed, 1),
    "powers of a complex one": (turned, 1),
    "a smoothed weight": (blurred, 1),
    "a product reads it": (read_before, 2),
}


@pytest.mark.parametrize("name", CASES)
def test_regions(name: str, rng: np.random.Generator) -> None:
    f, regions = CASES[name]
    args = [jnp.asarray(rng.normal(size=s) / 2, "float32") for s in ((64, 16), (16, 32), (32,))]
    loss = lambda *own: jnp.sum(f(*own) ** 2)  # noqa: E731
    assert len(te.explain(te.adjoint(loss), *args).regions) == regions
    for ours, theirs in zip(te.grad(loss, (0, 1, 2))(*args), jax.grad(loss, (0, 1, 2))(*args), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4 * np.abs(theirs).max())
