"""Definitions that are equal up to names are derived once; what is derived is what it is when each is derived by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jaxte as te
from jaxte.autodiff.sums import repeated_blocks
from tests.agreement import inputs_of
from tests.loop_steps import Step, heat

N, STEPS = 6, 9


def layer(u: te.Tensor, step: int) -> te.Tensor:
    """A product with a matrix, with a weight of its own, and a bias."""
    k = te.reduce_axis((0, N), "k")
    w, b = te.placeholder((N, N), name=f"weight{step}"), te.placeholder((N,), name=f"bias{step}")
    y = te.compute((N, N), lambda i, j: te.sum(u[i, k] * w[k, j], axis=k), f"y{step}")
    return te.compute((N, N), lambda i, j: te.tanh(y[i, j] + b[j] * w[i, j]), f"z{step}")


def nonlinear(u: te.Tensor, step: int) -> te.Tensor:
    """With slopes that may blow up, a guard, and a transposed read that comes back."""
    flux = te.compute(
        (N, N), lambda i, j: te.select(i < N - 1, u[i + 1, j], 0.0) / (2 + u[i, j] * u[i, j]), f"flux{step}"
    )
    return te.compute((N, N), lambda i, j: te.sqrt(1.5 + flux[i, j]) * u[j, i], f"u{step}")


def normalised(u: te.Tensor, step: int) -> te.Tensor:
    k = te.reduce_axis((0, N), "k")
    m = te.compute((N,), lambda i: te.sum(te.exp(u[i, k]), axis=k), f"m{step}")
    return te.compute((N, N), lambda i, j: te.exp(u[i, j]) / m[i] * u[(i + 1) % N, j], f"v{step}")


def looped(step: Step) -> tuple[list[te.Tensor], te.Tensor]:
    u = te.placeholder((N, N), "float64", name="x") if step is not layer else te.placeholder((N, N), name="x")
    for n in range(STEPS):
        u = step(u, n)
    return list(inputs_of([u])), u


@pytest.mark.parametrize("step", [heat, layer, nonlinear, normalised])
def test_a_loop_of_steps_is_derived_a_few_times(step: Step, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs, u = looped(step)
    head = te.placeholder(u.shape, u.dtype, "H")
    asked: list[te.Tensor] = []

    def counted(output: te.Tensor, input: te.Tensor, head: te.Tensor, missing_ok: bool) -> Any:
        asked.append(output)
        return derived(output, input, head, missing_ok=missing_ok)

    derived = repeated_blocks.diff_building_block
    monkeypatch.setattr(repeated_blocks, "diff_building_block", counted)
    together = te.differentiate(u, inputs, head)
    few = len(asked)
    monkeypatch.setattr(repeated_blocks, "structure_of", lambda tensor: None)
    apart = te.differentiate(u, inputs, head)
    assert few <= 0.7 * (len(asked) - few)
    assert te.definitions(list(together)) == te.definitions(list(apart))
    assert te.source(list(together)) == te.source(list(apart))


def test_equal_definitions_of_other_tensors_have_adjoints_of_their_own(rng: np.random.Generator) -> None:
    """Values too: of four layers, each with its own weights, beside differences."""
    x = u = te.placeholder((3,), "float64", "x")
    weights = []
    for n in range(4):
        w, k = te.placeholder((3, 3), "float64", f"w{n}"), te.reduce_axis((0, 3), f"k{n}")
        u = te.compute((3,), lambda i, u=u, w=w, k=k: te.sum(te.sin(u[k] * w[i, k]), axis=k), f"u{n}")
        weights.append(w)
    feeds: dict[te.Tensor, np.ndarray] = {t: rng.standard_normal(t.shape) for t in (x, *weights)}
    head = te.placeholder((3,), "float64", "H")
    for w, dw in zip(weights, te.differentiate(u, weights, head), strict=True):
        assert dw.name == f"d{w.name}"
        own = feeds | {head: np.ones(3)}
        found = te.interpret(dw, {t: own[t] for t in inputs_of([dw])})
        move = rng.standard_normal((3, 3))
        ends = [te.interpret(u, feeds | {w: feeds[w] + s * move}).sum() for s in (1e-6, -1e-6)]
        np.testing.assert_allclose((found * move).sum(), (ends[0] - ends[1]) / 2e-6, rtol=1e-6)
