"""Functions at quotients and remainders of positions: one for each of the elements that there are, however many points read it, in both passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from harness.sides import with_gradients
from jaxte.planning.indices.shared_elements import Shared, with_shared_elements
from jaxte.tensors.structure import topological_order
from tests.xla_counts import Fused


def by_pairs(x: te.Tensor, a: te.Tensor) -> te.Tensor:
    """Neighbours turned by an angle that they share."""

    def element(i: te.Axis, j: te.Axis) -> te.Expr:
        own, last = a[i, j // 2], x.shape[1] - 1
        even = x[i, j] * te.cos(own) - x[i, te.minimum(j + 1, last)] * te.sin(own)
        return te.select(j % 2 == 0, even, x[i, j] * te.cos(own) + x[i, te.maximum(j - 1, 0)] * te.sin(own))

    return te.compute(x.shape, element, "y")


def plain_by_pairs(x: jax.Array, a: jax.Array) -> jax.Array:
    even, odd, c, s = x[:, ::2], x[:, 1::2], jnp.cos(a), jnp.sin(a)
    return jnp.stack([even * c - odd * s, odd * c + even * s], -1).reshape(x.shape)


def by_halves(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """Both halves turned by angles that rise with the position."""
    n, d = x.shape

    def element(i: te.Axis, j: te.Axis) -> te.Expr:
        own, other = i * w[j % (d // 2)], x[i, (j + d // 2) % d]
        turned = te.select(j < d // 2, -other, other)
        return x[i, j] * te.cos(own) + turned * te.sin(own)

    return te.compute((n, d), element, "y")


def plain_by_halves(x: jax.Array, w: jax.Array) -> jax.Array:
    own = jnp.arange(x.shape[0])[:, None] * w
    (a, b), c, s = jnp.split(x, 2, axis=1), jnp.cos(own), jnp.sin(own)
    return jnp.concatenate([a * c - b * s, b * c + a * s], axis=1)


def gated(x: te.Tensor, g: te.Tensor) -> te.Tensor:
    """Images under a gate of a quarter of their resolution, and its rest."""

    def element(c: te.Axis, i: te.Axis, j: te.Axis) -> te.Expr:
        own = te.sigmoid(g[c, i // 4, j // 4])
        return own * x[c, i, j] + (1 - own) * te.tanh(g[c, i // 4, j // 4])

    return te.compute(x.shape, element, "y")


def plain_gated(x: jax.Array, g: jax.Array) -> jax.Array:
    large = lambda z: jnp.repeat(jnp.repeat(z, 4, 1), 4, 2)  # noqa: E731
    own = jax.nn.sigmoid(g)
    return large(own) * x + large((1 - own) * jnp.tanh(g))


def scaled(x: te.Tensor, s: te.Tensor) -> te.Tensor:
    """Weights in blocks with a scale and a bound of their own."""
    block = lambda i, j: s[i // 2, j // 4]  # noqa: E731
    return te.compute(x.shape, lambda i, j: te.exp(block(i, j)) * x[i, j] - te.sin(block(i, j)), "y")


def plain_scaled(x: jax.Array, s: jax.Array) -> jax.Array:
    blocks = x.reshape(s.shape[0], 2, s.shape[1], 4)
    return (jnp.exp(s)[:, None, :, None] * blocks - jnp.sin(s)[:, None, :, None]).reshape(x.shape)


Case = tuple[Callable[..., te.Tensor], Callable[..., Any], tuple[tuple[int, ...], ...], int]
CASES: dict[str, Case] = {
    "turned pairs": (by_pairs, plain_by_pairs, ((64, 160), (64, 80)), 2),
    "turned halves": (by_halves, plain_by_halves, ((64, 160), (80,)), 2),
    "gates": (gated, plain_gated, ((8, 96, 96), (8, 24, 24)), 2),
    "blocks": (scaled, plain_scaled, ((160, 256), (80, 64)), 2),
}


@pytest.mark.parametrize("name", CASES)
def test_one_function_for_each_element(name: str, rng: np.random.Generator) -> None:
    build, plain, shapes, functions = CASES[name]
    inputs = [te.placeholder(s, name=f"x{n}") for n, s in enumerate(shapes)]
    order = topological_order(with_shared_elements((build(*inputs),)))
    assert len([t for t in order if isinstance(t, Shared)]) == functions
    arrays = [rng.normal(size=s).astype("float32") for s in shapes]
    head = rng.normal(size=shapes[0]).astype("float32")
    both = [
        Fused(jax.jit(with_gradients(f, (0, 1))).lower([head], *arrays)) for f in (te.function(build), plain)
    ]
    ours, theirs = (own.cost_analysis()["transcendentals"] for own in both)
    assert ours <= theirs
    found, expected = (jax.tree.leaves(own([head], *arrays)) for own in both)
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, other, rtol=2e-4, atol=2e-4 * np.abs(other).max())


def test_slopes_that_are_functions_of_the_graph_are_read() -> None:
    """The slope of the cosine is the sine that turns the other element: four functions for each angle without it, two with it."""
    x, a = te.placeholder((64, 160), name="x"), te.placeholder((64, 80), name="a")
    text = str(te.function([x, a], by_pairs(x, a)).source())
    backward = text.split("\ndef backward(")[1]
    assert "jnp.sin(" not in backward and "jnp.cos(" not in backward


def test_functions_that_one_branch_has_alone_are_left() -> None:
    """What only some positions compute may be infinite at the others."""
    x, a = te.placeholder((64, 256), name="x"), te.placeholder((64, 128), name="a")
    y = te.compute(x.shape, lambda i, j: x[i, j] * te.select(x[i, j] > 0, te.log(a[i, j // 2]), 1.0), "y")
    assert with_shared_elements((y,))[0] is y


def test_slopes_beyond_what_the_tensor_has(rng: np.random.Generator) -> None:
    """The sines are those of the inner elements: the slope at the ends is computed there."""
    x = rng.normal(size=(64, 160)).astype("float32")

    def build(x: te.Tensor) -> te.Tensor:
        inner = te.compute((64, 155), lambda i, j: te.sin(x[i, j + 2]) - te.sin(x[i, j + 1]), "inner")
        whole = te.compute((64, 158), lambda i, j: te.cos(x[i, j + 2]) - te.cos(x[i, j]), "whole")
        return te.compute((64, 155), lambda i, j: inner[i, j] * whole[i, j + 3], "y")

    def plain(x: jax.Array) -> jax.Array:
        s, c = jnp.sin(x), jnp.cos(x)
        return (s[:, 2:157] - s[:, 1:156]) * (c[:, 2:] - c[:, :158])[:, 3:]

    head = rng.normal(size=(64, 155)).astype("float32")
    found, expected = (jax.vjp(f, x)[1](head)[0] for f in (te.function(build), plain))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_extrema_of_functions_of_positions_alone() -> None:
    k = te.reduce_axis((0, 40), "k")
    y = te.compute((50,), lambda i: te.max(te.sin(te.cast(i + k, "float32")), axis=k), "y")
    expected = np.sin(np.arange(50)[:, None] + np.arange(40)).max(axis=1)
    np.testing.assert_allclose(te.evaluate(y, {}), expected, rtol=1e-5)
