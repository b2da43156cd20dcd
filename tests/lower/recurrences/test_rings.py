"""Values of several steps before are one array, of which each step reads and writes a row."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te


def echo(x: te.Tensor, g: te.Tensor) -> te.Tensor:
    return te.recurrence(
        x.shape, lambda y, t, c: x[t, c] + g[0] * y[t - 1, c] + g[1] * y[t - 40, c], init=0.0
    )


def seasons(x: te.Tensor, a: te.Tensor) -> te.Tensor:
    """A level and a season, as in exponential smoothing by Holt and Winters."""
    level, season = te.recurrence(
        x.shape,
        lambda level, season, t, c: (
            a[0] * (x[t, c] - season[t - 12, c]) + (1 - a[0]) * level[t - 1, c],
            a[1] * (x[t, c] - level[t, c]) + (1 - a[1]) * season[t - 12, c],
        ),
        init=(0.0, lambda c: te.cast(c, "float32") / 12),
    )
    return te.compute(x.shape, lambda t, c: level[t, c] + season[t, c])


def memory(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """A filter of several coefficients, from the other end, along the last axis."""
    k = te.reduce_axis((0, w.shape[0]), "k")
    return te.recurrence(
        x.shape,
        lambda y, c, t: x[c, t] + te.tanh(te.sum(w[k] * y[c, t + 1 + k], axis=k)),
        init=0.0,
        axis=1,
        reverse=True,
    )


def in_jax(name: str) -> Any:
    def loop(x: Any, g: Any) -> Any:
        rows: list[Any] = []
        zero = jnp.zeros(x.shape[1:])
        if name == "echo":
            for t in range(len(x)):
                rows.append(
                    x[t] + g[0] * (rows[-1] if rows else zero) + g[1] * (rows[t - 40] if t >= 40 else zero)
                )
            return jnp.stack(rows)
        if name == "seasons":
            level, season = [zero], [jnp.arange(3) / 12] * 12
            for t in range(len(x)):
                level.append(g[0] * (x[t] - season[t]) + (1 - g[0]) * level[-1])
                season.append(g[1] * (x[t] - level[-1]) + (1 - g[1]) * season[t])
            return jnp.stack(level[1:]) + jnp.stack(season[12:])
        later = [jnp.zeros(len(x))] * len(g)
        for t in range(x.shape[1] - 1, -1, -1):
            later.insert(0, x[:, t] + jnp.tanh(sum(g[k] * later[k] for k in range(len(g)))))
        return jnp.stack(later[: x.shape[1]], 1)

    return loop


CASES = {"echo": (echo, (90, 3), 2), "seasons": (seasons, (40, 3), 2), "memory": (memory, (3, 30), 5)}


@pytest.mark.parametrize("name", CASES)
def test_rows_of_one_array_are_what_was_before(name: str) -> None:
    build, shape, count = CASES[name]
    rng = np.random.default_rng(1)
    x, g = rng.normal(size=shape).astype("float32"), rng.uniform(0.1, 0.3, count).astype("float32")
    f, plain = te.function(build), in_jax(name)
    np.testing.assert_allclose(f(x, g), plain(x, g), rtol=1e-4, atol=1e-5)
    head = rng.normal(size=shape).astype("float32")
    for own, other in zip(jax.vjp(f, x, g)[1](head), jax.vjp(plain, x, g)[1](head), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-3, atol=1e-4)
    text = te.source(f, x, g)
    assert "_recent" in text
    handed = re.findall(r"^ +(\w.*) = before$", text, re.MULTILINE)
    assert all(
        len(re.findall(r"\b(?:y|season)_before", names)) <= 1 for names in handed
    )  # what is further back is no value by itself


@pytest.mark.parametrize("name", CASES)
def test_a_step_copies_no_array_of_what_was_before(name: str) -> None:
    """XLA copies what is written where it is also read in the loop that computes what is written."""
    build, shape, count = CASES[name]
    x, g = np.ones(shape, "float32"), np.full(count, 0.2, "float32")

    def both(x: Any, g: Any, head: Any) -> Any:
        value, back = jax.vjp(te.function(build), x, g)
        return value, back(head)

    text = jax.jit(both).lower(x, g, x).compile().as_text()
    rows = "|".join(str(n) for n in {40, 12, count} if n > 2)
    assert not re.findall(rf"= f32\[({rows}),3\]\S* copy\(%get-tuple-element", text)
