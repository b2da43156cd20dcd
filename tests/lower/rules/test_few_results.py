"""Sums for each of few positions along several dimensions of a result, of what is computed at all points: one loop for each, and no array of all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.tensors.tensor import Compute, Tensor


def over_images(h: Tensor, x: Tensor, shape: tuple[int, int], of: Callable[..., te.Expr]) -> Compute:
    i, j = te.reduce_axis((0, h.shape[0]), "i"), te.reduce_axis((0, h.shape[1]), "j")
    return te.compute(shape, lambda p, q: te.sum(h[i, j] * of(x, i, j, p, q), axis=[i, j]), "y")


def differences(h: Tensor, x: Tensor) -> Compute:
    """How alike an image is to itself, shifted by both directions."""
    return over_images(h, x, (5, 6), lambda x, i, j, p, q: te.abs(x[i + p, j + q] - x[i + 2, j + 2]))


def envelopes(h: Tensor, x: Tensor) -> Compute:
    """Of an image and itself, shifted within a row and within a column."""
    return over_images(h, x, (4, 5), lambda x, i, j, p, q: te.maximum(x[i + p, j], x[i, j + q]))


def hinges(h: Tensor, x: Tensor) -> Compute:
    """Of differences between places in one row, by where both stand."""
    return over_images(h, x, (6, 5), lambda x, i, j, p, q: te.relu(x[i, j + p] - x[i + 1, j + q]))


FUNCTIONS: dict[str, tuple[Callable[..., Compute], Callable[..., Any], tuple[int, int]]] = {
    "differences": (differences, lambda at, p, q: jnp.abs(at(p, q) - at(2, 2)), (5, 6)),
    "envelopes": (envelopes, lambda at, p, q: jnp.maximum(at(p, 0), at(0, q)), (4, 5)),
    "hinges": (hinges, lambda at, p, q: jax.nn.relu(at(0, p) - at(1, q)), (6, 5)),
}
SHAPE = (90, 100)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_result_is_a_sum(name: str, rng: np.random.Generator) -> None:
    builder, of, shape = FUNCTIONS[name]
    h, x = (rng.standard_normal(s).astype("float32") for s in (SHAPE, (95, 105)))
    fn = te.function(builder)
    forward = fn.source(h, x).partition("def backward")[0]
    assert "einsum" not in forward and forward.count("jnp.sum(") == np.prod(shape)
    assert fn.explain(h, x).forms["y"].startswith("coordinates apart")

    def plain(h: Any, x: Any) -> Any:
        at = lambda p, q: x[p : p + SHAPE[0], q : q + SHAPE[1]]  # noqa: E731
        return jnp.stack(
            [jnp.stack([jnp.sum(h * of(at, p, q)) for q in range(shape[1])]) for p in range(shape[0])]
        )

    np.testing.assert_allclose(fn(h, x), plain(h, x), rtol=1e-3, atol=1e-2)
    own, theirs = (
        jax.grad(lambda h, x, f=f: jnp.sum(jnp.sin(f(h, x) / 100)), argnums=(0, 1))(h, x) for f in (fn, plain)
    )
    for a, b in zip(own, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)


def test_more_results_than_are_written_out_are_one_sum() -> None:
    given = jax.ShapeDtypeStruct(SHAPE, "float32"), jax.ShapeDtypeStruct((120, 130), "float32")

    def many(h: Tensor, x: Tensor) -> Compute:
        return over_images(h, x, (15, 15), lambda x, i, j, p, q: te.abs(x[i + p, j + q] - x[i + 2, j + 2]))

    assert (
        te.function(many, platform="cpu").source(*given).partition("def backward")[0].count("jnp.sum(") < 20
    )
