"""Adjoints of a choice within a choice by the same condition: the inner one is decided, and what reads the adjoint sees a product."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

NUMBERS = ("NHWC", "HWIO", "NHWC")
SHAPES = ((2, 6, 5, 3), (3, 3, 3, 4), (4,), (3, 3, 4, 2))


def _decoder(act: Any) -> Any:
    def f(x: Any, w: Any, b: Any, v: Any) -> Any:
        y = act(jax.lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=NUMBERS) + b)
        return jnp.sum(jax.lax.conv_general_dilated(y, v, (1, 1), "SAME", dimension_numbers=NUMBERS) ** 2)

    return f


@pytest.mark.parametrize("act", [jax.nn.elu, jax.nn.selu, jax.nn.celu], ids=lambda own: own.__name__)
def test_activations_between_convolutions(act: Any, rng: np.random.Generator) -> None:
    """The author's second choice keeps ``exp`` finite; the adjoint chose twice by it, and sums of it were no convolutions."""
    f = _decoder(act)
    own = te.adjoint(f, everything=True)
    text = own.source(*(jax.ShapeDtypeStruct(s, "float32") for s in SHAPES))
    assert text.count("lax.conv_general_dilated(") == 6, text
    with jax.enable_x64(True):
        args = [jnp.asarray(rng.normal(size=s)) for s in SHAPES]
        found, expected = (jax.grad(g, (0, 1, 2, 3))(*args) for g in (own, f))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


def test_the_other_branch_of_the_same_condition() -> None:
    """``select(c, select(c, x, 0) * y, select(c, 0, y))``: each branch flows into what the condition leaves of it."""

    def element(x: Any, y: Any) -> Any:
        inner = te.select(x > 0.5, x, 0.0)
        return te.select(x > 0.5, te.exp(inner) * y, te.select(x > 0.5, 0.0, te.sin(y)))

    f = te.function(lambda x, y: te.compute(x.shape, lambda i: element(x[i], y[i]), "z"))
    x, y = jnp.array([0.0, 0.5, 0.7, 2.0]), jnp.array([1.0, -1.0, 3.0, 0.2])
    found = jax.grad(lambda x, y: f(x, y).sum(), (0, 1))(x, y)
    expected = jnp.where(x > 0.5, jnp.exp(x) * y, 0), jnp.where(x > 0.5, jnp.exp(x), jnp.cos(y))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
