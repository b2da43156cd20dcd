"""Products of matrices written as products of repeated arrays and their sums, and convolutions that are products of matrices."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxte as te
from tests.xla_counts import Fused


def cosine(x: Any, y: Any) -> Any:
    return jnp.sum(x * y) / jnp.sqrt(jnp.sum(x * x) * jnp.sum(y * y))


def by_hand(q: Any, k: Any, v: Any) -> Any:
    weights = jax.nn.softmax(jnp.sum(q[:, None] * k[None], -1), -1)
    return jnp.sum(weights[..., None] * v[None], 1)


def patches(x: Any, w: Any, **options: Any) -> Any:
    numbers = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, w, w.shape[:2], "VALID", dimension_numbers=numbers, **options)


def points(x: Any, w: Any, stride: int = 2) -> Any:
    return lax.conv_general_dilated(x, w, (stride, stride), "VALID")


# with how many products of matrices there are in the gradient, forward and backward
PRODUCTS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]], int]] = {
    "an outer product": (lambda a, b: jnp.sum(a[:, None] * b[None], -1), [(60, 30), (50, 30)], 3),
    "summed in the middle": (lambda a, b: jnp.sum(a[..., None] * b, 1), [(60, 30), (30, 50)], 3),
    "of two vmaps": (jax.vmap(jax.vmap(cosine, (None, 0)), (0, None)), [(60, 30), (50, 30)], 3),
    "of a batch": (lambda a, b: jnp.sum(a[:, :, None] * b[:, None], -1), [(8, 40, 16), (8, 40, 16)], 3),
    "three factors": (lambda a, b: jnp.sum(a[:, None] * b[None] * b[0], -1), [(60, 30), (50, 30)], 3),
    "attention": (by_hand, [(60, 24), (50, 24), (50, 24)], 6),
    "patches": (patches, [(2, 32, 32, 3), (8, 8, 3, 64)], 3),
    "the highest precision": (partial(patches, precision="highest"), [(2, 64, 64, 3), (8, 8, 3, 64)], 3),
    "single points": (points, [(2, 64, 24, 24), (32, 64, 1, 1)], 3),
}
SAME: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "few elements": (lambda a, b: jnp.sum(a[:, None] * b[None], -1), [(8, 4), (8, 4)]),
    "one factor repeated": (lambda a, b: jnp.sum(a * b[None], -1), [(600, 30), (30,)]),
    "points of a line, features first": (
        lambda x, w: lax.conv(x, w, (1,), "VALID"),
        [(8, 32, 300), (32, 32, 1)],
    ),
    "points of a line, features last": (
        lambda x, w: lax.conv_general_dilated(x, w, (1,), "VALID", dimension_numbers=("NHC", "HIO", "NHC")),
        [(8, 300, 32), (1, 32, 32)],
    ),
    "the product is read": (lambda a, b: (p := a[:, None] * b[None]).sum(-1) + p[..., 0], [(60, 30)] * 2),
    "windows that overlap": (lambda x, w: lax.conv(x, w, (1, 1), "VALID"), [(2, 8, 24, 24), (16, 8, 2, 2)]),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_they_are_products_of_matrices(name: str, rng: np.random.Generator) -> None:
    f, shapes, products = PRODUCTS[name]
    args = _arguments(shapes, rng)
    own, jaxs = _compiled(f, args)
    for a, b in zip(jax.tree.leaves(own(*args)), jax.tree.leaves(jaxs(*args)), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5 * float(abs(b).max()))
    text = own.as_text()
    assert text.count(" dot(") == products and " convolution(" not in text


@pytest.mark.parametrize("name", SAME)
def test_what_is_as_good_in_jax_stays(name: str, rng: np.random.Generator) -> None:
    f, shapes = SAME[name]
    args = _arguments(shapes, rng)
    loss = lambda *xs: jnp.sum(jnp.tanh(f(*xs)))  # noqa: E731
    assert not te.explain(te.grad(loss), *args).regions


def test_all_products_are_never_written(rng: np.random.Generator) -> None:
    args = _arguments([(200, 64), (200, 64)], rng)
    own, jaxs = _compiled(lambda a, b: jnp.sum(a[:, None] * b[None], -1), args)
    every = 200 * 200 * 64 * 4
    temporaries = [c.memory_analysis().temp_size_in_bytes for c in (own, jaxs)]
    assert 8 * temporaries[0] < every <= temporaries[1]


def test_a_square_of_a_product_is_a_product_of_squares(rng: np.random.Generator) -> None:
    args = _arguments([(30, 30), (30, 30)], rng)
    kron = lambda a, b: jnp.sum((a[:, None, :, None] * b[None, :, None]) ** 2)  # noqa: E731
    expected = jax.grad(kron)(*args)
    np.testing.assert_allclose(te.grad(kron)(*args), expected, rtol=1e-4)
    assert len(te.explain(te.grad(kron), *args).regions) == 1


def test_second_derivatives_and_tangents_of_patches(rng: np.random.Generator) -> None:
    x, w = _arguments([(2, 32, 32, 3), (8, 8, 3, 64)], rng)
    loss = lambda x, w: jnp.sum(jnp.tanh(patches(x, w)))  # noqa: E731
    found, expected = (jax.jvp(jax.grad(f), (x, w), (w[0, 0, 0, 0] * x, w)) for f in (te.adjoint(loss), loss))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=2e-5 * float(abs(b).max()))


def _arguments(shapes: list[tuple[int, ...]], rng: np.random.Generator) -> list[Any]:
    return [jnp.asarray(0.3 * rng.normal(size=s).astype("float32")) for s in shapes]


def _compiled(f: Callable[..., Any], args: list[Any]) -> list[Any]:
    loss = lambda *xs: jnp.sum(jnp.tanh(f(*xs)))  # noqa: E731
    floats = tuple(range(len(args)))
    return [Fused(jax.jit(jax.value_and_grad(g, floats)).lower(*args)) for g in (te.adjoint(loss), loss)]
