"""What a step computes of many elements is computed once: functions that several sums are of, extrema beside which others are taken, and whom their adjoints go to."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.lower.recurrences.test_made_before import _steps
from tests.lower.recurrences.test_sums_in_loops import _alike, _arguments

T, B, N = 7, 3, 24


def _recurrence(step):
    """A function of what couples the elements of a state, and of what comes at each step."""

    def build(C, x):
        j = te.reduce_axis((0, N), "j")
        return te.recurrence((T, B, N), lambda h, t, b, i: step(h, C, x, t, b, i, j), init=0.1)

    return build


def _scan(step):
    def build(C, x):
        def one(h, row):
            h = step(h, C, row)
            return h, h

        return jax.lax.scan(one, jnp.full((B, N), 0.1, jnp.float32), x)[1]

    return build


def chain(h, C, x, t, b, i, j):
    """The forward pass of a hidden Markov model."""
    return te.logsumexp(h[t - 1, b, j] + C[j, i], axis=j) + x[t, b, i]


def oscillators(h, C, x, t, b, i, j):
    return h[t - 1, b, i] + 0.1 * te.sum(te.sin(h[t - 1, b, j] * C[j, i]), axis=j) + x[t, b, i]


def synapses(h, C, x, t, b, i, j):
    return 0.2 * te.sum(te.tanh(h[t - 1, b, j] + C[j, i]), axis=j) + x[t, b, i]


SUMS = {
    "exp": (chain, lambda h, C, x: jax.nn.logsumexp(h[:, :, None] + C, 1) + x),
    "cos": (oscillators, lambda h, C, x: h + 0.1 * jnp.sum(jnp.sin(h[:, :, None] * C), 1) + x),
    "tanh": (synapses, lambda h, C, x: 0.2 * jnp.sum(jnp.tanh(h[:, :, None] + C), 1) + x),
}


@pytest.mark.parametrize("function", SUMS)
def test_a_step_computes_a_function_of_pairs_once_for_the_state_and_for_what_couples_it(function):
    own, other = SUMS[function]
    fn, args = te.function(_recurrence(own)), _arguments((N, N), (T, B, N))
    (step,) = _steps(te.source(fn, *args).split("def backward(")[1])
    assert step.count(f"jnp.{function}(") == 1
    assert "dC_sum" in step
    _alike(fn, _scan(other), args)


def test_a_function_that_no_step_computes_stays_behind_the_loop():
    """The loop would compute it for this sum alone, step by step."""

    def build(C, x):
        h = _recurrence(synapses)(C, x)
        t, b = te.reduce_axis((0, T), "t"), te.reduce_axis((0, B), "b")
        return te.compute((N, N), lambda i, j: te.sum(te.exp(h[t, b, i] * C[i, j]) * h[t, b, j], axis=[t, b]))

    forward = te.source(te.function(build), *_arguments((N, N), (T, B, N))).split("def backward(")[0]
    assert not any("jnp.exp(" in step for step in _steps(forward))


# --- extrema


def best(h, C, x, t, b, i, j):
    """Scores of the best paths."""
    return te.max(h[t - 1, b, j] + C[j, i], axis=j) + x[t, b, i]


def nearest(h, C, x, t, b, i, j):
    return 0.5 * te.min(te.abs(h[t - 1, b, j] - C[j, i]), axis=j) + x[t, b, i]


def longest(h, C, x, t, b, i, j):
    """Of several, the last."""
    return te.max(h[t - 1, b, j] - C[i, j], axis=j, ties="last") + x[t, b, i]


EXTREMA = {
    "best": (best, lambda h, C, x: jnp.max(h[:, :, None] + C, 1) + x),
    "nearest": (nearest, lambda h, C, x: 0.5 * jnp.min(jnp.abs(h[:, :, None] - C), 1) + x),
    "longest": (longest, lambda h, C, x: jnp.max(h[:, None, :] - C, 2) + x),
}


@pytest.mark.parametrize("name", EXTREMA)
def test_what_an_earlier_step_has_left_is_compared_where_it_is_read(name):
    """No reduction of several arrays, which runs element by element."""
    own, other = EXTREMA[name]
    fn, args = te.function(_recurrence(own)), _arguments((N, N), (T, B, N))
    assert "lax.reduce(" not in te.source(fn, *args)
    args = _arguments((N, N), (T, B, N))
    _alike(fn, _scan(other), args)


def test_what_a_step_itself_computes_is_found_by_its_places():
    """XLA may compute it again in the loop that compares, and round it in another way; so it may what is written step by step."""

    def now(h, g, t, i):
        j = te.reduce_axis((0, N), "j")
        return te.max(g[t, j] + C[j, i], axis=j), h[t - 1, i] * C[i, i] + x[t, i]

    C, x = te.placeholder((N, N), name="C"), te.placeholder((T, N), name="x")
    h, _ = te.recurrence((T, N), now, init=(0.0, 0.1))
    few = _recurrence(best)(C, te.placeholder((T, B, N)))
    assert "places" in te.definitions(te.gradient(h, C))
    assert "places" not in te.definitions(te.gradient(few, C))


@pytest.mark.parametrize("steps", [1, 3, 5])
def test_nothing_is_lost_of_extrema_of_steps(steps):
    """All of the adjoint arrives: of ``C``, each step hands on what it was handed."""
    j = te.reduce_axis((0, N), "j")

    @te.function
    def scores(C, x):
        h = te.recurrence(
            (steps, B, N),
            lambda h, t, b, i: te.max(h[t - 1, b, j] + C[j, i], axis=j) + te.exp(x[t, b, i]) / 3,
            init=0.1,
        )
        k = te.reduce_axis((0, N), "k")
        return te.compute((B,), lambda b: te.max(h[steps - 1, b, k], axis=k))

    C, x = _arguments((N, N), (steps, B, N))
    gradient = jax.jit(jax.grad(lambda C, x: scores(jnp.tanh(C * 1.7) + 0.1, x).sum()))(C, x)
    slopes = (1 - np.tanh(np.float64(C) * 1.7) ** 2) * 1.7
    np.testing.assert_allclose((gradient / slopes).sum(), steps * B, rtol=1e-5)


# --- where and whether


def test_a_condition_without_the_reduced_axis_stands_outside_of_an_extremum():
    x = te.placeholder((6, 8), name="x")
    k = te.reduce_axis((0, 8), "k")
    n = te.placeholder((), "int32", name="n")
    y = te.compute((6,), lambda i: te.max(x[i, k], axis=k, where=n[()] > 3))
    assert "jnp.where(n > 3, jnp.max(x, axis=1), -jnp.inf)" in te.source(y)
    z = te.compute((6,), lambda i: te.max(x[i, k], axis=k, where=k < n[()]))
    assert "jnp.max(jnp.where(" in te.source(z)
    (X,) = _arguments((6, 8))
    for number in (2, 4, 0):
        for tensor in (y, z):
            feeds = {x: X, n: np.int32(number)}
            np.testing.assert_array_equal(te.evaluate(tensor, feeds), te.interpret(tensor, feeds))
