"""Expensive weights of a difference of positions are computed once for each difference: what is emitted, and values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.planning.graph import planned
from jaxte.planning.indices.known import Line
from jaxte.tensors.structure import topological_order

N = 40
Build = Callable[[te.Tensor], te.Tensor]


def weighted(weight: Callable[[Any, Any], Any], where: Callable[[Any, Any], Any] | None = None) -> Build:
    def build(r: te.Tensor) -> te.Tensor:
        s = te.reduce_axis((0, r.shape[1]), "s")

        def element(b: Any, t: Any) -> Any:
            condition = None if where is None else where(s, t)
            return te.sum(weight(s, t) * r[b, s], axis=s, where=condition)

        return te.compute(r.shape, element, "g")

    return build


#: the definition, its matrix of weights by numpy, and how many values stand on the line (None for no line)
S, T = np.arange(N)[None, :], np.arange(N)[:, None]
CASES: dict[str, tuple[Build, np.ndarray, int | None]] = {
    "discount": (
        weighted(lambda s, t: 0.9 ** (s - t), lambda s, t: s >= t),
        np.where(S >= T, 0.9 ** (S - T).clip(0), 0),
        N,
    ),
    "Gaussian": (weighted(lambda s, t: te.exp(-((s - t) ** 2) / 8)), np.exp(-((S - T) ** 2) / 8), 2 * N - 1),
    "two shifts": (
        weighted(lambda s, t: te.exp(-0.1 * (s - t + 3)) * te.cos(0.2 * (s - t)), lambda s, t: s - t >= -2),
        np.where(S - T >= -2, np.exp(-0.1 * (S - T + 3)) * np.cos(0.2 * (S - T)), 0),
        N + 2,
    ),
    "steps of two": (
        weighted(lambda s, t: te.exp(-0.1 * (2 * t - 2 * s)), lambda s, t: t >= s),
        np.where(T >= S, np.exp(-0.2 * (T - S)), 0),
        N,
    ),
    "cheap": (weighted(lambda s, t: s - t + 0.5), S - T + 0.5, None),
    "of both": (weighted(lambda s, t: te.cos(0.1 * s * t)), np.cos(0.1 * S * T), None),
    "of several sums": (
        weighted(lambda s, t: te.exp(-0.1 * (s - t)) * te.exp(0.1 * (s + t))),
        np.exp(0.2 * T + 0 * S),
        2 * N - 1,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_forms_and_values(name: str, rng: np.random.Generator) -> None:
    build, weights, values = CASES[name]
    r = te.placeholder((3, N), name="r")
    lines = [t for t in topological_order(planned([build(r)])) if isinstance(t, Line)]
    assert all(line.shape == (values,) for line in lines) and bool(lines) == (values is not None)
    own, h = (rng.standard_normal((3, N)).astype("float32") for _ in range(2))
    fn = te.function(build)
    y, pull = te.vjp(fn, own)
    np.testing.assert_allclose(y, own @ weights.T, rtol=2e-4, atol=2e-4)
    np.testing.assert_allclose(pull(h)[0], h @ weights, rtol=2e-4, atol=2e-4)


def test_a_line_has_the_dtype_of_the_sum() -> None:
    r = te.placeholder((3, N), "float16", "r")
    (g,) = planned([CASES["discount"][0](r)])
    assert g.dtype == "float16"
    (line,) = (t for t in topological_order([g]) if isinstance(t, Line))
    assert line.dtype == "float16"


def test_few_points_have_no_line() -> None:
    k = te.reduce_axis((0, 3), "k")
    x = te.placeholder((9, 3), name="x")
    y = te.compute((9,), lambda i: te.sum(te.exp(-0.1 * (i - k)) * x[i, k], axis=k), "y")
    assert planned([y])[0] is y


def test_the_corpus_function_computes_a_row_of_powers() -> None:
    text = te.source(te.function(CASES["discount"][0]), jnp.zeros((3, N)))
    assert text.count("0.9 ** jnp.arange(40") == 2 and "jnp.where" not in text
