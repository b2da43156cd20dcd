"""The gradient of a raised region is derived and lowered once, also where a result of it does not depend on what is differentiated by."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.bridge.primitive import program
from jaxte.frontends.jaxpr.narrow import rewrite
from jaxte.frontends.jaxpr.plan import plan


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


def test_what_gains_nothing_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The price asks of the equations that the plan has read, and slices of arguments leave nothing out that is computed."""

    def layers(p: jax.Array, x: jax.Array) -> jax.Array:
        for n in range(4):
            x = jnp.tanh(x @ p[n]) * p[n, 0]
        return jnp.sum(x)

    read, asked = [], []
    steps_of, demand_of = plan.steps_of, rewrite.demand_of
    monkeypatch.setattr(plan, "steps_of", lambda *args: read.append(1) or steps_of(*args))
    monkeypatch.setattr(rewrite, "demand_of", lambda *args: asked.append(1) or demand_of(*args))
    p, x = jnp.ones((4, 128, 128)) / 64, jnp.ones((256, 128))
    raised = te.adjoint(layers)
    found = jax.grad(raised)(p, x)
    assert (len(read), len(asked)) == (1, 0)
    assert not te.explain(raised, p, x).regions
    np.testing.assert_allclose(found, jax.grad(layers)(p, x), rtol=1e-6)
    jax.grad(te.adjoint(lambda p, x: jnp.sum(jnp.tanh(x @ p[0])[3:9])))(p, x)
    assert asked
