"""Gradients by hand of ranges of statements under ``te.loops``, and of ranges of tensors."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.loops.agreement import assert_nodes_agree

pytestmark = pytest.mark.usefixtures("x64")


def softmax_rows(x, factor):
    n, m = x.shape
    y = np.empty((n, m))
    for i in range(n):
        with te.region() as r:
            peak = x[i, 0]
            for j in range(m):
                peak = max(peak, x[i, j])
            total = 0.0
            for j in range(m):
                total += np.exp(x[i, j] - peak)
            for j in range(m):
                y[i, j] = np.exp(x[i, j] - peak) / total
        with te.gradient(r, y[i], x[i]) as (dy, dx):
            inner = 0.0
            for j in range(m):
                inner += dy[j] * y[i, j]
            for j in range(m):
                dx[j] = factor * y[i, j] * (dy[j] - inner)
    return y


def in_place(x, factor):
    """The row is input and output: the region reads its versions before and after."""
    for i in range(x.shape[0]):
        with te.region() as r:
            before = x[i].copy()
            for j in range(x.shape[1]):
                x[i, j] = before[j] * before[j]
        with te.gradient(r, x[i], x[i]) as (dy, dx):
            dx[:] = 2.0 * factor * before * dy


def carried(x, w, h, factor):
    """Versions of ``h`` in a loop that hands it on, and marks in several iterations."""
    out = np.zeros(len(x))
    for i in range(len(x)):
        with te.region() as r:
            old = h.copy()
            for j in range(len(w)):
                h[j] = np.tanh(w[j] * h[j] + x[i, j])
        with te.gradient(r, h, (h, x[i], w)) as (dh, dbefore, dx, dw):
            for j in range(len(w)):
                slope = dh[j] * (1 - h[j] * h[j])
                dbefore[j] = slope * w[j]
                dx[j] = slope
                dw[j] = factor * slope * old[j]
        for j in range(len(w)):
            out[i] += h[j] * h[j]
    return out, h


@te.loops
def squashed(v, factor):
    """One mark, called from several places."""
    y = v.copy()
    with te.region() as r:
        for j in range(len(v)):
            y[j] = 1.0 / (1.0 + np.exp(-v[j]))
    with te.gradient(r, y, v) as (dy, dv):
        for j in range(len(v)):
            dv[j] = factor * dy[j] * y[j] * (1.0 - y[j])
    return y


def call_sites(x, z, factor):
    a = squashed(x, factor)
    b = squashed(a * z, factor)
    return a, b


def two_ranges(x, factor):
    """Two regions one after the other, of numbers: the second reads what the first one wrote."""
    y = np.zeros(len(x))
    for i in range(len(x)):
        s = x[i]
        with te.region() as first:
            s = np.exp(s)
        with te.gradient(first, s, s) as (dt, ds):
            ds = dt * s
        with te.region() as second:
            t = s * s
        with te.gradient(second, t, s) as (dt, ds):
            ds = 2.0 * factor * s * dt
        y[i] = t + s
    return y


CASES = {
    "softmax": (softmax_rows, [(3, 4)]),
    "in place": (in_place, [(3, 4)]),
    "carried": (carried, [(4, 3), (3,), (3,)]),
    "call sites": (call_sites, [(3,), (3,)]),
    "two ranges": (two_ranges, [(4,)]),
}


@pytest.mark.parametrize("name", CASES)
def test_gradients_by_hand_are_right_and_are_used(name: str) -> None:
    function, shapes = CASES[name]
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=s) for s in shapes]
    assert_nodes_agree(function, [*arrays, 1.0])
    with pytest.raises(AssertionError):  # the derivative of the definition would agree, whatever is given
        assert_nodes_agree(function, [*arrays, 1.5])


@pytest.mark.parametrize("name", CASES)
def test_gradients_by_hand_are_verified(name: str) -> None:
    function, shapes = CASES[name]
    inputs = [te.placeholder(s, "float64", name=f"x{n}") for n, s in enumerate(shapes)]
    for factor in (1.0, 1.5):
        built = te.loops(function).builder(*inputs, factor)
        found = te.verify_override(list(built) if isinstance(built, tuple) else built)
        assert bool(found) == (factor == 1.0)


def test_what_lies_between_is_not_derived() -> None:
    source = te.source(te.loops(softmax_rows), np.ones((3, 4)), 1.0)
    assert "exp" not in source.split("def backward(")[1]


def test_second_derivatives_and_jacobians_go_through_a_region() -> None:
    own, x = te.loops(two_ranges), np.array([0.3, -0.2])
    hessian = jax.hessian(lambda x: own(x, 1.0).sum())(x)
    np.testing.assert_allclose(np.diag(hessian), 4 * np.exp(2 * x) + np.exp(x), 1e-12)
    np.testing.assert_allclose(
        jax.jacrev(lambda x: own(x, 1.0))(x), np.diag(2 * np.exp(2 * x) + np.exp(x)), 1e-12
    )


# --- what is refused


def lost(x, w):
    y = np.zeros(len(x))
    for i in range(len(x)):
        with te.region() as r:
            y[i] = x[i] * w[0]
        with te.gradient(r, y[i], x[i]) as (dy, dx):
            dx = dy * w[0]
    return y


def without_gradient(x, w):
    with te.region() as r:
        y = x * w
    return y


def leaks(x, w):
    s = w[0]
    with te.region() as r:
        y = x[0] * 2.0
    with te.gradient(r, y, x[0]) as (dy, dx):
        s = 2.0
        dx = s * dy
    return y + s


def by_data(x, w):
    y = 0.0
    if x[0] > 0:
        with te.region() as r:
            y = x[0] * 2.0
        with te.gradient(r, y, x[0]) as (dy, dx):
            dx = 2.0 * dy
    return y


def too_few_names(x, w):
    with te.region() as r:
        y = x[0] * 2.0
    with te.gradient(r, y, x[0]) as dx:
        dx = 2.0
    return y


REFUSED = {
    "the region reads w, which is none of its inputs": lost,
    "a region without its gradient": without_gradient,
    "writes s, which is read outside of it": leaks,
    "a region under a condition on data": by_data,
    "2 in all": too_few_names,
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_would_be_lost_is_refused_with_its_place(message: str) -> None:
    x = te.placeholder((3,), "float64", name="x")
    with pytest.raises(te.DefinitionError, match=message) as found:
        te.loops(REFUSED[message]).builder(x, x)
    assert "^" in str(found.value)


# --- tensors


def test_a_region_of_tensors() -> None:
    @te.function
    def softplus(x):
        with te.region() as r:
            y = te.compute(x.shape, lambda i: te.log(1 + te.exp(x[i])), "y")

        @te.gradient(r, y, x)
        def by_hand(dy):
            return te.compute(x.shape, lambda i: dy[i] * te.sigmoid(x[i]), "dx")

        return y

    x = jnp.array([0.0, 800.0])
    np.testing.assert_allclose(jax.grad(lambda x: softplus(x).sum())(x), [0.5, 1.0])  # NaN by the definition
    np.testing.assert_allclose(jax.jacfwd(softplus)(x[:1]), [[0.5]])
    X = te.placeholder((3,), "float64", name="x")
    assert te.verify_override(softplus.builder(X))


def test_errors_of_regions_of_tensors() -> None:
    x = te.placeholder((3,), name="x")
    outside = te.compute((3,), lambda i: 2 * x[i], "outside")
    with te.region() as r:
        y = te.compute((3,), lambda i: x[i] ** 2, "y")
    with pytest.raises(te.DifferentiationError, match="outside is an output of a region in which it was not"):
        te.gradient(r, outside, x)(lambda d: d)
    with pytest.raises(te.DifferentiationError, match="y is an input of the region in which it is defined"):
        te.gradient(r, y, y)(lambda d: d)
    with pytest.raises(te.DifferentiationError, match="decorator"), te.gradient(r, y, x):
        pass
    te.gradient(r, y, x)(lambda d: [d, d])
    with pytest.raises(te.DifferentiationError, match="returned 2 adjoints for 1 inputs"):
        te.gradient(y, x)
