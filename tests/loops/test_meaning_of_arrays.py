"""What NumPy makes a view and what a copy, what a function that is called sees of arrays, what lists hold, and of which kind numbers are: the same under te.loops."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import jaxte as te

pytestmark = pytest.mark.usefixtures("x64")

V, N = np.array([1.0, -2.5, 3.25, 0.5]), np.array([3, -7, 2, 5])
A = np.array([[1.0, 2.0, -4.0], [3.0, -5.0, 7.5], [0.3, 1.1, 2.2]])
T = np.array([True, False, True, True])


# --- views and copies


def reshaped_columns(a):
    """NumPy has to copy what does not follow each other in memory."""
    u, v, w, r = a.T.reshape(9), a[:, :2].reshape(6), a.T.ravel(), a.reshape(9)
    u[3] = v[3] = w[3] = 100.0
    r[8] = 50.0
    return a, u, v, w, r


def steps(x):
    u, v, w, r = x[::2].ravel(), x[::-1].ravel(), x[::-1].reshape(2, 2), x[::2].reshape(2, 1)
    u[0] = v[0] = 9.0
    w[0, 1] = 7.0
    r[0] = 5.0
    return x, u, v, w, r


def views_of_views(a):
    v = a[1:][:, ::-1]
    w = v.T
    w[0, 1] = -1.0
    w[::2] += 1.0
    return a, v, w


def by_columns(a):
    """What is computed of columns stands column by column."""
    v = a.T * 2.0
    return v.ravel() + 1.0, v.T.ravel() * 2.0


def a_row_by_its_element(a, x):
    """What is divided by is read once, before anything is written."""
    x *= x[1]
    a -= a[0, 0]
    a[1] = a[1, 2] + a[1, 0]
    x[x > 0] *= x[0]
    return a, x


def listed_positions(x, a):
    return x[[0, 2, 2]], a[[1, 0]], a[:, [2, 0]]


def rebound(a):
    b = a
    a = a.T
    a[0] = 7.0
    return a, b


def axes_by_place(a):
    return a.sum(0), a.mean(1), a.max(0)


# --- functions that are called


def halved(x, a):
    def halve(v, c=0.5):
        v *= c

    v = x[1:3]
    halve(v)
    halve(np.flip(x), c=0.25)
    halve(a.T)
    halve(a.reshape(9)[::4])
    halve(a.T.ravel())
    for i in range(3):
        halve(a[i], 2.0)
    return x, a


def through_a_name(a):
    def turn(r):
        r[:] = 1.0 * r[::-1]

    for i in range(3):
        r = a[i]
        turn(r)
    return a


def returned_views(x):
    def tail(v):
        return v[1:]

    y = tail(x)
    x[1] = 5.0
    y[1] = 6.0
    return x, y


def turned_in_a_function(a):
    def turned(v):
        v = v.T
        v[0] = 7.0
        return v

    u = turned(a)
    u[1] = 3.0
    return a, u


def defaults(x):
    c = 2.0

    def times(v, k=c, m=x[0]):
        return v * k * m

    c = 5.0
    x[0] = 9.0
    return times(x) + c, x


def names_of_the_caller(x, y):
    """Names that a function exchanges are its own."""

    def exchange(u, v):
        u, v = v, u
        u[0] = 1.0
        return v

    w = exchange(x, y)
    return x, y, w


def rebound_in_functions(x, y):
    """A parameter that is given another value is the array of the caller until then."""

    def through_a_part(v):
        w = v[1:]
        w[0] = 7.0
        v = v * 2.0
        return v

    def twice(u, v):
        u[0] = 3.0
        v = v + 1.0
        return v

    def in_a_loop(v):
        for _ in range(3):
            v = 0.5 * v + 1.0
        return v

    a = through_a_part(x)
    b = twice(y, y)
    c = in_a_loop(x)
    return a, b, c, x, y


def as_they_were(x):
    def pair(v):
        return v[0], v * 2.0

    p = pair(x)
    t = (x[0], x[1] * 2, x + 1.0, x[1:])
    for _ in range(2):
        own = [x[0], x[1]]
        x[0] = own[1] + 1
        x[1] = own[0] * 2
    for c in [x[0], x[1]]:
        x[1] += c
    return p[0], p[1], t[0], t[1], t[2], t[3], x


def listed_arrays(x):
    y = x * 1.0
    t = [y, x]
    y = y * 2.0
    y[0] = 0.0
    t[1][1] = 4.0
    for v in [t[0], x[1:]]:
        v *= 0.5
    return t[0], x, y


# --- numbers


def quotients(x, n):
    count = 0
    product = 1
    for i in range(4):
        if x[i] > 0:
            count += 1
        product = product * 100000 % 99991
    return (
        count / 7, product, (n > 0).sum() / 7, np.full(4, 1) / 3, np.zeros(4, dtype=int) + 1 / 3, np.arange(4).sum() / 7, n.mean(), np.array([1, 2]) / 3,
        np.argmax(x) / 7, int(x[2]) / 7, n // 2 + n % -3,
    )  # fmt: skip


def truths(x, b):
    out = np.zeros(4)
    for i in range(4):
        out[i] = (i > 1) + (i > 2) - (i > 0)
    both = np.zeros(4, dtype=bool)
    both += x > 0
    b += x > 2
    b *= x < 3
    return out, both, b, (x > 0) + (x < 3), (x > 0) * 2.0


def _of(*functions: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    return {f.__name__: f for f in functions}


ARGUMENTS = {"x": V, "y": V[::-1] / 3, "a": A, "n": N, "b": T}
PROGRAMS = _of(
    reshaped_columns, steps, views_of_views, by_columns, a_row_by_its_element, listed_positions, rebound, axes_by_place, halved, through_a_name,
    returned_views, rebound_in_functions, turned_in_a_function, defaults, names_of_the_caller, as_they_were, listed_arrays, quotients, truths,
)  # fmt: skip


def arguments_of(f: Callable[..., Any]) -> list[np.ndarray]:
    return [ARGUMENTS[name].copy() for name in f.__code__.co_varnames[: f.__code__.co_argcount]]


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_those_of_numpy(name: str) -> None:
    f = PROGRAMS[name]
    found, known = te.loops(f)(*arguments_of(f)), f(*arguments_of(f))
    for own, other in zip(jax.tree.leaves(found), jax.tree.leaves(known), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-12)
        assert np.asarray(own).dtype.kind == np.asarray(other).dtype.kind
