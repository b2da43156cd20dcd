"""Constraints of the scope of ``jax.export.symbolic_shape``: bounds from above, relations and divisors of sizes are known to a definition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te


def shorter(x: Any, y: Any) -> Any:
    return te.compute(x.shape, lambda i: x[i] * y[i + 2], "z")


def windows(x: Any, y: Any) -> Any:
    k = te.reduce_axis((0, y.shape[0]), "k")
    return te.compute((x.shape[0] - y.shape[0] + 1,), lambda i: te.sum(x[i + k] * y[k], axis=k), "z")


def pairs(x: Any) -> Any:
    return te.compute((x.shape[0] // 2,), lambda i: te.sin(x[2 * i]) * x[2 * i + 1], "z")


def wavelet(x: Any, w: Any) -> Any:
    n, k = x.shape[0], te.reduce_axis((0, 4), "k")
    return te.compute((n // 2,), lambda i: te.sum(w[k] * x[(2 * i + k) % n], axis=k), "z")


def plain_wavelet(x: Any, w: Any) -> Any:
    return sum(w[k] * jnp.roll(x, -k)[::2] for k in range(4))


# builder, plain JAX, sizes, constraints, shapes, the sizes that it is called with
CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any], str, list[str], Any, tuple[int, ...]]] = {
    "a relation": (shorter, lambda x, y: x * y[2 : len(x) + 2], "n,m", ["n + 2 <= m", "m <= 9", "n <= 4"], lambda n, m: ((n,), (m,)), (3, 6)),
    "windows of any length": (windows, lambda x, y: jnp.correlate(x, y, "valid"), "n,m", ["n >= m"], lambda n, m: ((n,), (m,)), (5, 5)),
    "a bound from above": (shorter, lambda x, y: x * y[2 : len(x) + 2], "n", ["n <= 6"], lambda n: ((n,), (8,)), (6,)),
    "an even size": (pairs, lambda x: jnp.sin(x[::2]) * x[1::2], "n", ["mod(n, 2) == 0"], lambda n: ((n,),), (6,)),
    "around an even size": (wavelet, plain_wavelet, "n", ["n >= 4", "mod(n, 2) == 0"], lambda n: ((n,), (4,)), (6,)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_stated(name: str) -> None:
    build, plain, sizes, constraints, shapes, called = CASES[name]
    dims = jax.export.symbolic_shape(sizes, constraints=constraints)
    specs = [jax.ShapeDtypeStruct(shape, "float32") for shape in shapes(*dims)]
    f = te.function(build)

    def both(g: Callable[..., Any]) -> Any:
        return jax.jit(jax.value_and_grad(lambda *args: jnp.sum(jnp.sin(g(*args))), tuple(range(len(specs)))))

    rng = np.random.default_rng(0)
    args = [rng.normal(size=shape).astype("float32") for shape in shapes(*called)]
    found = jax.export.export(both(f))(*specs).call(*args)
    for own, expected in zip(jax.tree.leaves(found), jax.tree.leaves(both(plain)(*args)), strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-4, atol=1e-5)


def test_what_is_not_stated() -> None:
    n, m = jax.export.symbolic_shape("n,m", constraints=["m >= n"])
    specs = [jax.ShapeDtypeStruct((size,), "float32") for size in (n, m)]
    with pytest.raises(te.RangeError, match=r"reads y\[\d+\]"):
        jax.eval_shape(te.function(shorter), *specs)


def test_results_have_the_sizes_of_plain_jax() -> None:
    (n,) = jax.export.symbolic_shape("n")
    x = jax.ShapeDtypeStruct((n,), "float32")
    halved = te.function(lambda x: te.compute(((x.shape[0] + 1) // 2,), lambda i: x[2 * i], "y"))
    assert jax.eval_shape(lambda x: halved(x) + x[::2], x).shape == ((n + 1) // 2,)
