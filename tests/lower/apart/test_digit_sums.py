"""Sums over positions that meet others digit by digit: one digit after the other, in both passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import jaxte as te
from jaxte.lower.apart.digit_sums import DIGITS
from tests.xla_counts import Fused

N = 256
Meets = Callable[[Any, Any], Any]


def _parity(value: Any) -> Any:
    for shift in (4, 2, 1):
        value = value ^ (value >> shift)
    return value & 1


def subsets(s: Any, i: Any) -> Any:
    return (s & i) == i


def supersets(s: Any, i: Any) -> Any:
    return (s | i) == i


def disjoint(s: Any, i: Any) -> Any:
    return (s & i) == 0


def near(s: Any, i: Any) -> Any:
    return (s ^ i) < 8


def _summed(meets: Meets) -> Callable[..., te.Tensor]:
    def build(x: Any) -> te.Tensor:
        i = te.reduce_axis((0, N), "i")
        return te.compute((5, N), lambda b, s: te.sum(x[b, i], axis=i, where=meets(s, i)), "z")

    return build


def _matrix(meets: Meets) -> np.ndarray:
    s, i = np.meshgrid(np.arange(N), np.arange(N), indexing="ij")
    return np.asarray(meets(s, i)).astype("float64")


def walsh(x: Any) -> te.Tensor:
    i = te.reduce_axis((0, N), "i")
    signed = lambda b, s: te.select(_parity(s & i) == 0, x[b, i], -x[b, i])  # noqa: E731
    return te.compute((5, N), lambda b, s: te.sum(signed(b, s), axis=i), "z")


def moebius(x: Any) -> te.Tensor:
    i = te.reduce_axis((0, N), "i")
    sign = lambda s: 1 - 2 * te.cast(_parity(s ^ i), "float32")  # noqa: E731
    return te.compute((5, N), lambda b, s: te.sum(x[b, i] * sign(s), axis=i, where=subsets(s, i)), "z")


CASES: dict[str, tuple[Callable[..., te.Tensor], np.ndarray]] = {
    **{f.__name__: (_summed(f), _matrix(f)) for f in (subsets, supersets, disjoint, near)},
    "walsh": (walsh, 1 - 2 * _matrix(lambda s, i: _parity(s & i))),
    "moebius": (moebius, _matrix(subsets) * (1 - 2 * _matrix(lambda s, i: _parity(s ^ i)))),
}


@pytest.mark.parametrize("name", CASES)
def test_both_passes_take_one_digit_after_the_other(name: str, rng: np.random.Generator) -> None:
    build, matrix = CASES[name]
    function = te.function(build)
    x, h = (rng.standard_normal((5, N)).astype("float32") for _ in range(2))

    def both(x: Any, h: Any) -> Any:
        y, back = jax.vjp(function, x)
        return y, *back(h)

    y, dx = jax.jit(both)(x, h)
    np.testing.assert_allclose(y, x @ matrix.T, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(dx, h @ matrix, rtol=1e-4, atol=1e-4)
    counts = Fused(jax.jit(both).lower(x, h)).cost_analysis()
    assert DIGITS in str(te.explain(function, x))
    assert counts["flops"] < 2 * 5 * N * N / 8


def test_work_grows_with_the_digits() -> None:
    """Eight times as many positions have three digits of two more."""

    def flops(length: int) -> float:
        def build(x: Any) -> te.Tensor:
            i = te.reduce_axis((0, length), "i")
            return te.compute((length,), lambda s: te.sum(x[i], axis=i, where=(s & i) == i), "z")

        function = te.function(build)
        return Fused(jax.jit(function).lower(np.ones(length, "float32"))).cost_analysis()["flops"]

    assert flops(4096) < 8 * 1.5 * flops(512)


def test_what_is_not_among_the_terms_passes_nothing_on() -> None:
    x = np.ones((5, N), "float32")
    x[:, 7] = np.inf
    y = np.asarray(te.function(CASES["subsets"][0])(x))
    assert (np.isinf(y) == (_matrix(subsets)[:, 7] == 1)).all() and not np.isnan(y).any()


def test_other_axes_stay_where_they_are_and_products_are_computed_once(rng: np.random.Generator) -> None:
    def build(x: Any, w: Any) -> te.Tensor:
        i = te.reduce_axis((0, N), "i")
        term = lambda s, c: te.tanh(x[i, c]) * w[i]  # noqa: E731
        return te.compute((N, 6), lambda s, c: 2 * te.sum(term(s, c), axis=i, where=(s & i) == i) + x[s, c])

    x, w = rng.standard_normal((N, 6)).astype("float32"), rng.standard_normal(N).astype("float32")
    text = te.source(te.function(build), x, w)
    forward = text[text.index("def forward") : text.index("def backward")]
    assert forward.count("jnp.tanh") == 1 and "jnp.sum" not in forward
    expected = 2 * _matrix(subsets) @ (np.tanh(x) * w[:, None]) + x
    np.testing.assert_allclose(te.function(build)(x, w), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "meets",
    [
        lambda s, i: i // 4 <= s // 4,
        lambda s, i: i // 4 == s // 4,
        lambda s, i: (s & i) < 100,
    ],
    ids=["prefixes", "blocks", "no digits"],
)
def test_near_misses(meets: Meets) -> None:
    text = str(te.explain(te.function(_summed(meets)), np.ones((5, N), "float32")))
    assert DIGITS not in text
