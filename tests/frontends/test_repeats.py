"""Elements that are repeated and summed: raised where only sums are taken of them, and computed once."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

COUNTED: dict[str, Callable[[Any], Any]] = {
    "enlarged": lambda x: jnp.sum(x.repeat(2, axis=0).repeat(2, axis=1) ** 2),
    "bounded": lambda x: jnp.sum(jnp.tanh(jnp.repeat(x, 3, 0)) ** 2),
    "mean of a wave": lambda x: jnp.mean(jnp.sin(3.0 * jnp.repeat(x, 4, 1)) * jnp.repeat(x, 4, 1)),
}


@pytest.mark.parametrize("name", COUNTED)
def test_repeated_elements_are_computed_once(name: str, rng: np.random.Generator) -> None:
    f, x = COUNTED[name], jnp.asarray(rng.normal(size=(40, 50)).astype("float32"))
    np.testing.assert_allclose(te.grad(f)(x), jax.grad(f)(x), rtol=1e-4, atol=1e-6)
    assert "repeat" not in te.source(te.grad(f), x)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: jnp.repeat(x, 2, 0) ** 2,
        lambda x: jnp.sum((jnp.repeat(x, 2, 0) - jnp.arange(80.0)[:, None]) ** 2),
        lambda x: jnp.sum(jnp.sum(jnp.repeat(x, 2, 0), 1) ** 2),
    ],
)
def test_repeated_elements_beside_others_stay(f: Any) -> None:
    assert not te.explain(te.adjoint(f), jax.ShapeDtypeStruct((40, 50), "float32")).regions
