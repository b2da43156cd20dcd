"""Sums between bounds that move with the output: axis by axis and in pieces, never a mask over two axes.

The references sum slices in NumPy; the counts are XLA's, beside a product with a matrix of ones and zeros for each axis.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from harness.counts import operations
from harness.sides import with_gradients
from tests.agreement import QUICKEST
from tests.xla_counts import Fused

SIZES, OUT = (13, 14), (4, 5)


def bounds(i: Any, n: int, m: int) -> tuple[Any, Any]:
    """Where segment ``i`` of ``m`` begins and ends among ``n`` elements."""
    return i * n // m, ((i + 1) * n + m - 1) // m


def axes() -> tuple[Any, Any]:
    return te.reduce_axis((0, SIZES[0]), "u"), te.reduce_axis((0, SIZES[1]), "v")


def inside(u: Any, v: Any, i: Any, j: Any) -> Any:
    (a, b), (c, d) = bounds(i, SIZES[0], OUT[0]), bounds(j, SIZES[1], OUT[1])
    return te.logical_and(te.logical_and(u >= a, u < b), te.logical_and(v >= c, v < d))


def by_where(x: Any) -> te.Tensor:
    u, v = axes()
    return te.compute(
        (2, *OUT), lambda b, i, j: te.sum(x[b, u, v], axis=[u, v], where=inside(u, v, i, j)), "y"
    )


def by_select(x: Any) -> te.Tensor:
    u, v = axes()
    return te.compute(
        (2, *OUT), lambda b, i, j: te.sum(te.select(inside(u, v, i, j), x[b, u, v], 0.0), axis=[v, u]), "y"
    )


def from_the_start(x: Any) -> te.Tensor:
    p, q = te.reduce_axis((0, 5), "p"), te.reduce_axis((0, 4), "q")

    def element(b: Any, i: Any, j: Any) -> Any:
        (a, e), (c, d) = bounds(i, SIZES[0], OUT[0]), bounds(j, SIZES[1], OUT[1])
        return te.sum(x[b, a + p, c + q], axis=[p, q], where=te.logical_and(a + p < e, c + q < d))

    return te.compute((2, *OUT), element, "y")


def two_sums(x: Any) -> te.Tensor:
    u, v = axes()

    def rows(b: Any, u: Any, j: Any) -> Any:
        c, d = bounds(j, SIZES[1], OUT[1])
        return te.sum(x[b, u, v], axis=v, where=te.logical_and(c <= v, v <= d - 1))

    inner = te.compute((2, SIZES[0], OUT[1]), rows, "rows")

    def element(b: Any, i: Any, j: Any) -> Any:
        a, e = bounds(i, SIZES[0], OUT[0])
        return te.sum(te.where(u < e, te.where(u < a, 0.0, inner[b, u, j]), 0.0), axis=u)

    return te.compute((2, *OUT), element, "y")


SPELLINGS: list[Callable[[Any], te.Tensor]] = [by_where, by_select, from_the_start, two_sums]


def by_matrices(x: Any) -> Any:
    ones = [
        np.array(
            [[float(a <= u < b) for u in range(n)] for a, b in (bounds(i, n, m) for i in range(m))], "float32"
        )
        for n, m in zip(SIZES, OUT, strict=True)
    ]
    return jnp.einsum("buv,iu,jv->bij", x, *ones)


@pytest.mark.parametrize("spelling", SPELLINGS, ids=lambda f: f.__name__)
def test_every_spelling_takes_slices(spelling: Callable[[Any], te.Tensor], rng: np.random.Generator) -> None:
    x = rng.standard_normal((2, *SIZES)).astype("float32")
    head = rng.standard_normal((2, *OUT)).astype("float32")
    found = {}
    for name, fn in (("own", te.function(spelling)), ("theirs", by_matrices)):
        lowered = jax.jit(with_gradients(fn, (0,))).lower([head], x)
        found[name] = Fused(lowered)
        if name == "own":
            assert not {"gather", "scatter", "while"} & set(operations(lowered.as_text()))
    for a, b in zip(found["own"]([head], x), found["theirs"]([head], x), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    for what in ("flops", "bytes accessed"):
        own, theirs = (found[side].cost_analysis()[what] for side in ("own", "theirs"))
        assert own <= 1.5 * theirs + 1000, what


def test_an_infinity_stays_in_its_segments(rng: np.random.Generator) -> None:
    """Which a product with ones and zeros would make NaN of everywhere."""
    x = rng.standard_normal((2, *SIZES)).astype("float32")
    x[0, 0, 0] = np.inf
    found = np.asarray(te.function(by_where)(x))
    assert np.isinf(found[0, 0, 0]) and np.isfinite(found).sum() == found.size - 1


def test_maxima_of_segments(rng: np.random.Generator) -> None:
    u, v = axes()
    fn = te.function(
        lambda x: te.compute(
            (2, *OUT), lambda b, i, j: te.max(x[b, u, v], axis=[u, v], where=inside(u, v, i, j)), "y"
        )
    )
    x = rng.standard_normal((2, *SIZES)).astype("float32")
    both = jax.jit(with_gradients(fn, (0,)), compiler_options=QUICKEST)
    value, dx = both([np.ones((2, *OUT), "float32")], x)
    expected, places = np.zeros_like(value), np.zeros_like(x)
    for b, i, j in np.ndindex(*value.shape):
        (a, e), (c, d) = bounds(i, SIZES[0], OUT[0]), bounds(j, SIZES[1], OUT[1])
        window = x[b, a:e, c:d]
        expected[b, i, j] = window.max()
        at = np.unravel_index(window.argmax(), window.shape)
        places[b, a + at[0], c + at[1]] += 1
    np.testing.assert_array_equal(value, expected)
    np.testing.assert_allclose(dx, places)
    assert ".at[" not in fn.source(x)


def test_prefixes_of_two_axes_are_two_scans() -> None:
    x = te.placeholder((64, 48), name="x")
    u, v = te.reduce_axis((0, 64), "u"), te.reduce_axis((0, 48), "v")
    y = te.compute(
        (64, 48), lambda i, j: te.sum(x[u, v], axis=[u, v], where=te.logical_and(u <= i, v <= j)), "y"
    )
    assert te.source(y).count("lax.scan(") == 2


def test_sixteen_bit_sums_are_not_rounded_in_between() -> None:
    x = te.placeholder((2, *SIZES), "bfloat16", "x")
    assert te.source(by_where(x)).count("with jax.named_scope") == 1


def test_a_condition_on_no_axis_of_the_sum_stays(rng: np.random.Generator) -> None:
    """``i <= 3 * j`` is about the output alone; bounds that move with ``i`` are taken apart beside it."""
    k = te.reduce_axis((0, 6), "k")
    X, Y = te.placeholder((3, 6), name="X"), te.placeholder((2, 3), name="Y")
    y = te.compute(
        (2, 3), lambda j, i: te.sum(X[i, k] * Y[j, i], k, where=te.equal(i, k) & (i <= 3 * j)), "y"
    )
    x, w = (rng.standard_normal(shape).astype("float32") for shape in [(3, 6), (2, 3)])
    i = np.arange(3)
    expected = np.where(i <= 3 * np.arange(2)[:, None], x[i, i] * w, 0.0)
    np.testing.assert_allclose(te.function([X, Y], y)(x, w), expected, rtol=1e-6)


def image_of_sums(x: te.Tensor) -> te.Tensor:
    u, v = te.reduce_axis((0, x.shape[1]), "u"), te.reduce_axis((0, x.shape[2]), "v")
    inside = lambda i, j: te.logical_and(u <= i, v <= j)  # noqa: E731
    return te.compute(x.shape, lambda b, i, j: te.sum(x[b, u, v], axis=(u, v), where=inside(i, j)), "y")


def highest_so_far(x: te.Tensor) -> te.Tensor:
    u, v = te.reduce_axis((0, x.shape[1]), "u"), te.reduce_axis((0, x.shape[2]), "v")
    inside = lambda i, j: te.logical_and(u <= i, v >= j)  # noqa: E731
    return te.compute(x.shape, lambda b, i, j: te.max(x[b, u, v], axis=(u, v), where=inside(i, j)), "y")


def ahead_in_time(x: te.Tensor) -> te.Tensor:
    """What is to come in a film, from each corner."""
    t, u = te.reduce_axis((0, x.shape[0]), "t"), te.reduce_axis((0, x.shape[1]), "u")
    inside = lambda s, i: te.logical_and(t >= s, u >= i)  # noqa: E731
    return te.compute(x.shape, lambda s, i, j: te.sum(x[t, u, j], axis=(t, u), where=inside(s, i)), "y")


@pytest.mark.parametrize(
    ("build", "reference"),
    [
        (image_of_sums, lambda x: np.cumsum(np.cumsum(x, 1), 2)),
        (
            highest_so_far,
            lambda x: np.maximum.accumulate(np.maximum.accumulate(x, 1)[:, :, ::-1], 2)[:, :, ::-1],
        ),
        (ahead_in_time, lambda x: np.cumsum(np.cumsum(x[::-1, ::-1], 0), 1)[::-1, ::-1]),
    ],
    ids=["sums", "maxima", "film"],
)
def test_nothing_is_transposed_between_the_axes(
    build: Callable[[te.Tensor], te.Tensor], reference: Callable[[Any], Any]
) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (17, 20, 24)).astype("float32")
    fn = te.function(build, forms={"*": "scan"})  # others move an axis themselves
    assert "transpose" not in jax.jit(fn).lower(x).as_text()
    np.testing.assert_array_equal(fn(x), reference(x))
