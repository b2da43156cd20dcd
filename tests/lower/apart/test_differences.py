"""Sums with a difference of what depends on other axes: products of matrices where that is faster and exact enough, and what they give at the edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.tensors.tensor import Compute, Tensor

APART = "differences apart"
ASKED = {"*": APART}


def weighted(w: Tensor, x: Tensor, y: Tensor) -> Compute:
    j = te.reduce_axis((0, y.shape[0]), "j")
    return te.compute(x.shape, lambda i, c: te.sum(w[i, j] * (x[i, c] - y[j, c]), axis=j), "u")


def squared(x: Tensor, y: Tensor) -> Compute:
    q = te.reduce_axis((0, x.shape[1]), "q")
    return te.compute((x.shape[0], y.shape[0]), lambda i, j: te.sum((x[i, q] - y[j, q]) ** 2, axis=q), "d2")


def pushed(kernel: Callable[[Any], Any]) -> Callable[[Tensor, Tensor], Compute]:
    """The sum of a function of the squared distances."""

    def build(x: Tensor, y: Tensor) -> Compute:
        i, j = te.reduce_axis((0, x.shape[0]), "i"), te.reduce_axis((0, y.shape[0]), "j")
        d2 = squared(x, y)
        return te.compute((), lambda: te.sum(kernel(d2[i, j]), axis=(i, j)), "e")

    return build


def points(n: int, features: int = 16, seed: int = 0, dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, features)).astype(dtype)


def rewritten(report: te.Explanation) -> set[str]:
    return {name for choices in report.choices.values() for c in choices for name in c.rewrites}


def refused(report: te.Explanation) -> dict[str, str]:
    return {form: why for choices in report.choices.values() for c in choices for form, why in c.refused}


def test_both_passes_are_products_of_matrices() -> None:
    w, x, y = np.abs(points(60, 50)), points(60), points(50, seed=1)
    text = te.function(weighted, forms=ASKED).source(w, x, y)
    assert text.count("jnp.einsum") == 3
    assert "[:, None, :] - " not in text
    assert APART in rewritten(te.explain(te.function(weighted), w, x, y))
    assert APART not in rewritten(te.explain(te.function(weighted, without=APART), w, x, y))


def test_far_from_zero_as_exact_as_the_difference() -> None:
    w, x, y = np.abs(points(60, 50)), 1000 + points(60), 1000 + points(50, seed=1)
    exact = np.einsum("ij,ijc->ic", np.float64(w), np.float64(x)[:, None] - np.float64(y)[None])
    plain = jnp.sum(w[:, :, None] * (x[:, None] - y[None]), axis=1)
    own = te.function(weighted, forms=ASKED)(w, x, y)
    off, plain_off = (np.abs(np.float64(a) - exact).max() for a in (own, plain))
    assert off < 4 * plain_off


@pytest.mark.parametrize("features", [2, 3, 8])
def test_gradients_of_narrow_kernels_over_few_features_are_those_of_the_difference(features: int) -> None:
    """Points are 200 times as far apart as a kernel reaches."""
    x, y = (200 * points(n, features, n) / features**0.5 for n in (60, 300))
    y[:50] = x[:50] + 0.3 * points(50, features, seed=2)
    kernel = lambda d: te.exp(-0.5 * d)  # noqa: E731
    plain = lambda x, y: jnp.sum(jnp.exp(-0.5 * jnp.sum((x[:, None] - y[None]) ** 2, -1)))  # noqa: E731
    own, of_jax = (jax.grad(f)(x, y) for f in (te.function(pushed(kernel)), plain))
    with jax.enable_x64(True):
        exact = np.asarray(jax.grad(plain)(np.float64(x), np.float64(y)))
    off, plain_off = (float(np.abs(np.float64(a) - exact).max()) for a in (own, of_jax))
    assert off < 2 * plain_off + 4 * np.finfo("float32").eps * np.abs(exact).max()
    asked = te.explain(te.function(weighted), np.ones((60, 300), "float32"), x, y)
    assert APART not in rewritten(asked)
    assert APART not in refused(asked) or "few features" in refused(asked)[APART]


@pytest.mark.parametrize(
    ("kernel", "is_taken"),
    [
        (lambda d: te.exp(-0.5 * d), True),
        (lambda d: 1 / (1 + d), True),
        (lambda d: (2 + d) ** -1.5, True),
        (te.tanh, True),
        (lambda d: te.sqrt(d + 1e-6), False),
        (lambda d: te.log(te.maximum(d, 1e-6)), False),
        (lambda d: 1 / (1e-4 + d), False),
    ],
    ids=["exp", "Cauchy", "multiquadric", "tanh", "distance", "log with a floor", "inverse"],
)
def test_weights_that_grow_where_points_coincide(kernel: Callable[[Any], Any], is_taken: bool) -> None:
    x, y = points(60), points(50, seed=1)
    report = te.explain(te.function(pushed(kernel)), x, y)
    assert (APART in rewritten(report)) == is_taken
    asked = te.function(pushed(kernel), forms=ASKED)
    assert APART in rewritten(te.explain(asked, x, y))
    exact = jax.grad(te.function(pushed(kernel), without=(APART, "steps")), argnums=(0, 1))(x, y)
    for own, wanted in zip(jax.grad(asked, argnums=(0, 1))(x, y), exact, strict=True):
        np.testing.assert_allclose(own, wanted, rtol=1e-4, atol=1e-5 * np.abs(wanted).max())


def test_why_is_told() -> None:
    x, y = points(400), points(300, seed=1)
    own = refused(te.explain(te.function(squared), x, y))
    assert own[APART].startswith("faster, but nothing is known of the weights") or APART not in own
    assert APART not in rewritten(te.explain(te.function(squared), x, y))


def test_points_that_coincide_pull_on_nothing() -> None:
    """Distances of points to themselves: the weights are 5e5 where the difference is exactly 0."""
    x = points(40)
    fn = te.function(squared)
    own = jax.grad(lambda x, y: jnp.sum(jnp.sqrt(fn(x, y) + 1e-12)))(x, x)
    plain = jax.grad(lambda x, y: jnp.sum(jnp.sqrt(jnp.sum((x[:, None] - y[None]) ** 2, -1) + 1e-12)))(x, x)
    np.testing.assert_allclose(own, plain, rtol=1e-5, atol=1e-5)


def test_squares_of_differences_are_not_multiplied_out() -> None:
    x, y = points(60), points(50, seed=1)
    named = te.function(squared, forms=ASKED)
    assert "einsum" not in named.source(x, y).split("def backward")[0]


def test_a_first_row_that_is_no_number_spoils_what_it_spoils_in_the_difference() -> None:
    """``sum over c of h[i, c] * (x[i, c] - y[j, c])``: NaN in the first row of y is in one column."""

    def scores(h: Tensor, x: Tensor, y: Tensor) -> Compute:
        c = te.reduce_axis((0, x.shape[1]), "c")
        return te.compute(
            (x.shape[0], y.shape[0]), lambda i, j: te.sum(h[i, c] * (x[i, c] - y[j, c]), axis=c), "s"
        )

    h, x, y = points(6), points(6, seed=1), points(5, seed=2)
    y[0, 3] = np.nan
    own = te.function(scores, forms=ASKED)(h, x, y)
    np.testing.assert_allclose(own, jnp.sum(h[:, None] * (x[:, None] - y[None]), -1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("sizes", [(0, 3, 2), (3, 0, 2), (3, 2, 0), (1, 1, 1), (4, 1, 3)])
def test_few_or_no_points(sizes: tuple[int, int, int]) -> None:
    n, m, features = sizes
    w, x, y = np.ones((n, m), "float32"), points(n, features), points(m, features, seed=1)
    own = te.function(weighted, forms=ASKED)(w, x, y)
    np.testing.assert_allclose(
        own, np.sum(w[:, :, None] * (x[:, None] - y[None]), axis=1), rtol=1e-5, atol=1e-5
    )


def test_second_derivatives_and_batches() -> None:
    x, y = points(12, 3), points(9, 3, seed=1)
    fn = te.function(pushed(lambda d: te.exp(-0.5 * d)), forms=ASKED)
    plain = lambda x, y: jnp.sum(jnp.exp(-0.5 * jnp.sum((x[:, None] - y[None]) ** 2, -1)))  # noqa: E731
    own, wanted = (jax.jvp(jax.grad(f), (x, y), (x, 0 * y))[1] for f in (fn, plain))
    np.testing.assert_allclose(own, wanted, rtol=1e-4, atol=1e-4)
    many = np.stack([x, 2 * x])
    own, wanted = (jax.vmap(jax.grad(f), (0, None))(many, y) for f in (fn, plain))
    np.testing.assert_allclose(own, wanted, rtol=1e-4, atol=1e-4)


def test_other_platforms_keep_the_difference() -> None:
    """They round the operands of products to fewer bits."""
    w, x, y = np.ones((60, 50), "float32"), points(60), points(50, seed=1)
    for platform in ("gpu", "tpu"):
        fn = te.function(weighted, platform=platform)
        assert APART not in rewritten(te.explain(fn, w, x, y))
