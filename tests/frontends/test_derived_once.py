"""The gradient of a raised region is derived and lowered once, also where a result of it does not depend on what is differentiated by."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.bridge.primitive import program


def test_a_result_without_a_derivative_costs_no_second_derivation(monkeypatch: pytest.MonkeyPatch) -> None:
    def smooth(x: jax.Array) -> jax.Array:
        return jnp.sin(x[2:]) + x[1:-1] * x[:-2]

    def loss(x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        weights = smooth(y)
        return jnp.sum(smooth(x) * weights), weights

    lowered = []
    lower = program.lower

    def counted(name: str, *args: object, **options: object) -> object:
        lowered.append(name)
        return lower(name, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(program, "lower", counted)
    x, y = jnp.asarray(np.linspace(0, 1, 19)), jnp.asarray(np.linspace(1, 2, 19))
    raised = te.adjoint(loss, everything=True)
    found, _ = jax.grad(raised, has_aux=True)(x, y)
    np.testing.assert_allclose(found, jax.grad(loss, has_aux=True)(x, y)[0], rtol=1e-6)
    assert lowered.count("backward") == 1, lowered
