"""Reductions read tensors whose elements are their terms; others, and tensors that come later, stay."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxte as te
from tests.lowered import check, sources

X = te.placeholder((5, 6), name="X")
B = te.placeholder((6,), name="B")


def biased(i: Any, j: Any) -> te.Expr:
    return X[i, j] * te.sigmoid(X[i, j] + B[j]) * (1 - B[j])


Z = te.compute((5, 6), biased, "Z")
k = te.reduce_axis((0, 5), "k")


def test_the_terms_of_a_sum_are_read() -> None:
    total = te.compute((6,), lambda j: te.sum(biased(k, j), axis=k), "total")
    assert sources(Z, total)[-1] == "jnp.sum(Z, axis=0)"
    check(Z, total)


def test_axes_may_stand_in_another_order() -> None:
    turned = te.compute((6, 5), lambda a, b: biased(b, a), "turned")
    total = te.compute((6,), lambda j: te.max(biased(k, j), axis=k), "total")
    assert sources(turned, total)[-1] == "jnp.max(turned, axis=1)"


def test_other_extents_are_other_terms() -> None:
    short = te.reduce_axis((0, 4), "k")
    total = te.compute((6,), lambda j: te.sum(biased(short, j), axis=short), "total")
    assert not any("Z" in line for line in sources(Z, total)[1:])


def test_nothing_reads_what_comes_later() -> None:
    total = te.compute((6,), lambda j: te.sum(biased(k, j), axis=k), "total")
    assert not any("Z" in line for line in sources(total, Z) if "sum" in line)


def test_gradient_of_a_bias_is_the_sum_of_what_is_passed_on(rng: np.random.Generator) -> None:
    x, w, b = (rng.standard_normal(s).astype("float32") for s in ((7, 5), (5, 6), (6,)))

    def layer(x: Any, w: Any, b: Any) -> te.Tensor:
        c = te.reduce_axis((0, 5), "c")
        return te.compute((7, 6), lambda i, j: te.silu(te.sum(x[i, c] * w[c, j], axis=c) + b[j]), "y")

    fn = te.function(layer)
    assert "db = jnp.sum(dy_0, axis=0)" in fn.source(x, w, b)
    plain = lambda x, w, b: jnp.sum(jax.nn.silu(x @ w + b))  # noqa: E731
    expected = jax.grad(plain, argnums=(0, 1, 2))(x, w, b)
    found = jax.grad(lambda *a: jnp.sum(fn(*a)), argnums=(0, 1, 2))(x, w, b)
    for own, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, theirs, rtol=1e-4, atol=1e-5)
