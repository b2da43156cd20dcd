"""Random functions with rules of their own, by a seed: what ``jax.custom_jvp`` and ``jax.custom_vjp`` are used for, and what they may mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxte as te

Array = Any
Function = Callable[[Array], Array]

_PLAIN: list[Function] = [
    jnp.sin,
    lambda x: x * x,
    lambda x: jnp.where(x > 0, x, 0.1 * x * x),
    lambda x: jnp.round(4 * x) / 4,
    lambda x: jnp.log1p(jnp.exp(x)),
    lambda x: x / (1 + x * x),
    lambda x: jnp.sqrt(1 + x * x),
]
_REDUCING: list[Function] = [
    lambda x: jnp.sqrt(jnp.sum(x * x) + 1),
    lambda x: x - jnp.mean(x),
    lambda x: x / (1 + jnp.max(jnp.abs(x))),
]


def _function(own: np.random.Generator, depth: int) -> Function:
    """A plain function, or one with a rule."""
    if depth == 0 or own.random() < 0.3:
        return _PLAIN[own.integers(len(_PLAIN))]
    return (_by_tangent if own.random() < 0.5 else _by_adjoint)(own, depth)


def _again(own: np.random.Generator, called: Callable[[], Function], value: Function) -> Function:
    """How a rule makes the value: by the function itself, by what it computes, or by another function."""
    way = own.integers(4)
    if way == 0:
        return value
    if way == 1:
        return _PLAIN[own.integers(len(_PLAIN))]
    return lambda x: called()(x)


def _of_its_shape(value: Function, again: Function) -> Function:
    """``again`` where it makes what has the shape of the value, which a rule has to."""

    def made(x: Array) -> Array:
        shape = jax.eval_shape(value, x).shape
        out = again(x)
        return out if out.shape == shape else jnp.broadcast_to(out, shape) if out.ndim == 0 else jnp.sum(out)

    return made


def _by_tangent(own: np.random.Generator, depth: int) -> Function:
    value, slope = _value(own, depth), _function(own, depth - 1)
    made: list[Function] = []
    again = _of_its_shape(value, _again(own, lambda: made[0], value))
    reads_value = own.random() < 0.5

    def rule(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        out = again(x)
        if out.ndim < x.ndim:
            return out, jnp.sum(t * slope(x)) + (out * jnp.sum(t) if reads_value else 0)
        return out, t * slope(x) + (out * t if reads_value else 0)

    function = jax.custom_jvp(value)
    function.defjvp(rule)
    made.append(function)
    return function


def _by_adjoint(own: np.random.Generator, depth: int) -> Function:
    value, slope, kept = _value(own, depth), _function(own, depth - 1), _function(own, depth - 1)
    made: list[Function] = []
    again = _of_its_shape(value, _again(own, lambda: made[0], value))
    clips = own.random() < 0.3  # what flows back

    def forward(x: Array) -> Any:
        return again(x), (kept(x), x)

    def backward(residuals: Any, head: Array) -> Any:
        k, x = residuals
        head = jnp.tanh(head) if clips else head
        return (head * (slope(x) + k),)

    function = jax.custom_vjp(value)
    function.defvjp(forward, backward)
    made.append(function)
    return function


def _value(own: np.random.Generator, depth: int) -> Function:
    if own.random() < 0.2:
        return _REDUCING[own.integers(len(_REDUCING))]
    if own.random() < 0.3:
        return _function(own, depth - 1)
    return _PLAIN[own.integers(len(_PLAIN))]


@dataclass(frozen=True)
class RandomRules:
    """A loss of one array of 12 numbers in which two random functions with rules stand among shifts."""

    seed: int

    def __call__(self, x: Array) -> Array:
        own = np.random.default_rng(self.seed)
        f, g = (_function(own, 3) for _ in range(2))
        y = f(jnp.roll(x, 1) - 0.5 * x)
        z = g(x + jnp.roll(x, -2)) if own.random() < 0.7 else g(0.3 * y + x)
        y, z = jnp.broadcast_to(y, x.shape), jnp.broadcast_to(z, x.shape)
        return jnp.sum(jnp.roll(y, 1) * z * z + jnp.cumsum(y) * x)


def check_rules(f: RandomRules, everything: bool) -> int:
    """Compares value, gradient and the gradient of a function of the gradient with JAX's; how many equations were raised.

    Raises:
        AssertionError: they differ.
    """
    x = jnp.asarray(np.random.default_rng([f.seed, 1]).normal(size=12))
    plain = lambda x: f(x)  # noqa: E731
    raised = te.adjoint(plain, everything=everything)
    # each region has a call of its own, and so a head of its own, which a rule that is not linear in it tells
    for order in (1, 2) if _is_linear(jax.grad(plain), x) or not everything else (1,):
        found, expected = (_derivatives(g, order)(x) for g in (raised, plain))
        largest = max(1.0, float(np.max(np.abs(expected))))
        np.testing.assert_allclose(
            found, expected, rtol=1e-9, atol=1e-9 * largest, err_msg=f"{f}, order {order}"
        )
    return int(te.explain(raised, x).raised_equations)


def _is_linear(f: Function, x: Array) -> bool:
    """Whether what flows back through ``f`` is linear in what flows in."""
    _, pull = jax.vjp(f, x)
    return bool(np.allclose(pull(2 * x)[0], 2 * pull(x)[0], rtol=1e-6))


def _derivatives(f: Function, order: int) -> Function:
    gradient = jax.grad(f)
    inner = f if order == 1 else lambda x: jnp.sum(jnp.sin(gradient(x)))
    both = jax.value_and_grad(inner)
    return lambda x: jnp.concatenate([jnp.ravel(leaf) for leaf in jax.jit(both)(x)])
