"""Factors that all terms of an adjoint share: what is read twice in one product costs one product of matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
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


def scored(reduction: Any, where: Any = None) -> tuple[list[te.Tensor], te.Tensor, te.Tensor]:
    """Products of rows, the extremum of each row of them, and a sum of functions of them."""
    q, k = te.placeholder((12, 5), name="q"), te.placeholder((14, 5), name="k")
    d, j, n = te.reduce_axis((0, 5), "d"), te.reduce_axis((0, 14), "j"), te.reduce_axis((0, 14), "n")
    product = lambda i, j: te.sum(q[i, d] * k[j, d], axis=d)  # noqa: E731
    score = product if where is None else lambda i, j: te.select(where(i, j), product(i, j), -4.0)
    s = te.compute((12, 14), score, "s")
    best = te.compute((12,), lambda i: reduction(s[i, j], axis=j), "best")
    return [q, k], best, te.compute((12,), lambda i: te.sum(te.tanh(s[i, n] - best[i]), axis=n), "y")


@pytest.mark.parametrize("where", [None, lambda i, j: te.logical_or(i // 4 == j // 4, j < 2)])
@pytest.mark.parametrize("reduction", [te.max, te.min])
def test_what_guarded_terms_are_multiplied_by_multiplies_their_sum(
    reduction: Any, where: Any, rng: np.random.Generator
) -> None:
    inputs, best, y = scored(reduction, where)
    function = te.function(inputs, [best, y])
    q, k = (rng.normal(size=t.shape).astype("float32") for t in inputs)

    def plain(q: jax.Array, k: jax.Array) -> tuple[jax.Array, jax.Array]:
        s = q @ k.T
        if where is not None:
            i, j = jnp.arange(12)[:, None], jnp.arange(14)
            s = jnp.where((i // 4 == j // 4) | (j < 2), s, -4.0)
        best = s.max(1) if reduction is te.max else s.min(1)
        return best, jnp.tanh(s - best[:, None]).sum(1)

    heads = tuple(rng.normal(size=12).astype("float32") for _ in range(2))
    (found, own), (expected, theirs) = (jax.vjp(f, q, k) for f in (function, plain))
    for a, b in zip([*found, *own(list(heads))], [*expected, *theirs(heads)], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    text = str(te.source(function))
    backward = text[text.index("def backward") : text.index("def _fwd")]
    assert "einsum" in backward and "jnp.sum(jnp.where" not in backward
