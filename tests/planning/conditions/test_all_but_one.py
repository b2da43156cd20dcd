"""Reductions over all positions but one are prefixes from both sides: values, gradients, operations, and what is left as it is."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.lang.expr import Axis, Expr
from jaxte.tensors.tensor import Tensor

ROW = "all but one"
N = 24


def over(n: int = N) -> te.Axis:
    return te.reduce_axis((0, n), "j")


Element = Callable[[Tensor, Axis, Axis], Expr]
SPELLINGS: dict[str, Element] = {
    "a product": lambda x, i, j: te.prod(x[0, j], j, where=j != i),
    "a sum": lambda x, i, j: te.sum(te.exp(x[0, j]), j, where=te.logical_not(i == j)),
    "under a condition": lambda x, i, j: te.sum(x[0, j] * x[1, j], j, where=(j != i) & (x[1, j] > 0)),
    "the next one": lambda x, i, j: te.prod(1 + x[0, j], j, where=(j != i + 1) & (j >= 3)),
    "beside others": lambda x, i, j: x[1, i] / (2 + te.sum(x[0, j] ** 2, j, where=i != j)),
}


def definition(element: Element) -> Callable[[Tensor], Tensor]:
    return lambda x: te.compute((N,), lambda i: element(x, i, over()), "y")


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_values_and_gradients(spelling: str, rng: np.random.Generator) -> None:
    x, h = rng.standard_normal((2, N)), rng.standard_normal(N)
    build = definition(SPELLINGS[spelling])
    X = te.placeholder((2, N), "float64", "x")
    run = te.function(build)
    assert ROW in str(te.explain(run, x))
    y, pull = jax.vjp(run, x)
    np.testing.assert_allclose(y, te.interpret(build(X), {X: x}), rtol=1e-12)
    step = rng.standard_normal((2, N))
    change = (run(x + 1e-6 * step) - run(x - 1e-6 * step)) / 2e-6
    np.testing.assert_allclose((pull(jnp.asarray(h))[0] * step).sum(), (change * h).sum(), rtol=1e-6)
    np.testing.assert_allclose(jax.jacfwd(run)(x), jax.jacrev(run)(x), rtol=1e-10, atol=1e-12)


def test_what_is_left_out_leaves_no_trace() -> None:
    x = jnp.ones((2, N), "float32").at[0, 5].set(0.0).at[0, 7].set(1e20)
    product, total = (te.function(definition(SPELLINGS[own])) for own in ("a product", "beside others"))
    assert np.asarray(product(x))[[4, 5]].tolist() == [0.0, np.float32(1e20)]
    assert np.isfinite(jax.jacrev(product)(x)).all()
    assert float(1 / total(x)[7]) == 2 + N - 2


def test_sixteen_bits_are_rounded_once(rng: np.random.Generator) -> None:
    x = jnp.asarray(rng.standard_normal((2, N)), "bfloat16")
    y = te.function(definition(lambda x, i, j: te.sum(x[0, j], j, where=j != i)))(x)
    exact = np.asarray(x[0], "float64").sum() - np.asarray(x[0], "float64")
    assert y.dtype == jnp.bfloat16
    np.testing.assert_allclose(np.asarray(y, "float64"), exact, rtol=2.0**-8, atol=1e-6)


@pytest.mark.parametrize(
    "element",
    [
        lambda x, i, j: te.sum(x[0, j] * x[1, i], j, where=j != i),  # what each position meets is its own
        lambda x, i, j: te.max(x[0, j], j, where=j != i),
        lambda x, i, j: te.sum(x[0, j], j, where=j != 3),
        lambda x, i, j: te.sum(
            x[0, j], j, where=j != i // 2
        ),  # no cumulative sum: two would be twice the work
        lambda x, i, j: te.sum(x[0, j], j, where=j != 2 * i),
        lambda x, i, j: te.sum(x[0, j], j, where=j != te.cast(x[1, i], "int32")),
    ],
)
def test_what_is_left_as_it_is(element: Element, rng: np.random.Generator) -> None:
    x = jnp.asarray(rng.standard_normal((2, N)), "float32")
    assert f"{ROW}:" not in str(te.explain(te.function(definition(element)), x))


@pytest.mark.parametrize(
    ("shape", "results", "platform", "is_taken"),
    [
        ((8, 40), 40, "cpu", True),
        ((8, 40), 40, "gpu", False),  # a loop starts later than it takes to add up 12,800 points
        ((512, 4096), 4096, "gpu", True),
        ((8, 1000), 3, "cpu", False),  # three sums for a thousand prefixes
    ],
)
def test_where_prefixes_take_less(
    shape: tuple[int, int], results: int, platform: str, is_taken: bool
) -> None:
    def build(x: Tensor) -> Tensor:
        j = over(shape[1])
        return te.compute((shape[0], results), lambda b, i: te.sum(x[b, j], j, where=j != i), "y")

    text = te.source(te.function(build, platform=platform), np.zeros(shape, "float32"))
    assert ("y_before" in text) == is_taken
