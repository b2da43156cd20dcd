"""Positions that are data or states of the loop, of arrays that the loop itself writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import jaxte as te
from tests.loops.agreement import assert_nodes_agree

pytestmark = pytest.mark.usefixtures("x64")


def delay_line(x, gain):
    line, y, p = np.zeros(4), np.zeros(11), 0
    for n in range(11):
        out = line[p]
        line[p] = x[n] + gain[0] * out
        y[n] = out + x[n]
        p = (p + 1) % 4
    return y


def running_means(x, label):
    mean, count = np.zeros((3, 2)), np.zeros(3)
    for i in range(6):
        k = label[i]
        count[k] += 1
        for d in range(2):
            mean[k, d] += (x[i, d] - mean[k, d]) / count[k]
    return mean


def stack(x, pushes):
    held, top = np.zeros(5), 0
    for i in range(7):
        if pushes[i] == 1:
            held[top] = x[i]
            top += 1
        else:
            top -= 1
            held[0] = held[0] + held[top] * x[i]
    return held[0]


def pivoted(a, b):
    for k in range(2):
        p = k
        for i in range(k + 1, 3):
            if abs(a[i, k]) > abs(a[p, k]):
                p = i
        for j in range(3):
            t = a[k, j]
            a[k, j] = a[p, j]
            a[p, j] = t
        t = b[k]
        b[k] = b[p]
        b[p] = t
        for i in range(k + 1, 3):
            f = a[i, k] / a[k, k]
            for j in range(k, 3):
                a[i, j] -= f * a[k, j]
            b[i] -= f * b[k]
    return a, b


def knapsack(v, w):
    best = np.zeros(9)
    for i in range(len(w)):
        for c in range(8, -1, -1):
            if w[i] <= c:
                best[c] = max(best[c], best[c - w[i]] + v[i])
    return best


def with_repetition(v, w):
    best = np.zeros(9)
    for i in range(len(w)):
        for c in range(9):
            if w[i] <= c:
                best[c] = np.logaddexp(best[c], best[c - w[i]] + v[i])
    return best


def coins(p, coin):
    ways = np.zeros(10)
    ways[0] = 1.0
    for i in range(3):
        for c in range(10):
            if c >= coin[i]:
                ways[c] += p[i] * ways[c - coin[i]]
    return ways


def tree(parent, x):
    total = x.copy()
    for i in range(1, 7):
        total[i] = np.tanh(total[parent[i]]) + x[i]
    return total


def crossing(x, k, m):
    y = x * 0.5
    for i in range(6):
        x[i] = np.sin(y[k[i]]) + x[i]
        y[5 - i] = x[m[i]] * 0.3 + y[5 - i]
    return x, y


def hashed(x, h):
    """Data that is larger than any position."""
    y = np.zeros(6)
    for i in range(6):
        y[i] = x[i]
        if h[i] >= 2**31:
            y[i] += 0.5 * y[h[i] - 2**31] ** 2
    return y


CASES: dict[str, tuple[Callable[..., Any], Callable[[np.random.Generator], list[np.ndarray]]]] = {
    "delay line": (delay_line, lambda rng: [rng.normal(size=11), rng.normal(size=1)]),
    "running means": (running_means, lambda rng: [rng.normal(size=(6, 2)), np.array([0, 2, 1, 0, 0, 2])]),
    "stack": (stack, lambda rng: [rng.normal(size=7), np.array([1, 1, 1, 0, 1, 0, 0])]),
    "pivots": (pivoted, lambda rng: [rng.normal(size=(3, 3)), rng.normal(size=3)]),
    "knapsack": (knapsack, lambda rng: [rng.uniform(0.5, 1.5, size=5), np.array([2, 0, 1, 9, 2])]),
    "repetition": (with_repetition, lambda rng: [rng.uniform(size=4), np.array([3, 0, 5, 4])]),
    "coins": (coins, lambda rng: [rng.uniform(size=3), np.array([1, 2, 5])]),
    "tree": (tree, lambda rng: [np.array([0, 0, 3, 1, 1, 5, 5]), rng.normal(size=7)]),
    "crossing": (crossing, lambda rng: [rng.normal(size=6), rng.permutation(6), rng.integers(0, 6, 6)]),
    "hashed": (hashed, lambda rng: [rng.normal(size=6), 2**31 + np.array([0, 0, -9, 1, 5, 4])]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_read_at_a_state_has_the_clock_of_what_was_written(name: str, rng: np.random.Generator) -> None:
    """The read is another one once the position within it is a tensor: such programs ended with an error of an empty minimum."""
    fn, arguments = CASES[name]
    assert_nodes_agree(fn, arguments(rng))


def test_any_number_of_objects_is_packed() -> None:
    """With a symbol for it, exported once."""

    def plain(v, w):
        best, c = jnp.zeros(9), jnp.arange(9)
        for i in range(len(v)):
            best = jnp.where(w[i] <= c, jnp.maximum(best, best[jnp.maximum(c - w[i], 0)] + v[i]), best)
        return best

    def gradient(f):
        return jax.jit(jax.grad(lambda v, w: (f(v, w) ** 2).sum()))

    (size,) = export.symbolic_shape("m")
    shapes = [jax.ShapeDtypeStruct((size,), dtype) for dtype in ("float64", "int64")]
    called = export.export(gradient(te.loops(knapsack)))(*shapes).call
    for n in (3, 5):
        args = np.random.default_rng(n).uniform(0.5, 1.5, size=n), np.array([2, 3, 1, 9, 2])[:n]
        np.testing.assert_allclose(called(*args), gradient(plain)(*args), 1e-12)
