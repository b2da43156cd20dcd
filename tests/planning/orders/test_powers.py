"""Powers of products within sums are products of matrices: what is multiplied, values, and what stays as it is."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxte as te
from tests.lower.mechanism_sums import demodulated, outer_energies, second_order


def plain_second_order(x: Any, v: Any) -> Any:
    return 0.5 * jnp.sum((x @ v) ** 2 - (x**2) @ (v**2), axis=1)


def plain_energies(a: Any, b: Any) -> Any:
    return jnp.sum((a[:, :, None] * b[:, None]) ** 2, axis=(1, 2))


def plain_demodulated(w: Any, s: Any) -> Any:
    return lax.rsqrt(jnp.sum((w[None] * s[:, None, None, :, None]) ** 2, axis=(1, 2, 3)) + 1e-6)


CASES: dict[Callable[..., te.Tensor], tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    second_order: (plain_second_order, ((24, 20), (20, 16))),
    outer_energies: (plain_energies, ((12, 24), (12, 20))),
    demodulated: (plain_demodulated, ((3, 3, 8, 6), (5, 8))),
}


@pytest.mark.parametrize("build", CASES)
def test_no_power_is_taken_of_each_product(build: Callable[..., te.Tensor], rng: np.random.Generator) -> None:
    plain, shapes = CASES[build]
    args = [jnp.asarray(rng.uniform(0.5, 1.5, s), "float32") for s in shapes]
    own = te.function(build)
    np.testing.assert_allclose(own(*args), plain(*args), rtol=1e-5)
    every = tuple(range(len(args)))
    slopes = [jax.grad(lambda *a, f=f: jnp.sum(f(*a) ** 2), every)(*args) for f in (own, plain)]
    for ours, theirs in zip(*slopes, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
    tangents = [jax.jvp(f, args, args)[1] for f in (own, plain)]
    np.testing.assert_allclose(*tangents, rtol=1e-4)


def test_squares_of_interactions_are_a_product_of_squares() -> None:
    text = te.function(second_order).source(*(jnp.ones(s, "float32") for s in ((24, 20), (20, 16))))
    assert re.search(r'jnp\.einsum\("n(\w),\1k->nk", x \*\* 2, v \*\* 2\)', text)


@pytest.mark.parametrize(
    ("dtype", "power"),
    [("float16", 2), ("bfloat16", 2), ("float32", 3), ("float64", 5), ("float32", 0.5), ("float32", -2)],
)
def test_narrow_numbers_and_other_powers_stay_as_they_are(dtype: str, power: float) -> None:
    x, v = te.placeholder((8, 6), dtype, "x"), te.placeholder((6, 4), dtype, "v")
    f = te.reduce_axis((0, 6), "f")
    y = te.compute((8, 4), lambda n, k: te.sum((x[n, f] * v[f, k]) ** power, axis=f), "y")
    assert "powers of factors" not in str(te.explain(y))


def test_equal_axes_and_other_reductions_stay_as_they_are() -> None:
    x, v = te.placeholder((8, 6), name="x"), te.placeholder((6, 4), name="v")
    f = te.reduce_axis((0, 6), "f")
    same = te.compute((8,), lambda n: te.sum((x[n, f] * te.exp(x[n, f])) ** 2, axis=f), "y")
    most = te.compute((8, 4), lambda n, k: te.max((x[n, f] * v[f, k]) ** 2, axis=f), "y")
    for y in (same, most):
        assert "powers of factors" not in str(te.explain(y))


@pytest.mark.parametrize(
    ("dtype", "power", "scale"), [("float32", 3, 1e13), ("float32", 4, 1e10), ("float64", 4, 1e60)]
)
def test_factors_that_are_far_from_one_stay_in_range(dtype: str, power: int, scale: float) -> None:
    """A product of 1 whose factors have powers that overflow or are nothing; in float64 a fourth power is still one of each."""
    k = te.reduce_axis((0, 6), "k")
    x, v = te.placeholder((3, 6), dtype, "x"), te.placeholder((6, 4), dtype, "v")
    y = te.compute((3, 4), lambda n, c: te.sum((x[n, k] * v[k, c]) ** power, axis=k), "y")
    with jax.enable_x64(dtype == "float64"):
        found = te.function([x, v], y)(np.full((3, 6), scale, dtype), np.full((6, 4), 1 / scale, dtype))
        np.testing.assert_allclose(found, np.full((3, 4), 6.0), rtol=1e-5)
