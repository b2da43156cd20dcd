"""Several sums at positions that are data, added to one array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.tensors.tensor import Tensor

ROWS, C, N = 11, 5, 40
Body = Callable[[Tensor, Tensor, Tensor], Callable[..., Any]]


def plain(x: jax.Array, at: jax.Array) -> jax.Array:
    """Rows, zero out of range, as what is read there must not count."""
    return jnp.where(((at >= 0) & (at < ROWS))[:, None], x[jnp.clip(at, 0, ROWS - 1)], 0.0)


def read(x: Tensor, at: Tensor) -> Callable[..., Any]:
    return lambda i, c: te.select((at[i] >= 0) & (at[i] < ROWS), x[at[i], c], 0.0)


# definition, the same in jax.numpy, scatters in the gradient
CASES: dict[str, tuple[Body, Callable[..., jax.Array], int]] = {
    "two": (
        lambda x, a, b: lambda i, c: read(x, a)(i, c) * 3 + te.sin(read(x, b)(i, c)),
        lambda x, a, b: plain(x, a) * 3 + jnp.sin(plain(x, b)),
        2,
    ),
    "one of them subtracted": (
        lambda x, a, b: lambda i, c: read(x, a)(i, c) ** 2 - read(x, b)(i, c),
        lambda x, a, b: plain(x, a) ** 2 - plain(x, b),
        2,
    ),
    "a product": (
        lambda x, a, b: lambda i, c: read(x, a)(i, c) * read(x, b)(i, c),
        lambda x, a, b: plain(x, a) * plain(x, b),
        2,
    ),
    "beside a read at known positions": (
        lambda x, a, b: lambda i, c: read(x, a)(i, c) * x[i % ROWS, c] - read(x, b)(i, c) * 2,
        lambda x, a, b: plain(x, a) * x[jnp.arange(N) % ROWS] - plain(x, b) * 2,
        2,
    ),
    "one": (
        lambda x, a, b: lambda i, c: te.sin(read(x, a)(i, c)),
        lambda x, a, b: jnp.sin(plain(x, a)),
        1,
    ),
}


def arrays(rng: np.random.Generator) -> list[np.ndarray]:
    x = rng.standard_normal((ROWS, C)).astype("float32")
    return [x, *(rng.integers(-3, ROWS + 3, N).astype("int32") for _ in "ab")]


@pytest.mark.parametrize("form", ["", "one-hot product"])
@pytest.mark.parametrize("name", CASES)
def test_terms_are_added_to_one_array(name: str, form: str, rng: np.random.Generator) -> None:
    definition, expected, scatters = CASES[name]
    x, a, b = arrays(rng)
    h = rng.standard_normal((N, C)).astype("float32")
    fn = te.function(
        lambda x, a, b: te.compute((N, C), definition(x, a, b), "y"), forms={"dx": form} if form else {}
    )
    found, pull = jax.vjp(lambda x: fn(x, a, b), x)
    same, plain_pull = jax.vjp(lambda x: expected(x, jnp.asarray(a), jnp.asarray(b)), jnp.asarray(x))
    np.testing.assert_allclose(found, same, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(pull(h)[0], plain_pull(h)[0], rtol=1e-4, atol=1e-5)
    text = fn.source(x, a, b).split("def backward(")[1].split("def _fwd")[0]
    if not form:
        assert text.count(".add(") == scatters and text.count("jnp.zeros(") == 1
        lowered = jax.jit(lambda h: pull(h)[0]).lower(h).as_text()
        assert lowered.count('"stablehlo.scatter"') == scatters
        zeros = [
            line.split()[0]
            for line in lowered.splitlines()
            if "broadcast_in_dim" in line and "-> tensor<11x5xf32>" in line
        ]
        assert sum(f'"stablehlo.scatter"({name},' in lowered for name in zeros) == 1
    else:
        assert ".add(" not in text


def test_channels_before_the_positions_are_transposed_once(rng: np.random.Generator) -> None:
    """``dx[c, i]`` is accumulated as rows of channels, for all terms of which one transposition is enough."""

    def both(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
        return te.compute((C, N), lambda c, i: x[c, a[i]] * 2 + te.tanh(x[c, b[i]]), "y")

    x, a, b = arrays(rng)
    x, a, b = np.ascontiguousarray(x.T), np.abs(a) % ROWS, np.abs(b) % ROWS
    h = rng.standard_normal((C, N)).astype("float32")
    fn = te.function(both)
    _, pull = jax.vjp(lambda x: fn(x, a, b), x)
    _, expected = jax.vjp(lambda x: x[:, a] * 2 + jnp.tanh(x[:, b]), jnp.asarray(x))
    np.testing.assert_allclose(pull(h)[0], expected(h)[0], rtol=1e-4, atol=1e-5)
    dx = [line for line in fn.source(x, a, b).split("def backward(")[1].splitlines() if ".add(" in line]
    assert len(dx) == 2 and sum("jnp.zeros(" in line for line in dx) == 1
    assert "(1, 0)" not in dx[0].split(".add(")[0]


def test_each_index_may_be_out_of_range(rng: np.random.Generator) -> None:
    """NaN is read out of range, and nothing flows back from there."""

    def both(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
        return te.compute((N, C), lambda i, c: x[a[i], c] + x[b[i] + 1, c] * 2, "y")

    x, a, b = arrays(rng)
    fn = te.function(both)
    h = np.ones((N, C), "float32")
    expected = np.zeros_like(x)
    for at, weight in ((a, 1), (b + 1, 2)):
        inside = (at >= 0) & (at < ROWS)
        np.add.at(expected, at[inside], weight * h[inside])
    np.testing.assert_allclose(jax.vjp(lambda x: fn(x, a, b), x)[1](h)[0], expected, rtol=1e-5)


def test_unique_positions_are_added_to_what_is_there(rng: np.random.Generator) -> None:
    """Only the first term meets nothing but zeros."""

    def both(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
        te.assume(a, te.facts.unique())
        te.assume(b, te.facts.unique())
        return te.compute((8, C), lambda i, c: x[a[i], c] + x[b[i], c] * 2, "y")

    x = rng.standard_normal((ROWS, C)).astype("float32")
    a, b = (rng.permutation(ROWS)[:8].astype("int32") for _ in "ab")
    h = rng.standard_normal((8, C)).astype("float32")
    fn = te.function(both)
    expected = np.zeros_like(x)
    expected[a] += h
    expected[b] += 2 * h
    np.testing.assert_allclose(jax.vjp(lambda x: fn(x, a, b), x)[1](h)[0], expected, rtol=1e-5)
    text = fn.source(x, a, b).split("def backward(")[1].split("def _fwd")[0]
    assert text.count(".set(") == 1 and text.count(".add(") == 1


@pytest.mark.parametrize("other", ["a", "b"])
def test_terms_at_the_same_positions_are_one(other: str, rng: np.random.Generator) -> None:
    """Rows that several tensors read are added to once, of the sum of what flows back to them."""

    def gated(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
        c = te.reduce_axis((0, C), "c")
        second = a if other == "a" else b
        score = te.compute((N,), lambda i: te.sum(x[i % ROWS, c] * x[a[i], c], axis=c), "score")
        return te.compute((N, C), lambda i, j: 2 - 3 * x[second[i], j] * te.sigmoid(score[i]), "y")

    def expected(x: jax.Array, a: Any, b: Any) -> jax.Array:
        score = jnp.sum(x[jnp.arange(N) % ROWS] * x[a], 1)
        return 2 - 3 * x[a if other == "a" else b] * jax.nn.sigmoid(score)[:, None]

    x, a, b = arrays(rng)
    a, b = a % ROWS, b % ROWS
    h = rng.standard_normal((N, C)).astype("float32")
    fn = te.function(gated)
    found = jax.vjp(lambda x: fn(x, a, b), x)[1](h)[0]
    plainly = jax.vjp(lambda x: expected(x, a, b), jnp.asarray(x))[1](h)[0]
    np.testing.assert_allclose(found, plainly, rtol=1e-4, atol=1e-5)
    text = fn.source(x, a, b).split("def backward(")[1].split("def _fwd")[0]
    assert text.count(".add(") == (1 if other == "a" else 2)
