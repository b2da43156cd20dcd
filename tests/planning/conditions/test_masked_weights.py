"""A condition on the taps of a convolution alone is a mask on its weights: one convolution in each direction."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxte as te
from harness.counts import operations
from jaxte.tensors.tensor import Compute, Tensor

Builder = Callable[[Tensor, Tensor], Compute]
Plain = Callable[[jax.Array, jax.Array], jax.Array]


def _axis(lo: int, hi: int, name: str) -> te.Axis:
    return te.reduce_axis((lo, hi), name)


def hexagonal(x: Tensor, w: Tensor) -> Compute:
    k, q, c = _axis(0, 3, "k"), _axis(0, 3, "q"), _axis(0, 4, "c")
    body = lambda b, i, j, o: te.sum(  # noqa: E731
        x[b, i + k, j + q, c] * w[k, q, c, o], axis=(k, q, c), where=te.abs(k + q - 2) < 2
    )
    return te.compute((2, 10, 9, 4), body, "y")


def plain_hexagonal(x: jax.Array, w: jax.Array) -> jax.Array:
    mask = np.float32([[0, 1, 1], [1, 1, 1], [1, 1, 0]])
    return lax.conv_general_dilated(
        x, w * mask[:, :, None, None], (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def above(x: Tensor, w: Tensor) -> Compute:
    """Taps around the centre; those below it, which are not visited at all, are left out."""
    p, q, c = _axis(-2, 3, "p"), _axis(-2, 3, "q"), _axis(0, 4, "c")
    body = lambda b, o, i, j: te.sum(  # noqa: E731
        te.select((p < 0) | ((p == 0) & (q < 0)), w[o, c, p + 2, q + 2] * x[b, c, i + p + 2, j + q + 2], 0.0),
        axis=(c, p, q),
    )
    return te.compute((2, 4, 10, 9), body, "y")


def plain_above(x: jax.Array, w: jax.Array) -> jax.Array:
    p, q = np.mgrid[-2:3, -2:3]
    mask = ((p < 0) | ((p == 0) & (q < 0))).astype("float32")
    return lax.conv_general_dilated(x, w * mask, (1, 1), "VALID")


def even(x: Tensor, w: Tensor) -> Compute:
    """A checked pattern, with a stride."""
    k, q, c = _axis(0, 4, "k"), _axis(0, 4, "q"), _axis(0, 4, "c")
    body = lambda b, i, j, o: te.sum(  # noqa: E731
        x[b, 2 * i + k, 2 * j + q, c] * w[k, q, c, o], axis=(c, k, q), where=(k + q) % 2 == 0
    )
    return te.compute((2, 6, 6, 4), body, "y")


def plain_even(x: jax.Array, w: jax.Array) -> jax.Array:
    mask = (np.indices((4, 4)).sum(0) % 2 == 0).astype("float32")
    return lax.conv_general_dilated(
        x, w * mask[:, :, None, None], (2, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


CASES: dict[str, tuple[Builder, Plain, tuple[int, ...], tuple[int, ...]]] = {
    "hexagonal": (hexagonal, plain_hexagonal, (2, 12, 11, 4), (3, 3, 4, 4)),
    "above": (above, plain_above, (2, 4, 14, 13), (4, 4, 5, 5)),
    "even": (even, plain_even, (2, 14, 14, 4), (4, 4, 4, 4)),
}


@pytest.mark.parametrize("name", CASES)
def test_one_convolution_in_each_direction(name: str, rng: np.random.Generator) -> None:
    builder, plain, *shapes = CASES[name]
    x, w = (jnp.asarray(rng.standard_normal(s), "float32") for s in shapes)
    fn = te.function(builder)
    y, pull = jax.vjp(fn, x, w)
    expected, plain_pull = jax.vjp(plain, x, w)
    head = jnp.asarray(rng.standard_normal(y.shape), "float32")
    for a, b in zip((y, *pull(head)), (expected, *plain_pull(head)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    both = jax.jit(lambda x, w: jax.vjp(fn, x, w)[1](head))
    assert operations(both.lower(x, w).as_text()) == {"convolution": 2}
    assert "slice" not in fn.source(x, w)


def test_what_is_not_visited_is_no_work(rng: np.random.Generator) -> None:
    builder, _, *shapes = CASES["above"]
    text = te.function(builder).source(*(np.zeros(s, "float32") for s in shapes))
    x, w = (np.zeros(s, "float32") for s in shapes)
    weights = te.function(builder).lower(x, w).as_text()
    assert "tensor<4x4x3x5xf32>" in weights, text


def few(x: Tensor, w: Tensor) -> Compute:
    """Two opposite corners: two products."""
    k, q, c = _axis(0, 3, "k"), _axis(0, 3, "q"), _axis(0, 4, "c")
    corners = (k == 2 - q) & (te.abs(k - q) == 2)
    body = lambda b, i, j, o: te.sum(x[b, i + k, j + q, c] * w[k, q, c, o], axis=(k, q, c), where=corners)  # noqa: E731
    return te.compute((2, 10, 9, 4), body, "y")


def test_few_taps_stay_as_they_are() -> None:
    x, w = np.zeros((2, 12, 11, 4), "float32"), np.zeros((3, 3, 4, 4), "float32")
    assert "conv_general_dilated" not in te.function(few).source(x, w).split("def backward")[0]


def faces(x: Tensor, w: Tensor) -> Compute:
    """The seven neighbours of a point of a volume: 7 of 27 positions, as products take less than a convolution of all."""
    p, q, r, c = _axis(0, 3, "p"), _axis(0, 3, "q"), _axis(0, 3, "r"), _axis(0, 4, "c")
    near = te.abs(p - 1) + te.abs(q - 1) + te.abs(r - 1) <= 1
    body = lambda b, i, j, k, o: te.sum(  # noqa: E731
        x[b, i + p, j + q, k + r, c] * w[p, q, r, c, o], axis=(p, q, r, c), where=near
    )
    return te.compute((2, 8, 8, 8, 8), body, "y")


def test_positions_that_take_less_by_themselves_stay() -> None:
    x, w = np.zeros((2, 10, 10, 10, 4), "float32"), np.zeros((3, 3, 3, 4, 8), "float32")
    assert "y_weights" not in te.function(faces).source(x, w)
