"""A dear function that several products of matrices read is computed once, as XLA counts it, and where it is worth an array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.xla_counts import Fused

Builder = Callable[..., te.Tensor]
N, M, K = 30, 40, 16


def of_waves(x: te.Tensor, w: te.Tensor, a: te.Tensor) -> te.Tensor:
    j = te.reduce_axis((0, M), "j")
    return te.compute((N, K), lambda i, k: te.sum(te.sin(x[i, j] * w[k]) * a[j], axis=j), "y")


def waves(x: Any, w: Any, a: Any) -> Any:
    return jnp.einsum("ijk,j->ik", jnp.sin(x[..., None] * w), a)


def of_a_layer(x: te.Tensor, w: te.Tensor, a: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, K), "k")
    return te.compute((N, M, 3), lambda i, j, o: te.sum(te.cos(x[i, j] * w[k]) * a[k, o], axis=k), "y")


def layer(x: Any, w: Any, a: Any) -> Any:
    return jnp.cos(x[..., None] * w) @ a


def of_bends(x: te.Tensor, w: te.Tensor, a: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, K), "k")
    return te.compute((N, M), lambda i, j: te.sum(te.tan(0.3 * te.tanh(x[i, j] * w[k])) * a[k], axis=k), "y")


def bends(x: Any, w: Any, a: Any) -> Any:
    return jnp.tan(0.3 * jnp.tanh(x[..., None] * w)) @ a


SHAPES = {of_waves: ((N, M), (K,), (M,)), of_a_layer: ((N, M), (K,), (K, 3)), of_bends: ((N, M), (K,), (K,))}
PLAIN: dict[Builder, Callable[..., Any]] = {of_waves: waves, of_a_layer: layer, of_bends: bends}


def drawn(build: Builder, rng: np.random.Generator) -> list[Any]:
    return [jnp.asarray(rng.standard_normal(s), "float32") for s in SHAPES[build]]


def both_passes(f: Callable[..., Any]) -> Callable[..., Any]:
    def called(H: Any, *args: Any) -> Any:
        y, pull = jax.vjp(f, *args)
        return y, *pull(H)

    return jax.jit(called)


@pytest.mark.parametrize(("build", "most"), [(of_waves, 2), (of_a_layer, 2), (of_bends, 4)])
def test_each_is_computed_once(build: Builder, most: int, rng: np.random.Generator) -> None:
    """The sine and the cosine of each point; of a tangent, XLA counts its sine and cosine, and the hyperbolic one twice."""
    args = drawn(build, rng)
    own, plain = te.function(build), PLAIN[build]
    H = jnp.asarray(rng.standard_normal(plain(*args).shape), "float32")
    compiled = Fused(both_passes(own).lower(H, *args))
    assert compiled.cost_analysis()["transcendentals"] <= most * N * M * K
    for found, expected in zip(compiled(H, *args), both_passes(plain)(H, *args), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=2e-3)


def test_what_they_have_in_common_is_multiplied_once() -> None:
    source = te.source(te.function(of_waves), *(jax.ShapeDtypeStruct(s, "float32") for s in SHAPES[of_waves]))
    backward = str(source).split("def backward(")[1]
    assert backward.count("jnp.cos(") == 1
    assert "_apart(dy_sin" in backward


@pytest.mark.parametrize("platform", ["gpu", "tpu"])
def test_where_products_fuse_what_they_read_it_is_computed_again(platform: str) -> None:
    shapes = [jax.ShapeDtypeStruct(s, "float32") for s in SHAPES[of_waves]]
    told = te.explain(te.function(of_waves, platform=platform), *shapes)
    assert "functions in common" not in str(told.passes)


def of_cheap(x: te.Tensor, w: te.Tensor, a: te.Tensor) -> te.Tensor:
    j = te.reduce_axis((0, M), "j")
    return te.compute((N, K), lambda i, k: te.sum(te.exp(x[i, j] * w[k]) * a[j], axis=j), "y")


def of_few(x: te.Tensor, w: te.Tensor, a: te.Tensor) -> te.Tensor:
    j = te.reduce_axis((0, 2), "j")
    return te.compute((2, 2), lambda i, k: te.sum(te.sin(x[i, j] * w[k]) * a[j], axis=j), "y")


@pytest.mark.parametrize(
    ("build", "shapes"), [(of_cheap, ((N, M), (K,), (M,))), (of_few, ((2, 2), (2,), (2,)))]
)
def test_near_misses(build: Builder, shapes: Any) -> None:
    """An exponential takes about as long as an array of it does, and so does any function of a few points."""
    told = te.explain(te.function(build), *(jax.ShapeDtypeStruct(s, "float32") for s in shapes))
    assert "functions in common" not in str(told.passes)
