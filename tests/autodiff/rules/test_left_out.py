"""Which definitions leave elements of what they read out."""

from __future__ import annotations

import numpy as np
import pytest

import jaxte as te
from jaxte.autodiff.rules import readers
from jaxte.autodiff.rules.readers import leaves_out


def read_by_hand(length, taps, stride, dilation, offset, size):
    i, k = np.ogrid[:length, :taps]
    return set(range(size)) <= set((stride * i + dilation * k + offset).ravel().tolist())


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("taps", [1, 2, 3])
def test_windows(stride, dilation, taps):
    size = stride * 4 + dilation * (taps - 1) + 1
    expected = not read_by_hand(5, taps, stride, dilation, 0, size)
    k = te.reduce_axis((0, taps), "k")
    x = te.placeholder((size,), name="x")
    y = te.compute((5,), lambda i: te.sum(x[stride * i + dilation * k], over=k))
    assert leaves_out(y) == expected


def test_nothing_is_solved_for_convolutions(monkeypatch):
    def asked(*args):
        raise AssertionError

    monkeypatch.setattr(readers, "IntegerSet", asked)
    x, w = te.placeholder((2, 9, 9, 3), name="x"), te.placeholder((3, 3, 3, 4), name="w")
    p, q, c = (te.reduce_axis((0, 3), name) for name in "pqc")
    y = te.compute(
        (2, 7, 7, 4), lambda b, i, j, o: te.sum(x[b, i + p, j + q, c] * w[p, q, c, o], over=(p, q, c))
    )
    assert not leaves_out(y)


def test_backwards_and_one_axis_twice():
    x = te.placeholder((5,), name="x")
    assert not leaves_out(te.compute((5,), lambda i: x[4 - i]))
    z = te.placeholder((5, 5), name="z")
    assert leaves_out(te.compute((5,), lambda i: z[i, i]))
    k = te.reduce_axis((0, 5), "k")
    assert leaves_out(te.compute((5,), lambda i: te.sum(x[k], over=k, where=k > i)))
