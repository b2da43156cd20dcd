"""Powers whose exponent is a position are products: what is emitted, values at zeros and infinities, gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

SPECIAL = np.array([0.0, -0.0, 1.0, -1.5, 3.0, 1e12, -1e-12, np.inf, -np.inf, np.nan], "float32")
WHOLE: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "k": (lambda k: k, np.arange(12)),
    "k - 3": (lambda k: k - 3, np.arange(12) - 3),
    "-2 * k": (lambda k: -2 * k, np.arange(12) * -2),
    "k // 2": (lambda k: k // 2, np.arange(12) // 2),
    "cast": (lambda k: te.cast(k, "float32"), np.arange(12)),
}


def general_powers(fn: te.Function, *arrays: Any) -> int:
    return jax.jit(fn).lower(*arrays).as_text().count("stablehlo.power")


@pytest.mark.parametrize("name", WHOLE)
def test_values(name: str) -> None:
    exponent, numbers = WHOLE[name]
    fn = te.function(lambda x: te.compute((len(SPECIAL), 12), lambda i, k: x[i] ** exponent(k), "p"))
    with np.errstate(all="ignore"):
        expected = SPECIAL[:, None].astype("float64") ** numbers.astype("float64")
        expected = expected.astype("float32")
    np.testing.assert_allclose(fn(SPECIAL), expected, rtol=2e-6, atol=1e-37)  # XLA has no denormal numbers
    assert general_powers(fn, SPECIAL) == 0


def moments(x: te.Tensor, c: te.Tensor) -> te.Tensor:
    """A polynomial of several numbers."""
    k = te.reduce_axis((0, c.shape[0]), "k")
    return te.compute(x.shape, lambda i: te.sum(c[k] * x[i] ** k, axis=k), "y")


def test_gradients_of_a_polynomial(rng: np.random.Generator) -> None:
    x, c, h = (rng.standard_normal(n).astype("float32") for n in (7, 20, 7))
    fn = te.function(moments)

    def both(f: Any) -> Any:
        return lambda *a: (lambda y, pull: (y, *pull(h)))(*jax.vjp(f, *a))

    lowered = jax.jit(both(fn)).lower(x, c)
    assert "stablehlo.power" not in lowered.as_text()
    reference = both(lambda x, c: sum(c[k] * x**k for k in range(20)))
    for own, theirs in zip(lowered.compile()(x, c), reference(x, c), strict=True):
        np.testing.assert_allclose(own, theirs, rtol=1e-4, atol=1e-3 * np.abs(theirs).max())


@pytest.mark.parametrize(
    ("body", "extent"),
    [
        (lambda x, n, i, k: x[i] ** n[k], 5),  # data
        (lambda x, n, i, k: x[i] ** k, 1100),  # more bits than products are worth
        (lambda x, n, i, k: x[i] ** (0.5 * k), 5),
        (lambda x, n, i, k: 2.0 ** (te.cast(k, "float32") + x[i]), 5),
    ],
    ids=["data", "large", "halves", "sums"],
)
def test_other_powers_stay(body: Callable[..., Any], extent: int) -> None:
    x, n = jnp.ones(3), jnp.arange(extent, dtype="int32")
    fn = te.function(lambda x, n: te.compute((3, extent), lambda i, k: body(x, n, i, k), "p"))
    assert general_powers(fn, x, n) == 1
