"""Adjoints are linear in their heads: what is derived from them again, tangents and second derivatives, counts each part once, also where a head is zero."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.derivatives.linearity import verify_linear
from jaxte.lang.errors import DifferentiationError
from jaxte.lang.expr import Read, call
from jaxte.lang.operators import NONZERO

pytestmark = pytest.mark.usefixtures("x64")


def agree(fn, plain, x, fitted=True):
    """Jacobians both ways, and Hessians forward and reverse over reverse, of a loss away from its minimum and at it."""

    def loss(f):
        return lambda x, target: jnp.sum(jnp.sin(f(x) - target) ** 2)

    def own(x, target):
        gradient = jax.grad(loss(fn))
        hessians = [mode(gradient)(x, target) for mode in (jax.jacfwd, jax.jacrev)]
        return [jax.jacfwd(fn)(x), jax.jacrev(fn)(x)], hessians

    both, meant = (
        jax.jit(own),
        jax.jit(lambda x, target: (jax.jacrev(plain)(x), jax.hessian(loss(plain))(x, target))),
    )
    y = plain(x)
    for target in (y + 0.3, y) if fitted else (y + 0.3,):
        for found, expected in zip(both(x, target), meant(x, target), strict=True):
            for derivative in found:
                np.testing.assert_allclose(derivative, expected, rtol=1e-9, atol=1e-9)


def test_a_factor_that_reads_share_is_counted_once(rng) -> None:
    @te.function
    def own(x):
        def step(i):
            return x[(i + 1) % 6] - x[i]

        return te.compute((6,), lambda i: x[(i + 1) % 6] + step(i) * te.sin(step(i)), "y")

    def plain(x):
        step = jnp.roll(x, -1) - x
        return jnp.roll(x, -1) + step * jnp.sin(step)

    agree(own, plain, rng.normal(size=6))


def test_chosen_branches_at_a_perfect_fit(rng) -> None:
    @te.function
    def own(x):
        k = te.reduce_axis((0, 3), "k")
        y = te.compute((8,), lambda i: te.sqrt(x[i]), "y")
        body = lambda i: te.select(y[i + k] > 1.0, y[i + k], te.sin(y[i + k]))  # noqa: E731
        return te.compute((6,), lambda i: te.sum(body(i), axis=k), "z")

    def plain(x):
        y = jnp.sqrt(x)
        z = jnp.where(y > 1.0, y, jnp.sin(y))
        return z[:-2] + z[1:-1] + z[2:]

    agree(own, plain, rng.uniform(0.3, 2.0, size=8))


def test_raised_steps_with_a_branch_that_is_not_finite(rng) -> None:
    def steps(u):
        for _ in range(3):
            f = jnp.where(u > 1.0, jnp.sqrt(u), u * u)
            u = u + 0.1 * (jnp.roll(f, 1) + jnp.roll(f, -1) - 2 * f)
        return u

    u = rng.uniform(0.3, 2.0, size=8)
    agree(te.adjoint(steps, everything=True), steps, u)


def test_coincident_reads() -> None:
    @te.function
    def own(x):
        def middle(j):
            a, b, c = x[te.maximum(j - 1, 0)], x[j], x[te.minimum(j + 1, 3)]
            return te.maximum(te.minimum(a, b), te.minimum(te.maximum(a, b), c)) * b

        return te.compute((4,), middle, "m")

    def plain(x):
        a, b, c = x[jnp.array([0, 0, 1, 2])], x, x[jnp.array([1, 2, 3, 3])]
        return jnp.maximum(jnp.minimum(a, b), jnp.minimum(jnp.maximum(a, b), c)) * b

    agree(own, plain, np.array([0.3, -0.7, 0.9, 1.1]), fitted=False)


def test_what_is_read_out_of_range_has_no_tangent(rng) -> None:
    x, v, positions = rng.normal(size=4), rng.normal(size=4), jnp.array([0, 7, 2, -1, -9, 3])
    own = te.function(lambda x, i: te.compute((6,), lambda n: x[i[n]] * te.sin(x[i[n]]), "g"))
    slope = np.sin(x) + x * np.cos(x)
    expected = np.where(np.isin(positions, [0, 2, 3]), (slope * v)[np.clip(positions, 0, 3)], 0.0)
    out, moved = jax.jit(lambda x, v: jax.jvp(lambda x: own(x, positions), (x,), (v,)))(x, v)
    np.testing.assert_allclose(moved, expected, rtol=1e-12)
    np.testing.assert_array_equal(np.isnan(out), ~np.isin(positions, [0, 2, 3]))
    i = te.placeholder((6,), "int32", "I", facts=te.facts.within(4))
    known = te.placeholder((4,), name="X")
    tangent = te.jvp(te.compute((6,), lambda n: known[i[n]], "y"), [known], [known])
    assert "select" not in te.source(tangent) and "where" not in te.source(tangent)


def _tensors():
    x, h = (te.placeholder((4,), "float64", name) for name in "XH")
    return x, h, te.compute((4,), lambda i: te.sin(x[i]), "y")


def test_every_adjoint_is_verified() -> None:
    x, h, y = _tensors()
    guarded = te.compute((4,), lambda i: te.select(call(NONZERO, Read(h, (i,)), 0.0), h[i] / x[i], 0.0))
    verify_linear([guarded, te.differentiate(y, [x], h)[0]], [h], [x, y])
    bad = [
        lambda i: te.select(h[i] != 0, h[i] / x[i], 0.0),
        lambda i: h[i] * h[i],
        lambda i: h[i] + x[i],
        lambda i: te.maximum(h[i], 0.0) * x[i],
        lambda i: x[i] / h[i],
    ]
    for body in bad:
        with pytest.raises(DifferentiationError, match="not linear in the heads"):
            verify_linear([te.compute((4,), body, "dX")], [h], [x, y])
    with pytest.raises(DifferentiationError, match="terms without a head"):
        verify_linear([te.compute((4,), lambda i: x[i] * 2.0, "dX")], [h], [x, y])
    k = te.reduce_axis((0, 4), "k")
    with pytest.raises(DifferentiationError, match="not linear"):
        verify_linear([te.compute((), lambda: te.max(h[k], axis=k), "dX")], [h], [x, y])
