"""Elements around the end of an array are a choice between two pads where arrays side by side would be arrays of their own."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import jaxte as te
from jaxte.meaning.interpret import interpret


def ring(u: Any) -> Any:
    n, m = u.shape
    return te.compute(
        (n, m), lambda i, j: u[(i + 1) % n, j] + 2 * u[(i - 3) % n, (j + 2) % m] - u[i, (j - 1) % m], "y"
    )


@pytest.mark.parametrize("dtype", ["float32", "int32", "complex64"])
def test_rolls_are_choices_on_accelerators(dtype: str, rng: np.random.Generator) -> None:
    u = (10 * rng.normal(size=(7, 5))).astype(dtype)
    own = te.function(ring, platform="gpu")
    x = te.placeholder(u.shape, dtype, "u")
    np.testing.assert_allclose(own(u), interpret([ring(x)], {x: u})[0], rtol=1e-5)
    text = {p: str(te.source(te.function(ring, platform=p), u)) for p in ("cpu", "gpu", "tpu")}
    assert ["_rolled(" in text[p] for p in text] == [False, True, True]


def test_gradients_around_the_end(rng: np.random.Generator) -> None:
    u, head = (rng.normal(size=(7, 5)).astype("float32") for _ in range(2))
    found, expected = (
        jax.vjp(te.function(ring, platform=p) if p else plain_ring, u)[1](head)[0] for p in ("gpu", "")
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    hlo = jax.jit(te.function(ring, platform="gpu")).lower(u).as_text()
    assert "concatenate" not in hlo and "concatenate" in jax.jit(plain_ring).lower(u).as_text()


def plain_ring(u: Any) -> Any:
    roll = jax.numpy.roll
    return roll(u, -1, 0) + 2 * roll(u, (3, -2), (0, 1)) - roll(u, 1, 1)
