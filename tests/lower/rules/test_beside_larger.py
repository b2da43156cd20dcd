"""Windows beside weights that differ from place to place are laid out, where they take no more than the weights: one product for each place."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te


def locally_connected(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    places, taps, features, out = w.shape
    k, c = te.reduce_axis((0, taps), "k"), te.reduce_axis((0, features), "c")
    element = lambda b, t, o: te.sum(x[b, t + k, c] * w[t, k, c, o], axis=[k, c])  # noqa: E731
    return te.compute((x.shape[0], places, out), element, "y")


def plain_locally_connected(x: jax.Array, w: jax.Array) -> jax.Array:
    windows = jnp.stack([x[:, k : k + w.shape[0]] for k in range(w.shape[1])], 2)
    return jnp.einsum("btkc,tkco->bto", windows, w)


def strided(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """A patch for each place, two apart, with matrices of its own."""
    places, taps, features, out = w.shape
    k, c = te.reduce_axis((0, taps), "k"), te.reduce_axis((0, features), "c")
    element = lambda b, t, o: te.sum(w[t, k, c, o] * x[b, c, 2 * t + k], axis=[k, c])  # noqa: E731
    return te.compute((x.shape[0], places, out), element, "y")


def plain_strided(x: jax.Array, w: jax.Array) -> jax.Array:
    n = w.shape[0]
    windows = jnp.stack([x[:, :, k : k + 2 * n - 1 : 2] for k in range(w.shape[1])], 3)
    return jnp.einsum("bctk,tkco->bto", windows, w)


def mixed_heads(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """Neighbours of each head and place, mixed by what is learned for them."""
    heads, places, taps, features, out = w.shape
    k, c = te.reduce_axis((0, taps), "k"), te.reduce_axis((0, features), "c")
    element = lambda b, h, t, o: te.sum(x[b, h, t + k, c] * w[h, t, k, c, o], axis=[k, c])  # noqa: E731
    return te.compute((x.shape[0], heads, places, out), element, "y")


def plain_mixed_heads(x: jax.Array, w: jax.Array) -> jax.Array:
    windows = jnp.stack([x[:, :, k : k + w.shape[1]] for k in range(w.shape[2])], 3)
    return jnp.einsum("bhtkc,htkco->bhto", windows, w)


Case = tuple[Callable[..., te.Tensor], Callable[..., jax.Array], tuple[tuple[int, ...], tuple[int, ...]]]
CASES: list[Case] = [
    (locally_connected, plain_locally_connected, ((4, 16, 6), (12, 5, 6, 8))),
    (strided, plain_strided, ((3, 4, 20), (9, 3, 4, 6))),
    (mixed_heads, plain_mixed_heads, ((2, 3, 10, 4), (3, 8, 3, 4, 5))),
]


@pytest.mark.parametrize(("build", "plain", "shapes"), CASES)
def test_each_place_has_one_product(
    build: Callable[..., te.Tensor],
    plain: Callable[..., jax.Array],
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
    rng: np.random.Generator,
) -> None:
    args = [rng.standard_normal(s).astype("float32") for s in shapes]
    own = te.function(build)
    assert own.source(*args).split("def backward")[0].count("einsum(") == 1
    np.testing.assert_allclose(own(*args), plain(*args), rtol=1e-4, atol=1e-5)
    slopes = [jax.grad(lambda *a, f=f: jnp.sum(f(*a) ** 2), (0, 1))(*args) for f in (own, plain)]
    for ours, theirs in zip(*slopes, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3)


def test_windows_that_take_more_than_the_weights_are_slices() -> None:
    shapes = (64, 16, 6), (12, 5, 6, 8)
    text = te.function(locally_connected, forms={"y": "general"}).source(
        *(np.zeros(s, "float32") for s in shapes)
    )
    assert text.split("def backward")[0].count("einsum(") == 5
