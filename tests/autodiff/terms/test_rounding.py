"""Elements of an extremum that every loop rounds alike are compared where they are read, and no reduction of several arrays finds their places."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte import Tensor
from jaxte.autodiff.terms.places import has_same_bits, is_rounded
from tests.autodiff.rules.test_extrema import backward


def body(element: Callable[..., Any], dtype: str = "float32") -> Any:
    x, y = te.placeholder((4,), dtype, "x"), te.placeholder((4,), dtype, "y")
    return te.compute((4,), lambda i: element(x[i], y[i]), "z").body  # type: ignore[union-attr]


ALIKE: list[Callable[..., Any]] = [
    lambda x, y: x + y,
    lambda x, y: te.abs(x - y),
    lambda x, y: (x - y) ** 2,
    lambda x, y: (x + 1.0) * (y - x),
    lambda x, y: te.select(x - y > 0.5, x, -y),
]
OTHER: list[Callable[..., Any]] = [
    lambda x, y: x * y + x,  # joined into one instruction
    lambda x, y: (x + 1.0) + 2.0,  # the numbers are added first
    lambda x, y: (x + y) * 2.0 * y,
    lambda x, y: te.cast(x + y, "bfloat16"),
    lambda x, y: te.sin(x),
    lambda x, y: x / y,
]


@pytest.mark.parametrize("element", ALIKE)
def test_one_sum_or_a_product_of_sums_is_rounded_alike(element: Callable[..., Any]) -> None:
    assert is_rounded(body(element))
    assert has_same_bits(body(element)) and not has_same_bits(body(element, "bfloat16"))


@pytest.mark.parametrize("element", OTHER)
def test_what_may_be_joined_or_reordered_is_not(element: Callable[..., Any]) -> None:
    assert not has_same_bits(body(element))


def least_sum(x: Tensor, y: Tensor) -> Tensor:
    """The product of matrices of the algebra of least sums."""
    k = te.reduce_axis((0, x.shape[1]), "k")
    return te.compute((x.shape[0], y.shape[1]), lambda i, j: te.min(x[i, k] + y[k, j], axis=k), "z")


def least_distance(x: Tensor, y: Tensor) -> Tensor:
    k = te.reduce_axis((0, y.shape[1]), "k")
    return te.compute((x.shape[0], y.shape[0]), lambda i, j: te.max((x[i, 0] - y[j, k]) ** 2, axis=k), "z")


def learned_dilation(x: Tensor, y: Tensor) -> Tensor:
    k = te.reduce_axis((0, y.shape[0]), "k")
    return te.compute(
        (x.shape[0], x.shape[1] - y.shape[0] + 1), lambda i, j: te.max(x[i, j + k] + y[k, 0], axis=k), "z"
    )


DEFINITIONS = [
    (least_sum, lambda x, y: jnp.min(x[:, :, None] + y, 1)),
    (least_distance, lambda x, y: jnp.max((x[:, :1, None] - y) ** 2, -1)),
    (
        learned_dilation,
        lambda x, y: jnp.max(
            jnp.stack([x[:, k : k + x.shape[1] - len(y) + 1] + y[k, 0] for k in range(len(y))]), 0
        ),
    ),
]


@pytest.mark.parametrize("points", [3, 40])
@pytest.mark.parametrize(("definition", "plain"), DEFINITIONS)
def test_they_are_compared_and_held_once(definition: Any, plain: Any, points: int) -> None:
    """There are ties among them; what the caller computes in the same program does not lose a gradient."""
    rng = np.random.default_rng(points)
    a, b = (rng.normal(size=(6, 40 + points)).astype(np.float32) for _ in range(2))
    y = np.round(
        rng.normal(size=(points, 7) if definition is not least_distance else (7, points)).astype(np.float32)
    )
    fn = te.function(definition)

    def scaled(a: Any, b: Any) -> Any:
        centred = a - a.mean(1, keepdims=True)
        return (centred * jax.lax.rsqrt(jnp.var(a, 1, keepdims=True) + 0.1) * b)[
            :, : points if definition is least_sum else None
        ]

    def gradients(f: Any, given: Any, *args: Any) -> Any:
        value, back = jax.vjp(lambda a, b, y: f(given(a, b), y), *args)
        return back(jnp.cos(jnp.arange(value.size, dtype=value.dtype)).reshape(value.shape))

    for given in (scaled, lambda a, b: jnp.round(a)[:, : points if definition is least_sum else None]):
        found = jax.jit(lambda *args, given=given: gradients(fn, given, *args))(a, b, y)
        with jax.enable_x64(True):
            wide = [np.asarray(v, np.float64) for v in (a, b, y)]
            x = given(*wide[:2])  # in one loop with the comparison, JAX's own gradient loses some
            _, back = jax.vjp(given, *wide[:2])
            value, own = jax.vjp(plain, jnp.asarray(x), wide[2])
            dx, dy = own(
                jnp.cos(jnp.arange(value.size, dtype="float32")).reshape(value.shape).astype("float64")
            )
            wanted = (*back(dx), dy)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=2e-5 * max(1.0, float(np.abs(other).max())))
    text = backward(fn.source(jax.ShapeDtypeStruct(scaled(a, b).shape, jnp.float32), y))
    assert "lax.reduce(" not in text and "_apart(" in text


def test_a_nan_spreads_to_all_elements_it_is_compared_with() -> None:
    x, y = np.zeros((3, 5), np.float32), np.zeros((5, 4), np.float32)
    x[1, 2] = np.nan
    dx, dy = jax.jit(lambda x, y: jax.vjp(te.function(least_sum), x, y)[1](jnp.ones((3, 4))))(x, y)
    assert (
        np.isnan(dx[1]).all() and np.isfinite(dx[0]).all() and np.isfinite(dx[2]).all() and np.isnan(dy).all()
    )


@pytest.mark.parametrize(("platform", "compared"), [("cpu", True), ("gpu", True), ("tpu", False)])
def test_windows_are_compared_in_one_loop_where_each_reading_takes_time(
    platform: str, compared: bool
) -> None:
    x, y = jax.ShapeDtypeStruct((6, 49), jnp.float32), jax.ShapeDtypeStruct((9, 1), jnp.float32)
    text = te.function(learned_dilation, platform=platform).source(x, y)
    assert ("places_" not in text) == compared
    a, b = jax.ShapeDtypeStruct((6, 9), jnp.float32), jax.ShapeDtypeStruct((9, 4), jnp.float32)
    assert "places_" not in te.function(least_sum, platform=platform).source(a, b)
