"""Output axes of extent 1: arrays are taken as they are, and reductions keep them."""

from __future__ import annotations

from typing import Any

import pytest

import jaxte as te
from jaxte.tensors.tensor import Tensor
from tests.lowered import check

X = te.placeholder((3, 5), name="X")
S = te.placeholder((3, 1), name="S")
T = te.placeholder((1, 3), name="T")
P = te.placeholder((1, 1), name="P")
k = te.reduce_axis((0, 5), "k")
p, q = te.reduce_axis((0, 3), "p"), te.reduce_axis((0, 5), "q")

BODIES: dict[str, tuple[tuple[int, ...], Any, str]] = {
    "kept": ((3, 1), lambda i, j: te.max(X[i, k], axis=k), "jnp.max(X, axis=1, keepdims=True)"),
    "both": (
        (1, 1),
        lambda i, j: te.sum(X[p, q], axis=[p, q]),
        "jnp.broadcast_to(jnp.sum(X), (1, 1))",
    ),
    "read as it is": ((3, 1), lambda i, j: S[i, 0] / 5.0, "S / 5.0"),
    "spread": ((3, 5), lambda i, j: X[i, j] - S[i, 0], "X - S"),
    "spread in front": ((5, 3), lambda i, j: X[j, i] - T[0, j], "X.T - T"),
    "spread twice": ((3, 5), lambda i, j: X[i, j] * P[0, 0], "X * P[0, 0]"),
    "inside a reduction": (
        (3, 1),
        lambda i, j: te.max(X[i, k] - S[i, j], axis=k),
        "jnp.max(X - S, axis=1, keepdims=True)",
    ),
    "shifted by the axis": (
        (3, 1),
        lambda i, j: te.max(X[i, j + k], axis=k),
        "jnp.max(X, axis=1, keepdims=True)",
    ),
    "at another place": ((1, 3), lambda i, j: S[j, 0] + T[0, j], "S[None, :, 0] + T"),
    "the axis itself": ((3, 1), lambda i, j: S[i, j] + te.cast(j + i, "float32"), ""),
}


@pytest.mark.parametrize("name", BODIES)
def test_what_is_written(name: str) -> None:
    shape, body, written = BODIES[name]
    last = check(te.compute(shape, body, "Y"))[-1]
    if written:
        assert last == written


def normalised(x: Tensor) -> Tensor:
    """A reduction that keeps its axes on both sides of what reads it."""
    total = te.compute((x.shape[0], 1), lambda i, j: te.sum(te.square(x[i, k]), axis=k), "total")
    return te.compute(x.shape, lambda i, j: x[i, j] / te.sqrt(total[i, 0] + 1.0), "Y")


def test_adjoints(rng: Any) -> None:
    te.testing.check_grads(normalised, [rng.standard_normal((3, 5)).astype("float32")])
