"""Adjoints at positions that are known numbers are gathers, with no scatter in XLA's program, where each value stands about as often as every other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

N = 12
PACKED = N * (N + 1) // 2
ORDER = np.random.default_rng(0).permutation(200)
PAIRS = np.random.default_rng(1).permutation(90).reshape(30, 3)
ROWS = np.stack([np.random.default_rng(n).permutation(40)[:30] for n in range(6)])
Builder = Callable[..., te.Tensor]


def lower(p: te.Tensor) -> te.Tensor:
    return te.compute((N, N), lambda i, j: te.select(j <= i, p[i * (i + 1) // 2 + j], 0.0), "y")


def symmetric(p: te.Tensor) -> te.Tensor:
    def element(i: Any, j: Any) -> Any:
        k = te.maximum(i, j)
        return p[k * (k + 1) // 2 + te.minimum(i, j)] ** 2

    return te.compute((N, N), element, "y")


def times_vector(p: te.Tensor, x: te.Tensor) -> te.Tensor:
    j = te.reduce_axis((0, N), "j")
    return te.compute((N,), lambda i: te.sum(p[i * (i + 1) // 2 + j] * x[j], axis=j, where=j <= i), "y")


def shuffled(x: te.Tensor) -> te.Tensor:
    order = te.constant(ORDER)
    return te.compute(x.shape, lambda i, c: te.sin(x[order[i], c]), "y")


def taken_apart(x: te.Tensor) -> te.Tensor:
    """Every second of the positions is read."""
    order = te.constant(ORDER[::2])
    return te.compute((100, x.shape[1]), lambda i, c: x[order[i], c] * c, "y")


def triples(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    table, k = te.constant(PAIRS), te.reduce_axis((0, 3), "k")
    return te.compute((30,), lambda t: te.sum(w[k] * te.exp(x[table[t, k]]), axis=k), "y")


def by_row(x: te.Tensor) -> te.Tensor:
    table = te.constant(ROWS)
    return te.compute(ROWS.shape, lambda b, t: x[b, table[b, t]] ** 2, "y")


def ring(x: te.Tensor) -> te.Tensor:
    """Edges of a ring in any order, by a table for each of their ends."""
    a, b = te.constant(ORDER), te.constant((ORDER + 1) % 200)
    return te.compute((200,), lambda e: x[a[e]] * te.tanh(x[b[e]]), "y")


def reference(build: Builder, *args: Any) -> Any:
    i, j = np.tril_indices(N)
    if build is lower:
        return jnp.zeros((N, N)).at[i, j].set(args[0])
    if build is symmetric:
        dense = jnp.zeros((N, N)).at[i, j].set(args[0])
        return (dense + dense.T - jnp.diag(jnp.diag(dense))) ** 2
    if build is times_vector:
        return jnp.zeros((N, N)).at[i, j].set(args[0]) @ args[1]
    if build is shuffled:
        return jnp.sin(args[0][ORDER])
    if build is taken_apart:
        return args[0][ORDER[::2]] * jnp.arange(args[0].shape[1])
    if build is triples:
        return jnp.exp(args[0][PAIRS]) @ args[1]
    if build is by_row:
        return jnp.take_along_axis(args[0], ROWS, 1) ** 2
    return args[0][ORDER] * jnp.tanh(args[0][(ORDER + 1) % 200])


SHAPES: dict[Builder, tuple[tuple[int, ...], ...]] = {
    lower: ((PACKED,),),
    symmetric: ((PACKED,),),
    times_vector: ((PACKED,), (N,)),
    shuffled: ((200, 3),),
    taken_apart: ((200, 3),),
    triples: ((90,), (3,)),
    by_row: ((6, 40),),
    ring: ((200,),),
}


def gradients(f: Callable[..., Any]) -> Callable[..., Any]:
    return jax.jit(lambda H, *args: jax.vjp(f, *args)[1](H))


@pytest.mark.parametrize("build", SHAPES, ids=lambda f: f.__name__)
def test_gradients_are_gathers(build: Builder, rng: np.random.Generator) -> None:
    args = [jnp.asarray(rng.standard_normal(s), "float32") for s in SHAPES[build]]
    H = jnp.asarray(rng.standard_normal(reference(build, *args).shape), "float32")
    own = gradients(te.function(build)).lower(H, *args)
    assert "stablehlo.scatter" not in own.as_text()
    np.testing.assert_allclose(te.function(build)(*args), reference(build, *args), rtol=1e-5, atol=1e-6)
    expected = gradients(lambda *a: reference(build, *a))(H, *args)
    for found, wanted in zip(own.compile()(H, *args), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("build", [lower, triples, by_row], ids=lambda f: f.__name__)
def test_forward_mode_and_second_order(build: Builder, rng: np.random.Generator) -> None:
    args = [jnp.asarray(rng.standard_normal(s), "float32") for s in SHAPES[build]]
    own, plain = te.function(build), lambda *a: reference(build, *a)
    for f in (
        lambda f: jax.jvp(f, args, args)[1],
        lambda f: jax.hessian(lambda *a: jnp.sum(f(*a) ** 3))(*args),
    ):
        np.testing.assert_allclose(f(own), f(plain), rtol=1e-3, atol=1e-4)


def test_what_is_excluded_may_be_nan() -> None:
    """Nothing flows back from above the diagonal, and what no position reads receives zero."""
    H = jnp.where(jnp.tril(jnp.ones((N, N), bool)), 1.0, jnp.nan)
    (found,) = gradients(te.function(lower))(H, jnp.ones(PACKED))
    np.testing.assert_array_equal(found, np.ones(PACKED))
    (left,) = gradients(te.function(taken_apart))(jnp.full((100, 3), jnp.inf), jnp.ones((200, 3)))
    assert np.all(np.asarray(left)[ORDER[1::2]] == 0)


def few(x: te.Tensor) -> te.Tensor:
    return te.compute((30,), lambda i: x[i * i], "y")


def crowded(x: te.Tensor) -> te.Tensor:
    table = te.constant(np.arange(300) ** 2 // 1000)
    return te.compute((300,), lambda i: x[table[i]], "y")


@pytest.mark.parametrize("build", [few, crowded], ids=lambda f: f.__name__)
def test_near_misses(build: Builder, rng: np.random.Generator) -> None:
    """A few elements of a long tensor are scattered into zeros, and so are positions of which some are met ten times as often as others."""
    x = jnp.asarray(rng.standard_normal(900), "float32")
    H = jnp.asarray(rng.standard_normal(te.function(build)(x).shape), "float32")
    own = gradients(te.function(build)).lower(H, x)
    assert "stablehlo.scatter" in own.as_text()
    at = np.arange(30) ** 2 if build is few else np.arange(300) ** 2 // 1000
    np.testing.assert_allclose(own.compile()(H, x)[0], jnp.zeros(900).at[at].add(H), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_long_constants_are_read_at_positions_that_are_data(dtype: str) -> None:
    values = np.arange(100)[::-1].astype(dtype)
    table = te.constant(values)
    found = te.function(lambda p: te.compute(p.shape, lambda i: table[p[i]] * 2, "y"))(
        jnp.asarray([3, 99, 0])
    )
    np.testing.assert_array_equal(found, 2 * values[[3, 99, 0]])
