"""What NumPy refuses, and what nobody can know, is refused under te.loops, with the line."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import jaxte as te
from tests.loops.test_meaning_of_arrays import arguments_of

pytestmark = pytest.mark.usefixtures("x64")


def float_onto_integers(n):
    n += 1.5
    return n


def halves_of_integers(n):
    n[1:] /= 2
    return n


def masked_integers(n):
    n[n > 0] *= 0.5
    return n


def minus_a_truth(x):
    return -(x > 0)


def truths_subtracted(x, b):
    b -= x > 0
    return b


def truths_counted(x):
    q = x[0] > 0
    q += x[2] > 0
    return q


def truths_multiplied(b):
    return b @ b


def greatest_of_none(x):
    q = 0.0
    for i in range(4):
        q += x[:i].max()
    return q


def position_of_none(x):
    return np.argmax(x[:0])


def order_of_calls(x):
    def changed(k):
        x[0] = x[0] * 2 + k
        return x[0]

    return changed(1.0) + changed(2.0), x


def changed_beside(x):
    def changed():
        x[0] = 1.0
        return 2.0

    x[0] += changed()
    return x


def rebound_in_the_loop(x):
    q = 0.0
    for c in x:
        q += c
        x = x * 2.0
    return q


def written_into(x):
    np.maximum(x, 0, x)
    return x


def diagonal(a):
    d = np.diagonal(a)
    d[0] = 3.0
    return a


def copy_of_what(a):
    v = a.T * 2.0
    w = v.reshape(9)
    w[0] = 5.0
    return v


def element_of_a_copy(a):
    a.T.copy()[0, 1] = 5.0
    return a


def longer_list(x):
    t = [x[0], x[1]]
    t += [x[2]]
    return t[2]


def row_behind(a):
    for i in range(3):
        r = a[i]
    r[0] = 9.0
    return a


REFUSED = {
    "n holds integers, and an operator in place cannot make them floats": [float_onto_integers, halves_of_integers, masked_integers],
    "NumPy has no - of truths": [minus_a_truth, truths_subtracted],
    "truths is 2 in Python, and True in NumPy": [truths_counted],
    "@ of truths is no count in NumPy": [truths_multiplied],
    "the max of no elements is no number": [greatest_of_none, position_of_none],
    r"changed writes x, which may be read in the same expression; .* y = changed\(": [order_of_calls, changed_beside],
    "x is what the loop runs over; use another name here": [rebound_in_the_loop],
    "an array for the result is no part of te.loops": [written_into],
    "np.diagonal and np.diag of a matrix are not written in NumPy": [diagonal],
    "whether NumPy makes w a view of v or a copy is not known here": [copy_of_what],
    "this is an element of a copy, which no name stands for": [element_of_a_copy],
    "this is nothing that can be written": [longer_list],
    "i is the counter of a loop that has ended": [row_behind],
}  # fmt: skip
_CASES: Sequence[tuple[str, Callable[..., Any]]] = [(m, f) for m, own in REFUSED.items() for f in own]


@pytest.mark.parametrize(("message", "f"), _CASES, ids=[f.__name__ for _, f in _CASES])
def test_what_numpy_refuses_or_nobody_knows_is_refused(message: str, f: Callable[..., Any]) -> None:
    with pytest.raises(te.DefinitionError, match=r"(?s)" + message + r".*\^"):
        te.loops(f)(*arguments_of(f))
