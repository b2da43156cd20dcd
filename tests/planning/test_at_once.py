"""Recurrences that look back several positions take as many in one step of their loop."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxte as te
from tests.agreement import interpreted

ROW = "several positions at once"
Builder = Callable[..., te.Tensor]


def comb(x: te.Tensor, g: te.Tensor) -> te.Tensor:
    return te.recurrence(x.shape, lambda y, t, c: x[t, c] + te.tanh(g[c] * y[t - 7, c]), init=0.0)


def plucked(x: te.Tensor, g: te.Tensor) -> te.Tensor:
    """What is read of a block before begins in the middle of it."""
    return te.recurrence(x.shape, lambda y, t, c: x[t, c] + g[c] * (y[t - 7, c] + y[t - 9, c]), init=1.0)


def backwards(x: te.Tensor, g: te.Tensor) -> te.Tensor:
    return te.recurrence(
        x.shape,
        lambda y, t, c: x[t, c] * te.tanh(g[c] + y[t + 5, c]),
        init=lambda c: te.cast(c, "float32"),
        reverse=True,
    )


def guarded(x: te.Tensor, g: te.Tensor) -> te.Tensor:
    """A choice of the user's own in place of values before the first position."""
    return te.recurrence(x.shape, lambda y, t, c: te.select(t >= 4, g[c] * te.sin(y[t - 4, c]), x[t, c]))


def dilated(x: te.Tensor, g: te.Tensor) -> te.Tensor:
    j = te.reduce_axis((0, x.shape[1]), "j")
    return te.recurrence(
        x.shape, lambda h, t, i: te.tanh(x[t, i] + te.sum(h[t - 3, j] * g[j], axis=j)), init=0.0
    )


def stacked(x: te.Tensor, g: te.Tensor) -> te.Tensor:
    """One recurrence of blocks reads another one, and a third one that is none reads it."""
    y, n = plucked(x, g), x.shape[0]
    z = te.recurrence(x.shape, lambda z, t, c: y[t, c] - g[c] * z[t - 2, c], init=0.0)
    h = te.recurrence(x.shape, lambda h, t, c: te.tanh(z[t, c] + h[t - 1, c] * g[c]), init=0.0)
    return te.compute((n,), lambda t: h[t, 0] * z[n - 1 - t, 1])


def pair(x: te.Tensor, g: te.Tensor) -> te.Tensor:
    """Two tensors that read each other, one at the same position."""
    p, _ = te.recurrence(
        x.shape,
        lambda p, q, t, c: (x[t, c] + g[c] * q[t - 6, c], te.tanh(p[t, c] + p[t - 8, c])),
        init=(0.0, 0.5),
    )
    return p


def columns(x: te.Tensor, g: te.Tensor) -> te.Tensor:
    return te.recurrence(x.shape, lambda y, t, c: x[t, c] + g[0] * y[t, c - 2] ** 2, init=0.1, axis=1)


BUILDERS: dict[str, Builder] = {
    f.__name__: f for f in (comb, plucked, backwards, guarded, dilated, stacked, pair, columns)
}


def arguments(length: int, width: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(length)
    return (
        rng.normal(size=(length, width)).astype("float32") * 0.5,
        rng.normal(size=width).astype("float32") * 0.5,
    )


@pytest.mark.parametrize("length", (14, 23))
@pytest.mark.parametrize("name", BUILDERS)
def test_blocks_are_the_definition_and_pass_on_what_it_does(name: str, length: int) -> None:
    build = BUILDERS[name]
    x, g = te.placeholder((length, 4), name="x"), te.placeholder((4,), name="g")
    y, values = build(x, g), arguments(length)
    f, plain = te.function(build), te.function(build, without=ROW)
    assert "_blocks" in te.source(f, *values)
    assert "_blocks" not in te.source(plain, *values)
    np.testing.assert_allclose(f(*values), interpreted(y, {x: values[0], g: values[1]}), rtol=1e-5, atol=1e-6)
    loss = lambda q: lambda *a: jnp.sum(jnp.sin(q(*a)))  # noqa: E731
    for own, other in zip(
        jax.grad(loss(f), (0, 1))(*values), jax.grad(loss(plain), (0, 1))(*values), strict=True
    ):
        np.testing.assert_allclose(own, other, rtol=1e-4, atol=1e-5)
    tangents = tuple(np.ones_like(v) for v in values)
    np.testing.assert_allclose(
        jax.jvp(f, values, tangents)[1], jax.jvp(plain, values, tangents)[1], rtol=1e-4, atol=1e-5
    )


def scanned(lags: tuple[int, ...], reverse: bool) -> Callable[..., Any]:
    """The same written in JAX, one position after the other."""

    def run(x: Any, g: Any, init: Any) -> Any:
        depth = max(lags)
        if reverse:
            x, init = x[::-1], init[::-1]
        rows = list(init)
        for row in x:
            rows.append(row + jnp.tanh(sum(g[k] * rows[-lag] for k, lag in enumerate(lags))))
        found = jnp.stack(rows[depth:])
        return found[::-1] if reverse else found

    return run


@settings(max_examples=12, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=3, unique=True), st.integers(2, 26), st.booleans())
def test_any_distances_agree_with_a_loop(lags: list[int], length: int, reverse: bool) -> None:
    def build(x: te.Tensor, g: te.Tensor, init: te.Tensor) -> te.Tensor:
        def body(y: Any, t: Any, c: Any) -> Any:
            return x[t, c] + te.tanh(
                sum(g[k] * y[t + lag if reverse else t - lag, c] for k, lag in enumerate(lags))
            )

        return te.recurrence(x.shape, body, init=init, reverse=reverse)

    rng = np.random.default_rng(length)
    shapes = (length, 2), (len(lags),), (max(lags), 2)
    values = tuple(rng.normal(size=s).astype("float32") for s in shapes)
    f, plain = te.function(build), scanned(tuple(lags), reverse)
    head = rng.normal(size=(length, 2)).astype("float32")
    np.testing.assert_allclose(f(*values), plain(*values), rtol=1e-4, atol=1e-5)
    for own, other in zip(jax.vjp(f, *values)[1](head), jax.vjp(plain, *values)[1](head), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-3, atol=1e-4)


def test_a_loop_has_as_many_steps_as_there_are_whole_blocks() -> None:
    text = te.source(te.function(plucked), *arguments(100))
    loops = re.findall(r"lax\.scan\(.*jnp\.arange\((\d+),", text)
    assert {*loops} == {"14"}  # of 7 positions each; the last two by themselves
    assert "gather" not in str(jax.make_jaxpr(te.function(plucked))(*arguments(100)))


def test_one_that_reads_the_position_before_is_left_as_it_is() -> None:
    x = te.placeholder((30, 2), name="x")
    y = te.recurrence(x.shape, lambda y, t, c: x[t, c] + y[t - 1, c] * y[t - 7, c], init=0.0)
    assert "_blocks" not in te.source(y)
