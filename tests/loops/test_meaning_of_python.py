"""What Python and NumPy mean by a text is what it means under te.loops: names of arrays that are made anew, bounds that change, views, shapes."""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import pytest

import jaxte as te

pytestmark = pytest.mark.usefixtures("x64")

V, W = np.array([1.0, 10.0, 100.0, 1000.0]), np.array([2.0, 3.0, 5.0])
A, B = np.array([[1.0, 2.0, 4.0], [3.0, 5.0, 7.5]]), np.array([[0.5, 2.0, -1.0], [1.0, 3.0, 2.0]])


def made_anew(x):
    """What y means is not cleared where z is made again."""
    y = x.copy()
    h = 1
    while h < 8:
        z = np.zeros(4)
        for i in range(4):
            z[i] = y[3 - i] * h
        y = z
        h *= 2
    return y


def reversed_anew(x):
    y = x.copy()
    h = 1
    while h < 4:
        z = y[::-1] * h
        y = z
        h *= 2
    return y


def powers(x):
    y, u = x.copy(), x.copy()
    for s in range(3):
        m = 2**s
        z, q = np.zeros(4), np.ones(4)
        for i in range(4):
            z[i] = y[(i + m) % 4] + u[i]
            q[i] += y[i]
        y = z
        u = q
    return y + 2 * u


def triangle(x):
    m = 4
    before = x.copy()
    while m > 1:
        m -= 1
        now = np.zeros(4)
        for i in range(m):
            now[i] = before[i] + before[i + 1]
        before = now
    return before


def from_both_ends(x):
    lo = 0
    hi = len(x) - 1
    while lo < hi:
        x[lo], x[hi] = x[hi], x[lo]
        lo += 1
        hi -= 1
    return x


def bound_set_within(x):
    c = 0.0
    i = 0
    n = 2
    while i < n:
        c += x[i]
        n = 3
        i += 1
    return c


def begun_once(x):
    """The second time, there is nothing left to count."""
    c = 0.0
    i = 0
    for t in range(3):
        while i < 2:
            c += x[i] * (t + 1)
            i += 1
    return c


def begun_each_time(x):
    c = 0.0
    for t in range(3):
        i = 0
        while i < 2:
            c += x[i] * (t + 1)
            i += 1
    return c


def first_changed_behind(x):
    c = 0.0
    a = 1
    i = a
    a = 3
    while i < 4:
        c += x[i]
        i += 1
    return c + a


def exchanged_views(a):
    a[:, 0], a[:, 1] = a[:, 1], a[:, 0]
    return a


def exchanged_copies(a):
    a[0], a[1] = a[1].copy(), a[0].copy()
    return a


def views_of_rows(a):
    first, second = a[0], a[1]
    a[0, 0] = 50.0
    return first[0] + second[0], a


def several_names(x):
    a = b = 0.0
    c = d = x.copy()
    for i in range(3):
        a += x[i]
        b += 2 * x[i]
    c[0] = 7.0
    return a, b, d


def position_and_pairs(x):
    out = np.zeros(4)
    s = 0.0
    for i, (a, b) in enumerate(zip(x, x[1:])):  # noqa: B905, RUF007
        out[i] = a * b + s
        s += a
    return out


def products(a, b):
    return np.inner(a, b), np.inner(a[0], b), np.outer(a, b), np.vdot(a, b)


def axes_from_behind(a):
    return (
        np.sum(a, axis=-1) + np.mean(a, axis=1),
        np.concatenate([a, a], axis=-1),
        np.flip(a, -1),
        np.argmax(a, axis=-1),
    )


def longer_axes_of_one(y, x):
    y[:, 0] = x
    return y


def view_of_another_name(a):
    b = a
    b = b.T
    b[0] = b[1]
    return a


def copies_of_views(x):
    y = x
    h = 1
    while h < 8:
        y = y.copy()
        y = y[::-1]
        h *= 2
    return y


def exchanged_with_a_view(x, y):
    x, y = x.copy(), y.copy()
    u = x
    x = u.reshape(2, 2).ravel()
    y, x = x, y
    return x, y


def names_of_views(x):
    y = x[:]
    x, y = y, x
    u = y
    v = x[1:3]
    w = v
    w[0] = 7.0
    x[3] = x[1] * 2
    return x, y, u, v


def values_of_and(x):
    return x[0] and x[1], x[0] * 0 and x[1], x[0] * 0 or x[2], x[0] > 5 and x[1] > 5, 0 or x[3]


def slices_that_leave(x):
    return x[-10:2], x[1:10], x[3:1].sum(), x[6:].sum(), x[10:0:-2], x[:-10:-1]


def numbers_of_python(x):
    return complex(1, 2) * x, complex(x[0], x[1]), int(x[1] / 3), bool(x[0])


PROGRAMS: dict[str, tuple[Callable[..., Any], Sequence[np.ndarray]]] = {
    f.__name__: (f, args)
    for f, args in [
        (made_anew, [V]),
        (reversed_anew, [V]),
        (powers, [V]),
        (triangle, [V]),
        (from_both_ends, [V]),
        (bound_set_within, [V]),
        (begun_once, [V]),
        (begun_each_time, [V]),
        (first_changed_behind, [V]),
        (exchanged_views, [A]),
        (exchanged_copies, [A]),
        (views_of_rows, [A]),
        (several_names, [V]),
        (position_and_pairs, [V]),
        (products, [A, B]),
        (axes_from_behind, [A]),
        (view_of_another_name, [A]),
        (copies_of_views, [V]),
        (exchanged_with_a_view, [V, V[::-1] / 3]),
        (names_of_views, [V]),
        (values_of_and, [V]),
        (slices_that_leave, [V]),
        (numbers_of_python, [V]),
        (longer_axes_of_one, [A, np.array([[7.0, 8.0]])]),
    ]
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_those_of_python(name: str) -> None:
    f, args = PROGRAMS[name]
    found, known = te.loops(f)(*args), f(*copy.deepcopy(list(args)))
    for own, other in zip(jax.tree.leaves(found), jax.tree.leaves(known), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-12)


@pytest.mark.parametrize(
    "name", ["made_anew", "powers", "triangle", "from_both_ends", "exchanged_views", "position_and_pairs"]
)
def test_gradients_are_differences(name: str) -> None:
    f, (x, *_) = PROGRAMS[name]
    weights = np.random.default_rng(0).normal(size=f(x.copy()).shape)
    found = jax.grad(lambda x: (te.loops(f)(x) * weights).sum())(x)
    for at in np.ndindex(x.shape):
        step = np.zeros(x.shape)
        step[at] = 1e-3
        known = ((f(x + step) - f(x - step)) * weights).sum() / 2e-3
        np.testing.assert_allclose(found[at], known, rtol=1e-6, atol=1e-6)


def put(y, x):
    y[:] = x
    return y


def put_a_row(y, x):
    y[1] = x
    return y


def added(y, x):
    y += x
    return y


def product(a, x):
    return a @ x


def side_by_side(a, b):
    return np.concatenate([a, b], axis=1)


def summed(a, b):
    return np.sum(a, axis=2) + np.sum(b)


def counter_again(x):
    c = 0.0
    for i in range(3):
        for i in range(2):
            c += x[i]
        c += x[i]
    return c


def list_again(x):
    c = 0.0
    for i in [1, 2]:
        for i in range(2):
            c += x[i]
    return c


REFUSED: dict[str, tuple[Callable[..., Any], Sequence[np.ndarray], str]] = {
    "longer": (put, [W, V], r"blocks of 3 and of 4 elements do not go together; what is written"),
    "shorter": (put, [V, W], r"blocks of 4 and of 3 elements"),
    "a longer row": (put_a_row, [A, V], r"blocks of 3 and of 4 elements"),
    "more axes": (put, [W, A], r"blocks of 1 and of 2 elements"),
    "added": (added, [W, V], r"blocks of 3 and of 4 elements"),
    "a product": (product, [A, V], r"blocks of 3 and of 4 elements"),
    "side by side": (side_by_side, [A, np.ones((4, 3))], r"blocks of 2 and of 4 elements"),
    "no such axis": (summed, [A, W], r"axis 2 of an array of 2 axes; give one from -2 to 1"),
    "a counter again": (counter_again, [V], r"i is the counter of a loop around this one"),
    "a listed counter again": (list_again, [V], r"i is the counter of a loop around this one"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_numpy_refuses_is_refused(name: str) -> None:
    f, args, message = REFUSED[name]
    with pytest.raises(te.DefinitionError, match=message):
        te.loops(f)(*args)


def with_a_class(x):
    class Own:
        pass

    return x


def with_a_walrus(x):
    y = (z := x) + 1.0
    return y + z


def with_else(x):
    c = 0.0
    for i in range(3):
        c += x[i]
    else:
        c += 1.0
    return c


def counter_behind(x):
    for i in range(3):
        x[i] = 0.0
    return x[i]


MESSAGES: dict[str, tuple[Callable[..., Any], str]] = {
    "a class": (with_a_class, "a class is no statement of te.loops"),
    "a walrus": (with_a_walrus, ":= is no part of te.loops"),
    "else": (with_else, r"(?s)write an if behind it\n +c \+= 1.0"),
    "a counter behind": (counter_behind, "i is the counter of a loop that has ended; keep its last value"),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_messages_speak_of_what_is_written(name: str) -> None:
    f, message = MESSAGES[name]
    with pytest.raises(te.DefinitionError, match=message):
        te.loops(f)(V)
