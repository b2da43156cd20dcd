"""What derivatives read of the steps of a loop: computed once and stacked where that takes less than to compute it again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jaxte as te
from jaxte.planning.asked import Intermediates, planned_with
from jaxte.planning.chains.rolled import with_chains
from jaxte.tensors.recurrences.node import Recurrent
from jaxte.tensors.structure import topological_order
from tests.agreement import interpreted

N = 6
Step = Callable[[te.Tensor, te.Tensor, te.Tensor, int], te.Tensor]


def product(w: te.Tensor, t: te.Tensor, i: te.Axis) -> te.Expr:
    j = te.reduce_axis((0, N), "j")
    return te.sum(w[i, j] * t[j], axis=j)


def neighbours(h: te.Tensor, x: te.Tensor, w: te.Tensor, s: int) -> te.Tensor:
    def body(i: te.Axis) -> te.Expr:
        return x[s] * te.tanh(h[i] + 0.5 * h[te.maximum(i - 1, 0)]) + w[0, i]

    return te.compute((N,), body, f"h{s + 1}")


def diffusion(u: te.Tensor, x: te.Tensor, w: te.Tensor, s: int) -> te.Tensor:
    def body(i: te.Axis) -> te.Expr:
        return u[i] + x[s] * w[0, i] * (te.tanh(u[(i - 1) % N]) - 2 * te.tanh(u[i]) + te.tanh(u[(i + 1) % N]))

    return te.compute((N,), body, f"u{s + 1}")


def leaky(v: te.Tensor, x: te.Tensor, w: te.Tensor, s: int) -> te.Tensor:
    spikes = te.compute((N,), lambda i: te.sigmoid(v[i] - 1.0), f"s{s + 1}")
    return te.compute((N,), lambda i: 0.9 * v[i] + product(w, spikes, i) + x[s], f"v{s + 1}")


def gated(h: te.Tensor, x: te.Tensor, w: te.Tensor, s: int) -> te.Tensor:
    def body(i: te.Axis) -> te.Expr:
        keep = te.sigmoid(x[s] + product(w, h, i))
        return keep * h[i] + (1 - keep) * te.exp(-h[i] * h[i])

    return te.compute((N,), body, f"h{s + 1}")


STEPS: dict[str, tuple[Step, str, int]] = {
    "neighbours": (neighbours, "tanh", 1),
    "diffusion": (diffusion, "tanh", 1),
    "leaky": (leaky, "sigmoid", 1),
    "gated": (gated, "exp", 3),
}


def loop(step: Step, steps: int = 14) -> tuple[te.Tensor, list[te.Tensor]]:
    x, w = te.placeholder((steps,), name="x"), te.placeholder((N, N), name="w")
    start = te.placeholder((N,), name="start")
    h: te.Tensor = start
    for s in range(steps):
        h = step(h, x, w, s)
    return h, [start, x, w]


@pytest.mark.parametrize("name", STEPS)
def test_functions_of_steps_are_computed_once(name: str) -> None:
    step, function, stacked = STEPS[name]
    y, inputs = loop(step)
    head = te.placeholder((N,), name="H")
    gradients = te.differentiate(y, inputs, head)
    text = te.source(gradients)
    assert text.count("lax.scan") == 2
    assert text.count(f".{function}(") == 1
    read = [part.split(",")[0] for part in text.split("dynamic_index_in_dim(")[1:]]
    assert len([n for n in read if n != "x" and not n.endswith("init")]) == stacked
    rng = np.random.default_rng(0)
    feeds: dict[te.Tensor, Any] = {
        t: rng.normal(scale=0.5, size=t.shape).astype("float32") for t in [*inputs, head]
    }
    plain = te.differentiate(y, None, head).adjoints
    own = te.evaluate([y, *gradients], feeds)
    for value, tensor in zip(own, (y, *(plain[t] for t in inputs)), strict=True):
        np.testing.assert_allclose(value, interpreted(tensor, feeds), rtol=1e-4, atol=1e-5)


def test_what_costs_less_to_compute_again_is_not_stacked() -> None:
    def step(h: te.Tensor, x: te.Tensor, w: te.Tensor, s: int) -> te.Tensor:
        return te.compute((N,), lambda i: h[i] * te.sigmoid(h[i]) * x[s] + w[0, i], f"h{s + 1}")

    y, _ = loop(step)
    found = {}
    for element in (
        40,
        400,
    ):  # operations that an element takes to be written and read: more than a function on accelerators
        with planned_with(Intermediates(element=element, function=100), frozenset(), False):
            (rolled,) = with_chains((y,))
        (group,) = {t.group for t in topological_order([rolled]) if isinstance(t, Recurrent)}
        found[element] = [s.name for s in group.states]
    assert found == {40: ["h", "h_sigmoid"], 400: ["h"]}


def test_a_slope_at_the_position_before_is_handed_on() -> None:
    y, inputs = loop(
        lambda h, x, w, s: te.compute(
            (N,), lambda i: h[i] + x[s] * h[i] ** 3 * w[0, i] + te.sin(w[1, i]), f"h{s + 1}"
        )
    )
    text = te.source(te.differentiate(y, inputs, te.placeholder((N,), name="H")))
    assert "== 13" not in text and "< 13" not in text


def test_what_a_choice_leaves_out_is_no_state() -> None:
    def step(h: te.Tensor, x: te.Tensor, w: te.Tensor, s: int) -> te.Tensor:
        def body(i: te.Axis) -> te.Expr:
            return te.select(h[i] > 0, te.sqrt(h[i]) * x[s], 0.5 * h[i]) + w[0, i] * te.tanh(h[i])

        return te.compute((N,), body, f"h{s + 1}")

    y, inputs = loop(step)
    head = te.placeholder((N,), name="H")
    found = te.differentiate(y, inputs, head)
    feeds: dict[te.Tensor, Any] = {t: np.ones(t.shape, "float32") for t in [*inputs, head]}
    feeds[inputs[0]] = np.float32([0, 0, 1, -1, 0, 2])
    feeds[inputs[2]] = np.float32(np.eye(N) * 0)
    plain = te.differentiate(y, None, head).adjoints
    for value, tensor in zip(te.evaluate(found, feeds), (plain[t] for t in inputs), strict=True):
        assert np.isfinite(value).all()
        np.testing.assert_allclose(value, interpreted(tensor, feeds), rtol=1e-4, atol=1e-5)


def test_steps_that_narrow_stack_what_their_choices_compare() -> None:
    x = te.placeholder((53,), name="x")
    v: te.Tensor = x
    for s in range(1, 49):
        v = te.compute((53 - s,), lambda i, v=v: te.maximum(0.5 * (v[i] + v[i + 1]), x[i]), f"v{s}")
    (dx,) = te.differentiate(v, [x], te.placeholder((5,), name="H"))
    text = te.source(dx)
    assert text.count("lax.scan") == 2
    assert text.count("dynamic_index_in_dim(") == 1
