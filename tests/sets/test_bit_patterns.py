"""Elements in the order of bits: Gray codes, reversed bits, reflections by choices, in both passes beside NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import jaxte as te

SIZE, BITS = 64, 6
ORDERS: dict[str, tuple[Callable[[Any], Any], list[int]]] = {
    "Gray code": (lambda i: i ^ (i >> 1), [i ^ (i >> 1) for i in range(SIZE)]),
    "back from a Gray code": (
        lambda i: i ^ (i >> 1) ^ (i >> 2) ^ (i >> 3) ^ (i >> 4) ^ (i >> 5),
        list(np.argsort([i ^ (i >> 1) for i in range(SIZE)])),
    ),
    "bits reversed": (
        lambda i: sum(((i >> b) & 1) << (BITS - 1 - b) for b in range(BITS)),
        [int(f"{i:06b}"[::-1], 2) for i in range(SIZE)],
    ),
    "halves of the bits exchanged": (
        lambda i: ((i & 7) << 3) | (i >> 3),
        [i % 8 * 8 + i // 8 for i in range(SIZE)],
    ),
}


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", ORDERS)
def test_orders_of_bits(name: str, rng: np.random.Generator) -> None:
    index, places = ORDERS[name]
    fn = te.function(lambda x: te.compute((SIZE,), lambda i: x[index(i)] * (i + 1), "y"))
    x, head = rng.standard_normal((2, SIZE))
    weights = np.arange(1, SIZE + 1)
    value, vjp = jax.vjp(fn, x)
    np.testing.assert_allclose(value, x[places] * weights)
    expected = np.zeros(SIZE)
    np.add.at(expected, places, head * weights)
    np.testing.assert_allclose(vjp(head)[0], expected)


@pytest.mark.usefixtures("x64")
def test_reflection_by_a_choice_over_two_axes(rng: np.random.Generator) -> None:
    n = 8

    def body(x: te.Tensor, w: te.Tensor) -> te.Tensor:
        k, m = te.reduce_axis((-2, 3), "k"), te.reduce_axis((-1, 2), "m")

        def at(j: Any) -> Any:
            return te.select(j < n, te.abs(j), 2 * n - 2 - j)

        return te.compute(
            (n, n), lambda i, j: te.sum(x[at(i + k), at(j + m)] * w[k + 2, m + 1], axis=[k, m]), "y"
        )

    x, w, head = rng.standard_normal((n, n)), rng.standard_normal((5, 3)), rng.standard_normal((n, n))
    value, vjp = jax.vjp(te.function(body), x, w)

    def plain(x: Any, w: Any) -> Any:
        padded = jax.numpy.pad(x, ((2, 2), (1, 1)), mode="reflect")
        return sum(padded[a : a + n, b : b + n] * w[a, b] for a in range(5) for b in range(3))

    expected, plain_vjp = jax.vjp(plain, x, w)
    np.testing.assert_allclose(value, expected)
    for own, judged in zip(vjp(head), plain_vjp(head), strict=True):
        np.testing.assert_allclose(own, judged, atol=1e-12)
