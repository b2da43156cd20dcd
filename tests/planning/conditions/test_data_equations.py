"""Equations with data in sums, as users spell them: gathers and scatters, never a comparison of all with all."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
import pytest

import jaxte as te
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor

ROWS, PLACES, COLUMNS = 90, 70, 3
Builder = Callable[..., Compute]


def axis(extent: object, name: str) -> te.Axis:
    return te.reduce_axis((0, extent), name)


def one_hot(w: Tensor, t: Tensor) -> Compute:
    k = axis(w.shape[0], "k")
    return te.compute((ROWS, COLUMNS), lambda b, o: te.sum(te.cast(t[b] == k, "float32") * w[k, o], k))


def chosen(w: Tensor, t: Tensor) -> Compute:
    k = axis(w.shape[0], "k")
    return te.compute((ROWS, COLUMNS), lambda b, o: te.sum(te.select(k == t[b], w[k, o], 0.0), k))


def where(w: Tensor, t: Tensor) -> Compute:
    k = axis(w.shape[0], "k")
    return te.compute((ROWS, COLUMNS), lambda b, o: te.sum(w[k, o], k, where=k + 2 == t[b]))


def greatest(w: Tensor, t: Tensor) -> Compute:
    k = axis(w.shape[0], "k")
    return te.compute((ROWS, COLUMNS), lambda b, o: te.max(te.select(t[b] == k, w[k, o], -np.inf), k))


def segments(w: Tensor, t: Tensor) -> Compute:
    e = axis(PLACES, "e")
    return te.compute((ROWS, COLUMNS), lambda n, o: te.sum(te.select(t[e] == n, w[e, o], 0.0), e))


def segments_of_products(w: Tensor, t: Tensor) -> Compute:
    e = axis(PLACES, "e")
    body = lambda n, o: te.sum(w[e, o] * te.cast(t[e] == n, "float32") * w[e, 0], e)  # noqa: E731
    return te.compute((ROWS, COLUMNS), body)


def means(w: Tensor, t: Tensor) -> Compute:
    e, f = axis(PLACES, "e"), axis(PLACES, "f")
    count = te.compute((ROWS,), lambda n: te.sum(te.select(t[e] == n, 1.0, 0.0), e), "count")
    total = te.compute((ROWS, COLUMNS), lambda n, o: te.sum(te.select(n == t[f], w[f, o], 0.0), f), "total")
    return te.compute((ROWS, COLUMNS), lambda n, o: total[n, o] / te.maximum(count[n], 1.0))


def along_edges(w: Tensor, t: Tensor) -> Compute:
    e, j = axis(PLACES, "e"), axis(w.shape[0], "j")
    body = lambda n, o: te.sum(te.select(te.logical_and(t[e] == n, t[e + 1] == j), w[j, o], 0.0), [e, j])  # noqa: E731
    return te.compute((ROWS, COLUMNS), body)


FUNCTIONS = {
    f.__name__: f
    for f in (one_hot, chosen, where, greatest, segments, segments_of_products, means, along_edges)
}


def arguments(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return rng.standard_normal((PLACES, COLUMNS)).astype("float32"), rng.integers(-4, ROWS, ROWS).astype(
        "int32"
    )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients(name: str, rng: np.random.Generator) -> None:
    w, t = arguments(rng)
    places = [te.placeholder(w.shape, name="w"), te.placeholder(t.shape, "int32", name="t")]
    out = FUNCTIONS[name](*places)
    fn = te.function(FUNCTIONS[name])
    expected = te.interpret(out, dict(zip(places, (w, t), strict=True)))
    np.testing.assert_allclose(fn(w, t), expected, rtol=1e-5, atol=1e-5)
    if name == "greatest":
        return  # infinite where nothing is chosen
    head = te.placeholder(out.shape, name="head")
    (adjoint,) = te.differentiate(out, [places[0]], head)
    h = rng.standard_normal(expected.shape).astype("float32")
    found = jax.vjp(lambda w: fn(w, t), w)[1](h)[0]
    feeds = {places[0]: w, places[1]: t, head: h}
    slope = te.interpret(adjoint, {p: feeds[p] for p in topological_order([adjoint]) if p in feeds})
    np.testing.assert_allclose(found, slope, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nothing_is_compared_with_everything(name: str) -> None:
    w, t = jax.ShapeDtypeStruct((PLACES, COLUMNS), "float32"), jax.ShapeDtypeStruct((ROWS,), "int32")
    fn = te.function(FUNCTIONS[name])

    def both(w: jax.Array, t: jax.Array) -> jax.Array:
        return jax.grad(lambda w: fn(w, t).sum())(w)

    for function in (fn, both):
        flops = jax.jit(function).lower(w, t).cost_analysis()["flops"]
        assert flops < ROWS * PLACES / 2, f"{flops:,.0f}"
