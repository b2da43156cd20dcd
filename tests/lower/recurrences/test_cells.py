"""Cells with gates: products with a state are stacked by the loop that makes them, and slices of weights are taken before it."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.agreement import QUICKEST
from tests.lower.recurrences.test_sums_in_loops import _alike, _arguments

STEPS, BATCH, N = 10, 2, 16


def _gru(x, W, read=lambda h: h):
    def product(h, t, b, gate, i):
        j = te.reduce_axis((0, N), "j")
        return te.sum(W[gate, i, j] * h[t - 1, b, j], axis=j)

    def cell(h, t, b, i):
        z, r = (te.sigmoid(x[t, n, b, i] + product(h, t, b, n, i)) for n in (0, 1))
        new = te.tanh(x[t, 2, b, i] + r * product(h, t, b, 2, i))
        return z * h[t - 1, b, i] + (1 - z) * new

    return read(te.recurrence((x.shape[0], BATCH, N), cell, init=0.0))


def _gru_scan(x, W, read=lambda h: h):
    def step(h, x):
        z, r = (jax.nn.sigmoid(x[n] + h @ W[n].T) for n in (0, 1))
        h = z * h + (1 - z) * jnp.tanh(x[2] + r * (h @ W[2].T))
        return h, h

    return read(jax.lax.scan(step, jnp.zeros((BATCH, N), x.dtype), x)[1])


def _gru_in_loops(x, W):
    steps, _, batch, n = x.shape
    h = np.zeros((batch, n))
    out = np.zeros((steps, batch, n))
    for t in range(steps):
        z = 1 / (1 + np.exp(-x[t, 0] - h @ W[0].T))
        r = 1 / (1 + np.exp(-x[t, 1] - h @ W[1].T))
        h = z * h + (1 - z) * np.tanh(x[t, 2] + r * (h @ W[2].T))
        out[t] = h
    return out


ARGS = (STEPS, 3, BATCH, N), (3, N, N)


@pytest.mark.parametrize("fn", [te.function(_gru), te.loops(_gru_in_loops)], ids=["recurrence", "loops"])
def test_gates_are_not_computed_again(fn):
    args = _arguments(*ARGS)
    _alike(fn, _gru_scan, args)
    forward, backward = te.source(fn, *args).split("def backward(")
    step = backward[backward.index("_step(") : backward.index("lax.scan(")]
    assert step.count("jnp.einsum(") == 3, "the products that flow back"
    behind = backward[backward.index("lax.scan(") :].split("def _fwd")[0]
    assert behind.count("jnp.einsum(") == 3, "the gradient of each weight"
    assert backward.split("_step(")[0].count("jnp.einsum(") == 0
    assert not re.search(r"\bW\[", step), "slices of W are the same in each step"
    assert re.search(r"= W\[", forward.split("def forward_with_residuals")[1].split("_step(")[0])


def _lstm_in_loops(x, U, W):
    h, c = np.zeros((BATCH, N)), np.zeros((BATCH, N))
    out = np.zeros((STEPS, BATCH, N))
    for t in range(STEPS):
        a, o, f = (x[t] @ U[0] + h @ W[0], x[t] @ U[1] + h @ W[1], x[t] @ U[2] + h @ W[2])
        g = np.tanh(x[t] @ U[3] + h @ W[3])
        c = c / (1 + np.exp(-f)) + g / (1 + np.exp(-a))
        h = np.tanh(c) / (1 + np.exp(-o))
        out[t] = h
    return out


def _lstm_scan(x, U, W):
    def step(state, x):
        h, c = state
        a, o, f, g = (x @ U[n] + h @ W[n] for n in range(4))
        c = c * jax.nn.sigmoid(f) + jnp.tanh(g) * jax.nn.sigmoid(a)
        h = jnp.tanh(c) * jax.nn.sigmoid(o)
        return (h, c), h

    nothing = jnp.zeros((BATCH, N), x.dtype)
    return jax.lax.scan(step, (nothing, nothing), x)[1]


def test_the_loop_backward_stacks_each_adjoint_once():
    """Sums that stand in a gate alone have its adjoint, and so have the products of inputs."""
    args, fn = _arguments((STEPS, BATCH, 4), (4, 4, N), (4, N, N)), te.loops(_lstm_in_loops)
    _alike(fn, _lstm_scan, args)
    backward = te.source(fn, *args).split("def backward(")[1]
    (stacked,) = re.findall(r"\), \(([\w, ]*)\) = lax\.scan\(", backward)
    assert len(stacked.split(", ")) == 4
    assert "jnp.tanh(" not in backward[backward.index("lax.scan(") :]


def test_forward_mode_and_second_derivatives():
    x, W = _arguments(*ARGS)
    v = jnp.cos(W)
    fn = te.function(_gru)

    def both(order):
        return [order(lambda W, f=f: (f(x, W) ** 2).sum()) for f in (fn, _gru_scan)]

    def all_of(W, v):
        first = both(lambda f: jax.jvp(f, (W,), (v,))[1])
        second = both(lambda f: jax.jvp(jax.grad(f), (W,), (v,))[1])
        return first, second

    found = jax.jit(all_of).lower(W, v).compile(compiler_options=QUICKEST)(W, v)
    for own, other in found:
        np.testing.assert_allclose(own, other, rtol=1e-4, atol=1e-4 * float(abs(other).max()))


def test_a_cell_within_a_budget():
    """Positions of all that the adjoint reads are computed again, and the adjoints of the gates stacked for the gradient of the input."""
    args = _arguments((40, 3, BATCH, N), (3, N, N))
    fn = te.function(
        lambda x, W: _gru(x, W, lambda h: te.compute((BATCH, N), lambda b, i: h[39, b, i])),
        save=4 * 4 * BATCH * N * 12,
    )
    _alike(fn, lambda x, W: _gru_scan(x, W, lambda h: h[-1]), args)
    source = te.source(fn, *args)
    assert source.count("_replayed(h_again, ") == 1
    assert source.split("def backward(")[1].count("lax.scan(") == 0


def test_a_state_without_elements_takes_no_rows_of_what_has_none():
    """A step reads nothing of an array without elements, so that there is no row to take of it."""
    h = te.function(
        lambda x, y: te.recurrence((2, 0), lambda h, t, i: x[t, i] + y[t, t] + h[t - 1, i], init=0.0)
    )
    x, y = np.zeros((2, 0), "float32"), np.ones((0, 4), "float32")
    assert h(x, y).shape == (2, 0)
    assert jax.jit(jax.grad(lambda y: h(x, y).sum()))(y).shape == (0, 4)
