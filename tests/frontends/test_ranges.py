"""What is known of values: between which numbers arrays lie, and that what cannot be infinite there is not guarded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxte as te
from jaxte.bridge.jaxprs import bound
from jaxte.frontends.jaxpr.guards.values import Ranges
from jaxte.frontends.jaxpr.plan.plan import steps_of

where = jnp.where
EDGES = [0.0, -0.0, 1e-6, 0.5, -0.5, 1.0, -1.0, 3.0, -3.0, 90.0, -90.0, 1e30, -1e30, np.inf, -np.inf, np.nan]
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "sums": lambda x, y: (x + y) * (x - y) - 2 * x + (1 + 1e-7 - where(x > 1, 1.0, x)),
    "products": lambda x, y: x * y * abs(x) - x * x + (-2.0) * where(y > 0, y, 3.0),
    "quotients": lambda x, y: x / where(y == 0, 2.0, y) + 1 / (1 + x * x) + y / x,
    "powers": lambda x, y: x**3 + y**-2 + jnp.power(x, 2.0) + jnp.power(abs(y), 0.3) + jnp.power(x, 1.5),
    "roots": lambda x, y: jnp.sqrt(where(x > 0, x, 0.0)) + jnp.sqrt(y) + lax.rsqrt(x * x + 1e-3),
    "exponentials": lambda x, y: jnp.exp(-abs(x)) + jnp.expm1(y) + jnp.exp(where(x < 3, x, 2.0)),
    "logarithms": lambda x, y: jnp.log(where(x >= 1, x, 1.0)) + jnp.log1p(jnp.exp(y)) + jnp.log(x),
    "bounded": lambda x, y: jnp.tanh(x) + jnp.sin(y) * jax.nn.sigmoid(x) + lax.erf(y) + jnp.cos(x),
    "held": lambda x, y: jnp.clip(x, -1, 2) * jnp.maximum(y, 0.5) + jnp.minimum(x, y) + jnp.clip(x, y, 2.0),
    "rounded": lambda x, y: jnp.floor(x) + jnp.ceil(where(jnp.isfinite(y), y, 0.0)) + jnp.sign(x),
    "sums of arrays": lambda x, y: jnp.sum(x * x) + jnp.max(y) - jnp.min(where(x > 0, x, 9.0)) + jnp.sum(x[:3]),
    "conditions": lambda x, y: where((x > 0) & ~(y <= 1), x / y, 1.0) * where((x < 0) | (y != y), 1.0, y),
    "other numbers": lambda x, y: jnp.nan_to_num(x / y) + where(x > y, x, y) + where(y != 0, y, 1.0),
    "moved": lambda x, y: jnp.concatenate([x, abs(y)])[::-1].reshape(2, -1).T + jnp.pad(jnp.exp(x), 9)[0],
    "integers": lambda x, y: (jnp.arange(x.size) * 3 - 2).astype("float32") * where(x > 0, 1, 2),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_lie_in_their_ranges(name: str) -> None:
    pairs = np.array([(a, b) for a in EDGES for b in EDGES], "float32")
    rows = [pairs.T, np.random.default_rng(0).normal(size=(2, 40)).astype("float32")]
    for x, y in [*rows, *(np.array([[a] * 4, [b] * 4], "float32") for a, b in pairs[::7])]:
        closed = jax.make_jaxpr(FUNCTIONS[name])(x, y)
        slots, found = steps_of(closed)
        values = {slots[v]: given for v, given in zip(closed.jaxpr.invars, (x, y), strict=True)}
        ranges = Ranges()
        for step in (step for _, own in found for step in own):
            made = bound(step.eqn, [jnp.asarray(values.get(s, s.known)) for s in step.inputs])
            for slot, value in zip(step.outputs, made, strict=True):
                values[slot], own = value, ranges.of(slot)
                numbers = np.asarray(value, "float64")
                assert own.nan or not np.isnan(numbers).any(), step.eqn
                numbers = numbers[~np.isnan(numbers)]
                assert ((own.low <= numbers) & (numbers <= own.high)).all(), (step.eqn, own, numbers)
                assert (abs(numbers) >= own.least).all(), (step.eqn, own)


def distances(x: Any) -> Any:
    square = jnp.sum((x[:, None] - x[None]) ** 2, -1)
    there = square > 0
    return where(there, jnp.sqrt(where(there, square, 0.0)), 0.0)


ROWS = np.random.default_rng(3).normal(size=(20, 3)).astype("float32")
LINE = np.array([-3.0, -0.5, 0.0, 0.5, 0.9, 2.0, 30.0], "float32")
FINITE = {
    "energies of pairs": (lambda x: jnp.sum(jnp.nan_to_num(jnp.exp(-5 * (distances(x) - 1)) + distances(x) ** 2)), ROWS),
    "over distances": (lambda x: jnp.sum(where(distances(x) < 2, 1 / where(distances(x) > 0, distances(x), 1.0), 0.0)), ROWS),
    "a power of two": (lambda x: jnp.sum(where(x < 1, jnp.power(1 - x, 2.0), 0.0)), LINE),
    "a sum of squares": (lambda x: jnp.sum(where(x > 0, jnp.sqrt(where(x > -9, x, 0.0) ** 2 + 1), 0.0)), LINE),
    "what is held": (lambda x: jnp.sum(where(x > 0, jnp.log(jnp.clip(where(x == x, x, 1.0), 0.1, 9.0)), 0.0)), LINE),
    "one more than a square": (lambda x: jnp.sum(where(x < 1, 1 / (1 + where(jnp.isfinite(x), x, 0.0) ** 2), 0.0)), LINE),
}  # fmt: skip


@pytest.mark.parametrize("name", FINITE)
def test_what_cannot_be_infinite_is_not_guarded(name: str) -> None:
    f, x = FINITE[name]
    assert not [line for line in te.explain(te.grad(f), x).guarded if line.reason.startswith("not diff")]
    found = te.grad(f)(x)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, jax.grad(f)(x), rtol=1e-4, atol=1e-5)


KEPT = {
    "an exponential that overflows": lambda x: jnp.nan_to_num(jnp.exp(50 * x)),
    "a root at zero": lambda x: where(x > 0.4, jnp.sqrt(jnp.maximum(x, 0.0)), 0.0),
    "a power below one": lambda x: where(x > 0, jnp.power(abs(x), 0.5), 0.0),
    "a logarithm of what cancels": lambda x: where(x < 0, jnp.log(1 - jnp.tanh(x) ** 2), 0.0),
    "numbers that are missing": lambda x: where(x == x, jnp.exp(-abs(where(x == 2, jnp.nan, x))), 0.0),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_may_be_infinite_is_guarded(name: str) -> None:
    assert te.explain(te.grad(lambda x: jnp.sum(KEPT[name](x))), LINE).guarded
    assert np.isfinite(te.grad(lambda x: jnp.sum(KEPT[name](x)))(LINE)).all() or "missing" in name


def test_a_constant_that_is_divided_by(rng: np.random.Generator) -> None:
    """The slope by the numerator is infinite where the choice puts 0 below it."""
    here, x, y = rng.random(9) > 0.5, rng.normal(size=9), rng.uniform(1, 2, 9)
    for divide in (jnp.divide, jnp.arctan2):

        def f(x: Any, y: Any, other: float) -> Any:
            return jnp.sum(where(here, divide(x, where(here, y, other)), 0.0))  # noqa: B023

        x = x.at[~here].set(0.0) if hasattr(x, "at") else np.where(here, x, 0.0)
        expected = jax.grad(f, (0, 1))(x, y, 1.0)
        for other in (0.0, 1.0):
            found = te.grad(f, (0, 1))(x, y, other)
            for own, by_jax in zip(found, expected, strict=True):
                np.testing.assert_allclose(own, by_jax, rtol=1e-6)
    assert not te.explain(te.grad(f, (0, 1)), x, y, 1.0).guarded
