"""Recurrences that users know: values and gradients beside ``jax.grad`` of an independent ``lax.scan``, and what was emitted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.recurrence_cases import CASES


@pytest.fixture(autouse=True)
def _double():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def _pulled(f, args):
    value, pull = jax.vjp(f, *args)
    heads = jax.tree.map(lambda v: jnp.cos(jnp.arange(float(v.size))).reshape(v.shape), value)
    return jax.tree.leaves(value), pull(heads)


def _scalar(f):
    return lambda *args: sum(jnp.sin(v).sum() for v in jax.tree.leaves(f(*args)))


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name):
    """Of values beside the meaning of the language, too; the emitted code has one loop forward, one backward and no scatter."""
    case = CASES[name]
    args, fn = case.arguments(), te.function(case.build)
    own, other = jax.jit(lambda *a: (_pulled(fn, a), _pulled(case.reference, a)))(*args)
    for a, b in zip(jax.tree.leaves(own), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)
    forward, backward = te.source(fn, *args).split("def backward(")
    kept = forward.split("def forward_with_residuals(")[-1]
    loops = (2, 3) if name == "thomas" else (1, 1)  # it goes down and up; what is carried down has two parts
    assert (kept.count("lax.scan("), backward.count("lax.scan(")) == loops
    assert ".at[" not in forward + backward
    inputs = [te.placeholder(a.shape, "float64", f"x{n}") for n, a in enumerate(args)]
    built = case.build(*inputs)
    meant = te.interpret(
        list(built) if isinstance(built, tuple) else [built], dict(zip(inputs, args, strict=True))
    )
    for a, b in zip(own[0], meant, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


def test_gradients_of_weights_are_one_product_after_the_loop():
    def build(x, U, W, h0):
        j, k = te.reduce_axis((0, 30), "j"), te.reduce_axis((0, 20), "k")

        def cell(h, t, i):
            return te.tanh(te.sum(U[i, k] * x[t, k], axis=k) + te.sum(W[i, j] * h[t - 1, j], axis=j))

        return te.recurrence((7, 30), cell, init=h0)

    fn = te.function(build)
    args = [np.ones(s) for s in ((7, 20), (30, 20), (30, 30), (30,))]
    own = fn.custom_vjp_for(*args)
    program = jax.make_jaxpr(jax.grad(lambda *a: own(*a).sum(), (0, 1, 2, 3)))(*args)
    assert list(_products(program.jaxpr, within=True)) == [1, 1]  # in a step forward, and in one backward
    assert (
        sum(_products(program.jaxpr, within=False)) == 5
    )  # U x, W h, dU, dW and dx, of all positions at once


def _products(jaxpr, within):
    """How many products each loop has, or each part that is in none."""
    own = 0
    for eqn in jaxpr.eqns:
        own += eqn.primitive.name == "dot_general"
        inner = [p.jaxpr if hasattr(p, "jaxpr") else p for p in eqn.params.values()]
        for part in (p for p in inner if hasattr(p, "eqns")):
            if eqn.primitive.name == "scan":
                if within:
                    yield sum(_products(part, False))
            else:
                yield from _products(part, within)
    if not within:
        yield own


def test_second_derivatives():
    """The inputs of the adjoint's recurrence are computed from each other: nothing flows through one into another twice."""
    case = CASES["hmm"]
    args, fn = case.arguments(), te.function(case.build)

    def second(f):
        return jax.grad(lambda *a: (jax.grad(_scalar(f), 1)(*a) ** 2).sum(), 0)

    own, other = jax.jit(lambda *a: (second(fn)(*a), second(case.reference)(*a)))(*args)
    np.testing.assert_allclose(own, other, rtol=1e-10, atol=1e-11)


def test_forward_mode_is_a_recurrence_too():
    case = CASES["rnn"]
    args, fn = case.arguments(), te.function(case.build)

    def both(f, *a):
        return jax.jvp(f, a, a)[1], jax.jvp(jax.grad(_scalar(f), 2), a, a)[1]

    own, other = jax.jit(lambda *a: (both(fn, *a), both(case.reference, *a)))(*args)
    for a, b in zip(own, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-11)


def test_a_batch_of_recurrences_is_one():
    case = CASES["leapfrog"]
    args, fn = case.arguments(), te.function(case.build)
    many = np.stack([args[0], 2 * args[0]])

    def both(f, q):
        loss = jax.vmap(_scalar(f), (0, None, None))
        return jax.grad(lambda *a: loss(*a).sum(), (0, 2))(q, *args[1:])

    own, other = jax.jit(lambda q: (both(fn, q), both(case.reference, q)))(many)
    for a, b in zip(own, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


def test_the_axis_and_the_order_are_free():
    def build(x, a):
        return te.recurrence(
            (3, 4),
            lambda h, b, t: a[b] * h[b, t + 2] + x[b, t],
            init=0.5,
            axis=1,
            reverse=True,
            dtype="float64",
        )

    def reference(x, a):
        found = {4: 0.5 * jnp.ones(3), 5: 0.5 * jnp.ones(3)}
        for t in reversed(range(4)):
            found[t] = a * found[t + 2] + x[:, t]
        return jnp.stack([found[t] for t in range(4)], axis=1)

    fn, args = te.function(build), (np.arange(12.0).reshape(3, 4), np.array([0.5, -1.0, 2.0]))
    own, other = jax.jit(lambda *a: (_pulled(fn, a), _pulled(reference, a)))(*args)
    for a, b in zip(jax.tree.leaves(own), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_sizes_may_be_symbols():
    T, n = te.var("T"), te.var("n")
    x, W = te.placeholder((T, n), "float64", "x"), te.placeholder((n, n), "float64", "W")
    j = te.reduce_axis((0, n), "j")
    h = te.recurrence(
        (T, n),
        lambda h, t, i: te.tanh(x[t, i] + te.sum(W[i, j] * h[t - 1, j], axis=j)),
        init=0.0,
        dtype="float64",
    )
    fn = te.function([x, W], h)

    def reference(x, W):
        def step(h, row):
            h = jnp.tanh(row + W @ h)
            return h, h

        return jax.lax.scan(step, jnp.zeros(3), x)[1]

    args = np.linspace(-1, 1, 12).reshape(4, 3), np.linspace(-1, 1, 9).reshape(3, 3)
    own, other = jax.jit(lambda *a: (_pulled(fn, a), _pulled(reference, a)))(*args)
    for a, b in zip(jax.tree.leaves(own), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11)


def test_reads_between_states_look_back_under_their_own_conditions():
    """They look back further than the initial values, and leave out what is before these."""

    def build(x):
        def cell(h, t):
            far = te.compute((5,), lambda s: te.select(s >= 2, h[s - 2] * x[s], 0.5), "far")
            return h[t - 1] * 0.5 + far[t]

        return te.recurrence((5,), cell, init=3.0, dtype="float64")

    def reference(x):
        found = [3.0]
        for t in range(5):
            found.append(found[-1] * 0.5 + (found[t - 1] * x[t] if t >= 2 else 0.5))
        return jnp.stack(found[1:])

    x = np.linspace(-1, 1, 5)
    own, other = jax.jit(lambda x: (_pulled(te.function(build), [x]), _pulled(reference, [x])))(x)
    for a, b in zip(jax.tree.leaves(own), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_states_of_other_shapes_and_what_nothing_flows_into():
    """A filter whose covariance has an axis more; of one result alone the other state's adjoint is nothing."""

    def build(z, A):
        j, k, m = (te.reduce_axis((0, 2), name) for name in "jkm")
        return te.recurrence(
            [(4, 2), (4, 2, 2)],
            [
                lambda x, P, t, i: te.sum(A[i, j] * x[t - 1, j], axis=j) + P[t, i, 0] * (z[t] - x[t - 1, 0]),
                lambda x, P, t, a, c: (
                    te.sum(A[a, k] * P[t - 1, k, m] * A[c, m], axis=[k, m]) / (1 + P[t - 1, 0, 0])
                ),
            ],
            init=(0.0, 1.0),
            dtype="float64",
        )

    def reference(z, A):
        x, P, found = jnp.zeros(2), jnp.ones((2, 2)), []
        for t in range(4):
            P, before = A @ P @ A.T / (1 + P[0, 0]), x
            x = A @ before + P[:, 0] * (z[t] - before[0])
            found.append((x, P))
        return tuple(jnp.stack(v) for v in zip(*found, strict=True))

    fn, args = te.function(build), (np.linspace(-1, 1, 4), np.array([[0.5, 0.2], [-0.3, 0.8]]))

    def gradients(f, *a):
        return [jax.grad(lambda *b, n=n: (f(*b)[n] ** 2).sum(), (0, 1))(*a) for n in (0, 1)]

    own, other = jax.jit(lambda *a: (gradients(fn, *a), gradients(reference, *a)))(*args)
    for a, b in zip(jax.tree.leaves(own), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


def test_what_is_kept_can_be_chosen():
    case = CASES["biquad"]
    args, fn = case.arguments(), te.function(case.build, save="nothing")
    own, other = jax.jit(lambda *a: (_pulled(fn, a)[1], _pulled(case.reference, a)[1]))(*args)
    for a, b in zip(own, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
