"""Gradients of products by halves: with zeros among the factors, over several axes, under conditions, and with less work than ``jax.grad``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.xla_counts import Fused

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Product:
    """A product of more than a few factors.

    Attributes:
        own: the definition.
        plain: the same in JAX.
        shapes: of the arguments.
        flops: at most so many times those of ``jax.grad``, as XLA counts them.
    """

    own: Callable[..., te.Tensor]
    plain: Callable[..., Any]
    shapes: tuple[Shape, ...]
    flops: float


def of_rows(x: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, x.shape[1]), "k")
    return te.compute((x.shape[0],), lambda i: te.prod(x[i, k], axis=k), "y")


def of_columns(x: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, x.shape[0]), "k")
    return te.compute((x.shape[1],), lambda i: te.prod(x[k, i], axis=k), "y")


def of_matrices(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    k, j = te.reduce_axis((0, x.shape[1]), "k"), te.reduce_axis((0, w.shape[0]), "j")
    return te.compute((x.shape[0],), lambda i: te.prod(x[i, k] + w[j], axis=[k, j]), "y")


def of_windows(x: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, 7), "k")
    return te.compute((x.shape[0] - 6,), lambda i: te.prod(x[i + k], axis=k), "y")


def of_differences(x: te.Tensor) -> te.Tensor:
    n = x.shape[1]
    k, j = te.reduce_axis((0, n), "k"), te.reduce_axis((0, n), "j")
    return te.compute((x.shape[0],), lambda i: te.prod(x[i, j] - x[i, k], axis=[k, j], where=k < j), "y")


def of_rules(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """At least one of several causes: ``1 - prod(1 - x * w)``."""
    k = te.reduce_axis((0, x.shape[1]), "k")
    return te.compute((x.shape[0], w.shape[1]), lambda i, j: 1 - te.prod(1 - x[i, k] * w[k, j], axis=k), "y")


def of_chosen(x: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((2, x.shape[1]), "k")
    return te.compute((x.shape[0],), lambda i: te.prod(te.tanh(x[i, k]), axis=k, where=x[i, k] > -0.5), "y")


def _differences(x: Any) -> Any:
    n = x.shape[1]
    above = np.arange(n)[:, None] < np.arange(n)
    return jnp.where(above, x[:, None, :] - x[:, :, None], 1.0).prod((1, 2))


PRODUCTS = {
    "rows of 5": Product(of_rows, lambda x: x.prod(1), ((9, 5),), 0.9),
    "rows of 24": Product(of_rows, lambda x: x.prod(1), ((9, 24),), 0.75),
    "rows of 101": Product(of_rows, lambda x: x.prod(1), ((3, 101),), 0.75),
    "columns": Product(of_columns, lambda x: x.prod(0), ((17, 6),), 0.75),
    "two axes": Product(of_matrices, lambda x, w: (x[:, :, None] + w).prod((1, 2)), ((6, 4), (5,)), 0.75),
    "windows": Product(
        of_windows, lambda x: jnp.stack([x[k : k + 20] for k in range(7)]).prod(0), ((26,),), 0.75
    ),
    "differences": Product(of_differences, _differences, ((3, 7),), 0.75),
    "causes": Product(
        of_rules, lambda x, w: 1 - (1 - x[:, :, None] * w[None]).prod(1), ((6, 12), (12, 5)), 0.75
    ),
    "chosen": Product(
        of_chosen, lambda x: jnp.where(x > -0.5, jnp.tanh(x), 1.0)[:, 2:].prod(1), ((4, 21),), 0.75
    ),
}


def _gradients(fn: Callable[..., Any], head: Any) -> Callable[..., Any]:
    return lambda *arrays: jax.vjp(fn, *arrays)[1](head)


@pytest.mark.parametrize("name", PRODUCTS)
def test_values_with_zeros_and_less_work(name: str, rng: np.random.Generator) -> None:
    case = PRODUCTS[name]
    with jax.enable_x64(True):
        arrays = [rng.uniform(0.5, 1.5, s) for s in case.shapes]
        for array in arrays:
            array.flat[:: array.size // 3] = 0.0
        own = te.function(case.own)
        value = case.plain(*arrays)
        head = rng.normal(size=value.shape)
        np.testing.assert_allclose(own(*arrays), value, rtol=1e-12)
        programs = [jax.jit(_gradients(fn, head)).lower(*arrays) for fn in (own, case.plain)]
        found, wanted = (Fused(p)(*arrays) for p in programs)
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-14)
        flops, plain = (Fused(p).cost_analysis()["flops"] for p in programs)
        assert flops <= case.flops * plain, flops / plain
        assert "while" not in programs[0].as_text()


def test_second_derivatives_and_tangents(rng: np.random.Generator) -> None:
    with jax.enable_x64(True):
        x = rng.uniform(0.5, 1.5, (2, 6))
        x[0, 3] = x[1, 0] = x[1, 4] = 0.0
        own = te.function(of_rows)
        hessian, wanted = (jax.hessian(lambda x, f=f: f(x).sum())(x) for f in (own, lambda x: x.prod(1)))
        np.testing.assert_allclose(hessian, wanted, rtol=1e-12, atol=1e-14)
        moved, expected = (jax.jvp(f, (x,), (x + 1,))[1] for f in (own, lambda x: x.prod(1)))
        np.testing.assert_allclose(moved, expected, rtol=1e-12)


@pytest.mark.parametrize("platform", ["gpu", "tpu"])
def test_few_loops_where_these_wait_to_be_started(platform: str) -> None:
    text = te.function(of_rows, platform=platform).source(np.ones((8, 24), np.float32))
    assert "before_y" in text and "pairs_y" not in text
