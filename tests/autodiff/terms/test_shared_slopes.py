"""Slopes behind extrema: what is shared at a tie meets each slope once, and what follows each other does not hold all that came before."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.lang.expr import Call
from jaxte.lang.walk import postorder
from jaxte.tensors.structure import topological_order

N = 12


def operations(tensors):
    """How many operations the bodies of all tensors hold, each body by itself."""
    order = topological_order(list(tensors))
    return sum(isinstance(n, Call) for t in order if hasattr(t, "body") for n in postorder(t.body))


def nested(depth, at, bound, root):
    for n in range(depth):
        at = root(bound(at, 0.1 * n)) + 0.5 * at
    return at


def clipped(depth):
    return lambda x: te.compute(
        (N,), lambda i: nested(depth, x[i], lambda a, b: te.minimum(te.maximum(a, b), 2.0), te.sqrt), "y"
    )


def clipped_in_jax(depth):
    return lambda x: nested(depth, x, lambda a, b: jnp.minimum(jnp.maximum(a, b), 2.0), jnp.sqrt)


@pytest.mark.parametrize("bounds", ["clips", "maxima of two reads"])
def test_operations_grow_with_the_depth_and_do_not_double(bounds):
    def counted(depth):
        x, z = te.placeholder((N,), name="x"), te.placeholder((N,), name="z")
        other = (lambda a, i, n: te.maximum(a, z[i])) if bounds != "clips" else None

        def element(i):
            at = x[i]
            for n in range(depth):
                held = te.minimum(te.maximum(at, 0.1), 2.0) if other is None else other(at, i, n)
                at = te.sqrt(held)
            return at

        y = te.compute((N,), element, "y")
        return operations(te.gradient(y, [x], te.placeholder((N,), name="H")))

    steps = np.diff([counted(d) for d in (2, 3, 4, 5, 6)])
    assert (
        steps.max() <= 2 * steps.min()
    )  # each depth computes its own condition again; the products do not double


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_shares_of_ties_are_those_of_jax(depth):
    x = jnp.asarray(np.random.default_rng(depth).choice([0.0, 0.1, 0.2, 1.0, 2.0, 3.0], N), "float32")
    found = te.grad(lambda a: jnp.sum(te.adjoint(clipped_in_jax(depth), everything=True)(a)))(x + 0.01)
    by_definition = jax.vjp(te.function(clipped(depth)), x + 0.01)[1](jnp.ones(N))[0]
    expected = jax.grad(lambda a: jnp.sum(clipped_in_jax(depth)(a)))(x + 0.01)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    np.testing.assert_allclose(by_definition, expected, rtol=1e-5)


def eikonal(u):
    """One step towards distances: from the nearer neighbour in each direction, from both where these are close."""
    p = jnp.pad(u, 1, mode="edge")
    a = jnp.minimum(p[:-2, 1:-1], p[2:, 1:-1])
    b = jnp.minimum(p[1:-1, :-2], p[1:-1, 2:])
    both = (a + b + jnp.sqrt(jnp.maximum(2 - (a - b) ** 2, 1e-6))) / 2
    return jnp.minimum(u, jnp.where(jnp.abs(a - b) < 1, both, jnp.minimum(a, b) + 1))


def relaxed(u):
    p = jnp.maximum(jnp.roll(u, 1, 0) * jnp.roll(u, -1, 1), 0.05)
    return jnp.where(u > 0.6, jnp.sqrt(p), u / p + jnp.sqrt(u * p))


def limited(u):
    a, b = u - jnp.roll(u, 1, 0), jnp.roll(u, -1, 0) - u
    return u + 0.1 * jnp.where(a * b > 0, 2 * a * b / (a + b + 1e-3), jnp.where(a > 0, a, b))


@pytest.mark.parametrize("step", [eikonal, relaxed, limited])
def test_steps_that_follow_each_other_are_as_long_as_one(step):
    def run(steps):
        def f(u):
            for _ in range(steps):
                u = step(u)
            return jnp.sum(u**2)

        return f

    u = jnp.asarray(np.random.default_rng(0).uniform(0.1, 1.5, (8, 8)), "float32")
    lengths = [len(te.source(te.adjoint(run(n), everything=True), u)) for n in (1, 2, 3, 4)]
    grown = np.diff(lengths)
    assert grown[-1] <= 1.15 * grown[-2]
    found = te.grad(te.adjoint(run(3), everything=True))(u)
    np.testing.assert_allclose(found, jax.grad(run(3))(u), rtol=2e-4, atol=1e-5)


def test_what_a_long_guard_excludes_stays_zero_where_slopes_are_infinite():
    """The head of the square roots has more operations than are put in place; at 0 their slope is infinite."""

    def f(x, w):
        r = jnp.sqrt(x)
        wave = jnp.sin(w * r) * jnp.exp(-r) + r * w / (1 + r * r) + jnp.tanh(r - w) * jnp.cos(r + w)
        return jnp.sum(jnp.where(w > 0, wave * wave / (2 + wave), 0.0))

    def by_definition(x, w):
        r = te.compute((N,), lambda i: te.sqrt(x[i]), "r")

        def element(i):
            v = te.sin(w[i] * r[i]) * te.exp(-r[i]) + r[i] * w[i] / (1 + r[i] * r[i])
            v = v + te.tanh(r[i] - w[i]) * te.cos(r[i] + w[i])
            return te.select(w[i] > 0, v * v / (2 + v), 0.0)

        return te.compute((N,), element, "y")

    w = jnp.asarray(np.where(np.arange(N) % 3 == 0, -1.0, 0.3 + 0.1 * np.arange(N)), "float32")
    x = jnp.where(w > 0, 1.0 + 0.1 * jnp.arange(N, dtype="float32"), 0.0)
    (found,) = jax.vjp(lambda a: te.function(by_definition)(a, w), x)[1](jnp.ones(N))
    assert np.all(np.asarray(found)[np.asarray(w) < 0] == 0)
    safe = jnp.where(w > 0, x, 1.0)
    np.testing.assert_allclose(found, jnp.where(w > 0, jax.grad(f)(safe, w), 0.0), rtol=1e-4, atol=1e-6)
