"""Sums of what is divided by a sum are taken without the divisor, on platforms where sums along rows are one loop with what they are taken of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.planning.asked import Intermediates, planned_with
from jaxte.planning.graph import planned
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Tensor

ROWS = Intermediates(rows=True)


def softmax_loss(x: Tensor, w: Tensor) -> Tensor:
    """The mean of a row by the weights of its softmax, which nothing else reads."""
    k = te.reduce_axis((0, x.shape[1]), "k")
    y = te.ops.softmax(x)
    return te.compute((x.shape[0],), lambda i: te.sum(w[i, k] * y[i, k], axis=k), "z")


def softmax_by_jax(x: Any, w: Any) -> Any:
    return (w * jax.nn.softmax(x)).sum(1)


def histogram_distance(h: Tensor, g: Tensor) -> Tensor:
    """The squares of a histogram that is divided by its total, and its products with another one."""
    k = te.reduce_axis((0, h.shape[1]), "k")
    s = te.compute((h.shape[0],), lambda i: te.sum(h[i, k], axis=k) + 1, "s")
    p = te.compute(h.shape, lambda i, j: h[i, j] / s[i], "p")
    return te.compute(
        (h.shape[0],), lambda i: te.sum(p[i, k] * p[i, k] * g[i, k] + p[i, k] * g[i, k], axis=k), "d"
    )


def squares(h: Tensor, g: Tensor) -> Tensor:
    """A quotient that stands twice in a product."""
    k = te.reduce_axis((0, h.shape[1]), "k")
    s = te.compute((h.shape[0],), lambda i: te.sum(h[i, k], axis=k) + 1, "s")
    p = te.compute(h.shape, lambda i, j: h[i, j] / s[i], "p")
    return te.compute((h.shape[0],), lambda i: te.sum(p[i, k] * p[i, k] * g[i, k], axis=k), "d")


def squares_by_jax(h: Any, g: Any) -> Any:
    p = h / (h.sum(1, keepdims=True) + 1)
    return (p * p * g).sum(1)


def layer_statistic(x: Tensor, g: Tensor) -> Tensor:
    """A weighted mean of what is divided by the mean size of two axes."""
    a, b = te.reduce_axis((0, x.shape[1]), "a"), te.reduce_axis((0, x.shape[2]), "b")
    size = te.compute((x.shape[0],), lambda n: te.sum(x[n, a, b] ** 2, axis=(a, b)) + 0.1, "size")
    y = te.compute(x.shape, lambda n, i, j: te.tanh(x[n, i, j]) / te.sqrt(size[n]), "y")
    return te.compute((x.shape[0],), lambda n: te.sum(g[n, a, b] * y[n, a, b], axis=(a, b)), "z")


def layer_by_jax(x: Any, g: Any) -> Any:
    size = (x**2).sum((1, 2), keepdims=True) + 0.1
    return (g * jnp.tanh(x) / jnp.sqrt(size)).sum((1, 2))


Case = tuple[Callable[..., Tensor], Callable[..., Any], tuple[tuple[int, ...], ...]]
CASES: dict[str, Case] = {
    "softmax": (softmax_loss, softmax_by_jax, ((6, 10), (6, 10))),
    "squares": (squares, squares_by_jax, ((5, 9), (5, 9))),
    "layer": (layer_statistic, layer_by_jax, ((3, 4, 5), (3, 4, 5))),
}


def left(y: Tensor) -> list[str]:
    """The names of what is there when ``y`` is planned."""
    with planned_with(ROWS, frozenset(), True):
        return [t.name for t in topological_order(planned([y])) if t.inputs]


@pytest.mark.parametrize("name", CASES)
def test_what_is_divided_is_not_read(name: str) -> None:
    define, _, shapes = CASES[name]
    y = define(*(te.placeholder(s, name=f"a{n}") for n, s in enumerate(shapes)))
    assert not {"softmax", "p", "y"} & set(left(y))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name: str, rng: np.random.Generator) -> None:
    define, by_jax, shapes = CASES[name]
    arrays = [np.abs(rng.standard_normal(s)) for s in shapes]
    fn = te.function(define, platform="gpu")
    np.testing.assert_allclose(fn(*arrays), by_jax(*arrays), rtol=1e-12)
    for derived in (jax.grad, jax.hessian):
        own, wanted = (derived(lambda *a, f=f: (f(*a) ** 2).sum(), 0)(*arrays) for f in (fn, by_jax))
        np.testing.assert_allclose(own, wanted, rtol=1e-9, atol=1e-11)


def test_a_quotient_that_is_read_all_the_same_stays() -> None:
    h, g = (te.placeholder((5, 9), name=n) for n in "hg")
    assert "p" in left(histogram_distance(h, g))


def test_products_of_matrices_read_what_is_divided() -> None:
    x, v = te.placeholder((6, 10), name="x"), te.placeholder((10, 3), name="v")
    k = te.reduce_axis((0, 10), "k")
    y = te.ops.softmax(x)
    assert "softmax" in left(te.compute((6, 3), lambda i, c: te.sum(y[i, k] * v[k, c], axis=k), "z"))


def test_a_divisor_over_what_is_summed_stays() -> None:
    x = te.placeholder((6, 10), name="x")
    k, r = te.reduce_axis((0, 10), "k"), te.reduce_axis((0, 6), "r")
    s = te.compute((10,), lambda j: te.sum(x[r, j], axis=r), "s")
    p = te.compute((6, 10), lambda i, j: x[i, j] / s[j], "p")
    assert "p" in left(te.compute((6,), lambda i: te.sum(x[i, k] * p[i, k], axis=k), "z"))


@pytest.mark.parametrize("operator", ["softmax", "attention"])
def test_gradients_divide_again_on_a_gpu_alone(operator: str) -> None:
    """Of a softmax, the sum of its gradient reads what is divided on a GPU, and the result of the division elsewhere."""
    shapes = ((4, 6),) if operator == "softmax" else ((2, 8, 4),) * 3
    arrays = [np.ones(s, "f") for s in shapes]
    for platform, again in (("gpu", True), ("tpu", False), ("cpu", False)):
        source = str(te.source(te.function(getattr(te.ops, operator), platform=platform), *arrays))
        backward = source[source.index("def backward") :]
        assert ("/ total" in backward) == again


def test_symbolic_sizes_and_export(rng: np.random.Generator) -> None:
    n = te.var("n")
    x, w = te.placeholder((n, 10), name="x"), te.placeholder((n, 10), name="w")
    fn = te.function([x, w], softmax_loss(x, w), platform="gpu")
    arrays = [rng.standard_normal((7, 10)).astype("f") for _ in range(2)]
    np.testing.assert_allclose(fn(*arrays), softmax_by_jax(*arrays), 1e-5, 1e-6)
    (size,) = jax.export.symbolic_shape("n")
    exported = jax.export.export(jax.jit(fn), platforms=("cpu",))(
        *[jax.ShapeDtypeStruct((size, 10), "float32")] * 2
    )
    np.testing.assert_allclose(exported.call(*arrays), softmax_by_jax(*arrays), 1e-5, 1e-6)


def test_empty_rows_keep_the_quotient() -> None:
    """A sum of nothing is zero, whatever it would be divided by."""
    assert "p" in left(squares(te.placeholder((4, 0), name="x"), te.placeholder((4, 0), name="w")))
