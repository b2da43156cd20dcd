"""What the forms of windows compute and hold: winners against jax.grad of ``lax.reduce_window``, temporaries of a box filter."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxte as te
from jaxte import ops


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


def box(source: te.Tensor, size: int) -> te.Compute:
    p, q = te.reduce_axis((0, size), "p"), te.reduce_axis((0, size), "q")
    h, (_, height, width) = size // 2, source.shape

    def body(n, i, j):
        y, x = i + p - h, j + q - h
        inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
        return te.sum(source[n, y, x], axis=[p, q], where=inside)

    return te.compute(source.shape, body, "Y")


def compiled(source: te.Tensor, size: int) -> tuple[str, Any]:
    fn = te.function([X], box(source, size), forms={"Y": "separable slices"})
    argument = jax.ShapeDtypeStruct(X.shape, X.dtype)
    return fn.source(argument), jax.jit(fn).lower(argument).compile()


X = te.placeholder((4, 128, 128), name="X")
IMAGES = 4 * 128 * 128 * 4


@pytest.mark.parametrize(("size", "images"), [(2, 1.1), (3, 1.1), (5, 1.1), (7, 1.1)])
def test_only_what_is_between_two_passes_is_held(size: int, images: float) -> None:
    text, program = compiled(X, size)
    assert "lax.pad(X" in text
    assert program.memory_analysis().temp_size_in_bytes < images * IMAGES


def test_what_is_costly_to_make_is_made_once() -> None:
    """XLA would compute it again for each shifted array that is padded by itself."""
    root = te.compute(X.shape, lambda n, i, j: te.sqrt(1 + X[n, i, j]) / (2 + te.sqrt(X[n, i, j])), "R")
    half = te.compute(X.shape, lambda n, i, j: root[n, i, j] / 2, "S")
    for source in (root, half):
        text, program = compiled(source, 5)
        assert "lax.pad(" not in text.split("def backward")[0]
        assert program.as_text().count(" sqrt(") == 2
    twice = te.compute(X.shape, lambda n, i, j: 2 * X[n, i, j], "T")
    assert "lax.pad(T" in compiled(twice, 5)[0]
