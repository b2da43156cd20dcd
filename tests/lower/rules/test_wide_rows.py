"""Sums of rows that are wider than the blocks of the library that reduces: few rows are added one by one, many are a product with ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

WIDE = 2**14 + 1  # one element more than the library takes well


def total(x: te.Tensor) -> te.Tensor:
    n, m = x.shape
    i = te.reduce_axis((0, n), "i")
    return te.compute((m,), lambda j: te.sum(x[i, j], axis=i), "y")


def squares(x: te.Tensor) -> te.Tensor:
    """What is added is computed."""
    n, m = x.shape
    i = te.reduce_axis((0, n), "i")
    return te.compute((m,), lambda j: te.sum(te.exp(-x[i, j] * x[i, j]), axis=i), "y")


def of_two(x: te.Tensor) -> te.Tensor:
    n, k, m = x.shape
    i, p = te.reduce_axis((0, n), "i"), te.reduce_axis((0, k), "p")
    return te.compute((m,), lambda j: te.sum(x[i, p, j], axis=(i, p)), "y")


def in_front(x: te.Tensor) -> te.Tensor:
    n, k, m = x.shape
    p = te.reduce_axis((0, k), "p")
    return te.compute((n, m), lambda i, j: te.sum(x[i, p, j], axis=p), "y")


PLAIN: dict[Any, Callable[[np.ndarray], np.ndarray]] = {
    total: lambda x: x.sum(0),
    squares: lambda x: np.exp(-x * x).sum(0),
    of_two: lambda x: x.sum((0, 1)),
    in_front: lambda x: x.sum(1),
}


def checked(f: Any, shape: tuple[int, ...], rng: np.random.Generator) -> str:
    """The emitted text, whose values are those of NumPy."""
    x = np.float32(rng.normal(size=shape))
    np.testing.assert_allclose(te.function(f)(x), PLAIN[f](x.astype(np.float64)), rtol=1e-4, atol=1e-4)
    return te.source(te.function(f), x)


@pytest.mark.parametrize(("f", "shape"), [(total, (9, WIDE)), (squares, (9, WIDE)), (total, (16, WIDE))])
def test_few_are_added(f: Any, shape: tuple[int, ...], rng: np.random.Generator) -> None:
    text = checked(f, shape, rng)
    assert "jnp.sum" not in text and "einsum" not in text and "[0] + " in text


@pytest.mark.parametrize(("f", "shape"), [(total, (17, WIDE)), (squares, (20, WIDE)), (of_two, (4, 5, WIDE))])
def test_many_are_a_product(f: Any, shape: tuple[int, ...], rng: np.random.Generator) -> None:
    text = checked(f, shape, rng)
    assert "jnp.sum" not in text and "jnp.ones" in text and "einsum" in text


@pytest.mark.parametrize(
    ("f", "shape"), [(total, (9, WIDE - 1)), (in_front, (2, 9, WIDE)), (of_two, (4, 5, 100))]
)
def test_others_are_sums(f: Any, shape: tuple[int, ...], rng: np.random.Generator) -> None:
    assert "jnp.sum" in checked(f, shape, rng)


def test_numbers_of_few_bits_are_added_in_more() -> None:
    x = jax.ShapeDtypeStruct((9, WIDE), "bfloat16")
    assert "jnp.sum" in te.source(te.function(total), x)


def test_what_flows_back_to_what_is_repeated(rng: np.random.Generator) -> None:
    """A row that is the same for all others, such as learned positions: its gradient is such a sum, and so is the spread of an ensemble."""

    def loss(x: Any, row: Any) -> Any:
        return jnp.sum(jnp.tanh(x * row).std(0))

    x, row = (jnp.asarray(rng.normal(size=s), "float32") for s in ((9, WIDE), (WIDE,)))
    raised = te.adjoint(loss, everything=True)
    text = te.source(raised, x, row)
    assert "axis=0" not in text
    for ours, theirs in zip(jax.grad(raised, (0, 1))(x, row), jax.grad(loss, (0, 1))(x, row), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=1e-5)
