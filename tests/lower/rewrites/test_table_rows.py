"""Products with one of a few matrices that data choose: a product with each, in all three gradients, without a gather."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from harness.counts import operations
from jaxte.tensors.tensor import Compute, Tensor

ROWS, KINDS, IN, OUT = 96, 3, 16, 24
Builder = Callable[[Tensor, Tensor, Tensor], Compute]
Plain = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]


def experts(x: Tensor, w: Tensor, e: Tensor) -> Compute:
    d = te.reduce_axis((0, IN), "d")
    return te.compute((ROWS, OUT), lambda i, m: te.sum(x[i, d] * w[e[i], d, m], axis=d), "y")


def transposed(x: Tensor, w: Tensor, e: Tensor) -> Compute:
    """The result has its axes the other way round, behind a function."""
    d = te.reduce_axis((0, IN), "d")
    return te.compute((OUT, ROWS), lambda m, i: te.tanh(te.sum(w[e[i], d, m] * x[i, d], axis=d)), "y")


def scaled(x: Tensor, w: Tensor, e: Tensor) -> Compute:
    """A factor that does not depend on what is summed."""
    d = te.reduce_axis((0, IN), "d")
    return te.compute(
        (ROWS, OUT), lambda i, m: te.sum(0.5 * x[i, d] * w[2 - e[i], d, m], axis=d) + x[i, 0], "y"
    )


CASES: dict[str, tuple[Builder, Plain]] = {
    "experts": (experts, lambda x, w, e: jnp.einsum("id,idm->im", x, w[e])),
    "transposed": (transposed, lambda x, w, e: jnp.tanh(jnp.einsum("idm,id->mi", w[e], x))),
    "scaled": (scaled, lambda x, w, e: 0.5 * jnp.einsum("id,idm->im", x, w[2 - e]) + x[:, :1]),
}


def arrays(rng: np.random.Generator) -> tuple[jax.Array, jax.Array, jax.Array]:
    x, w = rng.standard_normal((ROWS, IN)), rng.standard_normal((KINDS, IN, OUT))
    return (
        jnp.asarray(x, "float32"),
        jnp.asarray(w, "float32"),
        jnp.asarray(rng.integers(0, KINDS, ROWS), "int32"),
    )


@pytest.mark.parametrize("name", CASES)
def test_a_product_for_each_matrix(name: str, rng: np.random.Generator) -> None:
    builder, plain = CASES[name]
    x, w, e = arrays(rng)
    fn = te.function(builder)
    y, pull = jax.vjp(lambda x, w: fn(x, w, e), x, w)
    expected, plain_pull = jax.vjp(lambda x, w: plain(x, w, e), x, w)
    for a, b in zip((y, *pull(y)), (expected, *plain_pull(y)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    both = jax.jit(lambda x, w: jax.vjp(lambda x, w: fn(x, w, e), x, w)[1](y))
    found = operations(both.lower(x, w).as_text())
    assert found.get("dot_general", 0) in (2 * KINDS, 3 * KINDS) and not {"gather", "scatter"} & set(found)


def test_what_is_not_chosen_passes_nothing_on(rng: np.random.Generator) -> None:
    """An infinity in a matrix that no row chooses, and a position out of range."""
    x, w, e = arrays(rng)
    e = jnp.where(e == 1, 2, e).at[0].set(KINDS)
    w = w.at[1].set(jnp.inf)
    fn = te.function(experts)
    y, pull = jax.vjp(lambda x: fn(x, w, e), x)
    (dx,) = pull(jnp.ones_like(y))
    assert bool(jnp.isnan(y[0]).all() & jnp.isfinite(y[1:]).all() & jnp.isfinite(dx[1:]).all())


def test_many_matrices_are_gathered(rng: np.random.Generator) -> None:
    x, w = np.zeros((ROWS, IN), "float32"), np.zeros((40, IN, OUT), "float32")
    text = te.function(experts).source(x, w, np.zeros(ROWS, "int32"))
    assert ".at[e].get(" in text.split("def backward")[0]
