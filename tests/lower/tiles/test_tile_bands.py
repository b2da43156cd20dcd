"""Bands in tiles: a dense block behind a mask for the scores of a window and all that is computed from them, without a skew."""

from __future__ import annotations

import re
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.tensors.tensor import Tensor

FORCED = {"*": "tiles"}
HEADS, ROWS, WINDOW, FEATURES = 2, 9, 24, 3


def scores(q: Tensor, x: Tensor, scale: float = 1.0) -> Tensor:
    heads, n, d = q.shape
    e = te.reduce_axis((0, d), "e")
    shape = (heads, n, x.shape[1] - n + 1)
    return te.compute(shape, lambda h, i, k: te.sum(q[h, i, e] * x[h, i + k, e], axis=e) * scale, "s")


def averaged(p: Tensor, y: Tensor) -> Tensor:
    k = te.reduce_axis((0, p.shape[2]), "k")
    shape = (*p.shape[:2], y.shape[2])
    return te.compute(shape, lambda h, i, d: te.sum(p[h, i, k] * y[h, i + k, d], axis=k), "o")


def attention(q: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return averaged(te.ops.softmax(scores(q, x)), y)


def scaled(q: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return averaged(te.ops.softmax(scores(q, x, 0.25)), y)


def squashed(q: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Without a maximum, weights that are not 0 at a score of 0, and a condition on the diagonals."""
    s = scores(q, x)
    p = te.compute(s.shape, lambda h, i, k: te.select(k % 3 != 1, te.cos(s[h, i, k]) + 2.0, 0.5), "p")
    return averaged(p, y)


def without_the_first(q: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Columns that do not count, as those in front of a sequence."""
    s = scores(q, x)
    held = te.compute(s.shape, lambda h, i, k: te.select(i + k >= 5, s[h, i, k], -1e9), "held")
    return averaged(te.ops.softmax(held), y)


def extremes(q: Tensor, x: Tensor, y: Tensor) -> Tensor:
    s = scores(q, x)
    k = te.reduce_axis((0, s.shape[2]), "k")
    low = te.compute(s.shape[:2], lambda h, i: te.min(s[h, i, k], axis=k), "low")
    total = te.compute(s.shape[:2], lambda h, i: te.sum(s[h, i, k] * s[h, i, k], axis=k), "total")
    p = te.compute(s.shape, lambda h, i, k: (s[h, i, k] - low[h, i]) / total[h, i], "p")
    return averaged(p, y)


def quotients(q: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Two weights, one of them divided by; and scores that are a function of a sum of products."""
    heads, n, d = q.shape
    window = x.shape[1] - n + 1
    e, k = te.reduce_axis((0, d), "e"), te.reduce_axis((0, window), "k")
    shape = (heads, n, window)
    r = te.compute(shape, lambda h, i, k: te.exp(0.1 * te.sum(q[h, i, e] * x[h, i + k, e], axis=e)), "r")
    p = te.compute(shape, lambda h, i, k: te.square(r[h, i, k]) + 1.0, "p")
    t = te.compute(shape, lambda h, i, k: te.sqrt(r[h, i, k]), "t")
    return te.compute(
        (*y.shape[:1], n, d),
        lambda h, i, d: te.sum(t[h, i, k] / p[h, i, k] * r[h, i, k] * y[h, i + k, d], axis=k),
        "o",
    )


def by_distance(q: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """A weight for each diagonal, which is no column of a matrix."""
    s = scores(q, x)
    p = te.compute(s.shape, lambda h, i, k: te.exp(s[h, i, k]) * y[h, k, 0], "p")
    return averaged(p, y)


def running(q: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Diagonals in another order."""
    s = scores(q, x)
    last = s.shape[2] - 1
    p = te.compute(s.shape, lambda h, i, k: te.exp(s[h, i, last - k]), "p")
    return averaged(p, y)


MATRICES: dict[str, Callable[..., Tensor]] = {
    "attention": attention,
    "scaled": scaled,
    "squashed": squashed,
    "without the first": without_the_first,
    "extremes": extremes,
    "quotients": quotients,
}
SKEWED: dict[str, Callable[..., Tensor]] = {"by distance": by_distance, "running": running}


def arrays(n: int = ROWS, window: int = WINDOW, heads: int = HEADS) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    columns = n + window - 1
    shapes = ((heads, n, FEATURES), (heads, columns, FEATURES), (heads, columns, FEATURES))
    return [rng.standard_normal(s).astype("float32") for s in shapes]


@pytest.mark.parametrize("name", [*MATRICES, *SKEWED])
def test_values_and_adjoints(name: str) -> None:
    build, own = (MATRICES | SKEWED)[name], arrays()
    inputs = [te.placeholder(a.shape, "float32", n) for a, n in zip(own, "qxy", strict=True)]
    output = build(*inputs)
    head = te.placeholder(output.shape, "float32", "H")
    feeds = dict(zip(inputs, own, strict=True)) | {head: np.ones(output.shape, "float32")}
    expected = te.interpret([output, *te.differentiate(output, inputs, head)], feeds)
    fn = te.function(build, forms=FORCED)
    assert "lax.map(" in fn.source(*own)
    value, pullback = jax.vjp(fn, *own)
    for found, wanted in zip([value, *pullback(jnp.ones_like(value))], expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=3e-4, atol=3e-4)


@pytest.mark.parametrize("name", [*MATRICES, *SKEWED])
def test_matrices_are_not_skewed(name: str) -> None:
    text = te.function((MATRICES | SKEWED)[name], forms=FORCED).source(*arrays())
    tiles = text[text.index("_tile(start)") : text.index("lax.map(")]
    assert ("jnp.pad(" in tiles) == (name in SKEWED)
    assert ("jnp.arange(32)[None, :] - jnp.arange(9)[:, None]" in tiles) == (name in MATRICES)


def test_the_gradients_of_attention_are_products_with_blocks() -> None:
    text = te.function(attention, forms=FORCED).source(*arrays())
    backward = text[text.index("def backward") : text.index("def _fwd")]
    assert "jnp.pad(" not in backward and backward.count("jnp.einsum(") == 5
    assert backward.count("jnp.exp(") == 1
    # of scores, of exp and of what is divided; multiples of these are 0 outside of the window by themselves
    assert backward.count("= jnp.where(") == 3


def masked(q: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    """Attention with a mask on all pairs."""
    reach = jnp.arange(x.shape[1]) - jnp.arange(q.shape[1])[:, None]
    s = jnp.einsum("hid,hjd->hij", q, x)
    inside = (reach >= 0) & (reach <= x.shape[1] - q.shape[1])
    return jnp.einsum("hij,hjd->hid", jax.nn.softmax(jnp.where(inside, s, -jnp.inf)), y)


@pytest.mark.parametrize("n", [250, 256])
def test_several_tiles(n: int) -> None:
    own = arrays(n, 3000, heads=1)
    fn = te.function(attention, forms=FORCED)
    starts = re.search(r"lax.map\(\w+, jnp.arange\(0, (\d+), (\d+)", fn.source(*own))
    assert starts is not None and int(starts[1]) == n > int(starts[2]) > 1
    value, pullback = jax.vjp(fn, *own)
    wanted, other = jax.vjp(masked, *own)
    head = jnp.asarray(np.random.default_rng(1).standard_normal(value.shape), "float32")
    for a, b in zip([value, *pullback(head)], [wanted, *other(head)], strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4)


def test_what_overflows_outside_of_the_window_does_not_count() -> None:
    """exp(s - largest) is infinite at columns of other rows."""
    q, x, y = arrays()
    q[:] = 1.0
    x[:, -1] = 400.0  # in the window of the last row only
    value, pullback = jax.vjp(te.function(attention, forms=FORCED), q, x, y)
    wanted, other = jax.vjp(masked, q, x, y)
    for a, b in zip(
        [value, *pullback(jnp.ones_like(value))], [wanted, *other(jnp.ones_like(value))], strict=True
    ):
        assert np.isfinite(a).all()
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_windows_that_are_shorter_than_the_tile_stay_bands() -> None:
    own = arrays(64, 16)
    text = te.function(attention, forms=FORCED).source(*own)
    assert "jnp.arange(79)[None, :]" not in text


def test_other_platforms_keep_the_band() -> None:
    own = arrays()
    inputs = [te.placeholder(a.shape, "float32", n) for a, n in zip(own, "qxy", strict=True)]
    assert ">= 0" not in te.source(attention(*inputs), platform="gpu")
