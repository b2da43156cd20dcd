"""Sums over the positions of a loop that are one sum at several places."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxte as te

pytestmark = pytest.mark.usefixtures("x64")


def pushed(u0, p):
    """Each step reads ``p`` at both sides, around the end."""

    def step(u, t, i):
        return te.sin(u[t - 1, i]) + p[(i + 1) % 40] - 0.5 * p[(i - 1) % 40]

    u = te.recurrence((9, 40), step, init=u0)
    return te.compute((40,), lambda i: u[8, i])


def pushed_by_hand(u0, p):
    force = jnp.roll(p, -1) - 0.5 * jnp.roll(p, 1)
    return lax.fori_loop(0, 9, lambda _, u: jnp.sin(u) + force, u0)


def windows(u0, p):
    """At neighbours, where they are there."""

    def step(u, t, i):
        left, right = te.select(i >= 1, p[i - 1], 0.0), te.select(i < 39, p[i + 1], 0.0)
        return te.sin(u[t - 1, i]) + left - 0.5 * right

    u = te.recurrence((9, 40), step, init=u0)
    return te.compute((40,), lambda i: u[8, i])


def windows_by_hand(u0, p):
    force = jnp.pad(p[:-1], (1, 0)) - 0.5 * jnp.pad(p[1:], (0, 1))
    return lax.fori_loop(0, 9, lambda _, u: jnp.sin(u) + force, u0)


def products(u0, p):
    """A sum of products, at two places."""

    def step(u, t, i):
        return te.sin(u[t - 1, i]) * p[(i + 1) % 40] + te.sin(u[t - 1, (i + 2) % 40]) * p[(i + 3) % 40]

    u = te.recurrence((9, 40), step, init=u0)
    return te.compute((40,), lambda i: u[8, i])


def products_by_hand(u0, p):
    def step(_, u):
        own = jnp.sin(u)
        return own * jnp.roll(p, -1) + jnp.roll(own, -2) * jnp.roll(p, -3)

    return lax.fori_loop(0, 9, step, u0)


CASES = {
    "around the end": (pushed, pushed_by_hand),
    "windows": (windows, windows_by_hand),
    "products": (products, products_by_hand),
}
ARGS = [np.random.default_rng(n).normal(size=40) for n in range(2)]


@pytest.mark.parametrize("name", CASES)
def test_gradients(name):
    own, by_hand = te.function(CASES[name][0]), CASES[name][1]
    found, known = (
        jax.jit(jax.grad(lambda *a, f=f: jnp.cos(f(*a)).sum(), (0, 1)))(*ARGS) for f in (own, by_hand)
    )
    for a, b in zip(found, known, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["around the end", "windows"])
def test_it_is_added_up_once(name):
    backward = te.source(te.function(CASES[name][0]), *ARGS).split("def backward")[1]
    assert backward.count("_total = ") == 1 and not backward.count("jnp.sum(")


def test_what_a_loop_begins_with_is_part_of_a_sum_that_stands_twice():
    n, steps = 4, 5

    def product(w, h, t, i, name):
        j = te.reduce_axis((0, n), name)
        return te.sum(w[i, j] * h[t - 1, j], axis=j)

    def build(u0, w):
        def step(h, t, i):
            return te.sin(product(w, h, t, i, "j")) + te.gelu(product(w, h, t, i, "k"))

        h = te.recurrence((steps, n), step, init=u0)
        return te.compute((n,), lambda i: h[steps - 1, i])

    def by_hand(u0, w):
        return lax.fori_loop(0, steps, lambda _, h: jnp.sin(w @ h) + jax.nn.gelu(w @ h), u0)

    own = te.function(build)
    args = np.random.default_rng(3).normal(size=n), np.random.default_rng(4).normal(size=(n, n))
    found, known = (jax.jit(jax.grad(lambda *a, f=f: f(*a).sum(), (0, 1)))(*args) for f in (own, by_hand))
    for a, b in zip(found, known, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_sums_that_begin_elsewhere_are_others():
    """The sum over three columns stood for that over the last two of them, where the adjoint of a recurrence asks for both."""
    n, steps = 3, 4

    def build(x):
        def step(h, t, c):
            return te.sin(h[t - 1, te.minimum(2 * c, n - 1)]) + 0.3 * h[t - 2, 2]

        return te.recurrence((steps, n), step, init=lambda c: x[c])

    def by_hand(x):
        def step(before, _):
            last, other = before
            new = jnp.sin(last[jnp.minimum(2 * jnp.arange(n), n - 1)]) + 0.3 * other[2]
            return (new, last), new

        return lax.scan(step, (x, x), None, length=steps)[1]

    x, head = np.random.default_rng(5).normal(size=n), np.random.default_rng(6).normal(size=(steps, n))
    found, known = (jax.grad(lambda x, f=f: (f(x) * head).sum())(x) for f in (te.function(build), by_hand))
    np.testing.assert_allclose(found, known, rtol=1e-10)
