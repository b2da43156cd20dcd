"""What two positions make, of which elements near a diagonal are read, is over one position and a distance."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import jax
import numpy as np
import pytest

import jaxte as te
from jaxte.planning.graph import planned
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor

SIZE, FEATURES = 48, 3
Builder = Callable[[Tensor], Compute]


def _axis(extent: int, name: str) -> te.Axis:
    return te.reduce_axis((0, extent), name)


def contacts(x: Tensor) -> Compute:
    """A reduction within the expression, behind both bounds."""
    j, c = _axis(SIZE, "j"), _axis(FEATURES, "c")
    square = lambda i: te.sum((x[i, c] - x[j, c]) ** 2, axis=c)  # noqa: E731
    return te.compute(
        (SIZE,), lambda i: te.sum(1 / (1 + square(i)), axis=j, where=(j - i >= 3) & (j - i <= 7))
    )


def neighbours(x: Tensor) -> Compute:
    """Both sides, and the middle left out."""
    j, c = _axis(SIZE, "j"), _axis(FEATURES, "c")
    score = lambda i: te.sum(x[i, c] * x[j, c], axis=c)  # noqa: E731
    return te.compute(
        (SIZE,),
        lambda i: te.sum(te.softplus(-score(i)), axis=j, where=(j != i) & (te.abs(i - j) <= 3)),
    )


def angles(x: Tensor) -> Compute:
    """A matrix of distances, read at neighbours, in both orders."""
    c = _axis(FEATURES, "c")
    r = te.compute((SIZE, SIZE), lambda i, j: te.sqrt(te.sum((x[i, c] - x[j, c]) ** 2, axis=c) + 0.1), "r")
    return te.compute((SIZE - 2,), lambda i: r[i, i + 1] * r[i, i + 2] + r[i + 2, i + 1])


def least(x: Tensor) -> Compute:
    """A minimum over a matrix that another one is made of."""
    j, c = _axis(SIZE, "j"), _axis(FEATURES, "c")
    cost = te.compute((SIZE, SIZE), lambda i, j: te.sum(te.abs(x[i, c] - 2 * x[j, c]), axis=c), "cost")
    grown = te.compute((SIZE, SIZE), lambda i, j: te.exp(-cost[i, j]) + cost[i, j], "grown")
    return te.compute((SIZE,), lambda i: te.min(grown[i, j], axis=j, where=te.abs(i - j) <= 4))


FUNCTIONS: dict[str, Builder] = {f.__name__: f for f in (contacts, neighbours, angles, least)}


def _points(builder: Builder) -> int:
    """The elements of the largest tensor that the planned definition needs."""
    order = topological_order(planned([builder(te.placeholder((SIZE, FEATURES), name="x"))]))
    return max(prod(int(n) for n in t.shape) for t in order if isinstance(t, Compute))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients(name: str, rng: np.random.Generator) -> None:
    x = rng.standard_normal((SIZE, FEATURES))
    with jax.enable_x64(True):
        plain, fn = te.function(FUNCTIONS[name], without="distances"), te.function(FUNCTIONS[name])
        head = rng.standard_normal(fn(x).shape)
        meant = te.placeholder(x.shape, "float64", name="x")
        np.testing.assert_allclose(fn(x), te.interpret(FUNCTIONS[name](meant), {meant: x}), rtol=1e-9)
        found, expected = (jax.vjp(f, x)[1](head)[0] for f in (fn, plain))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
        te.testing.check_grads(fn, [x])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_tensor_is_over_both_positions(name: str) -> None:
    assert _points(FUNCTIONS[name]) <= SIZE * 10


def wide(x: Tensor) -> Compute:
    """Half of all distances are read."""
    j, c = _axis(SIZE, "j"), _axis(FEATURES, "c")
    s = te.compute((SIZE, SIZE), lambda i, j: te.sum(x[i, c] * x[j, c], axis=c), "s")
    return te.compute((SIZE,), lambda i: te.sum(te.exp(s[i, j]), axis=j, where=te.abs(i - j) <= 11))


def read_elsewhere(x: Tensor) -> Compute:
    """Another reader reads all."""
    j, k, c = _axis(SIZE, "j"), _axis(SIZE, "k"), _axis(FEATURES, "c")
    s = te.compute((SIZE, SIZE), lambda i, j: te.sum(x[i, c] * x[j, c], axis=c), "s")
    near = te.compute((SIZE,), lambda i: te.sum(te.exp(s[i, j]), axis=j, where=te.abs(i - j) <= 2))
    return te.compute((SIZE,), lambda i: near[i] + te.max(s[i, k], axis=k))


@pytest.mark.parametrize("builder", [wide, read_elsewhere])
def test_what_is_read_at_many_distances_stays(builder: Builder) -> None:
    assert _points(builder) == SIZE * SIZE
