"""Loops of which some positions are kept, ``save=`` with a number of bytes: second derivatives, batches, and what the loop ends with beside its sums."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

pytestmark = pytest.mark.usefixtures("x64")
STEPS, BUDGET = 15, 150


def build(w: Any, b: Any) -> Any:
    h = te.recurrence(
        (STEPS, 2),
        lambda h, t, i: te.sin(h[t - 1, i] * w[i]) + b[()] * h[t - 1, 1 - i],
        init=0.3,
        dtype="float64",
    )
    return te.compute((), lambda: te.sin(h[STEPS - 1, 0]) * h[STEPS - 1, 1] * b[()], "y")


def unrolled(w: Any, b: Any) -> Any:
    h = jnp.full(2, 0.3)
    for _ in range(STEPS):
        h = jnp.sin(h * w) + b * h[::-1]
    return jnp.sin(h[0]) * h[1] * b


ARGUMENTS = np.random.default_rng(0).normal(size=2) / 2, np.float64(0.4)
MOVES = np.random.default_rng(1).normal(size=2), np.float64(-0.7)


def along(f: Any) -> Any:
    return jax.jvp(jax.grad(f, (0, 1)), ARGUMENTS, MOVES)[1]


def twice_in_reverse(f: Any) -> Any:
    return jax.grad(lambda *v: sum(jnp.sum(jnp.sin(g)) for g in jax.grad(f, (0, 1))(*v)), (0, 1))(*ARGUMENTS)


def batched(f: Any) -> Any:
    rows = jnp.stack([ARGUMENTS[0], MOVES[0]])
    return jax.vmap(jax.grad(f, (0, 1)), (0, None))(rows, ARGUMENTS[1])


@pytest.mark.parametrize("derivative", [along, twice_in_reverse, batched], ids=lambda d: d.__name__)
def test_derivatives_are_those_of_the_unrolled_loop(derivative: Any) -> None:
    fn = te.function(build, save=BUDGET)
    assert "h_kept" in te.source(fn, *ARGUMENTS)
    found, expected = (jax.tree.leaves(derivative(f)) for f in (fn, unrolled))
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-9)


def test_what_is_kept_of_a_batch_is_no_more_than_of_each() -> None:
    fn = te.function(build, save=BUDGET)

    def kept(w: Any) -> Any:
        return jax.tree.leaves(jax.vjp(fn, w, ARGUMENTS[1])[1])

    rows = jnp.stack([ARGUMENTS[0], MOVES[0], ARGUMENTS[0]])
    of_each, of_all = kept(rows[0]), jax.vmap(kept)(rows)
    assert [(3, *np.shape(own)) for own in of_each] == [np.shape(own) for own in of_all]


def test_a_result_reads_what_the_loop_ends_with_beside_its_sums() -> None:
    """What the backward loop ends with is known behind it only, and is no row of it."""

    def oscillator(w: Any, b: Any) -> Any:
        def step(h: Any, g: Any, t: Any) -> Any:
            return b[()] * h[t - 1] + te.sin(g[t - 1] * w[0]), 0.5 * g[t - 1] + 0.3 * h[t - 1] * b[()]

        h, g = te.recurrence((STEPS,), step, init=(0.3, 0.2), dtype="float64")
        return te.compute((), lambda: g[STEPS - 1] * b[()] + h[STEPS - 1], "y")

    whole, few = (jax.grad(te.function(oscillator, **own), (0, 1)) for own in ({}, {"save": BUDGET}))
    for own, other in zip(few(*ARGUMENTS), whole(*ARGUMENTS), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-12)


def test_what_begins_a_loop_is_given_what_the_last_step_backward_computes() -> None:
    """A tensor of the backward loop that no other step reads, of which the last position is all that is read."""
    steps = 35

    def build(w: Any, b: Any) -> Any:
        j, k = te.reduce_axis((0, 1), "j"), te.reduce_axis((0, steps), "k")

        def step(h: Any, g: Any, t: Any, i: Any) -> Any:
            new = te.tanh(te.sum(w[i, j] * h[t - 1, j], axis=j) + b[i])
            return new, te.sin(h[t, i]) * 0.5 + 0.3 * g[t - 1, i]

        h, g = te.recurrence((steps, 1), step, init=(lambda i: b[i], 0.2), dtype="float64")
        return te.compute((1,), lambda i: te.sum(h[k, i], axis=k) + g[steps - 1, i])

    arguments = np.float64([[0.7]]), np.float64([0.4])
    few, whole = (te.function(lambda w, b: te.ops.sum(build(w, b)), **own) for own in ({"save": 128}, {}))
    for own, other in zip(*(jax.grad(f, (0, 1))(*arguments) for f in (few, whole)), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-12)
