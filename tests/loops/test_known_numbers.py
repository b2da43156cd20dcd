"""Integers that statements change and bounds hang on, and numbers that are no arguments, under ``te.loops``."""

from __future__ import annotations

import numpy as np
import pytest

import jaxte as te
from tests.loops.agreement import assert_nodes_agree

pytestmark = pytest.mark.usefixtures("x64")

THIRDS = np.array([1 / 3, 0.1, 0.7])


def wavelet(x):
    n, out = len(x), x.copy()
    held = np.zeros(len(x))
    for _level in range(3):
        half = n // 2
        for i in range(half):
            held[i] = (out[2 * i] + out[2 * i + 1]) * 0.5
            held[half + i] = (out[2 * i] - out[2 * i + 1]) * 0.5
        for i in range(n):
            out[i] = held[i]
        n = half
    return out


def strides(x):
    s = 1
    for _level in range(4):
        for i in range(0, 16 - s, 2 * s):
            x[i] = x[i] + x[i + s] * 1.5
        s *= 2
    return x


def triangle(x):
    n, at, total = 4, 0, 0.0
    for i in range(4):
        for j in range(n):
            total += x[at + j] * (i + 1) ** 2
        at += n
        n -= 1
    return total


def slices(x):
    n = len(x)
    for _level in range(3):
        half = n // 2
        x[:half] = x[:half] + 0.5 * x[half:n]
        n //= 2
    return x


def shorter(x):
    n = len(x)
    for _level in range(2):
        y = np.zeros(n // 2)
        for i in range(n // 2):
            y[i] = x[2 * i] * x[2 * i + 1]
        n //= 2
        x = y
    return x


def counted_within(x):
    n = 8
    for _t in range(3):
        while n > 1:
            n //= 2
            x = x * (1.0 + n)
    return x


def filtered(x):
    y = np.zeros(len(x))
    for i in range(len(x)):
        for k in range(3):
            if i >= k:
                y[i] += THIRDS[k] * x[i - k]
    return y


def stages(y):
    c, b = [0.0, 0.5, 0.5, 1.0], [1 / 6, 1 / 3, 1 / 3, 1 / 6]
    for _t in range(3):
        total, k = np.zeros(len(y)), np.zeros(len(y))
        for s in range(4):
            k[:] = np.cos(y + c[s] * 0.1 * k)
            total += b[s] * k
        y += 0.1 * total
    return y


@pytest.mark.parametrize(
    "fn",
    [wavelet, strides, triangle, slices, shorter, counted_within, filtered, stages],
    ids=lambda f: f.__name__,
)
def test_programs_agree_with_numpy_and_with_differences(fn) -> None:
    assert_nodes_agree(fn, [np.random.default_rng(3).normal(size=16)])


@pytest.mark.parametrize("fn", [filtered, stages], ids=lambda f: f.__name__)
def test_numbers_beside_singles_are_singles(fn) -> None:
    assert te.loops(fn)(np.ones(16, "float32")).dtype == np.float32


def counts_data(x):
    n = 0
    y = np.zeros(16)
    for i in range(16):
        if x[i] > 0:
            n += 1
    for i in range(n):
        y[i] = x[i]
    return y


def counts_long(x):
    n, total = 0, 0.0
    for i in range(100):
        for j in range(n):
            total += x[(i + j) % 16]
        n += 2
    return total


@pytest.mark.parametrize("fn", [counts_data, counts_long], ids=lambda f: f.__name__)
def test_numbers_that_are_data_are_no_bounds(fn) -> None:
    with pytest.raises(te.DefinitionError) as caught:
        te.loops(fn)(np.ones(16))
    first, line, caret = str(caught.value).split("\n")[:3]
    assert "the bound of a loop depends on data: n changes" in first and "range(min(n, 100))" in first
    assert line[caret.index("^") :].startswith("n +=")
