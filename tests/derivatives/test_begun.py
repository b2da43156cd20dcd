"""Loops backward that begin with what flows into the last position, and hand on what flows into the one before."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax

import jaxte as te

pytestmark = pytest.mark.usefixtures("x64")


def diffused(a, u0):
    """Five sweeps, of which the last one is read."""

    def step(u, t, i):
        own = te.select((i >= 1) & (i < 7), u[t - 1, i - 1] + u[t - 1, i + 1], 0.0)
        return a[t, i] * u[t - 1, i] + 0.25 * own

    u = te.recurrence((5, 8), step, init=u0)
    return te.compute((8,), lambda i: u[4, i])


def diffused_by_hand(a, u0):
    def step(u, a):
        return a * u + 0.25 * jnp.pad(u[:-2] + u[2:], 1), None

    return lax.scan(step, u0, a)[0]


def backwards(x, v0):
    """From the other end, two states, nonlinear."""

    def step(p, q, t, i):
        return p[t + 1, i] + 0.1 * te.sin(q[t + 1, i]) * x[t], q[t + 1, i] * p[t, i]

    p, q = te.recurrence((6, 3), step, init=(v0, 2.0), reverse=True)
    return te.compute((3,), lambda i: p[0, i] * 2.0), te.compute((3,), lambda i: q[0, i])


def backwards_by_hand(x, v0):
    def step(state, x):
        p, q = state
        p = p + 0.1 * jnp.sin(q) * x
        return (p, q * p), None

    p, q = lax.scan(step, (v0, jnp.full(3, 2.0)), x, reverse=True)[0]
    return 2 * p, q


def partly(x, v0):
    """Something flows into all positions, and more into the last."""
    h = te.recurrence((6, 3), lambda h, t, i: te.tanh(h[t - 1, i] * x[t]), init=v0)
    t = te.reduce_axis((0, 6), "t")
    return te.compute((3,), lambda i: h[5, i] ** 2), te.compute((3,), lambda i: te.sum(h[t, i], axis=t))


def partly_by_hand(x, v0):
    h = lax.scan(lambda h, x: (jnp.tanh(h * x),) * 2, v0, x)[1]
    return h[5] ** 2, h.sum(0)


def weights_before(x, v0):
    """What is handed on at the first position would be multiplied by a weight before the first."""
    h = te.recurrence(
        (6, 3), lambda h, t, i: te.select(t >= 1, te.sin(h[t - 1, i]) * x[t - 1] + x[t - 1], v0[i])
    )
    return te.compute((3,), lambda i: h[5, i])


def weights_before_by_hand(x, v0):
    return lax.scan(lambda h, x: (jnp.sin(h) * x + x, None), v0, x)[0]


rng = np.random.default_rng(0)
CASES = {
    "sweep": (diffused, diffused_by_hand, [rng.normal(size=(5, 8)), rng.normal(size=8)]),
    "backwards": (backwards, backwards_by_hand, [rng.normal(size=6), rng.normal(size=3)]),
    "partly": (partly, partly_by_hand, [rng.normal(size=6), rng.normal(size=3)]),
    "weights before": (weights_before, weights_before_by_hand, [rng.normal(size=5), rng.normal(size=3)]),
}


def _loss(f):
    return lambda *args: sum(jnp.sin(v).sum() for v in jax.tree.leaves(f(*args)))


@pytest.mark.parametrize("name", CASES)
def test_gradients_and_their_derivatives(name):
    build, by_hand, args = CASES[name]
    own, both = te.function(build), tuple(range(len(args)))
    for derive in (lambda f: jax.grad(f, both), lambda f: jax.hessian(f, both)):
        found, known = (jax.tree.leaves(jax.jit(derive(_loss(f)))(*args)) for f in (own, by_hand))
        for a, b in zip(found, known, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    rows = [jax.jit(jax.jacrev(f, both))(*args) for f in (own, by_hand)]
    for a, b in zip(*map(jax.tree.leaves, rows), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_no_step_asks_whether_it_is_the_last():
    build, _, args = CASES["sweep"]
    backward = te.source(te.function(build), *args).split("def backward")[1]
    step = backward.split("_step(")[1].split("lax.scan")[0]
    assert "t == " not in step and "t < " not in step and "jnp.where(" not in step
    (loop,) = [line for line in backward.splitlines() if "lax.scan(" in line]
    assert "_init[0]" in loop


def test_nothing_is_read_before_the_first_position():
    build, _, args = CASES["weights before"]
    assert "t - 1" not in te.source(te.function(build), *args).split("def backward")[1]


def test_what_the_loop_begins_with_is_what_it_hands_on():
    """The gradient of the first values is computed by the loop, and not once more behind it."""
    build, _, args = CASES["sweep"]
    backward = te.source(te.function(build), *args).split("def backward")[1]
    assert "du0 = du_on_last" in backward


def test_a_loop_of_any_length():
    """The position that is last is a symbol."""

    def build(x, v0):
        n = x.shape[0]
        h = te.recurrence((n, 3), lambda h, t, i: h[t - 1, i] * x[t] + 0.1 * h[t - 1, 2 - i], init=v0)
        return te.compute((3,), lambda i: h[n - 1, i])

    def by_hand(x, v0):
        return lax.scan(lambda h, x: (h * x + 0.1 * h[::-1], None), v0, x)[0]

    own = te.function(build)
    (m,) = export.symbolic_shape("m", constraints=["m >= 2"])
    shapes = [jax.ShapeDtypeStruct((m,), "float64"), jax.ShapeDtypeStruct((3,), "float64")]
    exported = export.export(jax.jit(jax.grad(_loss(own), (0, 1))))(*shapes)
    for size in (2, 7):
        args = rng.normal(size=size), rng.normal(size=3)
        for a, b in zip(exported.call(*args), jax.grad(_loss(by_hand), (0, 1))(*args), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10)
