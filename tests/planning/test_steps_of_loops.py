"""Steps of recurrences hold no position at an end that they never reach, and slopes at edges are computed before their loop."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
import pytest

import jaxte as te
from tests.agreement import interpreted
from tests.lower import mechanism_plans as plans

N = 9


def drawn_together(x: te.Tensor) -> te.Tensor:
    """A function at edges within a sum of each step."""
    n, j = x.shape[1], te.reduce_axis((0, x.shape[1]), "j")

    def step(y: te.Tensor, t: te.Axis, i: te.Axis) -> te.Expr:
        there = te.select(j < n - 1, te.tanh(x[t, j + 1] - x[t, i]), 0.5)
        return 0.5 * y[t - 1, i] + te.sum(there * y[t - 1, j], axis=j)

    return te.recurrence(x.shape, step, init=1.0, name="y")


SAMPLES: dict[str, tuple[Callable[..., te.Tensor], tuple[tuple[int, ...], ...]]] = {
    "left to right": (plans.left_to_right, ((7, N),)),
    "phases": (plans.coupled_phases, ((N,), (N,))),
    "in a sum": (drawn_together, ((6, 5),)),
    "ring": (plans.stirred_ring, ((N,),)),
}


def test_ends_that_are_never_reached_are_not_held() -> None:
    text = te.source(te.function(plans.left_to_right), np.zeros((7, N), "float32"))
    assert "lax.pad(" in text
    assert 'mode="edge"' not in text
    held = te.source(te.function(plans.left_to_right, without="narrow reads"), np.zeros((7, N), "float32"))
    assert 'mode="edge"' in held


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", SAMPLES)
def test_values_and_gradients(name: str, rng: np.random.Generator) -> None:
    build, shapes = SAMPLES[name]
    values = [rng.standard_normal(s) for s in shapes]
    inputs = [te.placeholder(s, "float64", f"x{n}") for n, s in enumerate(shapes)]
    run = te.function(build)
    y, pull = jax.vjp(run, *values)
    np.testing.assert_allclose(
        y, interpreted(build(*inputs), dict(zip(inputs, values, strict=True))), rtol=1e-12
    )
    head = rng.standard_normal(y.shape)
    steps = [rng.standard_normal(s) for s in shapes]
    ahead, behind = (
        run(*(v + sign * 1e-6 * s for v, s in zip(values, steps, strict=True))) for sign in (1, -1)
    )
    change = ((ahead - behind) / 2e-6 * head).sum()
    found = sum((g * s).sum() for g, s in zip(pull(head), steps, strict=True))
    np.testing.assert_allclose(found, change, rtol=1e-6)
