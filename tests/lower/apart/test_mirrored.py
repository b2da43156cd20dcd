"""Gradients of what depends on pairs of the same points: each is one sum for both of its places in a pair."""

from __future__ import annotations

import re
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.tensors.tensor import Compute, Tensor

MIRRORED = "mirrored sums"


def distances(x: Tensor) -> Compute:
    c = te.reduce_axis((0, x.shape[1]), "c")
    return te.compute((x.shape[0],) * 2, lambda i, j: te.sum((x[i, c] - x[j, c]) ** 2, axis=c), "d2")


def energy(x: Tensor) -> Compute:
    i, j = (te.reduce_axis((0, x.shape[0]), name) for name in "ij")
    d2 = distances(x)
    return te.compute((), lambda: te.sum(te.exp(-d2[i, j]), axis=(i, j)), "e")


def plain_energy(x: jax.Array) -> jax.Array:
    return jnp.sum(jnp.exp(-jnp.sum((x[:, None] - x[None]) ** 2, -1)))


def densities(x: Tensor) -> Compute:
    """One number for each point: what flows back differs from pair to turned pair."""
    j, d2 = te.reduce_axis((0, x.shape[0]), "j"), distances(x)
    return te.compute((x.shape[0],), lambda i: te.sum(te.sqrt(1.0 + d2[i, j]), axis=j), "y")


def plain_densities(x: jax.Array) -> jax.Array:
    return jnp.sum(jnp.sqrt(1.0 + jnp.sum((x[:, None] - x[None]) ** 2, -1)), 1)


def by_coordinates(x: Tensor) -> Compute:
    """Coordinates are written out, as in formulas."""
    j = te.reduce_axis((0, x.shape[0]), "j")
    d = te.compute(
        (x.shape[0],) * 2,
        lambda i, j: (x[i, 0] - x[j, 0]) ** 2 + (x[i, 1] - x[j, 1]) ** 2 + (x[i, 2] - x[j, 2]) ** 2 + 0.1,
        "d",
    )
    return te.compute((x.shape[0],), lambda i: te.sum(te.log(d[i, j]), axis=j), "y")


def plain_by_coordinates(x: jax.Array) -> jax.Array:
    return jnp.sum(jnp.log(jnp.sum((x[:, None] - x[None]) ** 2, -1) + 0.1), 1)


def rates(x: Tensor) -> Compute:
    """Distances and the change of distances, of which each is a sum over pairs."""
    i, j = (te.reduce_axis((0, x.shape[0]), name) for name in "ij")
    c, d2 = te.reduce_axis((0, x.shape[1]), "c"), distances(x)
    v = te.compute(x.shape, lambda i, c: te.sin(x[i, c]), "v")
    r = te.compute(
        (x.shape[0],) * 2, lambda i, j: te.sum((v[i, c] - v[j, c]) * (x[i, c] - x[j, c]), axis=c), "r"
    )
    return te.compute((), lambda: te.sum(r[i, j] / (1.0 + d2[i, j]), axis=(i, j)), "e")


def plain_rates(x: jax.Array) -> jax.Array:
    d, v = x[:, None] - x[None], jnp.sin(x)
    return jnp.sum(jnp.sum((v[:, None] - v[None]) * d, -1) / (1.0 + jnp.sum(d**2, -1)))


def scaled(x: Tensor) -> Compute:
    """Features are divided by a scale of their own, which stands in each term, and in front of what flows back."""
    j, c = te.reduce_axis((0, x.shape[0]), "j"), te.reduce_axis((0, x.shape[1]), "c")
    s = te.compute((x.shape[1],), lambda c: 1.0 + x[0, c] ** 2, "s")
    d2 = te.compute((x.shape[0],) * 2, lambda i, j: te.sum(((x[i, c] - x[j, c]) / s[c]) ** 2, axis=c), "d2")
    return te.compute((x.shape[0],), lambda i: te.sum(te.exp(-d2[i, j]), axis=j), "y")


def plain_scaled(x: jax.Array) -> jax.Array:
    z = x / (1.0 + x[0] ** 2)
    return jnp.sum(jnp.exp(-jnp.sum((z[:, None] - z[None]) ** 2, -1)), 1)


def weighed(x: Tensor) -> Compute:
    """The same by a weight of each feature, and a power of a quotient."""
    j, c = te.reduce_axis((0, x.shape[0]), "j"), te.reduce_axis((0, x.shape[1]), "c")
    w = te.compute((x.shape[1],), lambda c: te.exp(x[1, c]), "w")
    term = lambda i, j: w[c] * (x[i, c] - x[j, c]) ** 2 / (1.0 + w[c] ** 2)  # noqa: E731
    d2 = te.compute((x.shape[0],) * 2, lambda i, j: te.sum(term(i, j), axis=c), "d2")
    return te.compute((x.shape[0],), lambda i: te.sum(te.log(1.0 + d2[i, j]), axis=j), "y")


def plain_weighed(x: jax.Array) -> jax.Array:
    w = jnp.exp(x[1])
    return jnp.sum(jnp.log(1.0 + jnp.sum(w / (1.0 + w**2) * (x[:, None] - x[None]) ** 2, -1)), 1)


Case = tuple[Callable[[Tensor], Compute], Callable[[jax.Array], jax.Array], int, int]
# the definition, plain JAX, points and features
CASES: dict[str, Case] = {
    "steps": (energy, plain_energy, 300, 8),
    "apart": (energy, plain_energy, 200, 20),
    "heads": (densities, plain_densities, 300, 6),
    "coordinates": (by_coordinates, plain_by_coordinates, 60, 3),
    "rates": (rates, plain_rates, 200, 7),
    "scaled": (scaled, plain_scaled, 300, 5),
    "weighed": (weighed, plain_weighed, 300, 6),
}


def points(n: int, features: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, features)) / features**0.5


def gradient(fn: Callable[..., jax.Array], x: np.ndarray) -> jax.Array:
    def loss(x: jax.Array) -> jax.Array:
        y = fn(x)
        return jnp.sum(y * jnp.cos(jnp.arange(y.size, dtype=y.dtype)).reshape(y.shape))

    return jax.grad(loss)(jnp.asarray(x))


def work(fn: te.Function, x: np.ndarray) -> tuple[int, int]:
    """Loops and reductions of the gradient."""
    text = jax.jit(lambda x: gradient(fn, x)).lower(x.astype("float32")).as_text()
    return text.count("stablehlo.while"), text.count("stablehlo.reduce(")


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_plain_jax(name: str) -> None:
    build, plain, n, features = CASES[name]
    with jax.enable_x64(True):
        x = points(n, features)
        found, expected = gradient(te.function(build), x), gradient(plain, x)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11 * float(jnp.max(jnp.abs(expected))))


@pytest.mark.parametrize("name", CASES)
def test_each_is_one_sum(name: str) -> None:
    build, _, n, features = CASES[name]
    x = points(n, features).astype("float32")
    found, before = work(te.function(build), x), work(te.function(build, without=MIRRORED), x)
    assert found < before


def test_steps_whose_axes_have_the_same_names() -> None:
    """The gradient of each step is over the axes of the step, and over new ones that are called like these."""

    def moved(x: Tensor, n: int = 3) -> Compute:
        for _ in range(n):
            j = te.reduce_axis((0, x.shape[0]), "j")
            r = lambda i, j, x=x: 0.1 + sum((x[j, c] - x[i, c]) ** 2 for c in range(3))  # noqa: E731
            x = te.compute(
                x.shape,
                lambda i, c, x=x, j=j, r=r: x[i, c] + 0.01 * te.sum((x[j, c] - x[i, c]) / r(i, j), axis=j),
            )
        return x  # type: ignore[return-value]

    def plain_moved(x: jax.Array) -> jax.Array:
        for _ in range(3):
            d = x[None] - x[:, None]
            x = x + 0.01 * jnp.sum(d / (0.1 + jnp.sum(d**2, -1, keepdims=True)), 1)
        return x

    x = points(60, 3)
    own = te.function(moved)
    assert len(re.findall(r"_weights(_\d+)? = ", str(own.source(x.astype("float32"))))) == 3
    with jax.enable_x64(True):
        found, expected = gradient(own, x), gradient(plain_moved, x)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11 * float(jnp.max(jnp.abs(expected))))


def test_explain_says_so() -> None:
    report = te.explain(te.function(by_coordinates), points(60, 3).astype("float32"))
    assert MIRRORED in {name for own in report.choices.values() for c in own for name in c.rewrites}


def test_values_by_definition() -> None:
    x = te.placeholder((9, 5), name="x")
    y = densities(x)
    head = te.placeholder((9,), name="h")
    (dx,) = te.differentiate(y, [x], head=head)
    rng = np.random.default_rng(1)
    feeds = {t: rng.normal(size=t.shape).astype("float32") for t in (x, head)}
    np.testing.assert_allclose(te.evaluate(dx, feeds), te.interpret(dx, feeds), rtol=1e-4, atol=1e-5)


def test_sizes_that_are_symbols() -> None:
    x = te.placeholder((te.var("N"), 5), name="x")
    head = te.placeholder((), name="h")
    (dx,) = te.differentiate(energy(x), [x], head=head)
    feeds = {x: points(7, 5).astype("float32"), head: np.ones((), "float32")}
    np.testing.assert_allclose(te.evaluate(dx, feeds), te.interpret(dx, feeds), rtol=1e-4, atol=1e-5)


def test_many_pairs_and_other_points_stay() -> None:
    """Weights of more pairs than the cache holds are made in tiles, and points of two sets meet once."""

    def between(x: Tensor, y: Tensor) -> Compute:
        i, j = te.reduce_axis((0, x.shape[0]), "i"), te.reduce_axis((0, y.shape[0]), "j")
        c = te.reduce_axis((0, x.shape[1]), "c")
        d2 = te.compute((x.shape[0], y.shape[0]), lambda i, j: te.sum((x[i, c] - y[j, c]) ** 2, axis=c), "d2")
        return te.compute((), lambda: te.sum(te.exp(-d2[i, j]), axis=(i, j)), "e")

    struct = jax.ShapeDtypeStruct((3000, 8), jnp.float32)
    assert "weights" not in te.function(energy).source(struct)
    few = jax.ShapeDtypeStruct((300, 8), jnp.float32)
    assert "weights" not in te.function(between).source(few, few)
    assert "weights" in te.function(energy).source(few)


def test_sums_of_differences_in_common_are_arrays() -> None:
    """XLA would write the differences, two for each feature: 16 of them."""

    def fn(x: Tensor, s: Tensor) -> Compute:
        c = te.reduce_axis((0, 8), "c")
        i, j = (te.reduce_axis((0, x.shape[0]), name) for name in "ij")
        d2 = distances(x)
        a = te.compute(d2.shape, lambda i, j: te.sum(s[i, c] * s[j, c], axis=c), "a")
        b = te.compute(d2.shape, lambda i, j: te.sum((s[i, c] - s[j, c]) * (x[i, c] - x[j, c]), axis=c), "b")
        return te.compute((), lambda: te.sum(te.exp(-d2[i, j]) * (a[i, j] + b[i, j]), axis=(i, j)), "e")

    struct = jax.ShapeDtypeStruct((200, 8), jnp.float32)
    compiled = jax.jit(te.function(fn)).lower(struct, struct).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 4 * 4 * 200 * 200
