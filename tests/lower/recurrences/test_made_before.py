"""What steps of a loop share, gather and sum: once for several states, before the loop, and one after the other."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.lower.recurrences.test_sums_in_loops import _alike, _arguments

T, N, B, WORDS = 9, 20, 3, 7
POSITIONS = np.random.default_rng(1).integers(0, WORDS, (T, B)).astype("int32")


def _steps(text):
    return re.findall(r"def \w+_step\w*\(.*?\breturn\b", text, re.DOTALL)


# --- sums that several states are made of


def epidemic(C, S0, I0):
    """What leaves one group comes to another."""
    b = te.reduce_axis((0, N), "b")

    def step(S, ill, t, a):
        new = S[t - 1, a] * (1 - te.exp(-te.sum(C[a, b] * ill[t - 1, b], axis=b)))
        return S[t - 1, a] - new, ill[t - 1, a] * 0.9 + new

    return te.recurrence((T, N), step, init=(S0, I0))[1]


def epidemic_scan(C, S0, I0):
    def step(c, _):
        new = c[0] * (1 - jnp.exp(-(C @ c[1])))
        return (c[0] - new, c[1] * 0.9 + new), c[1] * 0.9 + new

    return jax.lax.scan(step, (S0, I0), None, length=T)[1]


def momentum(A, x0, v0):
    """Descent with momentum along a function of a product."""
    k = te.reduce_axis((0, N), "k")

    def step(x, v, t, i):
        slope = te.tanh(te.sum(A[i, k] * x[t - 1, k], axis=k))
        return x[t - 1, i] + 0.5 * v[t - 1, i] - 0.1 * slope, 0.5 * v[t - 1, i] - 0.1 * slope

    return te.recurrence((T, N), step, init=(x0, v0))[0]


def momentum_scan(A, x0, v0):
    def step(c, _):
        v = 0.5 * c[1] - 0.1 * jnp.tanh(A @ c[0])
        return (c[0] + v, v), c[0] + v

    return jax.lax.scan(step, (x0, v0), None, length=T)[1]


def gated_memory(W, h0, c0):
    """One product opens the gate and is what is written."""
    j = te.reduce_axis((0, N), "j")

    def step(h, c, t, i):
        own = te.sum(W[i, j] * h[t - 1, j], axis=j)
        held = te.sigmoid(own) * c[t - 1, i]
        return te.tanh(own) * held, held + te.tanh(own)

    return te.recurrence((T, N), step, init=(h0, c0))[0]


def gated_memory_scan(W, h0, c0):
    def step(c, _):
        own = W @ c[0]
        held = jax.nn.sigmoid(own) * c[1]
        h = jnp.tanh(own) * held
        return (h, held + jnp.tanh(own)), h

    return jax.lax.scan(step, (h0, c0), None, length=T)[1]


@pytest.mark.parametrize(
    "fn, scan",
    [(epidemic, epidemic_scan), (momentum, momentum_scan), (gated_memory, gated_memory_scan)],
    ids=lambda f: f.__name__,
)
def test_a_sum_that_two_states_are_made_of_is_one(fn, scan):
    args = _arguments((N, N), (N,), (N,))
    own = te.function(fn)
    _alike(own, scan, args)
    forward, backward = te.source(own, *args).split("def backward(")
    assert {step.count("jnp.einsum(") for step in _steps(forward)} == {1}
    assert sum(step.count("jnp.einsum(") for step in _steps(backward)) == 1, "one product flows back"


def test_sums_under_other_conditions_are_two():
    def fn(A, x0):
        k = te.reduce_axis((0, N), "k")

        def step(x, y, t, i):
            return (
                te.tanh(te.sum(A[i, k] * x[t - 1, k], axis=k, where=k < i)),
                te.tanh(te.sum(A[i, k] * x[t - 1, k], axis=k, where=k > i)),
            )

        x, y = te.recurrence((T, N), step, init=(x0, x0))
        return te.compute((N,), lambda i: x[T - 1, i] + y[T - 1, i])

    def scan(A, x0):
        low, high = jnp.tril(A, -1), jnp.triu(A, 1)
        step = lambda c, _: ((jnp.tanh(low @ c[0]), jnp.tanh(high @ c[0])), None)  # noqa: E731
        return sum(jax.lax.scan(step, (x0, x0), None, length=T)[0])

    _alike(te.function(fn), scan, _arguments((N, N), (N,)))


# --- what is gathered


def hidden(logA, logB, pi):
    """The forward pass of a hidden chain whose symbols are seen."""
    j = te.reduce_axis((0, N), "j")
    seen = te.constant(POSITIONS)

    def step(a, t, n, s):
        before = te.logsumexp(a[t - 1, n, j] + logA[j, s], axis=j)
        return te.select(t == 0, pi[s], before) + logB[s, seen[t, n]]

    a = te.recurrence((T, B, N), step, init=0.0)
    return te.compute((B, N), lambda n, s: a[T - 1, n, s])


def hidden_scan(logA, logB, pi):
    e = logB.T[POSITIONS]
    step = lambda a, e: (jax.nn.logsumexp(a[:, :, None] + logA, 1) + e, None)  # noqa: E731
    return jax.lax.scan(step, pi + e[0], e[1:])[0]


def read_words(E, W, h0):
    """A network that reads rows of a table."""
    j = te.reduce_axis((0, N), "j")
    words = te.constant(POSITIONS)

    def step(h, t, n, i):
        return te.tanh(E[words[t, n], i] + te.sum(W[i, j] * h[t - 1, n, j], axis=j))

    return te.recurrence((T, B, N), step, init=h0)


def read_words_scan(E, W, h0):
    def step(h, e):
        h = jnp.tanh(e + h @ W.T)
        return h, h

    return jax.lax.scan(step, h0, E[POSITIONS])[1]


def learned_values(rewards, rate, v0):
    """Values that follow what was paid for what was done, at a rate for each."""
    done = te.constant(POSITIONS)

    def step(v, t, n):
        return v[t - 1, n] + te.sigmoid(rate[done[t, n], n]) * (rewards[done[t, n], n] - v[t - 1, n])

    return te.recurrence((T, B), step, init=v0)


def learned_values_scan(rewards, rate, v0):
    at = POSITIONS, jnp.arange(B)

    def step(v, c):
        v = v + c[0] * (c[1] - v)
        return v, v

    return jax.lax.scan(step, v0, (jax.nn.sigmoid(rate[at]), rewards[at]))[1]


@pytest.mark.parametrize(
    "fn, scan, shapes",
    [
        (hidden, hidden_scan, ((N, N), (N, WORDS), (N,))),
        (read_words, read_words_scan, ((WORDS, N), (N, N), (B, N))),
        (learned_values, learned_values_scan, ((WORDS, B), (WORDS, B), (B,))),
    ],
    ids=lambda f: getattr(f, "__name__", ""),
)
def test_what_no_state_decides_is_gathered_before_the_loop(fn, scan, shapes):
    args = _arguments(*shapes)
    own = te.function(fn)
    _alike(own, scan, args)
    text = te.source(own, *args)
    assert ".get(" in text
    assert _steps(text) and not any(".get(" in step for step in _steps(text))


def test_a_large_table_of_gathered_rows_stays_in_the_loop():
    """Rows beside which the states are small would be an array of many bytes."""
    steps, rows = 600, 1024
    at = te.placeholder((steps,), "int32", name="at")

    def fn(E, at):
        k = te.reduce_axis((0, rows), "k")

        def step(h, t):
            return te.tanh(h[t - 1] + te.sum(E[at[t], k] * h[t - 1], axis=k))

        return te.recurrence((steps,), step, init=0.5)

    graph = te.function(fn)
    text = te.source(
        graph, jax.ShapeDtypeStruct((8, rows), "float32"), jax.ShapeDtypeStruct(at.shape, "int32")
    )
    assert f"({steps}, {rows})" not in text.split("def backward(")[0]


# --- sums of functions


@pytest.mark.parametrize("states", [2, 12])
def test_a_sum_of_functions_is_handed_on_to_the_loop_backward(states):
    def fn(a0, w):
        j = te.reduce_axis((0, states), "j")
        step = lambda a, t, s: te.log(te.sum(te.exp(a[t - 1, j] + w[j, s]), axis=j)) - w[s, s]  # noqa: E731
        return te.recurrence((T, states), step, init=a0)

    def scan(a0, w):
        def step(a, _):
            a = jnp.log(jnp.sum(jnp.exp(a[:, None] + w), 0)) - jnp.diag(w)
            return a, a

        return jax.lax.scan(step, a0, None, length=T)[1]

    args = _arguments((states,), (states, states))
    own = te.function(fn)
    _alike(own, scan, args)
    head = te.source(own, *args).split("def backward(")[1].split("):")[0]
    assert "a_pre" in head


def test_what_is_computed_at_all_points_of_a_short_step_is_summed_in_one_loop():
    args = _arguments((N, N), (N, WORDS), (N,))
    backward = te.source(te.function(hidden), *args).split("def backward(")[1]
    assert all("jnp.einsum(" not in step for step in _steps(backward))


# --- pairs of earlier positions


def inside(score):
    """Spans of all widths, each of two shorter ones side by side."""
    n = score.shape[0]
    k = te.reduce_axis((0, n), "k")

    def step(c, w, i):
        pairs = c[k, i] + c[w - 1 - k, te.minimum(i + k + 1, n - 1)]
        both = te.logsumexp(pairs, axis=k, where=k < w)
        wide = te.select(i + w < n, score[i, te.minimum(i + w, n - 1)] + te.select(w > 0, both, 0.0), 0.0)
        return te.select(w == 0, score[i, i], wide)

    c = te.recurrence((n, n), step)
    return te.compute((), lambda: c[n - 1, 0])


def trees(x):
    """Weights of binary trees: of a root, and of what stands on its left and on its right."""
    n = x.shape[0]
    k = te.reduce_axis((0, n), "k")

    def step(c, t):
        both = te.sum(c[k] * c[t - 1 - k], axis=k, where=k < t)
        return te.select(t == 0, x[0], x[t] * both)

    return te.recurrence((n,), step)


def chain(cost):
    """The least cost of products of matrices, softly."""
    n = cost.shape[0]
    k = te.reduce_axis((0, n), "k")

    def step(c, w, i):
        apart = c[k, i] + c[w - 1 - k, te.minimum(i + k + 1, n - 1)] + cost[i, te.minimum(i + k + 1, n - 1)]
        least = -te.logsumexp(-apart, axis=k, where=k < w)
        return te.select((w > 0) & (i + w < n), te.select(w > 0, least, 0.0), 0.0)

    c = te.recurrence((n, n), step)
    return te.compute((), lambda: c[n - 1, 0])


@pytest.mark.parametrize("fn, shape", [(inside, (12, 12)), (trees, (12,)), (chain, (12, 12))])
def test_sums_over_pairs_of_earlier_positions_are_no_terms(fn, shape):
    (x,) = _arguments(shape)
    own = te.function(fn)
    name = te.placeholder(shape, name="x")
    found = te.interpret(fn(name), {name: x})
    np.testing.assert_allclose(own(x), found, rtol=2e-5)
    with jax.enable_x64(True):
        x64, d = np.float64(x), np.float64(_arguments(shape, shape)[1])
        total = lambda x: jnp.sum(own(x) ** 2)  # noqa: E731
        slope = (total(x64 + 1e-6 * d) - total(x64 - 1e-6 * d)) / 2e-6
        np.testing.assert_allclose(jnp.vdot(jax.grad(total)(x64), d), slope, rtol=1e-5)
    for text in te.source(own, x).split("def backward("):
        assert all(step.count("\n") < 60 for step in _steps(text))
