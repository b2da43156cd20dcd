"""Functions of windows, on platforms where what is computed for each term of a sum is fused with it: within the sums over them, and no arrays."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.planning.indices.shared_places import is_window_function

Define = Callable[..., Any]


def _distance(x: te.Tensor, a: Any, b: Any, coordinates: int = 3) -> te.Expr:
    c = te.reduce_axis((0, coordinates), "c")
    return te.sum((x[a, c] - x[b, c]) ** 2, axis=c)


def smoothed(x: te.Tensor) -> te.Tensor:
    """Rows by their weights among seven: what is summed, and what it is divided by, have the weights in common."""
    n, j = x.shape[0], te.reduce_axis((0, 7), "j")
    weight = lambda i: te.exp(-_distance(x, i + j, i + 3))  # noqa: E731
    top = te.compute((n - 6, 3), lambda i, d: te.sum(weight(i) * x[i + j, d], axis=j), "top")
    total = te.compute((n - 6,), lambda i: te.sum(weight(i), axis=j), "total")
    return te.compute((n - 6, 3), lambda i, d: top[i, d] / total[i], "y")


def plain_smoothed(x: jax.Array) -> jax.Array:
    w = [jnp.exp(-jnp.sum((x[j : j + len(x) - 6] - x[3:-3]) ** 2, 1, keepdims=True)) for j in range(7)]
    return sum(own * x[j : j + len(x) - 6] for j, own in enumerate(w)) / sum(w)


def aligned(x: te.Tensor) -> te.Tensor:
    """Products of directions of neighbours in a periodic chain, of two coordinates."""
    n = x.shape[0]
    j, c = te.reduce_axis((1, 5), "j"), te.reduce_axis((0, 2), "c")
    along = lambda i: te.sum(x[i, c] * x[(i + j) % n, c], axis=c)  # noqa: E731
    return te.compute((n,), lambda i: te.sum(te.sqrt(1 + along(i) ** 2), axis=j), "a")


def plain_aligned(x: jax.Array) -> jax.Array:
    return sum(jnp.sqrt(1 + jnp.sum(x[:, :2] * jnp.roll(x, -j, 0)[:, :2], 1) ** 2) for j in range(1, 5))


def repelled(x: te.Tensor) -> te.Tensor:
    """The inverse distances to the neighbours there are, on both sides: to itself it would be infinite."""
    n, j = x.shape[0], te.reduce_axis((-2, 3), "j")
    here = lambda i: (j != 0) & (i + j >= 0) & (i + j < n)  # noqa: E731
    return te.compute((n,), lambda i: te.sum(1 / _distance(x, i + j, i), axis=j, where=here(i)), "r")


def plain_repelled(x: jax.Array) -> jax.Array:
    one = [1 / jnp.sum((x[j:] - x[:-j]) ** 2, 1) for j in (1, 2)]
    return sum(jnp.pad(d, (0, j)) + jnp.pad(d, (j, 0)) for j, d in zip((1, 2), one, strict=True))


FUNCTIONS = [(smoothed, plain_smoothed), (aligned, plain_aligned), (repelled, plain_repelled)]


def _scopes(define: Define, platform: str, shape: Any = (700, 3)) -> list[str]:
    text = str(te.function(define, platform=platform).source(jax.ShapeDtypeStruct(shape, "float32")))
    return re.findall(r'named_scope\("(\w+)"\)', text)


@pytest.mark.parametrize(("define", "plain"), FUNCTIONS)
def test_they_are_computed_within_the_sums(define: Define, plain: Define) -> None:
    arrays = {"smoothed": 6, "aligned": 2, "repelled": 2}[define.__name__]
    for platform in ("gpu", "tpu"):
        found = [name for name in _scopes(define, platform) if "extended" not in name]
        assert len(found) == arrays
    assert len(_scopes(define, "cpu")) > arrays
    x = np.random.default_rng(0).normal(size=(40, 3))
    with jax.enable_x64(True):
        own = te.function(define, platform="gpu")
        given = te.placeholder(x.shape, "float64", "x")
        np.testing.assert_allclose(own(x), te.interpret(define(given), {given: x}), rtol=1e-12)
        heads = np.cos(np.arange(plain(x).size)).reshape(plain(x).shape)
        gradients = [jax.grad(lambda x, f=f: jnp.sum(heads * f(x)))(x) for f in (own, plain)]
        np.testing.assert_allclose(*gradients, rtol=1e-9, atol=1e-10)


def test_infinite_functions_of_what_a_condition_leaves_out() -> None:
    x = np.random.default_rng(1).normal(size=(12, 3)).astype("float32")
    gradient = jax.grad(lambda x: jnp.sum(te.function(repelled, platform="gpu")(x)))(x)
    assert np.isfinite(np.asarray(gradient)).all()


def test_sizes_may_be_symbols() -> None:
    sizes = jax.export.symbolic_shape("n, 3", constraints=["n >= 8"])
    fn = te.function(smoothed, platform="gpu")
    made = jax.export.export(jax.jit(jax.grad(lambda x: jnp.sum(fn(x) ** 2))))(
        jax.ShapeDtypeStruct(sizes, "float32")
    )
    x = np.random.default_rng(2).normal(size=(15, 3)).astype("float32")
    np.testing.assert_allclose(
        made.call(x), jax.grad(lambda x: jnp.sum(plain_smoothed(x) ** 2))(x), rtol=1e-4, atol=1e-5
    )
    assert len(_scopes(smoothed, "gpu", sizes)) == 6


def _near(positions: int = 5, coordinates: int = 3, returned: bool = False) -> Define:
    def define(x: te.Tensor) -> Any:
        rows = x.shape[0] - positions
        j = te.reduce_axis((0, positions), "j")
        d = te.compute((rows, positions), lambda i, k: _distance(x, i + k, i, coordinates), "d")
        y = te.compute((rows,), lambda i: te.sum(te.exp(-d[i, j]), axis=j), "y")
        return (d, y) if returned else y

    return define


@pytest.mark.parametrize("options", [{"positions": 40}, {"coordinates": 6}, {"returned": True}])
def test_what_stays_an_array(options: dict[str, Any]) -> None:
    shape = (60, 6)
    assert "d" not in _scopes(_near(), "gpu", shape)
    assert "d" in _scopes(_near(**options), "gpu", shape)
    assert "d" in _scopes(_near(), "cpu", shape)


def test_long_chains_are_seen_through_once() -> None:
    before, last = (te.placeholder((9, 3), "float32", name) for name in "ab")
    for _ in range(80):
        before, last = last, te.compute((9, 3), lambda i, k, a=before, b=last: a[i, k] + b[i, k], "c")
    assert not is_window_function(last)


def test_it_can_be_left_out() -> None:
    arguments = jax.ShapeDtypeStruct((60, 3), "float32")
    text = str(te.function(_near(), platform="gpu", without=("windows within",)).source(arguments))
    assert 'named_scope("d")' in text
