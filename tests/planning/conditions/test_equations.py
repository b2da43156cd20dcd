"""Reductions under equations between positions run over the points that solve these: what is left of them, and values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import jaxte as te
from jaxte.lang.expr import Reduce
from jaxte.planning.graph import planned
from jaxte.tensors.tensor import Compute

X = te.placeholder((3, 24), name="X")
AT = te.placeholder((24,), "int32", "I")
p, q, r = (te.reduce_axis((0, 24), name) for name in "pqr")
c = te.reduce_axis((0, 3), "c")
Element = Callable[[Any, Any], te.Expr]

#: the body, its extents, and what it is
CASES: dict[str, tuple[Element, tuple[int, int], str]] = {
    "one point": (
        lambda b, i: te.sum(X[b, p], axis=p, where=2 * p == i),
        (3, 40),
        "select(i % 2 == 0, X[b, i // 2], 0.0)",
    ),
    "a choice": (
        lambda b, i: te.sum(te.select(p + i == 23, X[b, p], 0.0), axis=p),
        (3, 24),
        "X[b, 23 - i]",
    ),
    "quotient": (
        lambda b, i: te.sum(X[b, p], axis=p, where=p // 4 == i),
        (3, 6),
        "sum(X[b, 4 * i + r] for r in [0, 4))",
    ),
    "remainder": (
        lambda b, i: te.prod(X[b, p], axis=p, where=p % 6 == i),
        (3, 6),
        "prod(X[b, 6 * q + i] for q in [0, 4))",
    ),
    "two axes": (
        lambda b, i: te.sum(X[b, p] * X[b, q], axis=[p, q], where=p - q == i),
        (3, 24),
        "sum(X[b, p] * X[b, p - i] for p in [0, 24) where i <= p)",
    ),
    "nowhere": (lambda b, i: te.sum(X[b, p], axis=p, where=4 * p == 2 * i + 1), (3, 9), "0.0"),
    "data stay": (
        lambda b, i: te.sum(X[b, p], axis=p, where=(AT[p] == 3) & (p // 4 == i)),
        (3, 6),
        "sum(X[b, 4 * i + r] for r in [0, 4) where I[4 * i + r] == 3)",
    ),
    "maximum": (
        lambda b, i: te.max(X[b, p], axis=p, where=p // 4 == i),
        (3, 6),
        "max(X[b, 4 * i + r] for r in [0, 4))",
    ),
    # these have forms of their own
    "congruence": (
        lambda b, i: te.sum(X[b, (i + c) // 2], axis=c, where=(i + c) % 2 == 0),
        (3, 24),
        "sum(X[b, (i + c) // 2] for c in [0, 3) where (i + c) % 2 == 0)",
    ),
    "equation with data": (
        lambda b, i: te.sum(X[b, p], axis=p, where=AT[p] == i),
        (3, 24),
        "sum(X[b, p] for p in [0, 24) where I[p] == i)",
    ),
    "winners by position": (
        lambda b, i: te.max(X[b, p], axis=p, where=p // 4 == i, ties="first"),
        (3, 6),
        "max(X[b, p] for p in [0, 24) where p // 4 == i)",
    ),
}


def body_of(tensor: te.Tensor) -> te.Expr:
    (found,) = planned([tensor])
    assert isinstance(found, Compute)
    return found.body


@pytest.mark.parametrize("name", CASES)
def test_equations_are_solved(name: str, rng: np.random.Generator) -> None:
    element, shape, expected = CASES[name]
    tensor = te.compute(shape, element, "y")
    assert repr(body_of(tensor)) == expected
    feeds = {X: rng.standard_normal(X.shape).astype("float32"), AT: rng.integers(0, 24, 24).astype("int32")}
    feeds = {t: a for t, a in feeds.items() if any(t is own for own in tensor.inputs)}
    (wanted,) = te.interpret([tensor], feeds)
    (found,) = te.evaluate([tensor], feeds)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_a_sum_of_a_function_of_positions() -> None:
    """What is reduced may be another type than the result: it is cast."""
    tensor = te.compute((8,), lambda i: te.sum(te.cast(p > 3, "float32"), axis=p, where=p == 2 * i), "y")
    (found,) = te.evaluate([tensor], {})
    np.testing.assert_array_equal(found, [0, 0, 1, 1, 1, 1, 1, 1])
    assert not isinstance(body_of(tensor), Reduce)


@pytest.mark.parametrize("name", ["prod", "max"])
def test_what_was_solved_is_differentiated(name: str, x64: None, rng: np.random.Generator) -> None:
    """The condition under which there are points stays within a reduction that has a derivative only as a whole body."""

    def build(x: te.Tensor) -> te.Tensor:
        k, m = te.reduce_axis((0, 4), "k"), te.reduce_axis((0, 4), "m")
        at = lambda i: te.minimum(2 * k + m, 3) + i  # noqa: E731
        return te.compute((5,), lambda i: getattr(te, name)(x[at(i)], axis=(k, m), where=2 * i - 3 * k == -1))

    x, X, head = (
        rng.normal(size=8),
        te.placeholder((8,), "float64", "X"),
        te.placeholder((5,), "float64", "H"),
    )
    value, back = jax.vjp(te.function(build), x)
    np.testing.assert_allclose(value, te.interpret(build(X), {X: x}), rtol=1e-12)
    h = np.asarray([0, 2.0, 0, 0, 3.0])  # where there are points
    expected = te.interpret(te.differentiate(build(X), [X], head)[0], {X: x, head: h})
    np.testing.assert_allclose(back(h)[0], expected, rtol=1e-12)
