"""Recurrences within a budget of bytes: some positions are kept by the binomial schedule, and the backward loop computes the others again."""

import re
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.lower.recurrences.replays import computed_again, restarts, slots_within
from tests.agreement import QUICKEST
from tests.lower.recurrences.test_sums_in_loops import _alike, _arguments

N = 24


def _oscillators(steps, reads=()):
    """Two states, of which the force of one reads the new other; what is read of every position, too."""

    def build(q0, p0, w):
        def step(q, p, t, i):
            return (
                q[t - 1, i] + 0.1 * p[t - 1, i],
                p[t - 1, i] - 0.1 * w[i] * te.sin(q[t, i]) + 0.05 * q[t - 1, (i + 1) % N],
            )

        q, p = te.recurrence((steps, N), step, init=(q0, p0))
        if reads:
            t = te.reduce_axis((0, steps), "t")
            return te.compute((N,), lambda i: te.sum(q[t, i] * p[t, i], axis=t))
        return te.compute((N,), lambda i: q[steps - 1, i] * p[steps - 1, i])

    return build


def _oscillators_scan(steps, reads=()):
    def run(q0, p0, w):
        def step(carry, _):
            q, p = carry
            new = q + 0.1 * p
            p = p - 0.1 * w * jnp.sin(new) + 0.05 * jnp.roll(q, -1)
            return (new, p), new * p

        products = jax.lax.scan(step, (q0, p0), None, length=steps)[1]
        return products.sum(0) if reads else products[-1]

    return run


@pytest.mark.parametrize(("steps", "states"), [(60, 14), (59, 9), (7, 6)])
def test_a_recurrence_within_a_budget(steps, states):
    """What is kept is one more than there are slots; the backward loop computes what lies between again."""
    args = _arguments((N,), (N,), (N,))
    fn = te.function(_oscillators(steps), save=2 * 4 * N * states)
    _alike(fn, _oscillators_scan(steps), args)
    slots = slots_within(steps, states)
    assert slots == states - 4
    forward, backward = te.source(fn, *args).split("def backward(")
    kept = re.findall(r"\n    return \((.*)\)", forward)[-1]
    assert {"q_kept", "p_kept"} <= set(kept.split(", "))
    assert "q" not in kept.split(", ")
    assert backward.count("_replayed(q_again, dq_step") == 1 and "lax.scan(" not in backward
    told = str(te.explain(fn, *args))
    assert f"q_kept float32({slots + 1}, {N})" in told
    assert (
        f"before {slots} of {steps} steps at a time, {computed_again(steps, slots)} steps computed again"
        in told
    )


def test_sums_over_all_positions_are_added_up_beside():
    """A loss over all of them, in both passes, and a gradient of every input that all positions share."""
    args = _arguments((N,), (N,), (N,))
    fn = te.function(_oscillators(60, ("all",)), save=2 * 4 * N * 12)
    _alike(fn, _oscillators_scan(60, ("all",)), args)
    assert "q_kept" in te.source(fn, *args)


def test_memory_is_that_of_the_schedule():
    """A tenth of what all positions take, by XLA's own account, though what a step computes on the way is part of it."""
    steps, n = 400, 64

    def build(u0, c):
        def step(u, t, i, k):
            own, right = u[t - 1, i, k], u[t - 1, (i + 1) % n, k]
            return own + c[0] * (right - own) - c[1] * own * own * right

        u = te.recurrence((steps, n, n), step, init=u0)
        return te.compute((n, n), lambda i, k: u[steps - 1, i, k])

    args = _arguments((n, n), (2,))
    sizes = []
    for save in ("all", 4 * n * n * 45):
        fn = te.function(build, save=save)
        gradient = jax.grad(lambda *a, fn=fn: (fn(*a) ** 2).sum(), (0, 1))
        compiled = jax.jit(gradient).lower(*args).compile(compiler_options=QUICKEST)
        sizes.append(compiled.memory_analysis().temp_size_in_bytes / (4 * n * n))
    assert sizes[0] > steps
    assert sizes[1] < 60


@pytest.mark.parametrize("steps", [60, 59])
def test_gradients_of_inputs_of_each_step_are_stacked_by_the_loop_that_computes_states_again(steps):
    batch, n, m = 2, 8, 5

    def rnn(x, U, W, h0):
        j, k = te.reduce_axis((0, n), "j"), te.reduce_axis((0, m), "k")

        def cell(h, t, b, i):
            given = te.sum(U[i, k] * x[t, b, k], axis=k)
            return te.tanh(given + te.sum(W[i, j] * h[t - 1, b, j], axis=j))

        h = te.recurrence((steps, batch, n), cell, init=h0)
        return te.compute((batch, n), lambda b, i: h[steps - 1, b, i])

    def scan(x, U, W, h0):
        def step(h, row):
            return jnp.tanh(row @ U.T + h @ W.T), None

        return jax.lax.scan(step, h0, x)[0]

    args = _arguments((steps, batch, m), (n, m), (n, n), (batch, n))
    fn = te.function(rnn, save=4 * batch * n * 12)
    _alike(fn, scan, args)
    forward, backward = te.source(fn, *args).split("def backward(")
    kept = re.findall(r"\n    return \((.*)\)", forward)[-1].split(", ")
    assert "h_kept" in kept and "h" not in kept
    assert "_replayed(h_again," in backward


def test_what_has_to_be_there_in_whole_is_not_cut():
    """All positions are an output; a budget that they fit in; a recurrence from the end; one and two positions back."""
    args = _arguments((N,))

    def build(x, reverse=False, lags=(1,)):
        sign = 1 if reverse else -1
        y = te.recurrence(
            (60, N),
            lambda y, t, i: te.sin(sum(y[t + sign * lag, i] for lag in lags)) + x[i],
            init=0.1,
            reverse=reverse,
        )
        return te.compute((N,), lambda i: y[0 if reverse else 59, i])

    def whole(x):
        return te.recurrence((60, N), lambda y, t, i: te.sin(y[t - 1, i]) + x[i], init=0.1)

    budget = 4 * N * 22
    assert "_kept" in te.source(te.function(build, save=budget), *args)
    in_pairs = te.function(lambda x: build(x, lags=(2,)), save=4 * N * 2 * 15)  # a step of two positions
    assert "_kept" in te.source(in_pairs, *args)
    others = [
        te.function(whole, save=budget),
        te.function(build, save=4 * N * 80),
        te.function(lambda x: build(x, reverse=True), save=budget),
        te.function(lambda x: build(x, lags=(1, 2)), save=budget),
    ]
    for fn in others:
        assert "_kept" not in te.source(fn, *args)
        assert np.isfinite(jax.grad(lambda x, fn=fn: fn(x).sum())(*args)).all()


@cache
def _least(steps: int, slots: int) -> int:
    """The fewest steps to all of so many positions, from the last, by trying each position that may be kept."""
    if steps < 2:
        return 0
    if slots == 1:
        return steps * (steps - 1) // 2
    return min(n + _least(steps - n, slots - 1) + _least(n, slots) for n in range(1, steps))


@pytest.mark.parametrize("slots", range(1, 9))
@pytest.mark.parametrize("steps", [1, 2, 3, 5, 8, 13, 20, 37, 60])
def test_the_schedule_is_right_and_no_other_computes_fewer_steps(steps, slots):
    forward, taken, first, offset, into = restarts(steps, slots)
    held = {slot: t for t, slot in enumerate(forward)}
    again = 0
    for t in reversed(range(steps)):
        own = held[taken[t]]
        assert own == first[t]
        while own < t:
            held[into[offset[t] + own - first[t]]] = own
            own, again = own + 1, again + 1
    assert again == len(into) == max(0, _least(steps, slots) - (steps - 1))


def test_a_thousand_steps():
    """With half of the slots of three levels of ten as few steps are computed, the loop forward and two more of each."""
    assert 1000 + computed_again(1000, 15) == 3032
    assert 1000 + computed_again(1000, 25) == 2623
    assert slots_within(1000, 5) is None
