"""Ranges of computed positions: all values that are computed lie in them, and reads at positions that are held in range have no mask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxte as te
from jaxte.algebra.value_ranges import value_range

N = 9


def held(u: Any, top: float) -> Any:
    return te.cast(te.floor(te.minimum(te.maximum(u, 0.0), top)), "int32")


def between(x: te.Tensor, u: te.Tensor) -> te.Tensor:
    """Linear samples, the points in tensors of their own."""
    i = te.compute(u.shape, lambda b: held(u[b], N - 1.001), "i")
    return te.compute(
        u.shape, lambda b: x[i[b]] + te.minimum(u[b] - i[b], 1.0) * (x[i[b] + 1] - x[i[b]]), "y"
    )


def nearest(x: te.Tensor, u: te.Tensor) -> te.Tensor:
    """The nearest of the samples that there are, by integers."""
    body = lambda b: x[te.minimum(te.maximum(te.cast(te.round(te.tanh(u[b]) * 6.0), "int32") + 4, 0), N - 1)]  # noqa: E731
    return te.compute(u.shape, body, "y")


def around(x: te.Tensor, u: te.Tensor) -> te.Tensor:
    """Samples on a circle."""
    i = te.compute(u.shape, lambda b: te.cast(te.floor(te.sin(u[b]) * 20.0), "int32"), "i")
    return te.compute(u.shape, lambda b: x[i[b] % N] * u[b], "y")


def corners(x: te.Tensor, u: te.Tensor) -> te.Tensor:
    """Samples between neighbours, each of which is held in range by itself."""

    def element(b: te.Axis) -> te.Expr:
        first = te.cast(te.floor(u[b]), "int32")
        left, right = (te.minimum(te.maximum(first + step, 0), N - 1) for step in (0, 1))
        part = u[b] - te.floor(u[b])
        return x[left] * (1.0 - part) + x[right] * part

    return te.compute(u.shape, element, "y")


def plain_corners(x: Any, u: Any) -> Any:
    first = jnp.floor(u).astype(int)
    left, right = (jnp.clip(first + step, 0, N - 1) for step in (0, 1))
    return x[left] * (1 - (u - first)) + x[right] * (u - first)


def plain_between(x: Any, u: Any) -> Any:
    i = jnp.floor(jnp.minimum(jnp.maximum(u, 0.0), N - 1.001)).astype(int)
    return x[i] + jnp.minimum(u - i, 1.0) * (x[i + 1] - x[i])


def plain_nearest(x: Any, u: Any) -> Any:
    return x[jnp.clip(jnp.round(jnp.tanh(u) * 6.0).astype(int) + 4, 0, N - 1)]


def plain_around(x: Any, u: Any) -> Any:
    return x[jnp.floor(jnp.sin(u) * 20.0).astype(int) % N] * u


@pytest.mark.parametrize(
    ("definition", "plain"),
    [(between, plain_between), (nearest, plain_nearest), (around, plain_around), (corners, plain_corners)],
)
def test_positions_that_are_held_have_no_mask(
    definition: Callable[..., Any], plain: Callable[..., Any]
) -> None:
    rng = np.random.default_rng(1)
    x, u = rng.standard_normal(N, np.float32), rng.uniform(-3.0, N + 3.0, 40).astype(np.float32)
    f = te.function(definition)
    source = f.source(x, u)
    assert "nan" not in source
    forward = source[: source.index("def backward(")]
    assert forward.count("= _apart(") <= 1  # neighbours are computed from one array of positions
    np.testing.assert_allclose(f(x, u), plain(x, u), rtol=1e-5, atol=1e-6)
    loss = [jax.grad(lambda *a, fn=fn: jnp.sum(jnp.sin(fn(*a))), (0, 1))(x, u) for fn in (f, plain)]
    for a, b in zip(*loss, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_a_bound_that_is_rounded_up_to_the_end_keeps_the_mask() -> None:
    x, u = te.placeholder((N,), name="x"), te.placeholder((5,), name="u")
    for top, is_inside in ((N - 1.001, True), (N - 1 - 1e-9, False)):
        y = te.compute((5,), lambda b, top=top: x[held(u[b], top) + 1], "y")
        assert ("nan" not in te.source(y)) == is_inside


STEPS: list[Callable[[Any], Any]] = [
    te.tanh,
    te.sigmoid,
    te.abs,
    te.floor,
    te.relu,
    lambda v: -v,
    lambda v: v * 2.5,
    lambda v: 3.0 - v,
    lambda v: v / 4.0,
    lambda v: te.minimum(v, 1.75),
    lambda v: te.maximum(v, -2.25),
    lambda v: te.select(v > 0.3, v, 0.5),
    lambda v: te.cast(te.minimum(te.maximum(te.cast(te.minimum(v, 2e6), "int32") + 3, -2), 9), "float32"),
    lambda v: te.cast(te.cast(te.minimum(te.maximum(v, -50.0), 50.0), "int32"), "float32"),
]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(STEPS), min_size=1, max_size=6))
def test_values_lie_in_the_range(steps: list[Callable[[Any], Any]]) -> None:
    u = te.placeholder((12,), name="u")
    value = u
    for n, step in enumerate(steps):
        value = te.compute((12,), lambda i, step=step, v=value: step(v[i]), f"v{n}")
    assert isinstance(value, te.Tensor)
    low, high = value_range(value.body)  # type: ignore[attr-defined]
    given_values = np.array([-1e4, -7.3, -1.0, -0.4, -0.0, 0.0, 0.2, 0.31, 1.0, 2.6, 55.5, 1e5], np.float32)
    found = te.interpret(value, {u: given_values})
    assert np.all(found >= low)
    assert np.all(found <= high)


def test_sums_products_and_extrema_of_what_is_not_negative() -> None:
    x = te.placeholder((4, 3), name="x")
    found = {}

    def body(i: Any) -> te.Expr:
        k, none = te.reduce_axis((0, 3), "k"), te.reduce_axis((0, 0), "none")
        squares = te.sum(x[i, k] * x[i, k], axis=k)
        found["sum"] = squares + 1.0
        found["product"] = te.exp(x[i, 0]) * (te.abs(x[i, 1]) + 2.0)
        found["power"] = x[i, 0] ** 4
        found["cast"] = te.cast(te.cosh(x[i, 0]), "float64")
        found["extremum"] = te.max(te.tanh(x[i, k]), axis=k)
        found["of none"] = te.max(te.tanh(x[i, none]), axis=none)
        found["some"] = te.max(te.tanh(x[i, k]), axis=k, where=x[i, k] > 0)
        return squares

    te.compute((4,), body, "y")
    assert {name: value_range(expr) for name, expr in found.items()} == {
        "sum": (1.0, np.inf),
        "product": (0.0, np.inf),
        "power": (0.0, np.inf),
        "cast": (1.0, np.inf),
        "extremum": (-1.0, 1.0),
        "of none": (-np.inf, np.inf),
        "some": (-np.inf, np.inf),
    }


def test_integers_that_are_read_outside_are_zero_and_not_in_the_range() -> None:
    """A table of positions from 2 to 4 that is asked beyond its end: 0 - 2 is no position."""
    x, j = te.placeholder((3,), name="x"), te.placeholder((5,), "int32", name="j")
    table = te.compute((4,), lambda t: te.minimum(te.maximum(j[t], 2), 4), "table")
    y = te.compute((5,), lambda b: x[table[j[b]] - 2], "y")
    low, high = value_range(y.body.indices[0])
    assert (low, high) == (-2, 2)
    feeds = {x: np.float32([10, 20, 30]), j: np.int32([2, 7, 3, -1, 0])}
    np.testing.assert_array_equal(te.evaluate(y, feeds), te.interpret(y, feeds))
    assert np.isnan(te.evaluate(y, feeds)).sum() == 2
