"""Sums over the row of a table that data choose are computed once for each row."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.planning.graph import planned
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor

KINDS, LENGTH, WIDTH = 5, 40, 8
Builder = Callable[[Tensor, Tensor, Tensor], Compute]


def embedded(e: Tensor, w: Tensor, s: Tensor) -> Compute:
    c = te.reduce_axis((0, WIDTH), "c")
    return te.compute(
        (3, LENGTH, WIDTH), lambda n, t, o: te.tanh(te.sum(e[s[n, t], c] * w[c, o], axis=c)), "y"
    )


def normed(e: Tensor, w: Tensor, s: Tensor) -> Compute:
    """Each element of a row beside the norm of the whole."""
    c = te.reduce_axis((0, WIDTH), "c")
    square = lambda n, t: te.sum(e[s[n, t], c] ** 2, axis=c)  # noqa: E731
    return te.compute(
        (3, LENGTH, WIDTH), lambda n, t, o: e[s[n, t], o] * w[o, o] / te.sqrt(square(n, t) + 1.0), "y"
    )


def energies(e: Tensor, w: Tensor, s: Tensor) -> Compute:
    """A function of each element of the row, and no other axis."""
    c = te.reduce_axis((0, WIDTH), "c")
    return te.compute(
        (3, LENGTH), lambda n, t: te.sum(te.tanh(e[KINDS - 1 - s[n, t], c]) * w[c, c], axis=c), "y"
    )


CASES: dict[str, tuple[Builder, Callable[..., jax.Array]]] = {
    "embedded": (embedded, lambda e, w, s: jnp.tanh(e[s] @ w)),
    "normed": (
        normed,
        lambda e, w, s: e[s] * jnp.diag(w) / jnp.sqrt(jnp.sum(e[s] ** 2, axis=-1, keepdims=True) + 1),
    ),
    "energies": (energies, lambda e, w, s: jnp.tanh(e[KINDS - 1 - s]) @ jnp.diag(w)),
}


def sums_of(builder: Builder) -> list[int]:
    """The elements of all sums in the planned definition."""
    e, w = te.placeholder((KINDS, WIDTH), name="e"), te.placeholder((WIDTH, WIDTH), name="w")
    y = builder(e, w, te.placeholder((3, LENGTH), "int32", name="s"))
    order = [t for t in topological_order(planned([y])) if isinstance(t, Compute)]
    return [prod(int(n) for n in t.shape) for t in order if "sum over" in te.formula(t)]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", CASES)
def test_values_gradients_and_where_it_is_summed(name: str, rng: np.random.Generator) -> None:
    builder, plain = CASES[name]
    e, w = (jnp.asarray(rng.standard_normal(s), "float32") for s in ((KINDS, WIDTH), (WIDTH, WIDTH)))
    s = jnp.asarray(rng.integers(0, KINDS, (3, LENGTH)), "int32")
    y, pull = jax.vjp(lambda e, w: te.function(builder)(e, w, s), e, w)
    expected, plain_pull = jax.vjp(lambda e, w: plain(e, w, s), e, w)
    for a, b in zip((y, *pull(y)), (expected, *plain_pull(y)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)
    assert max(sums_of(builder)) <= KINDS * WIDTH


def test_the_row_is_told_where_its_tensor_is_read_through() -> None:
    """The definition whose sum is planned is then no more than an element of the table: what reads it is what the row changed."""
    arrays = [
        jax.ShapeDtypeStruct((KINDS, WIDTH), "float32"),
        jax.ShapeDtypeStruct((WIDTH, WIDTH), "float32"),
    ]
    told = te.explain(te.function(embedded), *arrays, jax.ShapeDtypeStruct((3, LENGTH), "int32"))
    assert "tables first" in {name for own in told.rewrites.values() for name in own}


def at_weights(e: Tensor, w: Tensor, s: Tensor) -> Compute:
    """What the row is multiplied by differs from position to position."""
    c = te.reduce_axis((0, WIDTH), "c")
    x = te.placeholder((3, LENGTH, WIDTH), name="x")
    return te.compute((3, LENGTH), lambda n, t: te.sum(e[s[n, t], c] * x[n, t, c], axis=c), "y")


def test_sums_with_something_else_at_each_position_stay() -> None:
    assert sums_of(at_weights) == [3 * LENGTH]


def test_a_position_out_of_range_is_nan(rng: np.random.Generator) -> None:
    e, w = (rng.standard_normal(s).astype("float32") for s in ((KINDS, WIDTH), (WIDTH, WIDTH)))
    s = np.zeros((3, LENGTH), "int32")
    s[1, 2], s[2, 3] = KINDS, -1
    y = te.function(embedded)(e, w, s)
    assert np.isnan(y[1, 2]).all() and np.isnan(y[2, 3]).all() and np.isnan(y).any(-1).sum() == 2


@pytest.mark.parametrize(
    "factor",
    [
        lambda own: te.select(te.isnan(own), 1.0, own),
        lambda own: te.select(own > 0, own, 0.5),
        lambda own: te.cast(own > 0, "float32"),
        lambda own: te.minimum(te.select(own == own, own, 2.0), 1.0),
    ],
)
def test_what_is_a_number_without_a_row_is_computed_where_it_is_read(
    factor: Callable[..., te.Expr], rng: np.random.Generator
) -> None:
    e, w = te.placeholder((KINDS, WIDTH), name="e"), te.placeholder((WIDTH,), name="w")
    s, c = te.placeholder((LENGTH,), "int32", name="s"), te.reduce_axis((0, WIDTH), "c")
    y = te.compute((LENGTH,), lambda t: te.sum(factor(e[s[t], c]) * w[c], axis=c), "y")
    feeds = {t: rng.normal(size=t.shape).astype("float32") for t in (e, w)}
    feeds[s] = rng.integers(-1, KINDS + 1, LENGTH).astype("int32")
    found = te.evaluate(y, feeds)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, te.interpret(y, feeds), rtol=1e-5, atol=1e-6)


def test_a_table_without_rows_behind_a_guard() -> None:
    e, b = te.placeholder((0, WIDTH), name="e"), te.placeholder((WIDTH,), name="b")
    s, c = te.placeholder((3,), "int32", name="s"), te.reduce_axis((0, WIDTH), "c")
    row = lambda c: te.select((s[0] >= 0) & (s[0] < 0), e[s[0], c], 0.0)  # noqa: E731
    y = te.compute((), lambda: te.sum(te.minimum(row(c), b[c]), axis=c), "y")
    feeds = {e: np.zeros((0, WIDTH), "float32"), b: np.linspace(-1, 1, WIDTH, dtype="float32")}
    feeds[s] = np.int32([1, 0, 2])
    np.testing.assert_allclose(te.evaluate(y, feeds), np.minimum(feeds[b], 0).sum(), rtol=1e-6)


def test_an_extent_that_is_a_symbol_has_elements() -> None:
    """So that a sum over it is NaN where no row is there, as the one of the row is."""
    width = te.var("width")
    e, w = te.placeholder((KINDS, width), name="e"), te.placeholder((width,), name="w")
    s, c = te.placeholder((LENGTH,), "int32", name="s"), te.reduce_axis((0, width), "c")
    y = te.compute((LENGTH,), lambda t: te.sum(te.tanh(e[s[t], c]) * w[c], axis=c), "y")
    assert "y_rows" in [t.name for t in topological_order(planned([y]))]
