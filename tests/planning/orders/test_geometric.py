"""Sums with geometric weights are linear recurrences, in steps on a CPU and in blocks elsewhere: values, gradients and operations, however they are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import jaxte as te
from jaxte.planning.orders import geometric
from tests.xla_counts import Fused

N = 144  # above the limits of both ways


def over(n: int = N) -> te.Axis:
    return te.reduce_axis((0, n), "s")


SPELLINGS: dict[str, Callable[..., Any]] = {
    "power": lambda x, t, s: te.sum(0.9 ** (t - s) * x[s], s, where=s <= t),
    "power of a difference turned round": lambda x, t, s: te.sum(x[s] * 0.9 ** -(s - t), s, where=t >= s),
    "a select": lambda x, t, s: te.sum(te.select(s < t + 1, 0.9 ** (t - s) * x[s], 0.0), s),
    "an exponential": lambda x, t, s: te.sum(te.exp(-(t - s) / 9.5) * x[s], s, where=s <= t),
    "one step late": lambda x, t, s: te.sum(0.9 ** (t - s + 1) * x[s], s, where=s <= t),
    "every other": lambda x, t, s: te.sum(0.9 ** (2 * t - 2 * s) * te.tanh(x[s]) * s, s, where=s <= t),
    "by lags": lambda x, t, s: te.sum(0.9**s * x[t - s], s, where=s <= t),
    "by lags ahead": lambda x, t, s: te.sum(te.exp(-0.1 * s) * x[t + s], s, where=t + s < s.hi),
    "backwards": lambda x, t, s: te.sum(0.9 ** (s - t) * x[s], s, where=s >= t),
    "backwards, outside": lambda x, t, s: te.sum(te.exp((t - s) * 0.1) * x[s] * x[t], s, where=s >= t) + x[t],
}


def definition(spelling: str, n: int = N) -> Callable[[te.Tensor], te.Tensor]:
    return lambda x: te.compute((n,), lambda t: SPELLINGS[spelling](x, t, over(n)), "y")


WAYS = ("lax.scan", "blocks")


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the emitted text has: loops where steps are cheap, blocks where they are not."""
    monkeypatch.setattr(geometric, "has_cheap_steps", lambda: request.param == "lax.scan")
    return str(request.param)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("n", [N, 131])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_values_and_gradients(spelling: str, n: int, way: str, rng: np.random.Generator) -> None:
    x, h = rng.standard_normal(n), rng.standard_normal(n)
    build = definition(spelling, n)
    X = te.placeholder((n,), "float64", "x")
    run = te.function(build)
    assert way in te.source(run, x)
    y, pull = jax.vjp(run, x)
    np.testing.assert_allclose(y, te.interpret(build(X), {X: x}), rtol=1e-9, atol=1e-9)
    step = 1e-6 * h
    moved = [te.interpret(build(X), {X: x + sign * step}) for sign in (1, -1)]
    v = rng.standard_normal(n)
    np.testing.assert_allclose(
        np.vdot(pull(v)[0], 2 * step), np.vdot(v, moved[0] - moved[1]), rtol=1e-5, atol=1e-9
    )


def test_rates_that_are_learned(way: str, rng: np.random.Generator) -> None:
    """Of each channel, beside batches: gradients to what is summed and to the rates."""
    x, rate = rng.standard_normal((2, 3, N)).astype("float32"), rng.uniform(0.02, 0.2, 3).astype("float32")

    def build(x: te.Tensor, r: te.Tensor) -> te.Tensor:
        s = over()
        return te.compute(
            x.shape, lambda b, c, t: te.sum(te.exp(-r[c] * (t - s)) * x[b, c, s], s, where=s <= t), "y"
        )

    distance = np.maximum(np.arange(N)[:, None] - np.arange(N), 0)
    lower = np.tril(np.ones((N, N), "float32"))

    def plain(x: jax.Array, r: jax.Array) -> jax.Array:
        return jax.numpy.einsum("cts,bcs->bct", jax.numpy.exp(-r[:, None, None] * distance) * lower, x)

    run = te.function(build)
    assert way in te.source(run, x, rate)
    h = rng.standard_normal(x.shape).astype("float32")
    (y, pull), (same, plain_pull) = jax.vjp(run, x, rate), jax.vjp(plain, x, rate)
    np.testing.assert_allclose(y, same, rtol=1e-4, atol=1e-4)
    for found, expected in zip(pull(h), plain_pull(h), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_operations(way: str, rng: np.random.Generator) -> None:
    """About n ** 1.5 in both passes in blocks, and nothing of n * n elements."""
    n = 1024
    run = te.function(definition("power", n))
    x = rng.standard_normal(n).astype("float32")
    assert way in te.source(run, x)
    compiled = Fused(jax.jit(lambda x: jax.vjp(run, x)[1](x)).lower(x))
    assert compiled.cost_analysis()["flops"] < n * n / 4
    assert compiled.memory_analysis().temp_size_in_bytes < 4 * n * n / 16


@pytest.mark.parametrize(
    "element",
    [
        lambda x, t, s: te.sum(0.9 ** (t - s) * x[s], s, where=s < t),  # the first is none
        lambda x, t, s: te.sum(0.9 ** (t + s) * x[s], s, where=s <= t),
        lambda x, t, s: te.sum(te.exp(-((t - s) ** 2) * 0.1) * x[s], s, where=s <= t),
        lambda x, t, s: te.sum(te.exp(1.0 / (t - s + 1)) * x[s], s, where=s <= t),
        lambda x, t, s: te.sum(0.9 ** (t - s) * x[s], s),
        lambda x, t, s: te.sum(0.9 ** (t - s) * x[s], s, where=(s <= t) & (s > t - 9)),
        lambda x, t, s: te.max(0.9 ** (t - s) * x[s], s, where=s <= t),
    ],
)
def test_what_is_none(element: Callable[..., Any]) -> None:
    x = te.placeholder((N,), name="x")
    y = te.compute((N,), lambda t: element(x, t, over()), "y")
    assert geometric.carried(y.body, y.axes, "y") is y.body  # type: ignore[attr-defined]
