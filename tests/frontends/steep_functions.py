"""Functions with a branch whose slope is infinite or NaN where it is not taken, as users write them.

Each is written once with ``safe``: as ``safe(c, x, v)`` it is ``x`` in what a user writes, and ``jnp.where(c, x, v)`` in the version with
two choices, whose gradient ``jax.grad`` finds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Steep = Callable[[Any, Callable[..., Any]], Any]

LINE = np.array([-1.5, -1.0, 0.0, 0.25, 1.0, 3.0], "float32")
LARGE = np.array([-200.0, -1.0, 0.0, 0.5, 2.0, 200.0], "float32")
ROWS = np.array([[0.0, 0.0, 0.0], [3.0, 4.0, 0.5], [0.0, 0.0, 0.0], [1.0, -1.0, 2.0]], "float32")
HOLDS = np.array([False, True, False, True])
SIDE = HOLDS[:, None]


def _by_choice(where: Callable[[Any], Any], f: Callable[[Any], Any], number: float = 1.0) -> Steep:
    return lambda x, safe: jnp.where(where(x), f(safe(where(x), x, number)), 0.0)


def _masked_rows(f: Callable[[Any], Any]) -> Steep:
    """A function of whole rows, of which some are all minus infinity."""

    def function(x: Any, safe: Callable[..., Any]) -> Any:
        rows = jnp.where(SIDE, x, -jnp.inf)
        return jnp.where(SIDE, f(safe(SIDE, rows, 0.5)), 0.0)

    return function


def _distances(x: Any, safe: Callable[..., Any]) -> Any:
    apart = ~np.eye(len(x), dtype=bool) & (np.arange(len(x))[:, None] + np.arange(len(x)) != 2)
    squares = jnp.sum((x[:, None] - x[None]) ** 2, -1)
    return jnp.where(apart, jnp.sqrt(safe(apart, squares, 1.0)), 0.0)


def _inverse_gaps(x: Any, safe: Callable[..., Any]) -> Any:
    apart = ~np.eye(len(x), dtype=bool)
    return jnp.where(apart, 1 / safe(apart, x[:, None] - x[None], 1.0), 0.0)


def _unit(x: Any, safe: Callable[..., Any]) -> Any:
    squares = jnp.sum(x**2, 1, keepdims=True)
    there = squares > 0
    return jnp.where(there, x / jnp.sqrt(safe(there, squares, 1.0)), 0.0)


def _cosine(x: Any, safe: Callable[..., Any]) -> Any:
    squares = jnp.sum(x * x, -1)
    both = (squares[:, None] > 0) & (squares[None] > 0)
    return jnp.where(both, x @ x.T / jnp.sqrt(safe(both, squares[:, None] * squares[None], 1.0)), 0.0)


def _divergence(x: Any, safe: Callable[..., Any]) -> Any:
    p = jnp.maximum(x, 0.0)
    return jnp.sum(jnp.where(p > 0, p * jnp.log(safe(p > 0, p / 0.3, 1.0)), 0.0))


def _chain(x: Any, safe: Callable[..., Any]) -> Any:
    inner = jnp.where(x > 0.5, jnp.log(safe(x > 0.5, x, 1.0)), 0.0)
    return jnp.where(inner > 0.1, jnp.sqrt(safe(inner > 0.1, inner, 1.0)), 0.0)


def _gathered(x: Any, safe: Callable[..., Any]) -> Any:
    at, here = np.array([2, 3, 0, 5]), np.array([False, True, False, True])
    known = np.array([False, False, False, True, False, True])
    return jnp.where(here, jnp.log(safe(known, x, 1.0))[at], 0.0)


def _pieces(x: Any, safe: Callable[..., Any]) -> Any:
    both = jnp.concatenate([jnp.log(safe(x > 0, x, 1.0)), jnp.sqrt(safe(x > 0, x, 1.0))])
    return jnp.where(jnp.concatenate([x > 0, x > 0]), both, 0.0)


def _turned(x: Any, safe: Callable[..., Any]) -> Any:
    logs = jnp.log(safe(x > 0, x, 1.0)).reshape(2, 3).T[::-1]
    return jnp.where((x > 0).reshape(2, 3).T[::-1], logs, 0.0)


def _selected(x: Any, safe: Callable[..., Any]) -> Any:
    steep = jnp.log(safe(x > 1, x, 1.0)), jnp.sqrt(safe((x > 0) & (x <= 1), x, 1.0))
    return jnp.select([x > 1, x > 0], steep, -x)


def _numbered(x: Any, safe: Callable[..., Any]) -> Any:
    which = jnp.where(x > 0, 1, jnp.where(x < -1.2, 2, 0)).astype("int32")
    return jax.lax.select_n(which, x, jnp.log(safe(which == 1, x, 1.0)), 1 / safe(which == 2, x, 1.0))


STEEP: dict[str, tuple[Steep, np.ndarray]] = {
    "log": (_by_choice(lambda x: x > 0, jnp.log), LINE),
    "log1p": (_by_choice(lambda x: x > -1, jnp.log1p), LINE),
    "sqrt": (_by_choice(lambda x: x > 0, jnp.sqrt), LINE),
    "rsqrt": (_by_choice(lambda x: x > 0, jax.lax.rsqrt), LINE),
    "cbrt": (_by_choice(lambda x: x != 0, jnp.cbrt), LINE),
    "reciprocal": (_by_choice(lambda x: x != 0, lambda x: 1 / x), LINE),
    "quotient": (_by_choice(lambda x: x != 0, lambda x: jnp.sin(x) / x), LINE),
    "inverse square": (_by_choice(lambda x: x != 0, lambda x: x**-2), LINE),
    "root as a power": (_by_choice(lambda x: x > 0, lambda x: x**0.5), LINE),
    "power": (_by_choice(lambda x: x > 0, lambda x: jnp.power(x, jnp.float32(-0.7))), LINE),
    "x to the x": (_by_choice(lambda x: x > 0, lambda x: x**x), LINE),
    "arcsin": (_by_choice(lambda x: jnp.abs(x) < 1, jnp.arcsin, 0.0), LINE),
    "arccos": (_by_choice(lambda x: jnp.abs(x) < 1, jnp.arccos, 0.0), LINE),
    "arctanh": (_by_choice(lambda x: jnp.abs(x) < 1, jnp.arctanh, 0.0), LINE),
    "arccosh": (_by_choice(lambda x: x > 1, jnp.arccosh, 2.0), LINE),
    "arctan2": (_by_choice(lambda x: x != 0, lambda x: jnp.arctan2(x, jnp.abs(x))), LINE),
    "exp": (_by_choice(lambda x: x < 50, jnp.exp, 0.0), LARGE),
    "exp2": (_by_choice(lambda x: x < 50, jnp.exp2, 0.0), LARGE),
    "elu": (lambda x, safe: jnp.where(x > 0, x, jnp.expm1(safe(x <= 0, x, 0.0))), LARGE),
    "sinh": (_by_choice(lambda x: jnp.abs(x) < 50, jnp.sinh, 0.0), LARGE),
    "cosh": (_by_choice(lambda x: jnp.abs(x) < 50, jnp.cosh, 0.0), LARGE),
    "softplus by hand": (
        lambda x, safe: jnp.where(x > 50, x, jnp.log(1 + jnp.exp(safe(x <= 50, x, 0.0)))),
        LARGE,
    ),
    "gammaln": (_by_choice(lambda x: x > 0, jax.scipy.special.gammaln), LINE),
    "digamma": (_by_choice(lambda x: x > 0, jax.scipy.special.digamma), LINE),
    "erfinv": (_by_choice(lambda x: jnp.abs(x) < 1, jax.scipy.special.erfinv, 0.0), LINE),
    "logit": (_by_choice(lambda x: (x > 0) & (x < 1), jax.scipy.special.logit, 0.5), LINE),
    "Box and Cox": (_by_choice(lambda x: x > 0, lambda x: (x**0.3 - 1) / 0.3), LINE),
    "exp of a pole": (_by_choice(lambda x: x > 0, lambda x: jnp.exp(-1 / x)), LINE),
    "ratio of sines": (_by_choice(lambda x: x != 0, lambda x: jnp.sin(0.3 * x) / jnp.sin(x)), LINE),
    "remainder": (_by_choice(lambda x: x > 0, lambda x: jnp.fmod(jnp.float32(2.2), x)), LINE),
    "entropy": (lambda x, safe: -jnp.sum(jnp.where(x > 0, x * jnp.log(safe(x > 0, x, 1.0)), 0.0)), LINE),
    "divergence": (_divergence, LINE),
    "geometric mean": (
        lambda x, safe: jnp.exp(jnp.mean(jnp.where(x > 0, jnp.log(safe(x > 0, x, 1.0)), 0.0))),
        LINE,
    ),
    "norm of rows": (
        lambda x, safe: jnp.where(HOLDS, jnp.sqrt(safe(HOLDS, jnp.sum(x * x, 1), 1.0)), 0.0),
        ROWS,
    ),
    "norm of rows, kept": (
        lambda x, safe: jnp.where(SIDE, x * jnp.linalg.norm(safe(SIDE, x, 1.0), axis=1, keepdims=True), 0.0),
        ROWS,
    ),
    "unit vectors": (_unit, ROWS),
    "cosine similarity": (_cosine, ROWS),
    "std": (lambda x, safe: jnp.where(HOLDS, jnp.std(safe(SIDE, x, jnp.arange(3.0)), 1), 0.0), ROWS),
    "layer norm": (
        lambda x, safe: jnp.where(SIDE, x / jnp.std(safe(SIDE, x, jnp.arange(3.0)), 1, keepdims=True), 0.0),
        ROWS,
    ),
    "distances": (_distances, ROWS),
    "inverse gaps": (_inverse_gaps, LINE),
    "logsumexp of no element": (
        lambda x, safe: jnp.where(
            HOLDS, jax.nn.logsumexp(safe(SIDE, jnp.where(SIDE, x, -jnp.inf), 0.5), 1), 0.0
        ),
        ROWS,
    ),
    "softmax of no element": (_masked_rows(lambda x: jax.nn.softmax(x, 1)), ROWS),
    "log softmax of no element": (_masked_rows(lambda x: jax.nn.log_softmax(x, 1)), ROWS),
    "logaddexp": (
        lambda x, safe: jnp.where(
            HOLDS,
            jnp.logaddexp(*(safe(HOLDS, jnp.where(HOLDS, x[:, n], -jnp.inf), 0.5) for n in (0, 1))),
            0.0,
        ),
        ROWS,
    ),
    "mask as a factor": (
        lambda x, safe: jnp.sqrt(safe(x > 0, jnp.maximum(x, 0.0), 1.0)) * (x > 0),
        LINE,
    ),
    "what is finite": (
        lambda x, safe: jnp.where(jnp.isfinite(jnp.log(x)), jnp.log(safe(x > 0, x, 1.0)), 0.0),
        LINE,
    ),
    "a choice in a choice": (_chain, LINE),
    "elements taken": (_gathered, LINE),
    "pieces": (_pieces, LINE),
    "turned and reversed": (_turned, LINE),
    "select": (_selected, LINE),
    "select_n": (_numbered, LINE),
}
"""Each function with the point at which it is looked at."""
