"""Sweeps over the inside of an array in a loop: written into what they keep, and their adjoints as slices of one array with zeros around its inside."""

import numpy as np
import pytest

import jaxte as te
from tests.loops.agreement import assert_nodes_agree

pytestmark = pytest.mark.usefixtures("x64")


def waves(steps, a, b):
    """Unequal edges, and a sign."""
    n = len(a)
    for _t in range(steps):
        for i in range(2, n - 1):
            b[i] = a[i - 2] - 0.5 * a[i + 1] + 0.25 * a[i]
        for i in range(1, n - 2):
            a[i] = (b[i + 2] - b[i - 1]) / 3.0


def rows(steps, u, v):
    """The inside of one axis of two, and all of the other."""
    for _t in range(steps):
        v[1:, :] -= 0.5 * (u[1:, :] - u[:-1, :])
        u[:-1, 1:] -= 0.7 * (v[1:, 1:] - v[:-1, :-1])


def slopes(steps, u, v):
    """What flows back is no multiple of one element: it keeps its conditions."""
    n = len(u)
    for _t in range(steps):
        for i in range(1, n - 1):
            v[i] = u[i] * (u[i + 1] - u[i - 1])
        for i in range(1, n - 1):
            u[i] = v[i] + 0.1 * np.sin(v[i - 1])


def corner(steps, u, v):
    """A point that is kept inside of what is computed, by a condition that is no slice."""
    for _t in range(steps):
        for i in range(1, 9):
            if i != 4:
                v[i] = u[i - 1] + u[i + 1]
        for i in range(1, 9):
            u[i] = 0.5 * v[i] + v[i - 1]


CASES = {
    "unequal edges": (waves, [3, (9,), (9,)]),
    "one axis of two": (rows, [3, (5, 6), (5, 6)]),
    "slopes": (slopes, [3, (8,), (8,)]),
    "no slice": (corner, [3, (10,), (10,)]),
}


@pytest.mark.parametrize("name", CASES)
def test_sweeps_agree_with_numpy_and_differences(name: str) -> None:
    function, shapes = CASES[name]
    rng = np.random.default_rng(1)
    assert_nodes_agree(function, [s if isinstance(s, int) else rng.normal(size=s) for s in shapes])


def test_a_sweep_is_written_into_what_it_keeps_and_read_with_zeros_around_it_on_the_way_back() -> None:
    source = te.source(te.loops(waves), 6, *np.ones((2, 40)))
    forward, backward = source.split("def backward(")
    assert forward.count("lax.dynamic_update_slice(") == 2
    assert "concatenate" not in source and "jnp.pad" not in forward
    step = backward.split("_step(")[1].split("lax.scan")[0]
    assert step.count("jnp.pad") == 2  # one for each array, whatever the places read
    assert "barrier" not in step


def test_what_is_infinite_at_an_edge_stays_there() -> None:
    own = te.loops(waves)
    b, H = te.placeholder((12,), "float64", name="b"), te.placeholder((12,), "float64", name="H")
    a = te.placeholder((12,), "float64", name="a")
    results = own.builder(2, a, b)
    db = te.gradient(results[1], [b], head=H)[0]
    head = np.zeros(12)
    head[0] = np.inf
    (found,) = te.evaluate([db], {H: head})
    np.testing.assert_array_equal(np.isfinite(found), np.arange(12) > 0)
