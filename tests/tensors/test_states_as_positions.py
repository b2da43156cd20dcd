"""States of a recurrence that are positions of others: what is read in place of one is read in place of those within its indices, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jaxte as te
from jaxte.lower.cost.policy import Policy
from jaxte.lower.program.plan import lower
from tests.agreement import inputs_of
from tests.lower.evaluation.program import evaluate_program

pytestmark = pytest.mark.usefixtures("x64")
X = te.placeholder((6, 3), "float64", "x")
VALUE = np.random.default_rng(0).standard_normal((6, 3))


def evaluated(tensor: Any) -> np.ndarray:
    """What is emitted, by its nodes."""
    inputs = inputs_of([tensor])
    (found,) = evaluate_program(lower("f", inputs, [tensor], Policy("cpu")), [VALUE for _ in inputs])
    return np.asarray(found)


def assert_is(tensor: Any, expected: np.ndarray) -> None:
    np.testing.assert_allclose(te.interpret(tensor, {X: VALUE}), expected, rtol=1e-12)
    np.testing.assert_allclose(evaluated(tensor), expected, rtol=1e-12)


def test_a_read_at_a_state_is_of_the_step_that_a_condition_says() -> None:
    """Choices of the first positions are parts of a body, in which a read has a number in place of the clock."""

    def body(p: Any, h: Any, t: Any, c: Any) -> Any:
        before = te.select(t >= 2, h[t - 2, te.select(t >= 3, p[t - 3, c], 1)], 0.5)
        return (p[t - 1, c] + te.cast(X[t, c] > 0, "int32")) % 3, 0.5 * before + X[t, p[t - 2, p[t - 1, c]]]

    _, h = te.recurrence((6, 3), body, init=(0, 0.0), dtype=("int32", "float64"))
    p, expected = np.zeros((8, 3), "int32"), np.zeros((6, 3))
    for t in range(6):
        for c in range(3):
            before = expected[t - 2, p[t - 1, c] if t >= 3 else 1] if t >= 2 else 0.5
            expected[t, c] = 0.5 * before + VALUE[t, p[t, p[t + 1, c]]]
        p[t + 2] = (p[t + 1] + (VALUE[t] > 0)) % 3
    assert_is(h, expected)


@pytest.mark.parametrize("start", ["init", "choice"])
def test_an_inner_recurrence_reads_one_of_its_states_at_another(start: str) -> None:
    """Its states have the axes of the body around in front, those within indices as well."""

    def row(h: Any, t: Any, c: Any) -> Any:
        def body(p: Any, g: Any, k: Any, d: Any) -> Any:
            def before(state: Any, at: Any, first: Any) -> Any:
                return state[k - 1, at] if start == "init" else te.select(k >= 1, state[k - 1, at], first)

            last = before(p, d, te.const(0, "int32"))
            return (last + te.cast(X[t, k] > 0, "int32")) % 3, 0.5 * before(g, last, 0.2) + X[t, d] * (k + 1)

        given = {"init": (0, 0.2)} if start == "init" else {}
        _, g = te.recurrence((3, 3), body, dtype=("int32", "float64"), **given)
        return 0.5 * te.select(t >= 1, h[t - 1, c], 0.0) + g[2, c]

    expected, last = np.zeros((6, 3)), np.zeros(3)
    for t in range(6):
        p, g = np.zeros(3, int), np.full(3, 0.2)
        for k in range(3):
            p, g = (p + (VALUE[t, k] > 0)) % 3, 0.5 * g[p] + VALUE[t] * (k + 1)
        last = expected[t] = 0.5 * last + g
    assert_is(te.recurrence((6, 3), row, dtype="float64"), expected)
