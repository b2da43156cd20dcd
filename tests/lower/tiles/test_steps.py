"""Reductions position by position: what is computed of pairs, reduced in a loop over all of the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.tensors.tensor import Compute, Tensor

ASKED = {"*": "steps"}
Build = Callable[[Tensor, Tensor], Compute]


def of_pairs(reduction: Callable[..., Any], element: Callable[[Any, Any], Any]) -> Build:
    def build(x: Tensor, y: Tensor) -> Compute:
        q = te.reduce_axis((0, x.shape[1]), "q")
        body = lambda i, j: reduction(element(x[i, q], y[j, q]), axis=q)  # noqa: E731
        return te.compute((x.shape[0], y.shape[0]), body, "d")

    return build


def plain_of(reduction: Callable[..., Any], element: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda x, y: reduction(element(x[:, None], y[None]), axis=-1)


CASES = {
    "squares": ((te.sum, lambda a, b: (a - b) ** 2), (jnp.sum, lambda a, b: (a - b) ** 2)),
    "absolute": ((te.sum, lambda a, b: te.abs(a - b)), (jnp.sum, lambda a, b: jnp.abs(a - b))),
    "least": ((te.sum, te.minimum), (jnp.sum, jnp.minimum)),
    "tropical": ((te.max, lambda a, b: a + b), (jnp.max, lambda a, b: a + b)),
    "smallest": ((te.min, lambda a, b: te.abs(a - b)), (jnp.min, lambda a, b: jnp.abs(a - b))),
    "product": ((te.prod, lambda a, b: 1 + 0.1 * a * te.tanh(b)), (jnp.prod, lambda a, b: 1 + 0.1 * a * jnp.tanh(b))),
}  # fmt: skip


def points(n: int, features: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, features)).astype("float32")


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name: str) -> None:
    own, plain = CASES[name]
    fn = te.function(of_pairs(*own), forms=ASKED)
    x, y, h = points(14, 11), points(10, 11, 1), points(14, 10, 2)
    assert "unroll=4" in fn.source(x, y)
    found, pull = jax.vjp(fn, x, y)
    wanted, plain_pull = jax.vjp(plain_of(*plain), x, y)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    for a, b in zip(pull(h), plain_pull(h), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_nothing_of_all_pairs_and_features_is_held() -> None:
    """Of distances of 24 features, forward and backward: every loop is over the result, and reads one row or column."""
    x, y = points(512, 24), points(384, 24, 1)
    own, plain = CASES["absolute"]
    held = {}
    for name, fn in (("own", te.function(of_pairs(*own))), ("plain", plain_of(*plain))):
        both = lambda h, x, y, fn=fn: jax.vjp(fn, x, y)[1](h)  # noqa: E731
        compiled = jax.jit(both).lower(np.ones((512, 384), "float32"), x, y).compile()
        held[name] = compiled.memory_analysis().temp_size_in_bytes
    assert held["own"] < 512 * 384 * 4
    assert held["plain"] > 10 * held["own"]


def filtered(x: Tensor, w: Tensor) -> Compute:
    """A causal filter with a long memory."""
    k = te.reduce_axis((0, w.shape[0]), "k")
    return te.compute(x.shape, lambda b, t: te.sum(w[k] * x[b, t - k], axis=k, where=t >= k), "y")


def delayed(x: Tensor, w: Tensor) -> Compute:
    """Delay and sum over microphones."""
    b, n, t = x.shape
    m = te.reduce_axis((0, n), "m")
    return te.compute((b, t - 2 * n), lambda b, t: te.sum(w[m] * x[b, m, t + 2 * m], axis=m), "y")


def squashed(x: Tensor, w: Tensor) -> Compute:
    """A function of a sequence and a weight for each distance."""
    b, n = x.shape
    j = te.reduce_axis((0, n), "j")
    return te.compute((b, n), lambda b, i: te.sum(te.tanh(w[i - j + n - 1] * x[b, j]), axis=j), "y")


def eroded(x: Tensor, w: Tensor) -> Compute:
    """Erosion by a long, curved element."""
    k = te.reduce_axis((0, w.shape[0]), "k")
    shape = (x.shape[0], x.shape[1] - w.shape[0] + 1)
    return te.compute(shape, lambda b, t: te.min(x[b, t + k] - w[k], axis=k), "y")


WINDOWS = {
    "filter": (filtered, (3, 300), (150,)),
    "delays": (delayed, (2, 40, 120), (40,)),
    "Toeplitz": (squashed, (2, 40), (79,)),
    "erosion": (eroded, (2, 120), (50,)),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_long_windows_are_slices_one_after_the_other(name: str) -> None:
    build, shape, taps = WINDOWS[name]
    x, w = points(*shape[:1], np.prod(shape[1:])).reshape(shape), points(1, *taps)[0]
    own, other = te.function(build, forms=ASKED), te.function(build, without="steps")
    text = own.source(x, w).split("def backward")[0]
    assert "unroll=4" in text
    assert "jnp.tile" not in text
    assert "unroll=4" not in other.source(x, w)
    np.testing.assert_allclose(own(x, w), te.interpret(*_graph(build, x, w)), rtol=1e-4, atol=1e-5)
    for a, b in zip(
        *(jax.grad(lambda x, w, f=f: jnp.sum(jnp.sin(f(x, w))), (0, 1))(x, w) for f in (own, other)),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def _graph(build: Build, x: np.ndarray, w: np.ndarray) -> tuple[Compute, dict[Tensor, np.ndarray]]:
    own = te.placeholder(x.shape, name="x"), te.placeholder(w.shape, name="w")
    return build(*own), dict(zip(own, (x, w), strict=True))


def test_a_filter_of_400_taps_holds_no_windows() -> None:
    x, w = points(8, 4096), points(1, 400)[0]
    compiled = jax.jit(te.function(filtered)).lower(x, w).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 4 * x.nbytes


def test_attention_in_windows_stays_blocks_of_matrices() -> None:
    def averaged(p: Tensor, y: Tensor) -> Compute:
        k = te.reduce_axis((0, p.shape[1]), "k")
        return te.compute((p.shape[0], y.shape[1]), lambda i, d: te.sum(p[i, k] * y[i + k, d], axis=k), "o")

    assert "unroll" not in te.function(averaged).source(points(256, 65), points(320, 64))


def test_rows_of_the_result_are_read_side_by_side() -> None:
    text = te.function(of_pairs(*CASES["squares"][0]), forms=ASKED).source(points(14, 11), points(10, 11))
    assert "y_q_all = y.T" in text
    assert "lax.dynamic_slice_in_dim(y_q_all, start, 1)" in text


@pytest.mark.parametrize(
    "build",
    [
        of_pairs(te.sum, lambda a, b: a * b),
        of_pairs(te.sum, lambda a, b: a * 2 + b),
        of_pairs(te.max, lambda a, b: a),
    ],
    ids=["a product of matrices", "two sums", "rows"],
)
def test_what_is_no_loop_over_pairs_stays(build: Build) -> None:
    assert "unroll" not in te.function(build, forms=ASKED).source(points(60, 40), points(60, 40))


def test_nan_is_handed_on() -> None:
    x, y = points(14, 11), points(10, 11, 1)
    x[3, 5] = np.nan
    for name in ("tropical", "squares"):
        own, plain = CASES[name]
        np.testing.assert_array_equal(
            np.isnan(te.function(of_pairs(*own), forms=ASKED)(x, y)), np.isnan(plain_of(*plain)(x, y))
        )


def test_batches_and_doubles() -> None:
    own, plain = CASES["squares"]
    fn = te.function(of_pairs(*own), forms=ASKED)
    many = np.stack([points(14, 11), points(14, 11, 3)])
    y = points(10, 11, 1)
    np.testing.assert_allclose(
        jax.vmap(fn, (0, None))(many, y), jax.vmap(plain_of(*plain), (0, None))(many, y), rtol=1e-5
    )
    with jax.enable_x64(True):
        x = np.float64(many[0])
        np.testing.assert_allclose(fn(x, np.float64(y)), plain_of(*plain)(x, np.float64(y)), rtol=1e-12)


def test_it_can_be_switched_off() -> None:
    x, y = points(400, 24), points(300, 24)
    build = of_pairs(*CASES["absolute"][0])
    assert "unroll=4" in te.function(build).source(x, y)
    assert "unroll=4" not in te.function(build, without="steps").source(x, y)


def test_sums_at_positions_of_data_are_scatters_of_any_length() -> None:
    """Reads around the end at positions that data say: a step for each position would compare all of them with all."""
    x, d = te.placeholder((8, 2048), name="x"), te.placeholder((8, 2048), "int32", name="d")
    y = te.compute((8, 2048), lambda b, i: x[b, (d[b, i] + i) % 2048] * 2.0, "y")
    (adjoint,) = te.differentiate(y, [x], te.placeholder((8, 2048), name="H"))
    text = te.source(adjoint)
    assert ".add(" in text and "lax.scan" not in text
