"""Integer operations in indices and conditions: taken as the sums, quotients, minima and maxima that they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jaxte as te

N = 12
INDICES: dict[str, Callable[[Any], Any]] = {
    "te.abs": lambda i: te.abs(i - 4),
    "abs": lambda i: abs(2 * i - 9),
    ">>": lambda i: i >> 1,
    "<<": lambda i: (i << 1) + 1,
    "& 3": lambda i: i & 3,
    "& 5": lambda i: i & 5,
    "& -2": lambda i: i & -2,
    "|": lambda i: i | 6,
    "^": lambda i: i ^ 9,
    "~": lambda i: ~i + 20,
    "divmod": lambda i: divmod(i, 3)[0] + divmod(i, 3)[1],
    "sign": lambda i: te.sign(i - 4) + 1,
    "relu": lambda i: te.relu(i - 4),
    "clip": lambda i: te.clip(i - 2, 0, 5),
    "cast >": lambda i: te.cast(i > 3, "int32"),
    "cast <=": lambda i: te.cast(i <= 3, "int32") * 7,
    "cast ==": lambda i: te.cast(te.equal(i, 3), "int32") * 7,
    "cast !=": lambda i: te.cast(i != 3, "int32") + i,
    "cast &": lambda i: te.cast((i > 3) & (i < 6), "int32") * 2,
    "cast |": lambda i: te.cast((i <= 3) | (i >= 6), "int32") + i,
    "cast ~": lambda i: te.cast(~(i <= 3), "int32"),
    "a condition as a number": lambda i: i + (i > 4) * 3,
    "int8": lambda i: te.cast(i, "int8") * 2,
    "int8 around its end": lambda i: te.cast(i, "int8") * 50 // 50 + 10,
    "uint8 around its end": lambda i: te.cast(i - 3, "uint8") % 7,
    "int8 of a long axis": lambda i: te.cast(20 * i, "int8") // 20 + 10,
    "several": lambda i: te.abs(2 * i - 9) % 5 + te.cast(i > 2, "int32"),
    "bounded": lambda i: te.minimum(te.abs(i - 3), 4),
}


@pytest.mark.parametrize("name", INDICES)
def test_reads_and_their_adjoints(name: str, rng: np.random.Generator) -> None:
    index = INDICES[name]
    x = te.placeholder((40,), name="x")
    y = te.compute((N,), lambda i: te.exp(x[index(i)]), "y")
    head = te.placeholder((N,), name="H")
    (dx,) = te.differentiate(y, [x], head)
    values, cotangent = (rng.standard_normal(n).astype("float32") for n in (40, N))
    at = np.asarray(te.interpret(te.compute((N,), lambda i: te.cast(index(i), "int32")), {}))
    expected = np.zeros(40, "float32")
    np.add.at(expected, at, cotangent * np.exp(values[at]))
    feeds = {x: values, head: cotangent}
    np.testing.assert_allclose(te.interpret(y, {x: values}), np.exp(values[at]), rtol=1e-6)
    np.testing.assert_allclose(te.evaluate(y, {x: values}), np.exp(values[at]), rtol=1e-5)
    for found in (te.interpret(dx, feeds), te.evaluate(dx, feeds)):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert not te.explain(dx).scatters


@pytest.mark.parametrize(
    ("condition", "shown"),
    [
        (lambda i: i >> 1 <= 2, "i <= 5"),
        (lambda i: te.equal(i >> 1, 2), "4 <= i and i < 6"),
        (lambda i: (i & 3) > 0, "i % 4 != 0"),
        (lambda i: te.cast(i, "int8") < 5, "i < 5"),
    ],
)
def test_conditions_are_known_to_the_solver(condition: Callable[[Any], Any], shown: str) -> None:
    x = te.placeholder((N,), name="x")
    y = te.compute((N,), lambda i: te.select(condition(i), x[i], 0.0), "y")
    (dx,) = te.differentiate(y, [x], te.placeholder((N,), name="H"))
    assert te.formula(dx) == f"dx[i] = H[i] if {shown} else 0  (i < {N})"


def test_an_index_that_wraps_around_in_32_bits_is_refused() -> None:
    x = te.placeholder((40,), name="x")
    with pytest.raises(
        te.IndexExpressionError, match=r"uint32 takes values from -5 to 6.*leave out the cast"
    ):
        te.compute((N,), lambda i: x[(te.cast(i, "uint32") - 5 + 8) // 2])


def test_what_is_no_index_arithmetic_is_refused_in_the_users_words() -> None:
    x = te.placeholder((40,), name="x")
    with pytest.raises(te.IndexExpressionError, match=r"x\[minimum\(i, 2\) \*\* i\].*is not affine"):
        te.compute((N,), lambda i: x[te.minimum(i, 2) ** i])
    with pytest.raises(te.RangeError, match=r"x\[abs\(i - 50\)\] reads x\[50\] at i=0"):
        te.compute((N,), lambda i: x[te.abs(i - 50)])


@pytest.mark.parametrize(
    "condition",
    [
        lambda i, j: te.equal(te.minimum(i, 2), 2),
        lambda i, j: te.equal(te.maximum(i, j), 3),
        lambda i, j: te.equal(te.minimum(i, 3) + j, 4),
        lambda i, j: te.equal(te.abs(i - 3), j),
        lambda i, j: te.equal(te.minimum(i, 3) // 2, j % 2),
        lambda i, j: te.equal(te.maximum(i - 2, 0) + te.minimum(j, 2), 3),
        lambda i, j: te.equal((te.minimum(i, 3) + j) % 3, 1) & (te.maximum(i, j) <= 3),
    ],
)
def test_extrema_in_guards(condition: Callable[[Any, Any], Any], rng: np.random.Generator) -> None:
    """Differentiated, and solved: a transformation is a bijection of points."""
    x = te.placeholder((6, 5), name="x")
    y = te.compute((6, 5), lambda i, j: te.select(condition(i, j), te.exp(x[5 - i, j]), 0.0), "y")
    head = te.placeholder((6, 5), name="H")
    (dx,) = te.differentiate(y, [x], head)
    feeds = {
        x: rng.standard_normal((6, 5)).astype("float32"),
        head: rng.standard_normal((6, 5)).astype("float32"),
    }
    holds = np.asarray(te.interpret(te.compute((6, 5), condition), {}))
    expected = np.where(holds, feeds[head], 0)[::-1] * np.exp(feeds[x])
    for found in (te.interpret(dx, feeds), te.evaluate(dx, feeds)):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    i, j = te.var("i"), te.var("j")
    domain = te.Domain([i, j], [condition(i, j)], {i: (0, 6), j: (0, 5)})
    for solved in (
        te.simplify_domain(domain),
        te.solve_linear_equations(list(domain.conditions), domain.variables, domain.ranges),
    ):
        assert sum(1 for _ in solved.new.points()) == sum(1 for _ in domain.points()) == holds.sum()
