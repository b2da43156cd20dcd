"""A definition costs the same however it is spelled: what XLA counts for every respelling is within 1.5 times of the best one.

Values and gradients are equal, and no respelling gathers or scatters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jaxte as te
from harness.counts import operations
from jaxte.tensors.tensor import Compute
from tests.respellings import respelled
from tests.spelled_counts import LIMIT, counts, lowered_tensor
from tests.xla_counts import Fused

SLACK = (2000.0, 16384.0, 16384.0)
Shapes = tuple[tuple[int, ...], ...]


def causal(x: Any, w: Any) -> te.Tensor:
    k, c = te.reduce_axis((0, 4), "k"), te.reduce_axis((0, 8), "c")
    return te.compute(
        (2, 64, 16),
        lambda b, i, o: te.sum(x[b, i + 2 * k - 6, c] * w[k, c, o], axis=[k, c], where=i + 2 * k >= 6),
        "y",
    )


def short(x: Any, w: Any) -> te.Tensor:
    k = te.reduce_axis((0, 4), "k")
    return te.compute(
        (2, 8, 64), lambda b, c, i: te.sum(x[b, c, i + k - 3] * w[c, k], axis=k, where=i + k >= 3), "y"
    )


def periodic(x: Any, w: Any) -> te.Tensor:
    k, c = te.reduce_axis((0, 3), "k"), te.reduce_axis((0, 8), "c")
    return te.compute(
        (2, 64, 16), lambda b, i, o: te.sum(x[b, (i + k - 1) % 64, c] * w[k, c, o], axis=[k, c]), "y"
    )


DEFINITIONS: dict[str, tuple[Callable[..., te.Tensor], Shapes]] = {
    "causal": (causal, ((2, 64, 8), (4, 8, 16))),
    "short": (short, ((2, 8, 64), (8, 4))),
    "periodic": (periodic, ((2, 64, 8), (3, 8, 16))),
}


def counted(inputs: list[Any], tensor: te.Tensor, arrays: list[np.ndarray], head: np.ndarray) -> Any:
    lowered = lowered_tensor(inputs, tensor)
    assert not {"gather", "scatter", "while"} & set(operations(lowered.as_text()))
    compiled = Fused(lowered)
    held = float(compiled.memory_analysis().temp_size_in_bytes)
    return (*counts(compiled), held), [np.asarray(x) for x in compiled([head], *arrays)]


@pytest.mark.parametrize("name", DEFINITIONS)
def test_every_respelling_costs_what_the_best_does(name: str, rng: np.random.Generator) -> None:
    build, shapes = DEFINITIONS[name]
    inputs = [te.placeholder(shape, name="xw"[n]) for n, shape in enumerate(shapes)]
    arrays = [rng.standard_normal(shape).astype("float32") for shape in shapes]
    y = build(*inputs)
    assert isinstance(y, Compute)
    head = rng.standard_normal(y.shape).astype("float32")
    found = {"as it is": counted(inputs, y, arrays, head)}
    found |= {own: counted(inputs, tensor, arrays, head) for own, tensor in respelled(y)}
    assert len(found) >= 6
    best = [min(own[n] for own, _ in found.values()) for n in range(3)]
    for own, (count, values) in found.items():
        for what, c, least, slack in zip(("flops", "bytes", "held"), count, best, SLACK, strict=True):
            assert c <= LIMIT * least + slack, f"{own}: {what} {c:,.0f} beside {least:,.0f}"
        for value, expected in zip(values, found["as it is"][1], strict=True):
            np.testing.assert_allclose(value, expected, rtol=1e-3, atol=1e-3, err_msg=own)
