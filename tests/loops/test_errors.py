"""What is refused, with the line, a caret, the iteration and the remedy."""

from __future__ import annotations

import numpy as np
import pytest

import jaxte as te
from jaxte.sets import accesses

pytestmark = pytest.mark.usefixtures("x64")


def out_of_range(x):
    y = np.zeros(4)
    for i in range(4):
        y[i] = x[i + 1]
    return y


def writes_outside(x):
    y = np.zeros(3)
    for i in range(4):
        y[i] = x[i]
    return y


def never_written(x):
    y = np.empty(4)
    for i in range(1, 4):
        y[i] = x[i] + y[i - 1]
    return y


def returned_unwritten(x):
    y = np.empty(4)
    for i in range(3):
        y[i] = x[i]
    return y


def only_where(x):
    y = np.empty(4)
    for i in range(4):
        if x[i] > 0:
            y[i] = x[i]
    return y


def one_branch(x):
    s = 0.0
    for i in range(4):
        if x[i] > 0:
            t = x[i]
        else:
            s += t
            t = 1.0
    return s


def argument_lost(x):
    s = 0.0
    for i in range(4):
        x[i] = x[i] * 2
        s += x[i]
    return s


def endless(x):
    s = 0.0
    while s < 3:
        s += x[0]
    return s


def another_array(x):
    y = np.zeros(4)
    for _i in range(2):
        y = x
    return y


def recursive(x):
    return recursion(x)


recursion = te.loops(recursive)


def unknown(x):
    return np.linalg.det(x)


def early(x):
    for i in range(4):
        if x[i] > 0:
            return x[i]
    return x[0]


def data_bound(x, n):
    s = 0.0
    for i in range(n[0]):
        s += x[i]
    return s


CASES = [
    (out_of_range, te.RangeError, "reads x[4] at i = 3, but axis 0 of x has 4", "x[i + 1]"),
    (writes_outside, te.RangeError, "writes y[3] at i = 3, but axis 0 of y has 3", "y[i]"),
    (never_written, te.DefinitionError, "y[0] is read at i = 1 and was never written", "y[i - 1]"),
    (returned_unwritten, te.DefinitionError, "y[3] is returned and was never written", "y[i]"),
    (only_where, te.DefinitionError, "y[0] is written at i = 0 only where a condition on data holds", "y[i]"),
    (one_branch, te.DefinitionError, "", "t"),
    (argument_lost, te.DefinitionError, "return x too", "return s"),
    (endless, te.DefinitionError, "for t in range(most): if not (...): break", "while s < 3:"),
    (another_array, te.DefinitionError, "y stands for another object within a loop", "y"),
    (recursive, te.DefinitionError, "calls itself", "recursion(x)"),
    (unknown, te.DefinitionError, "no function that te.loops knows", "np.linalg.det"),
    (early, te.DefinitionError, "return within a loop", "return x[i]"),
]  # fmt: skip


@pytest.mark.parametrize(("fn", "kind", "message", "marked"), CASES, ids=lambda c: getattr(c, "__name__", ""))
def test_errors_say_what_where_and_how(fn, kind, message, marked) -> None:
    own = recursion if fn is recursive else te.loops(fn)
    with pytest.raises(kind) as caught:
        own(np.ones(4))
    said = str(caught.value)
    first, line, caret = said.split("\n")
    assert message in first and first.startswith(f"{fn.__name__}: ")
    under = line[caret.index("^") : caret.index("^") + caret.count("^")]
    assert under == marked


def test_a_bound_that_is_data_is_refused() -> None:
    with pytest.raises(te.DefinitionError, match="depends on data"):
        te.loops(data_bound)(np.ones(4), np.array([2]))


def test_dataflow_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    @te.loops
    def sums(x):
        s = np.zeros(len(x))
        for i in range(1, len(x)):
            s[i] = s[i - 1] + x[i]
        return s

    monkeypatch.setattr(accesses, "FLOW", 100)
    with pytest.raises(te.DefinitionError, match="sums: which write each of its 2 reads sees takes too long"):
        sums(np.ones(5))


def test_what_wraps_around_is_named() -> None:
    def wrapped(x):
        for i in range(4):
            x[i] = 0.5 * x[i - 1]
        return x

    with pytest.raises(te.RangeError, match="write % 4 behind it"):
        te.loops(wrapped)(np.ones(4))


def test_a_sweep_in_place_that_reads_at_data_is_told_to_copy() -> None:
    """Neither of its reads is of a sweep before, and no loop goes by one of the counters alone."""

    def crossed(a, k):
        for i in range(4):
            for j in range(4):
                for m in range(4):
                    a[i, j] = max(a[i, j], a[j, k[m]] + a[k[3 - m], i])
        return a

    with pytest.raises(te.DefinitionError, match=r"^crossed: .*old = a\.copy\(\), and read old"):
        te.loops(crossed)(np.ones((4, 4)), np.array([2, 0, 3, 1]))


def turned(a):
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            for k in range(n):
                a[i, j] = max(a[i, j], a[j, k] + a[n - 1 - k, i])
    return a


def test_an_order_that_would_take_millions_of_steps_is_refused() -> None:
    with pytest.raises(te.DefinitionError, match="call it in a loop of JAX"):
        te.loops(turned).builder(te.placeholder((100, 100), name="a"))
