"""Products with one of a few matrices that data choose: a product with each, in all three gradients, without a gather."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from harness.counts import operations
from jaxte.meaning.interpret import interpret
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


def _behind(choice: Callable[[te.Expr], te.Expr]) -> Callable[[Tensor, Tensor, Tensor, Tensor], Compute]:
    """Two layers of experts with a function between that passes nothing on at some elements."""

    def two_layers(x: Tensor, w: Tensor, v: Tensor, e: Tensor) -> Compute:
        d, m = te.reduce_axis((0, IN), "d"), te.reduce_axis((0, OUT), "m")
        h = te.compute((ROWS, OUT), lambda i, m: choice(te.sum(x[i, d] * w[e[i], d, m], axis=d)), "h")
        return te.compute((ROWS, IN), lambda i, d: te.sum(h[i, m] * v[e[i], m, d], axis=m), "y")

    return two_layers


CHOICES = {
    "relu": (lambda z: te.maximum(z, 0.0), lambda z: jnp.maximum(z, 0.0)),
    "clipped": (lambda z: te.minimum(te.maximum(z, -1.0), 2.0), lambda z: jnp.clip(z, -1.0, 2.0)),
    "select": (lambda z: te.select(z > 0.5, te.sqrt(z), 0.0), lambda z: jnp.where(z > 0.5, jnp.sqrt(jnp.maximum(z, 0.5)), 0.0)),
}  # fmt: skip


@pytest.mark.parametrize("name", CHOICES)
def test_layers_that_leave_elements_out(name: str, rng: np.random.Generator) -> None:
    """What is zero passes nothing on, which the product with a matrix that is there says by itself; values are those of the interpreter, with rows out of range."""
    choice, plain = CHOICES[name]
    builder = _behind(choice)
    x, w, e = arrays(rng)
    v = jnp.asarray(rng.standard_normal((KINDS, OUT, IN)), "float32")
    fn = te.function(builder)

    def written_out(x: jax.Array, w: jax.Array, v: jax.Array) -> jax.Array:
        return jnp.einsum("im,imd->id", plain(jnp.einsum("id,idm->im", x, w[e])), v[e])

    y, pull = jax.vjp(lambda x, w, v: fn(x, w, v, e), x, w, v)
    expected, plain_pull = jax.vjp(written_out, x, w, v)
    for a, b in zip((y, *pull(y)), (expected, *plain_pull(y)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-3)
    both = jax.jit(lambda x, w, v: jax.vjp(lambda x, w, v: fn(x, w, v, e), x, w, v)[1](y))
    found = operations(both.lower(x, w, v).as_text())
    assert not {"gather", "scatter"} & set(found) and found["dot_general"] <= 7 * KINDS


@pytest.mark.parametrize("name", CHOICES)
def test_rows_that_are_not_there(name: str, rng: np.random.Generator) -> None:
    """NaN of one row stays in it: it is no part of the gradients of the matrices, in any form that adds them up."""
    inputs = [te.placeholder(s, d, name=n) for n, s, d in (
        ("x", (ROWS, IN), "float64"), ("w", (KINDS, IN, OUT), "float64"), ("v", (KINDS, OUT, IN), "float64"), ("e", (ROWS,), "int32"),
    )]  # fmt: skip
    y = _behind(CHOICES[name][0])(*inputs)
    head = te.placeholder(y.shape, "float64", name="H")
    drawn = [rng.standard_normal(t.shape) for t in (*inputs[:3], head)]
    kinds = rng.integers(0, KINDS, ROWS).astype("int32")
    kinds[[3, 7]] = -1, KINDS
    drawn[3][3] = 0
    feeds = dict(zip((*inputs[:3], head, inputs[3]), (*drawn, kinds), strict=True))
    with jax.enable_x64(True):
        gradients = te.differentiate(y, inputs[:3], head=head)
        found = te.evaluate(gradients, feeds)
    for a, b in zip(found, interpret(gradients, feeds), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
