"""Reductions that depend on fewer numbers than they have axes are made once for each of these."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxte as te
from jaxte.planning.graph import planned
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute

k, m = te.reduce_axis((0, 3), "k"), te.reduce_axis((0, 3), "m")


def nested(x: Any) -> te.Tensor:
    return te.compute((8, 8), lambda i, j: te.max(te.max(x[2 * i + k, j + m], axis=m), axis=k), "y")


def shapes(tensor: te.Tensor) -> dict[str, tuple[Any, ...]]:
    return {t.name: t.shape for t in topological_order(planned([tensor])) if isinstance(t, Compute)}


def test_an_inner_maximum_is_found_once_for_each_row() -> None:
    x = te.placeholder((17, 10), name="x")
    assert shapes(nested(x)) == {"y_0_over_m": (17, 8), "y": (8, 8)}


def test_strides_that_leave_rows_out_have_only_their_own() -> None:
    x = te.placeholder((40, 10), name="x")
    rows = te.compute((8, 8, 3), lambda i, j, k: te.max(x[5 * i + k, j + m], axis=m), "rows")
    y = te.compute((8, 8), lambda i, j: te.sum(rows[i, j, k], axis=k), "y")
    assert shapes(y)["rows"] == (8, 8, 3)


def test_values_and_gradients(rng: np.random.Generator) -> None:
    x = rng.standard_normal((17, 10)).astype("float32")

    def plain(x: Any) -> Any:
        rows = jnp.max(jnp.stack([x[:, m : m + 8] for m in range(3)]), 0)
        return jnp.max(jnp.stack([rows[k : k + 15 : 2] for k in range(3)]), 0)

    fn = te.function(nested)
    head = rng.standard_normal((8, 8)).astype("float32")
    for own, other in zip(jax.vjp(fn, x), jax.vjp(plain, x), strict=True):
        own, other = (f(head)[0] if callable(f) else f for f in (own, other))
        np.testing.assert_allclose(own, other, rtol=1e-5, atol=1e-5)


def test_conditions_with_terms_of_their_own_stay() -> None:
    """A maximum of axes in a condition was left over axes that the tensor of all values does not have."""
    x = np.array([1.0, -2.0, 3.0, 4.0, -5.0], "float32")
    k = te.reduce_axis((0, 5), "k")

    def build(x: Any) -> Any:
        inside = te.compute(
            (3, 3), lambda i, j: te.sum(x[k], axis=k, where=te.maximum(j, i) == j + 1), "inside"
        )
        return te.compute((3, 3, 2), lambda i, j, c: inside[i, j] * (c + 1), "y")

    i, j = np.arange(3)[:, None], np.arange(3)
    expected = np.where(np.maximum(i, j) == j + 1, x.sum(), 0.0)[:, :, None] * np.array([1.0, 2.0])
    np.testing.assert_allclose(te.function(build)(x), expected, rtol=1e-6)
