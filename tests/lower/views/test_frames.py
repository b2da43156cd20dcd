"""Frames of a signal that begin a part of their length apart: views by digits, and adjoints that are slices added."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te


def framed(count: int, apart: int, size: int) -> te.Tensor:
    x = te.placeholder((2, apart * (count - 1) + size), name="x")
    return te.compute((2, count, size), lambda b, f, k: x[b, apart * f + k], "F")


@pytest.mark.parametrize(("apart", "size"), [(4, 8), (3, 12), (5, 35)])
def test_frames_and_their_adjoint_gather_nothing(apart: int, size: int, rng: np.random.Generator) -> None:
    F = framed(11, apart, size)
    (x,) = F.inputs
    fn = te.function([x], F)
    value = rng.normal(size=x.shape).astype("float32")
    places = np.arange(11)[:, None] * apart + np.arange(size)
    np.testing.assert_array_equal(fn(value), value[:, places])
    head = rng.normal(size=F.shape).astype("float32")
    expected = jax.vjp(lambda v: v[:, places], jnp.asarray(value))[1](head)[0]
    np.testing.assert_allclose(jax.vjp(fn, value)[1](head)[0], expected, rtol=1e-5, atol=1e-5)
    text = te.source(fn, value)
    assert "jnp.arange" not in text and "scatter" not in text and ".at[" not in text


def test_an_adjoint_of_frames_is_one_loop_over_slices() -> None:
    """Each part of all frames is a slice: rows are not laid askew, which is a copy."""
    F = framed(11, 4, 16)
    (x,) = F.inputs
    text = te.source(te.function([x], F), np.ones(x.shape, np.float32)).partition("def backward")[2]
    assert text.count("[:, ") == 4
    assert "jnp.sum" not in text
