"""Sums beside single elements of what is summed, and of shifted parts of one array: raised by themselves."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

X = np.linspace(0.0, 1.0, 257, dtype="float32") ** 2
RAISED: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "trapezoidal rule": (lambda y: jnp.trapezoid(y, dx=0.1, axis=0), (128, 96)),
    "of a part of an array": (lambda y: jnp.trapezoid(jnp.tanh(y[:, 3:]), dx=0.1, axis=1), (16, 64, 16)),
    "along positions": (lambda y: jnp.trapezoid(y, X, axis=-1), (64, 257)),
    "Simpson's rule": (lambda y: (y[:, 0:-1:2] + 4 * y[:, 1::2] + y[:, 2::2]).sum(-1) / 3, (64, 257)),
    "without its ends": (lambda y: y.sum(1) - y[:, 0] - y[:, -1], (64, 257)),
}
KEPT: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "beside one element": (lambda y: y.mean(1) - y[:, 0], (64, 257)),
    "a mean of differences": (lambda y: jnp.diff(y, axis=0).mean(0), (128, 96)),
    "a small array": (lambda y: jnp.trapezoid(y, dx=0.1, axis=0), (16, 16)),
}


@pytest.mark.parametrize("name", RAISED)
def test_sums_beside_ends_are_raised(name: str, rng: np.random.Generator) -> None:
    f, shape = RAISED[name]
    x = jnp.asarray(rng.normal(size=shape).astype("float32"))
    loss = lambda x: jnp.sum(f(x) ** 2)  # noqa: E731
    assert len(te.explain(te.adjoint(loss), x).regions) == 1
    own, expected = te.grad(loss)(x), jax.grad(loss)(x)
    np.testing.assert_allclose(own, expected, rtol=1e-3, atol=1e-4 * float(abs(expected).max()))


@pytest.mark.parametrize("name", KEPT)
def test_other_sums_stay(name: str) -> None:
    f, shape = KEPT[name]
    given = jax.ShapeDtypeStruct(shape, "float32")
    assert not te.explain(te.adjoint(lambda x: jnp.sum(f(x) ** 2)), given).regions
