"""Extrema over windows of several dimensions, one dimension after the other, where a platform wants them so."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxte as te

# window, strides, padding; the second is of three dimensions, the third leaves rows out
WINDOWS = [((7, 7), (1, 1), 3), ((4, 5, 4), (1, 1, 1), 0), ((6, 6), (2, 3), 2)]


def pool(window: tuple[int, ...], strides: tuple[int, ...], padding: int, sign: int = 1) -> Any:
    """A maximum, or a minimum, the first of equal elements chosen."""
    reduced, name = (te.max, "highest") if sign > 0 else (te.min, "lowest")

    def build(x: Any) -> Any:
        own = [te.reduce_axis((0, w), f"k{d}") for d, w in enumerate(window)]
        shape = [
            (int(n) + 2 * padding - w) // s + 1 for n, w, s in zip(x.shape[1:], window, strides, strict=True)
        ]

        def element(b: Any, *at: Any) -> Any:
            places = [s * i + k - padding for s, i, k in zip(strides, at, own, strict=True)]
            inside = te.logical_and(*[(0 <= p) & (p < n) for p, n in zip(places, x.shape[1:], strict=True)])
            return reduced(x[(b, *places)], axis=own, where=inside, ties="first")

        return te.compute((x.shape[0], *shape), element, name)

    return build


def plain(window: tuple[int, ...], strides: tuple[int, ...], padding: int, sign: int = 1) -> Any:
    combine, start = (lax.max, -np.inf) if sign > 0 else (lax.min, np.inf)
    pads = ((0, 0), *[(padding, padding)] * len(window))
    return lambda x: lax.reduce_window(x, start, combine, (1, *window), (1, *strides), pads)


def drawn(window: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Few values, so that most windows have ties."""
    shape = (2, *[11 + d for d in range(len(window))])
    return np.random.default_rng(0).integers(0, 4, shape).astype("float32")


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("given", WINDOWS, ids=str)
def test_values_and_gradients_with_ties(given: Any, sign: int) -> None:
    x = drawn(given[0])
    ours, theirs = te.function(pool(*given, sign), platform="tpu"), plain(*given, sign)
    assert "_over_k" in str(te.source(ours, x))
    y, pull = jax.vjp(jax.jit(ours), x)
    expected, pulled = jax.vjp(theirs, x)
    np.testing.assert_array_equal(y, expected)
    h = np.random.default_rng(1).standard_normal(y.shape).astype("float32")
    np.testing.assert_allclose(pull(h)[0], pulled(h)[0], rtol=1e-5, atol=1e-5)


def test_comparisons_grow_with_the_sides_of_a_window() -> None:
    x = jax.ShapeDtypeStruct((64, 56, 56), "float32")
    build = pool((7, 7), (1, 1), 3)
    texts = {p: str(te.source(te.function(build, platform=p), x)) for p in ("cpu", "tpu")}
    compared = {p: text.rpartition('"""')[2].count("] == highest") for p, text in texts.items()}
    assert compared == {"cpu": 49, "tpu": 14}


@pytest.mark.parametrize(
    ("window", "ties"), [((3, 3), "first"), ((7, 7), "even")], ids=["few positions", "shares"]
)
def test_what_stays_whole(window: tuple[int, int], ties: str) -> None:
    def build(x: Any) -> Any:
        a, b = (te.reduce_axis((0, w), n) for w, n in zip(window, "ab", strict=True))
        n, m = (int(s) - w + 1 for s, w in zip(x.shape, window, strict=True))
        return te.compute((n, m), lambda i, j: te.max(x[i + a, j + b], axis=(a, b), ties=ties), "y")

    x = jax.ShapeDtypeStruct((64, 64), "float32")
    assert "_over_" not in str(te.source(te.function(build, platform="tpu"), x))


def test_infinities_and_nan_are_those_of_the_whole() -> None:
    x = drawn((7, 7))
    x[0, 2, 3], x[1, :4] = np.nan, -np.inf
    build = pool((7, 7), (1, 1), 3)
    found = [jax.vjp(jax.jit(te.function(build, platform=p)), x) for p in ("cpu", "tpu")]
    np.testing.assert_array_equal(found[0][0], found[1][0])
    h = jnp.ones_like(found[0][0])
    np.testing.assert_allclose(found[0][1](h)[0], found[1][1](h)[0])
