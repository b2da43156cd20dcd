"""Recurrences within the steps of others: values, derivatives of each order and mode, and that no inner loop is run twice."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.loops.agreement import assert_nodes_agree

pytestmark = pytest.mark.usefixtures("x64")


def unrolled(x: Any, w: Any) -> Any:
    h, rows = jnp.full(3, 0.5), []
    for row in x:
        for own in row:
            h = jnp.tanh(own + w @ h)
        h = h * 0.7
        rows.append(h)
    return jnp.stack(rows)


@te.function
def nested(x: Any, w: Any) -> Any:
    steps, inner, n = x.shape
    j = te.reduce_axis((0, n), "j")

    def step(h: Any, t: Any, i: Any) -> Any:
        z = te.recurrence(
            (inner, n),
            lambda z, k, i: te.tanh(x[t, k, i] + te.sum(w[i, j] * z[k - 1, j], axis=j)),
            init=lambda i: te.select(t >= 1, h[t - 1, i], 0.5),
            dtype=x.dtype,
        )
        return z[inner - 1, i] * 0.7

    return te.recurrence((steps, n), step, dtype=x.dtype)


def arguments() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=(6, 5, 3)), rng.normal(size=(3, 3))]


def test_derivatives_of_each_mode_are_those_of_the_unrolled_loop() -> None:
    args = arguments()
    found, pull = jax.vjp(nested, *args)
    expected, other = jax.vjp(unrolled, *args)
    np.testing.assert_allclose(found, expected, 1e-12)
    head = np.random.default_rng(1).normal(size=expected.shape)
    for a, b in zip(pull(head), other(head), strict=True):
        np.testing.assert_allclose(a, b, 1e-11, 1e-11)
    (a,), (b,) = ([jax.jvp(f, args, args)[1]] for f in (nested, unrolled))
    np.testing.assert_allclose(a, b, 1e-11)


def test_an_inner_loop_is_run_once_in_each_pass() -> None:
    source = te.source(nested, *arguments())
    forward, rest = source.split("def forward_with_residuals")
    both, backward = rest.split("def backward")
    assert [part.count("lax.scan(") for part in (forward, both, backward)] == [2, 2, 2]
    assert "z_last" in forward  # of the inner loop, nothing but the end is stacked


def test_the_meaning_of_nested_recurrences_is_their_value() -> None:
    x, w = arguments()
    X, W = te.placeholder(x.shape, "float64", "x"), te.placeholder(w.shape, "float64", "w")
    tensor = nested.builder(X, W)
    assert te.definitions(tensor).count("\n") == 3
    np.testing.assert_allclose(te.interpret(tensor, {X: x, W: w}), unrolled(x, w), 1e-12)


def test_another_step_of_an_inner_recurrence_is_no_state() -> None:
    x = te.placeholder((4, 5), name="x")

    def step(h: Any, t: Any, i: Any) -> Any:
        z = te.recurrence((5,), lambda z, k: x[t, k] + te.select(k >= 1, z[k - 1], h[t, 0]))
        return z[i]

    with pytest.raises(te.DefinitionError, match="a circle at one position"):
        te.recurrence((4, 5), step)


def pressure(u, p):
    """Time steps with a source, sweeps of another array, and an update that reads both."""
    for _n in range(3):
        b = u * u
        for _q in range(9):
            pn = p.copy()
            p[1:-1, 1:-1] = 0.25 * (pn[1:-1, 2:] + pn[1:-1, :-2] + pn[2:, 1:-1]) - 0.1 * b[1:-1, 1:-1]
            p[:, -1] = p[:, -2]
        un = u.copy()
        u[1:-1, 1:-1] = un[1:-1, 1:-1] * (1 - 0.1 * un[:-2, 1:-1]) - 0.1 * (p[1:-1, 2:] - p[1:-1, :-2])
    return u, p


def relaxed(A, b, x):
    """Sweeps that read what they have written, within steps that change the right side."""
    for _t in range(7):
        for i in range(5):
            s = b[i]
            for j in range(5):
                if j != i:
                    s -= A[i, j] * x[j]
            x[i] = s / A[i, i]
        b = b * 0.9 + x * 0.1
    return x, b


def fixed_points(x, W):
    h = np.zeros(3)
    for t in range(4):
        z = h.copy()
        for k in range(9):
            z = np.tanh(W @ z + x[t, k % 5])
        h = z * 0.5
    return h


def ring(h, s):
    """Both neighbours have one adjoint: the definition of the second is the first."""
    for _sweep in range(3):
        for i in range(5):
            left, right = s[(i - 1) % 5], s[(i + 1) % 5]
            s[i] = np.tanh(h[i] + 0.5 * (left + right))
    return s


def ring_kept(h, s):
    """One neighbour's adjoint is the other's and what flows into the array that keeps it."""
    seen = np.zeros((3, 5))
    for sweep in range(3):
        for i in range(5):
            left, right = s[(i - 1) % 5], s[(i + 1) % 5]
            seen[sweep, i] = left
            s[i] = np.tanh(h[i] + 0.5 * (left + right))
    return s, seen


@pytest.mark.parametrize("name", ["pressure", "relaxed", "fixed_points", "ring", "ring_kept"])
def test_loops_in_loops_agree_with_numpy_and_with_differences(name: str) -> None:
    rng = np.random.default_rng(0)
    fn, shapes = {
        "pressure": (pressure, [(6, 6), (6, 6)]),
        "relaxed": (relaxed, [(5, 5), (5,), (5,)]),
        "fixed_points": (fixed_points, [(4, 5, 3), (3, 3)]),
        "ring": (ring, [(5,), (5,)]),
        "ring_kept": (ring_kept, [(5,), (5,)]),
    }[name]
    args = [rng.normal(size=s) for s in shapes]
    if name == "relaxed":
        args[0] += 6 * np.eye(5)
    assert_nodes_agree(fn, args)


def test_states_with_one_adjoint_are_one_state_of_the_backward_loop() -> None:
    backward = te.source(te.loops(ring), *np.ones((2, 5))).split("def backward(")[1]
    assert "dright" in backward and "dleft" not in backward


def test_time_steps_with_sweeps_are_a_loop_in_a_loop() -> None:
    source = te.source(te.loops(pressure), *(np.ones((30, 30), "float32") for _ in range(2)))
    backward = source.split("def backward")[1]
    assert backward.count("lax.scan(") == 2 and ".at[" not in backward
