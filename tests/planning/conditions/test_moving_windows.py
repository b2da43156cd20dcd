"""Reductions between bounds that move with the result are windows, in every spelling of the bounds."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
import pytest

import jaxte as te
from jaxte.lang.graphs import among
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor

ROWS, SIZE = 4, 60
Builder = Callable[[Tensor], Compute]


def axis(extent: int, name: str) -> te.Axis:
    return te.reduce_axis((0, extent), name)


def trailing(x: Tensor) -> Compute:
    k = axis(SIZE, "k")
    inside = lambda i: te.logical_and(k > i - 9, k <= i)  # noqa: E731
    return te.compute((ROWS, SIZE), lambda b, i: te.sum(x[b, k], k, where=inside(i)))


def chosen(x: Tensor) -> Compute:
    k = axis(SIZE, "k")
    inside = lambda i: te.logical_and(i < k + 9, i >= k)  # noqa: E731
    return te.compute((ROWS, SIZE), lambda b, i: te.sum(te.select(inside(i), x[b, k] ** 2, 0.0), k))


def centred(x: Tensor) -> Compute:
    k = axis(SIZE, "k")
    return te.compute((ROWS, SIZE), lambda b, i: te.max(x[b, k], k, where=te.abs(i - k) <= 4))


def strided(x: Tensor) -> Compute:
    k = axis(SIZE, "k")
    inside = lambda i: te.logical_and(4 * i - 3 <= k, k < 4 * i + 6)  # noqa: E731
    return te.compute((ROWS, SIZE // 4), lambda b, i: te.sum(x[b, k], k, where=inside(i)))


def backwards(x: Tensor) -> Compute:
    k = axis(SIZE, "k")
    inside = lambda i: te.logical_and(k >= SIZE - 3 - i, k < SIZE + 2 - i)  # noqa: E731
    return te.compute((ROWS, SIZE), lambda b, i: te.sum(x[b, k], k, where=inside(i)))


def on_two_axes(x: Tensor) -> Compute:
    u, v = axis(ROWS, "u"), axis(SIZE, "v")
    inside = lambda i, j: te.logical_and(u == i, te.abs(v - j) < 3)  # noqa: E731
    return te.compute((ROWS, SIZE), lambda i, j: te.sum(x[u, v], [u, v], where=inside(i, j)))


def weighted(x: Tensor) -> Compute:
    k = axis(SIZE, "k")
    weight = lambda i: te.exp(-te.abs(te.cast(i - k, "float32")))  # noqa: E731
    return te.compute((ROWS, SIZE), lambda b, i: te.sum(x[b, k] * weight(i), k, where=te.abs(i - k) <= 5))


def with_another_axis(x: Tensor) -> Compute:
    """A condition on the other axis of the sum stays."""
    u, v = axis(ROWS, "u"), axis(SIZE, "v")
    inside = lambda i, j: te.logical_and(u <= i, te.abs(v - j) < 3)  # noqa: E731
    return te.compute((ROWS, SIZE), lambda i, j: te.sum(x[u, v], [u, v], where=inside(i, j)))


def pairs_nearby(x: Tensor) -> Compute:
    """Both positions are summed over."""
    i, j = axis(SIZE, "i"), axis(SIZE, "j")
    near = te.logical_and(j > i, j <= i + 5)
    return te.compute((ROWS,), lambda b: te.sum(te.exp(-te.abs(x[b, i] - x[b, j])), [i, j], where=near))


def most_of_neighbours(x: Tensor) -> Compute:
    i, j = axis(SIZE, "i"), axis(SIZE, "j")
    return te.compute((ROWS,), lambda b: te.max(x[b, i] * x[b, j], [i, j], where=te.abs(i - j) < 4))


def chains(x: Tensor) -> Compute:
    """Three positions, each near the one before."""
    i, j, k = axis(SIZE, "i"), axis(SIZE, "j"), axis(SIZE, "k")
    near = (i < j) & (j < i + 4) & (j < k) & (k <= j + 2)
    bent = lambda b: te.sin(x[b, i] - 2.0 * x[b, j] + x[b, k])  # noqa: E731
    return te.compute((ROWS,), lambda b: te.sum(bent(b), [i, j, k], where=near))


FUNCTIONS: dict[str, Builder] = {
    f.__name__: f
    for f in (
        *(trailing, chosen, centred, strided, backwards, on_two_axes, weighted, with_another_axis),
        *(pairs_nearby, most_of_neighbours, chains),
    )
}


MOST = {"centred": 140, "pairs_nearby": 140, "most_of_neighbours": 300}
"""Operations of both passes for each element, of exponentials and ties; over all pairs they take 1,000, over all chains 36,000."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients(name: str, rng: np.random.Generator) -> None:
    x = rng.standard_normal((ROWS, SIZE)).astype("float32")
    place = te.placeholder(x.shape, name="x")
    out = FUNCTIONS[name](place)
    fn = te.function(FUNCTIONS[name])
    expected = te.interpret(out, {place: x})
    np.testing.assert_allclose(fn(x), expected, rtol=1e-4, atol=1e-5)
    head, h = te.placeholder(out.shape, name="head"), rng.standard_normal(expected.shape).astype("float32")
    (adjoint,) = te.differentiate(out, [place], head)
    needed = topological_order([adjoint])
    feeds = {p: a for p, a in ((place, x), (head, h)) if among(p, needed)}
    (found,) = jax.vjp(fn, x)[1](h)
    np.testing.assert_allclose(found, te.interpret(adjoint, feeds), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_few_points_for_each(name: str) -> None:
    fn, x = te.function(FUNCTIONS[name]), jax.ShapeDtypeStruct((ROWS, SIZE), "float32")
    both = jax.jit(lambda x, h: (fn(x), jax.vjp(fn, x)[1](h)))
    head = jax.eval_shape(fn, x)
    flops = both.lower(x, head).cost_analysis()["flops"]
    assert flops < ROWS * SIZE * MOST.get(name, 70), f"{flops:,.0f}"


def test_scores_stay_a_product() -> None:
    """A matrix with a value for each pair is multiplied under a mask, not read askew."""
    k = axis(SIZE, "k")

    def build(s: Tensor, v: Tensor) -> Compute:
        return te.compute((SIZE, 8), lambda i, c: te.sum(s[i, k] * v[k, c], k, where=te.abs(i - k) <= 5))

    shapes = [jax.ShapeDtypeStruct(s, "float32") for s in ((SIZE, SIZE), (SIZE, 8))]
    assert "for k in [0, 60)" in " ".join(str(te.function(build).source(*shapes)).split())
