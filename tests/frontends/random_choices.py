"""Random functions with choices within choices around steep functions, by a seed: what ``te.grad`` keeps NaN away from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxte as te

Array = Any

# functions that are NaN, or whose slopes are NaN or infinite, at some of the numbers below
_STEEP: list[Callable[[Array], Array]] = [
    jnp.sqrt,
    jnp.log,
    jnp.arcsin,
    lambda x: 1 / x,
    lambda x: x**-1.5,
    jax.lax.rsqrt,
    lambda x: jnp.maximum(jnp.log(x), -0.9),
    lambda x: jnp.sqrt(x) ** 2,
]
# products of what may be infinite are not guarded, and docs/nan.md says so
_PLAIN: list[Callable[[Array], Array]] = [jnp.arctan, lambda x: 0.5 * x, jnp.tanh, lambda x: -0.7 * x]
# no value is a bound of a condition but 0, at which all elements are constants
_NUMBERS = np.array([-1.7, -0.8, -0.3, 0.2, 0.45, 0.9, 1.6])
_BOUNDS = (0.0, 0.3, 1.0, -0.5)


@dataclass(frozen=True)
class RandomChoices:
    """A loss of 3 by 4 numbers, made of choices whose conditions, sides and constants are drawn."""

    seed: int

    def arguments(self) -> np.ndarray:
        return np.random.default_rng([self.seed, 1]).choice(_NUMBERS, (3, 4))

    def __call__(self, x: Array) -> Array:
        own = np.random.default_rng(self.seed)
        conditions = [_condition(own, x) for _ in range(2)]
        return jnp.sum(jnp.cos(_element(own, x, conditions, 4)))


def _condition(own: np.random.Generator, x: Array) -> Array:
    bound = _BOUNDS[own.integers(len(_BOUNDS))]
    found = [x > bound, x <= bound, ~(x < bound), jnp.abs(x) > abs(bound)][own.integers(4)]
    return found & (x < 1.2) if own.random() < 0.2 else found


def _element(own: np.random.Generator, x: Array, conditions: list[Array], depth: int) -> Array:
    kind = own.integers(6) if depth else 0
    if kind == 0:
        return x if own.random() < 0.8 else jnp.full_like(x, own.choice([0.5, 1.0, 2.0]))
    inner = lambda: _element(own, x, conditions, depth - 1)  # noqa: E731
    if kind == 1:
        return _PLAIN[own.integers(len(_PLAIN))](inner())
    if kind == 2:
        return inner() + inner()
    if kind == 3 and depth < 4:
        return jnp.where(conditions[own.integers(2)], inner(), inner())
    condition = conditions[own.integers(2)]
    steep = _STEEP[own.integers(len(_STEEP))](inner())
    rest = inner() if own.random() < 0.4 else 0.0
    way = own.integers(4)
    if way == 0:
        return jnp.where(condition, steep, rest)
    if way == 1:
        return jnp.where(condition, rest, steep)
    if way == 2:
        return jax.lax.select(condition, steep, jnp.broadcast_to(rest, x.shape))
    return jnp.where(~condition, rest, steep)


def check_choices(f: RandomChoices) -> dict[str, Any]:
    """Compares the value with JAX's, and the gradient with differences of values, at elements whose values and neighbours are finite.

    Raises:
        AssertionError: they differ.
    """
    x, step = f.arguments(), 1e-6
    moved = np.eye(x.size).reshape(x.size, *x.shape) * step
    values = jax.jit(jax.vmap(f))
    ahead, behind, near = (np.asarray(values(x + k * moved)) for k in (1, -1, 0.5))
    slopes = ((ahead - behind) / (2 * step)).reshape(x.shape)
    smooth = np.abs((near - behind) / (1.5 * step) - slopes.ravel()).reshape(x.shape) < 1e-3 * (
        1 + np.abs(slopes)
    )
    if not (np.isfinite(slopes) & smooth).all():
        return {"infinite value": True}
    plain = lambda x: f(x)  # noqa: E731
    x = jnp.asarray(x)
    value, found = te.value_and_grad(plain)(x)
    np.testing.assert_allclose(value, plain(x), rtol=1e-12, err_msg=str(f))
    np.testing.assert_allclose(
        found, slopes, rtol=1e-5, atol=1e-5 * (1 + np.abs(slopes).max()), err_msg=str(f)
    )
    return {"nan of jax": bool(np.isnan(jax.grad(plain)(x)).any())}
