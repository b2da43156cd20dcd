"""Positions of extrema by two passes where a reduction of several arrays is slow: those of ``lax.argmax``, with ties, NaN, infinities and conditions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

N, M = 30, 40


def over(name: str, **given: Any) -> Callable[[te.Tensor], te.Tensor]:
    def build(x: te.Tensor) -> te.Tensor:
        j = te.reduce_axis((0, M), "j")
        where = {"where": given["where"](j)} if "where" in given else {}
        element = given.get("element", lambda x, i, j: x[i, j])
        return te.compute((N,), lambda i: getattr(te, name)(element(x, i, j), axis=j, **where), "y")

    return build


def arrays(rng: np.random.Generator) -> dict[str, np.ndarray]:
    plain = rng.normal(size=(N, M)).astype("float32")
    ties = rng.integers(-2, 3, (N, M)).astype("float32")
    nan, infinite = plain.copy(), plain.copy()
    nan[1, [7, 30]], nan[2, 0], nan[3] = np.nan, np.nan, np.nan
    infinite[0], infinite[1, 5], infinite[2, 9] = -np.inf, np.inf, -np.inf
    return {"plain": plain, "ties": ties, "nan": nan, "infinite": infinite, "integers": ties.astype("int32")}


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("kind", ["whole", "computed", "from the third on", "none of some"])
def test_positions(name: str, kind: str, rng: np.random.Generator) -> None:
    given: dict[str, dict[str, Any]] = {
        "whole": {},
        "computed": {"element": lambda x, i, j: 2 * x[i, j]},
        "from the third on": {"where": lambda j: j >= 2},
        "none of some": {"element": lambda x, i, j: te.select(i >= 2, x[i, j], x[0, 0])},
    }
    build = over(name, **given[kind])
    for x in arrays(rng).values():
        fn, X = te.function(build), te.placeholder(x.shape, str(x.dtype), "x")
        assert "lax.arg" not in te.source(fn, x)
        np.testing.assert_array_equal(fn(x), te.interpret(build(X), {X: x}))
        if kind == "whole":
            np.testing.assert_array_equal(fn(x), getattr(jnp, name)(x, axis=1))


def test_one_reduction_elsewhere() -> None:
    x = np.zeros((N, M), "float32")
    assert "lax.argmax" in te.source(te.function(over("argmax"), platform="gpu"), x)
    assert "lax.argmax" in te.source(te.function(over("argmax"), without="a pass for each value"), x)
