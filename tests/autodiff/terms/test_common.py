"""Factors that all terms of an adjoint share: what is read twice in one product costs one product of matrices."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
import pytest

import jaxte as te
from jaxte.lang.expr import Expr
from jaxte.tensors.tensor import Compute, Tensor

ROWS, INNER, COLUMNS = 12, 40, 24

ACTIVATIONS: dict[str, Callable[[Expr], Expr]] = {
    "silu": lambda a: a * te.sigmoid(a),
    "a polynomial": lambda a: a * a * a - 2.0 * a * a,
    "a quotient": lambda a: a / (1.0 + a * a),
    "gelu": lambda a: 0.5 * a * (1.0 + te.tanh(0.8 * (a + 0.04 * a**3))),
}


def projected(activation: Callable[[Expr], Expr]) -> Callable[[Tensor, Tensor], Compute]:
    h = te.reduce_axis((0, INNER), "h")
    return lambda a, o: te.compute((ROWS, COLUMNS), lambda b, d: te.sum(activation(a[b, h]) * o[h, d], h))


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_adjoint_is_a_product_of_matrices(name: str, rng: np.random.Generator) -> None:
    fn = te.function(projected(ACTIVATIONS[name]))
    a = rng.standard_normal((ROWS, INNER)).astype("float32")
    o = rng.standard_normal((INNER, COLUMNS)).astype("float32")
    h = rng.standard_normal((ROWS, COLUMNS)).astype("float32")

    def slopes(h: jax.Array, a: jax.Array) -> jax.Array:
        return jax.vjp(lambda a: fn(a, o), a)[1](h)[0]

    text = str(fn.source(a, o))
    backward = text[text.index("def backward") : text.index("def _fwd")]
    own = backward[backward.index("da = ") if "da = " in backward else 0 :].splitlines()[0]
    assert "einsum" in own and "jnp.sum(" not in backward
    step = 1e-3 * rng.standard_normal(a.shape)
    wide = te.function(projected(ACTIVATIONS[name]))
    with jax.enable_x64(True):
        up, down = (wide(a.astype("float64") + s * step, o.astype("float64")) for s in (1, -1))
    expected = float(np.sum(h * np.asarray(up - down))) / 2
    assert float(np.sum(slopes(h, a) * step)) == pytest.approx(expected, rel=1e-3)
