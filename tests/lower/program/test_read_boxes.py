"""Tensors of which a box is all that is read are computed as that box."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te


def _padded_convolution(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    n, channels = x.shape
    k, c = te.reduce_axis((0, 5), "k"), te.reduce_axis((0, channels), "c")
    padded = te.compute(
        (n + 4, channels), lambda i, c: te.select((i >= 2) & (i < n + 2), x[i - 2, c], 0.0), "padded"
    )
    filtered = te.compute(
        (n, w.shape[2]), lambda i, o: te.sum(padded[i + k, c] * w[k, c, o], axis=[k, c]), "f"
    )
    return te.compute(filtered.shape, lambda i, o: te.tanh(filtered[i, o]) * filtered[i, o], "y")


def _halves(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """The adjoint of what two inputs are joined into is read by both of their adjoints."""
    n, channels = x.shape
    padded = te.compute(
        (n + 2, 2 * channels),
        lambda i, c: te.select(
            (i >= 1) & (i <= n), te.select(c < channels, x[i - 1, c], te.sin(x[i - 1, c - channels])), 0.0
        ),
        "padded",
    )
    k, c = te.reduce_axis((0, 3), "k"), te.reduce_axis((0, 2 * channels), "c")
    return te.compute((n, w.shape[2]), lambda i, o: te.sum(padded[i + k, c] * w[k, c, o], axis=[k, c]), "y")


def test_the_adjoint_of_a_padded_copy_has_the_shape_of_what_was_padded() -> None:
    args = np.ones((12, 8), "float32"), np.ones((3, 16, 8), "float32")
    text = str(te.source(te.function(_halves), *args))
    backward = text[text.index("def backward") :]
    assert "padding=((1, 1),)" in backward, backward
    assert "padding=((2, 2),)" not in backward, backward


@pytest.mark.parametrize("build", [_padded_convolution, _halves])
@pytest.mark.parametrize("n", [1, 2, 9])
def test_gradients_are_those_of_plain_jax(build: object, n: int) -> None:
    rng = np.random.default_rng(n)
    width, joined = (5, 3) if build is _padded_convolution else (3, 6)
    with jax.enable_x64(True):
        x, w = jnp.asarray(rng.normal(size=(n, 3))), jnp.asarray(rng.normal(size=(width, joined, 4)))

        def plain(x: jax.Array, w: jax.Array) -> jax.Array:
            x = x if build is _padded_convolution else jnp.concatenate([x, jnp.sin(x)], 1)
            z = jnp.pad(x, ((width // 2, width // 2), (0, 0)))
            f = sum(z[k : k + n] @ w[k] for k in range(width))
            return jnp.tanh(f) * f if build is _padded_convolution else f

        own = te.function(build)
        head = jnp.asarray(rng.normal(size=(n, 4)))
        for one, other in zip(jax.vjp(own, x, w)[1](head), jax.vjp(plain, x, w)[1](head), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_elements_that_do_not_depend_on_their_position_are_fewer_too() -> None:
    """The body of such a tensor is the same over any axes."""
    x = te.placeholder((), name="x")
    same = te.compute((7, 5), lambda i, j: te.exp(x[()]), "same")
    y = te.compute((3, 5), lambda i, j: same[i + 1, j] * j, "y")
    found = te.evaluate(y, {x: jnp.float32(0.5)})
    np.testing.assert_allclose(found, np.exp(0.5) * np.broadcast_to(np.arange(5), (3, 5)), rtol=1e-6)


def test_digits_of_positions_are_not_cut() -> None:
    """Fifteen of sixteen elements are no rows of four."""
    x, w = te.placeholder((4,), name="x"), te.placeholder((4,), name="w")
    rows = te.compute((16,), lambda i: te.sin(x[i // 4]) * w[i % 4], "rows")
    y = te.compute((13,), lambda i: rows[i] * rows[i + 2], "y")
    assert "jnp.tile(w, 4))" in te.source(y)
