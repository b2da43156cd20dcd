"""Sums over all positions that a loop adds up, and tensors of which it keeps the last position only."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.agreement import QUICKEST

STEPS, N = 12, 96


def _arguments(*shapes):
    rng = np.random.default_rng(0)
    return [np.float32(rng.normal(size=shape) * 0.3) for shape in shapes]


def _alike(own, other, args):
    """The same gradients by both, of the squares of what they return."""

    def gradients(f):
        return jax.grad(lambda *a: (f(*a) ** 2).sum(), tuple(range(len(args))))

    def both(*a):
        return gradients(own)(*a), gradients(other)(*a)

    found = jax.jit(both).lower(*args).compile(compiler_options=QUICKEST)(*args)
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5 * float(abs(b).max()))


def _backward(fn, args):
    return te.source(fn, *args).split("def backward(")[1].split("def _fwd")[0]


def _decay(u0, c, read, reverse=False):
    """Neighbours that pull at each other, and a cubic term."""
    step = 1 if reverse else -1

    def body(u, t, i, k):
        own, right = u[t + step, i, k], u[t + step, (i + 1) % N, k]
        return own + c[0] * (right - own) - c[1] * own * own * own * right

    return read(te.recurrence((STEPS, N, N), body, init=u0, reverse=reverse))


def _decay_scan(u0, c, read, reverse=False):
    def step(u, _):
        right = jnp.roll(u, -1, 0)
        u = u + c[0] * (right - u) - c[1] * u * u * u * right
        return u, u

    found = jax.lax.scan(step, u0, None, length=STEPS)[1]
    return read(found[::-1] if reverse else found)


def _whole(u):
    return u


def _last(u):
    return te.compute((N, N), lambda i, k: u[STEPS - 1, i, k]) if isinstance(u, te.Tensor) else u[-1]


def _first(u):
    return te.compute((N, N), lambda i, k: u[0, i, k]) if isinstance(u, te.Tensor) else u[0]


def _total(u):
    if not isinstance(u, te.Tensor):
        return (u**4).sum((0, 2))
    t, k = te.reduce_axis((0, STEPS), "t"), te.reduce_axis((0, N), "k")
    return te.compute((N,), lambda i: te.sum(u[t, i, k] ** 4, axis=[t, k]))


@pytest.mark.parametrize(
    ("read", "reverse"), [(_whole, False), (_whole, True), (_last, False), (_first, True), (_total, False)]
)
def test_the_gradient_of_a_few_numbers_is_added_up_in_the_loop(read, reverse):
    """No position of the adjoint is stacked, and none of the states read once more behind the loop."""
    args = _arguments((N, N), (2,))
    fn = te.function(lambda u0, c: _decay(u0, c, read, reverse))
    _alike(fn, lambda u0, c: _decay_scan(u0, c, read, reverse), args)
    backward = _backward(fn, args)
    assert backward.count("lax.scan(") == 1
    assert "), None\n" in backward
    after = backward.split("lax.scan(")[1]
    assert "u[" not in after
    assert "u_padded" not in after


def test_a_forward_loop_adds_up_too_and_stacks_nothing():
    args = _arguments((N, N), (2,))
    for read in (_last, _total):
        fn = te.function(lambda u0, c, read=read: _decay(u0, c, read))
        forward = te.source(fn, *args).split("def forward_with")[0]
        assert "), None\n" in forward or "return u, None\n" in forward
        np.testing.assert_allclose(fn(*args), _decay_scan(*args, read), rtol=1e-4, atol=1e-6)


def test_a_product_of_all_positions_stays_behind_the_loop():
    """The gradient of a matrix is as large as it; that of a vector beside it is added up where a step has many rows."""

    def build(x, W, b):
        j = te.reduce_axis((0, 32), "j")

        def cell(h, t, r, i):
            return te.tanh(x[t, r, i] + b[i] + te.sum(W[i, j] * h[t - 1, r, j], axis=j))

        return te.recurrence((STEPS, 512, 32), cell, init=0.0)

    def scan(x, W, b):
        def step(h, row):
            h = jnp.tanh(row + b + h @ W.T)
            return h, h

        return jax.lax.scan(step, jnp.zeros((512, 32)), x)[1]

    fn, args = te.function(build), _arguments((STEPS, 512, 32), (32, 32), (32,))
    _alike(fn, scan, args)
    within, after = _backward(fn, args).split("lax.scan(")
    assert "db_sum" in within
    assert '"tui,tuj->ij"' in after


def test_short_sums_are_in_the_loop_where_steps_are_cheap():
    """Elsewhere, to start one more operation in each step takes longer than to read a few numbers once more."""

    def build(x, c):
        return te.recurrence((STEPS,), lambda y, t: te.sin(c[0] * y[t - 1] + x[t]), init=0.1)

    args = _arguments((STEPS,), (1,))
    assert "dc_sum" in _backward(te.function(build), args)
    assert "dc_sum" not in _backward(te.function(build, platform="gpu"), args)


def test_a_sum_of_neighbours_in_time_reads_what_is_carried():
    args = _arguments((N, N), (2,))

    def later(u):
        t, k = te.reduce_axis((0, STEPS), "t"), te.reduce_axis((0, N), "k")
        return te.compute(
            (N,), lambda i: te.sum(te.select(t < STEPS - 1, u[t + 1, i, k], 0.0) * u[t, i, k], axis=[t, k])
        )

    fn = te.function(lambda u0, c: _decay(u0, c, later))
    assert "), None\n" in te.source(fn, *args).split("def forward_with")[0]
    value = np.asarray(_decay_scan(*args, _whole))
    np.testing.assert_allclose(fn(*args), (value[1:] * value[:-1]).sum((0, 2)), rtol=1e-4)


@pytest.mark.parametrize(("first", "end"), [(1, STEPS), (0, STEPS - 1), (2, STEPS - 2)])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_sum_over_most_positions_is_added_up_at_these(first, end, reverse):
    args = _arguments((N, N), (2,))

    def some(u):
        t, k = te.reduce_axis((first, end), "t"), te.reduce_axis((0, N), "k")
        return te.compute((N,), lambda i: te.sum(u[t, i, k] * u[t, i, k], axis=[t, k]))

    fn = te.function(lambda u0, c: _decay(u0, c, some, reverse))
    assert "_sum" in te.source(fn, *args).split("def forward_with")[0].split('"""')[-1]
    value = np.asarray(_decay_scan(*args, _whole, reverse))
    np.testing.assert_allclose(fn(*args), (value[first:end] ** 2).sum((0, 2)), rtol=1e-4)


def test_a_sum_over_a_few_positions_stays_behind_the_loop():
    args = _arguments((N, N), (2,))

    def some(u):
        t, k = te.reduce_axis((1, 4), "t"), te.reduce_axis((0, N), "k")
        return te.compute((N,), lambda i: te.sum(u[t, i, k] * u[t, i, k], axis=[t, k]))

    fn = te.function(lambda u0, c: _decay(u0, c, some))
    assert "_sum" not in te.source(fn, *args).split("def forward_with")[0].split('"""')[-1]
    value = np.asarray(_decay_scan(*args, _whole))
    np.testing.assert_allclose(fn(*args), (value[1:4] ** 2).sum((0, 2)), rtol=1e-4)


def test_windows_are_laid_out_before_the_loop():
    """A step would gather each of them; an array that repeats a row is made in the step."""
    (x,) = _arguments((STEPS + 40,))

    def build(x):
        windows = te.compute((STEPS, 40), lambda t, i: x[t + i], "windows")
        rows = te.compute((STEPS, 40), lambda t, i: te.select(t == 3, x[i], 0.0), "rows")
        return te.recurrence(
            (STEPS, 40), lambda h, t, i: 0.5 * h[t - 1, i] + windows[t, i] + rows[t, i], init=0.0
        )

    fn = te.function(build)
    before, within = te.source(fn, x).split("def h_step")[:2]
    assert "windows = " in before
    assert "rows = " not in before
    assert "rows_t" not in within
    state, expected = np.zeros(40), []
    for t in range(STEPS):
        state = 0.5 * state + x[t : t + 40] + (x[:40] if t == 3 else 0)
        expected.append(state)
    np.testing.assert_allclose(fn(x), expected, rtol=1e-5, atol=1e-6)


def test_positions_that_a_condition_leaves_out_add_nothing():
    """They were tested where all positions count alone."""

    def build(u0):
        t = te.reduce_axis((0, 40), "t")
        u = te.recurrence((40, 64), lambda u, t, i: te.sin(u[t - 1, i]) + 0.5, init=u0)
        return te.compute((64,), lambda i: te.sum(u[t, i], axis=t, where=(t >= 3) & (t + i < 90)), "y")

    (u0,) = _arguments((64,))
    u = [u0]
    for _ in range(40):
        u.append(np.sin(u[-1]) + 0.5)
    counts = (np.arange(40)[:, None] >= 3) & (np.arange(40)[:, None] + np.arange(64) < 90)
    fn = te.function(build)
    assert "y_sum" in te.source(fn, u0)
    np.testing.assert_allclose(fn(u0), np.sum(np.stack(u[1:]) * counts, axis=0), rtol=1e-4)
