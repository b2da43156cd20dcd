"""Adjoints of extrema over long windows, by doubling: values and gradients beside JAX and the interpreter, and no copies of windows."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxte as te
from harness.sides import with_gradients
from tests.agreement import interpreted
from tests.xla_counts import Fused


def sliding(x: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, 48), "k")
    return te.compute((x.shape[0], x.shape[1] - 47), lambda b, i: te.max(x[b, i + k], axis=k), "y")


def plain_sliding(x: jax.Array) -> jax.Array:
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 48), (1, 1), "valid")


def envelope(x: te.Tensor) -> te.Tensor:
    """The largest of the last values, of what is computed, with fewer at the beginning."""
    k = te.reduce_axis((0, 50), "k")
    return te.compute(
        x.shape, lambda b, i: te.max(te.abs(te.tanh(x[b, i - k])), axis=k, where=i - k >= 0), "y"
    )


def plain_envelope(x: jax.Array) -> jax.Array:
    return lax.reduce_window(jnp.abs(jnp.tanh(x)), -jnp.inf, lax.max, (1, 50), (1, 1), [(0, 0), (49, 0)])


def centred(x: te.Tensor) -> te.Tensor:
    """The largest on both sides, with fewer at both ends."""
    k = te.reduce_axis((-50, 51), "k")
    n = x.shape[1]
    return te.compute(
        x.shape, lambda b, i: te.max(te.abs(x[b, i + k]), axis=k, where=(i + k >= 0) & (i + k < n)), "y"
    )


def plain_centred(x: jax.Array) -> jax.Array:
    return lax.reduce_window(jnp.abs(x), -jnp.inf, lax.max, (1, 101), (1, 1), "same")


def dilated(x: te.Tensor) -> te.Tensor:
    """Minima of every second element."""
    k = te.reduce_axis((0, 40), "k")
    return te.compute((x.shape[0], x.shape[1] - 79), lambda b, i: te.min(x[b, i + 2 * k], axis=k), "y")


def plain_dilated(x: jax.Array) -> jax.Array:
    n = x.shape[1] - 79
    return jnp.stack([x[:, 2 * k : 2 * k + n] for k in range(40)]).min(0)


def pool(x: te.Tensor) -> te.Tensor:
    k, m = te.reduce_axis((0, 9), "k"), te.reduce_axis((0, 11), "m")
    n = (x.shape[0], x.shape[1] - 8, x.shape[2] - 10)
    return te.compute(n, lambda b, i, j: te.max(x[b, i + k, j + m], axis=(k, m)), "y")


def plain_pool(x: jax.Array) -> jax.Array:
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 9, 11), (1, 1, 1), "valid")


CASES: dict[str, tuple[Any, Any, tuple[int, ...]]] = {
    "sliding": (sliding, plain_sliding, (4, 400)),
    "envelope": (envelope, plain_envelope, (4, 400)),
    "centred": (centred, plain_centred, (4, 400)),
    "dilated": (dilated, plain_dilated, (4, 400)),
    "pool": (pool, plain_pool, (2, 40, 40)),
}


def gradient(function: Any, x: np.ndarray, head: np.ndarray) -> tuple[np.ndarray, np.ndarray, Any]:
    both = Fused(jax.jit(with_gradients(function, (0,))).lower([head], x))
    value, grad = jax.tree.leaves(both([head], x))
    return np.asarray(value), np.asarray(grad), both


@pytest.mark.parametrize("name", CASES)
def test_beside_jax(name: str, rng: np.random.Generator) -> None:
    build, plain, shape = CASES[name]
    x = rng.permutation(int(np.prod(shape))).reshape(shape).astype("float32") / 100 - 3
    head = rng.normal(size=jax.eval_shape(plain, x).shape).astype("float32")
    value, grad, program = gradient(te.function(build), x, head)
    expected, pull = jax.vjp(plain, x)
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    np.testing.assert_allclose(grad, pull(head)[0], rtol=1e-4, atol=1e-4)
    text = program.as_text()
    assert not any(word in text for word in ("gather(", "scatter(", "while("))
    # a few arrays of the size of the input, not one for each position of a window
    assert program.memory_analysis().temp_size_in_bytes <= 24 * x.nbytes
    copies = gradient(te.function(build, without=("winners by doubling", "steps")), x, head)[2]
    assert program.cost_analysis()["flops"] * 2 < copies.cost_analysis()["flops"]


@pytest.mark.parametrize("name", CASES)
def test_ties_and_infinities_as_interpreted(name: str, rng: np.random.Generator) -> None:
    """Small whole numbers, so that windows have many largest elements, which share the derivative."""
    build, _, shape = CASES[name]
    x = te.placeholder((1, *(100 if len(shape) == 2 else 14 for _ in shape[1:])), name="x")
    y = build(x)
    head = te.placeholder(y.shape, name="head")
    feeds = {
        x: rng.integers(-3, 3, size=x.shape).astype("float32"),
        head: rng.normal(size=y.shape).astype("float32"),
    }
    feeds[x].flat[::37] = np.inf
    feeds[x].flat[::23] = -np.inf
    value, pull = jax.vjp(te.function([x], y), feeds[x])
    (adjoint,) = te.differentiate(y, [x], head)
    np.testing.assert_allclose(value, interpreted(y, feeds), rtol=1e-5)
    np.testing.assert_allclose(pull(feeds[head])[0], interpreted(adjoint, feeds), rtol=1e-4, atol=1e-4)


def test_nan_reaches_all_that_share_a_window_with_it() -> None:
    x = np.arange(150, dtype="float32")[None]
    x[0, 100] = np.nan
    _, pull = jax.vjp(te.function(sliding), x)
    (grad,) = pull(np.ones((1, 103), "float32"))
    assert np.isnan(np.asarray(grad)[0, 53:148]).all()
    assert np.isfinite(np.asarray(grad)[0, :53]).all()


def test_short_windows_are_left() -> None:
    x = te.placeholder((4, 100), name="x")
    k = te.reduce_axis((0, 8), "k")
    short = te.compute((4, 93), lambda b, i: te.max(x[b, i + k], axis=k), "y")
    assert "_of_2" not in te.function([x], short).source()


def over_a_corner(x: te.Tensor) -> te.Tensor:
    """Two axes of a window that move with the same position."""
    j, k = te.reduce_axis((0, 9), "j"), te.reduce_axis((0, 9), "k")
    return te.compute((10,), lambda i: te.max(x[i + j, i + k], axis=[j, k]), "y")


def over_sums(x: te.Tensor) -> te.Tensor:
    j, k = te.reduce_axis((0, 9), "j"), te.reduce_axis((0, 9), "k")
    return te.compute((10,), lambda i: te.max(x[i + j + k], axis=[j, k]), "y")


def over_a_diagonal(x: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, 50), "k")
    return te.compute((10,), lambda i: te.max(x[i + k, k], axis=k), "y")


def from_both_ends(x: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, 50), "k")
    return te.compute((10,), lambda i: te.max(x[i + k] - x[59 - i - k], axis=k), "y")


def strided(x: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, 50), "k")
    return te.compute((10,), lambda i: te.max(x[3 * i + 2 * k], axis=k), "y")


@pytest.mark.parametrize(
    ("build", "shape"),
    [
        (over_a_corner, (18, 18)),
        (over_sums, (26,)),
        (over_a_diagonal, (60, 50)),
        (from_both_ends, (60,)),
        (strided, (126,)),
    ],
)
def test_windows_that_move_otherwise(build: Any, shape: tuple[int, ...], rng: np.random.Generator) -> None:
    x = te.placeholder(shape, name="x")
    y = build(x)
    head = te.placeholder(y.shape, name="head")
    feeds = {t: np.round(rng.normal(size=t.shape), 1).astype("float32") for t in (x, head)}
    _, pull = jax.vjp(te.function([x], y), feeds[x])
    (adjoint,) = te.differentiate(y, [x], head)
    np.testing.assert_allclose(pull(feeds[head])[0], interpreted(adjoint, feeds), rtol=1e-4, atol=1e-4)
