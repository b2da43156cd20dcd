"""What the forms of windows compute and hold: winners against jax.grad of ``lax.reduce_window``, what a box filter holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxte as te
from jaxte import ops
from tests.xla_counts import Fused


@pytest.mark.parametrize("form", ["shifted slices", "separable slices", "doubling slices", "general"])
@pytest.mark.parametrize(("size", "stride", "pad"), [(2, 2, 0), (3, 2, 0), (3, 2, 1), (3, 1, 1), (4, 1, 2)])
def test_the_first_of_equal_maxima_gets_the_gradient(form: str, size: int, stride: int, pad: int) -> None:
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.integers(0, 3, (2, 2, 8, 9)), jnp.float32)  # many are equal, some of them 0

    def plain(x):
        window, step, pads = (1, 1, size, size), (1, 1, stride, stride), [(0, 0)] * 2 + [(pad, pad)] * 2
        return lax.reduce_window(x, -jnp.inf, lax.max, window, step, pads)

    run = te.function(lambda x: ops.max_pool2d(x, size, stride, pad), forms={"*": form})
    head = jnp.asarray(rng.standard_normal(plain(x).shape), jnp.float32)
    np.testing.assert_array_equal(run(x), plain(x))
    expected = jax.vjp(plain, x)[1](head)[0]
    np.testing.assert_allclose(jax.vjp(run, x)[1](head)[0], expected, rtol=1e-5, atol=1e-5)
    if form == "shifted slices":
        hlo = jax.jit(lambda x: jax.vjp(run, x)[1](head)).lower(x).as_text()
        assert not any(
            f"stablehlo.{op}" in hlo for op in ("scatter", "gather", "while", "select_and_scatter")
        )


X = te.placeholder((4, 128, 192), name="X")
IMAGES = 4 * 128 * 192 * 4
APART = "separable slices without a copy"


def box(size: int, **options: Any) -> Any:
    p, q = te.reduce_axis((0, size), "p"), te.reduce_axis((0, size), "q")
    h, (_, height, width) = size // 2, X.shape

    def body(n, i, j):
        y, x = i + p - h, j + q - h
        inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
        return te.sum(X[n, y, x], axis=[p, q], where=inside)

    return te.function([X], te.compute(X.shape, body, "Y"), **options)


def compiled(fn: Callable[..., Any]) -> Any:
    return Fused(jax.jit(fn).lower(jax.ShapeDtypeStruct(X.shape, X.dtype)))


@pytest.mark.parametrize("size", [2, 3, 5, 7])
def test_only_what_is_between_two_passes_is_held(size: int) -> None:
    fn = box(size, forms={"Y": APART})
    assert compiled(fn).memory_analysis().temp_size_in_bytes < 1.1 * IMAGES
    other = box(size, forms={"Y": "separable slices"})
    assert compiled(other).memory_analysis().temp_size_in_bytes > 2 * IMAGES
    x = np.random.default_rng(0).standard_normal(X.shape).astype(np.float32)
    np.testing.assert_allclose(fn(x), other(x), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("before", "call"),
    [(jnp.tanh, " tanh("), (jnp.log1p, " log-plus-one(")],
    ids=["tanh", "log1p"],
)
def test_what_makes_the_image_is_computed_before(before: Callable[..., Any], call: str) -> None:
    """Within one loop XLA would compute it for each shifted array, in a branch and without vectors."""
    fn = box(5, forms={"Y": APART})
    computations = compiled(lambda x: fn(before(x))).as_text().split("\n}")
    (own,) = [text for text in computations if call in text]
    assert " pad(" not in own and " slice(" not in own
    x = jnp.ones(X.shape)
    np.testing.assert_allclose(jax.jit(lambda x: fn(before(x)))(x), fn(before(x)), rtol=1e-5)
    jax.jit(jax.vmap(jax.grad(lambda x: jnp.sum(fn(before(x)) ** 2))))(x[None])


def test_large_images_on_a_cpu_are_padded_so() -> None:
    x = jax.ShapeDtypeStruct(X.shape, X.dtype)
    assert "_first(X)" in box(3).source(x)
    assert "_first" not in box(3, platform="gpu").source(x)
    small = te.function(lambda x: ops.avg_pool2d(x, 3, 1, 1))
    assert "_first" not in small.source(jax.ShapeDtypeStruct((2, 2, 8, 8), jnp.float32))
