"""Ranges that follow from the reads: of ``te.axis`` in reductions, and of bodies without a shape."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jaxte as te

x = te.placeholder((10,), name="x")
w = te.placeholder((3,), name="w")
A = te.placeholder((4, 6), name="A")
I = te.placeholder((5,), "int32", name="I")  # noqa: E741
n = te.var("n")
X = te.placeholder((n,), name="X")
k = te.axis("k")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (lambda i: te.sum(x[i + k] * w[k], over=k), "(i < 8, k < 3)"),
        (lambda i: te.sum(x[2 * i + 3 * k] * w[k], over=k), "(i < 2, k < 3)"),
        (lambda i: te.sum(X[i + k] * w[k], over=k), "(i < n - 2, k < 3)"),
        (lambda i: te.sum(X[2 * i + k] * w[k], over=k), "(i < n - n // 2 - 1, k < 3)"),
        (lambda i: te.argmax(x[i + 2 * k] * w[k], over=k), "(i < 6, k < 3)"),
        (lambda i, j: x[i] - w[j], "(i < 10, j < 3)"),
        (lambda i: x[i + 1] - x[i], "(i < 9)"),
        (lambda i: x[9 - i], "(i < 10)"),
        (lambda i, c: te.stack([w[i], 2 * w[i], 1.0], axis=c), "(i < 3, c < 3)"),
        (lambda i: te.sum(te.stack([A[i, 0], 1.0], axis=k), over=k), "(i < 4, k < 2)"),
        (lambda i: te.concatenate([(4, lambda j: x[j]), (3, lambda j: x[j])], axis=i), "(i < 7)"),
        (lambda i: te.concatenate([(4, lambda j: x[j])], axis=i), "(i < 4)"),
        (lambda i: te.concatenate([(n, lambda j: X[j]), (2, lambda j: w[j])], axis=i), "(i < n + 2)"),
        (lambda i: X[n - 1 - i], "(i < n)"),
        (lambda i: x[i // 2], "(i < 20)"),
        (lambda i: x[i % 10] * w[i // 5], "(i < 15)"),
        (lambda i: A[i, i + 2], "(i < 4)"),
        (lambda i: te.select(i < 10, x[te.minimum(i, 9)], w[i - 10]), "(i < 13)"),
        (lambda i, j: A[I[i], j], "(i < 5, j < 6)"),
        (lambda i, j: te.sum(A[i, k], over=k, where=k <= j) * x[j], "(i < 4, j < 10)"),
        (lambda: te.sum(x[k], over=k), "(k < 10)"),
    ],
)
def test_ranges_of_bodies_without_a_shape(body: Callable[..., Any], expected: str) -> None:
    assert te.formula(te.compute(body, "y")).endswith(expected)


def test_ranges_of_reductions_follow_from_the_shape() -> None:
    for own, expected in ((te.sum(x[k], over=k), 10), (te.sum(x[k], axis=[k], where=k < 4), 10)):
        assert (
            te.formula(te.compute((5,), lambda i, own=own: own + x[i], "y")).endswith("(i < 5)") and expected
        )
    y = te.compute((7,), lambda i: te.max(x[i + k], over=k), "y")
    assert te.formula(y).endswith("(i < 7, k < 4)")
    prefix = te.compute((10,), lambda i: te.sum(x[k], over=k, where=k <= i), "p")
    assert te.formula(prefix).endswith("(i < 10, k < 10)")


def test_one_axis_has_a_range_in_each_body() -> None:
    first, second = (
        te.compute(lambda i, t=t: te.sum(t[i, k], over=k), "y") for t in (A, te.placeholder((2, 9), name="B"))
    )
    assert te.formula(first).endswith("(i < 4, k < 6)") and te.formula(second).endswith("(i < 2, k < 9)")


def test_values_are_those_of_explicit_ranges() -> None:
    rng = np.random.default_rng(0)
    values, taps = rng.normal(size=10).astype("float32"), rng.normal(size=3).astype("float32")
    y = te.compute(lambda i: te.sum(x[2 * i + k] * w[k], over=k), "y")
    expected = [sum(values[2 * i + m] * taps[m] for m in range(3)) for i in range(4)]
    np.testing.assert_allclose(te.interpret(y, {x: values, w: taps}), expected, rtol=1e-5)
    m, c = te.indices("m c")
    nested = te.compute(lambda i: te.logaddexp(te.max(A[i, m], over=m), te.sum(x[c] * w[0], over=c)), "z")
    assert nested.shape == (4,)
    both = te.compute(lambda i, j: (A[i, j], x[i + j]), "both")
    assert [t.shape for t in both] == [(4, 6), (4, 6)]


def test_a_reducer_of_ones_own_takes_open_axes() -> None:
    longest = te.comm_reducer(lambda a, b: te.maximum(te.abs(a), te.abs(b)), 0.0, "longest")
    assert te.compute(lambda i: longest(A[i, k], over=k)).shape == (4,)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            lambda i: x[i - 1],
            r"`x\[i - 1\]` leaves axis 0 of x \(10,\) at i = 0.*\n  … x\[i - 1\] …\n      \^\^\^\^\^\nshift",
        ),
        (lambda i: x[i % 3], r"the range of i is open: i stands in `x\[i % 3\]`, which stays inside for any"),
        (
            lambda i: te.sum(x[i + k], over=k),
            r"k is open: .* beside i, of which .*\n.*\n      \^\^\^\^\^\ngive it a range.*'k'",
        ),
        (lambda i: x[i] + w[i], r"i has 3 values in `w\[i\]` .* and 10 values in `x\[i\]`"),
        (
            lambda i: A[i, i],
            r"i has 4 values in .* and 6 values in .*make these extents equal, or use two axes",
        ),
        (lambda i: i, "the range of i is open: no read has it in an index\ngive te.compute a shape"),
        (
            lambda i: te.sum(te.stack([x[i], 1.0], axis=k) * w[k], over=k),
            r"joined along k has 2 elements, and `w\[k\]` has 3",
        ),
        (lambda *i: A[i], r"takes \*i, so that its axes are not known; give te.compute a shape"),
        (lambda i: te.sum(x[i], over=k), "the range of k is open: no read has it"),
        (lambda i: te.sum(x[i + k] * w[k] * X[i], over=k), "which of them is smaller|reads"),
    ],
)
def test_what_does_not_follow_is_said(body: Callable[..., Any], message: str) -> None:
    with pytest.raises(te.DefinitionError, match=f"(?s){message}"):
        te.compute(body, "y")


def test_an_axis_keeps_nothing_alive_that_was_joined_along_it() -> None:
    own = te.axis("own")
    for m in range(3):
        te.stack([x[m], 1.0], axis=own)
    gc.collect()
    held = te.stack([x[3], 1.0], axis=own)
    assert [at() is held for at, _ in own.stated] == [True]  # type: ignore[attr-defined]


def test_bad_arguments() -> None:
    with pytest.raises(te.ArgumentError, match="axis= and over= are the same"):
        te.sum(x[k], axis=k, over=k)
    with pytest.raises(te.ArgumentError, match="no axis to reduce over was given; pass over="):
        te.sum(x[k])
    with pytest.raises(te.ArgumentError, match=r"te\.indices of no names"):
        te.indices(" ")
    with pytest.raises(te.ArgumentError, match=r"the name of a te.axis is"):
        te.axis((0, 3))
    with pytest.raises(te.DefinitionError, match=r"uses axis k: it is a reduction axis used outside"):
        te.compute((3,), lambda i: x[i + k])
