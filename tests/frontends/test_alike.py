"""Functions of many equations: equal groups of them are raised once, and nothing is asked of all pairs of slices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.frontends.jaxpr.gains import shifts
from jaxte.frontends.jaxpr.plan import plan as planning
from jaxte.frontends.jaxpr.plan.plan import Planner
from jaxte.frontends.jaxpr.plan.regions import cut
from jaxte.lower.program import part as lowering


def blurred(x: Any, w: Any) -> Any:
    """Layers of a blur, each with a sort behind it."""
    for own in w:
        x = jnp.sort(jax.vmap(lambda row, k=own[0, :5]: jnp.convolve(row, k, mode="same"))(x), 0)
    return x


def pooled(x: Any, w: Any) -> Any:
    """Layers of windows, each with a sort behind it."""
    for own in w:
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (3, 3), (1, 1), "SAME")
        x = jnp.sort(jnp.sin(x * own), 0)
    return x


def gathered(x: Any, w: Any) -> Any:
    """Layers that read rows in windows, each with a sort behind it."""
    index = np.arange(60)[:, None] + np.arange(5)
    for own in w:
        x = jnp.sort(jnp.pad(jnp.tanh(x[index]).sum(1), ((2, 2), (0, 0))) @ own, 0)
    return x


@pytest.mark.parametrize("layers", [blurred, pooled, gathered])
def test_equal_layers_have_one_code(
    layers: Callable[..., Any], rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, w = (jnp.asarray(rng.normal(size=s).astype("float32")) for s in ((64, 64), (5, 64, 64)))
    loss = lambda x, w: jnp.sum(layers(x, w) ** 2)  # noqa: E731
    lowered: list[str] = []
    original = lowering.lower_tensor
    monkeypatch.setattr(lowering, "lower_tensor", lambda *a: lowered.append("") or original(*a))
    counts = []
    for depth in (3, 5):
        lowered.clear()
        report = te.explain(te.adjoint(loss), x, w[:depth])
        counts.append(len(lowered))
        assert len(report.regions) >= depth
    assert counts[0] == counts[1]
    found, expected = (jax.jit(jax.grad(g, (0, 1)))(x, w) for g in (te.adjoint(loss), loss))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=1e-4 * float(abs(b).max()))


def test_layers_that_differ_have_codes_of_their_own(rng: np.random.Generator) -> None:
    """The same equations with other numbers, and with another reader of the same array."""
    x = jnp.asarray(rng.normal(size=(64, 64)).astype("float32"))

    def loss(x: Any) -> Any:
        for kernel in ((1.0, 2.0, 1.0), (1.0, 3.0, 1.0), (1.0, 2.0, 1.0)):
            y = jax.vmap(lambda row, k=kernel: jnp.convolve(row, jnp.float32(k), mode="same"))(x)
            x = jnp.sort(jnp.sin(y), 0)
        return jnp.sum(x**2) + jnp.sum(jnp.sort(y) * y)

    np.testing.assert_allclose(te.grad(loss)(x), jax.grad(loss)(x), rtol=2e-3, atol=1e-6)


def test_slices_are_not_compared_in_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    original = shifts._meet
    monkeypatch.setattr(shifts, "_meet", lambda *a: asked.append(1) or original(*a))

    def recurrence(w: Any, x: Any) -> Any:
        h = jnp.zeros(32)
        for t in range(150):
            h = jnp.tanh(h @ w + x[t])
        return jnp.sum(h)

    plan = Planner().plan(jax.make_jaxpr(recurrence)(jnp.eye(32), jnp.ones((150, 32))))
    assert not asked
    assert plan.instead is None  # slices of what is given: nothing is left out


@pytest.mark.parametrize("meets", [True, False])
def test_slices_that_meet(meets: bool) -> None:
    """Every third element, from different ones; rows that lie next to each other, or overlap in a corner."""
    x = jnp.ones((96, 96))
    second = (slice(40, 90), slice(40, 90)) if meets else (slice(50, 90), slice(0, 40))
    jaxpr = jax.make_jaxpr(lambda x: jnp.sum(x[:50, :50]) + jnp.sum(x[second]) + jnp.sum(x[1::3, ::2]))(x)
    asked = te.explain(te.adjoint(lambda x: jax.core.eval_jaxpr(jaxpr.jaxpr, [], x)[0], everything=True), x)
    assert asked.regions
    own = te.grad(lambda x: jax.core.eval_jaxpr(jaxpr.jaxpr, [], x)[0])(x)
    np.testing.assert_allclose(own, jax.grad(lambda x: jax.core.eval_jaxpr(jaxpr.jaxpr, [], x)[0])(x))


def test_all_that_is_refused_for_one_reason_is_found_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    times = list[int]()
    monkeypatch.setattr(planning, "cut", lambda *own: times.append(1) or cut(*own))

    def f(x: Any, at: Any) -> Any:
        for _ in range(6):
            x = jax.lax.reduce_window(jnp.sin(x)[at], 0.0, jax.lax.add, (3, 3), (1, 1), "SAME")
        return x

    found = Planner().plan(jax.make_jaxpr(f)(jnp.ones((64, 32)), jnp.arange(64)))
    assert len(found.regions) == 6 and len(times) == 2, times
    assert sum(own.reason == "positions that are data" for own in found.kept) == 6
