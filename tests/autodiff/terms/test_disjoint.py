"""Adjoints of what is read row by row: the rows are stacked, not added."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jaxte as te
from jaxte.lang.graphs import among
from jaxte.tensors.structure import topological_order

W = te.placeholder((3, 4), name="W")
X = te.placeholder((5, 4), name="X")
K = te.reduce_axis((0, 4), "k")
H = te.placeholder((5,), name="H")

CASES: dict[str, tuple[Callable[..., Any], str, bool]] = {
    "every row": (lambda i: te.sum(X[i, K] * W[0, K] + te.sin(X[i, K]) * W[1, K] + te.exp(X[i, K]) * W[2, K], axis=K), "stack", True),
    "a row of numbers": (
        lambda i: te.sum(X[i, K] * W[0, K] + 2 * W[1, K] + te.exp(X[i, K]) * W[2, K], axis=K), "stack", True,
    ),
    "two rows of three": (lambda i: te.sum(X[i, K] * W[0, K] + te.exp(X[i, K]) * W[2, K], axis=K), "", True),
    "one row twice": (
        lambda i: te.sum(X[i, K] * W[1, K], axis=K) + te.sum(te.exp(X[i, K]) * W[1, K] * W[0, K], axis=K), "", True,
    ),
    "single elements": (lambda i: X[i, 0] * W[0, 0] + X[i, 1] * W[0, 1] + X[i, 2] * W[1, 1], "", True),
    "also every row": (
        lambda i: te.sum(X[i, K] * W[0, K], axis=K) + te.sum(X[i, K] * W[1, K] * W[i // 2, K], axis=K), "", False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_rows_that_are_read_apart(name: str, rng: np.random.Generator) -> None:
    body, written, disjoint = CASES[name]
    y = te.compute((5,), body, "Y")
    (dw,) = te.differentiate(y, [W], H)
    text = te.source(dw)
    assert written in text
    if disjoint:
        assert "jnp.where((0 == " not in text and ", 0.0) + jnp.where" not in text
    feeds = {t: rng.standard_normal(t.shape).astype("float32") for t in (W, X, H)}
    feeds = {t: v for t, v in feeds.items() if among(t, topological_order([dw]))}
    np.testing.assert_allclose(te.evaluate(dw, feeds), te.interpret(dw, feeds), rtol=1e-5, atol=1e-6)
