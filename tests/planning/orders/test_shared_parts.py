"""Sums of products that have a part in common read one tensor, on platforms where each loop is dear to start."""

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
from jaxte.tensors.structure import PartialSum, topological_order
from jaxte.tensors.tensor import Tensor

DEAR = Intermediates(element=4, loop=1_000)


def causal_attention(q: Tensor, k: Tensor, v: Tensor, first: bool = False) -> Tensor:
    """Scores without a softmax, divided by their sum, which stands before or behind what it divides."""
    n, size = q.shape
    d, j = te.reduce_axis((0, size), "d"), te.reduce_axis((0, n), "j")

    def below() -> Tensor:
        return te.compute((n,), lambda i: te.sum(q[i, d] * k[j, d], axis=(d, j), where=j <= i), "below")

    divisor = below() if first else None
    above = te.compute(
        v.shape, lambda i, e: te.sum(q[i, d] * k[j, d] * v[j, e], axis=(d, j), where=j <= i), "above"
    )
    divisor = below() if divisor is None else divisor
    return te.compute(v.shape, lambda i, e: above[i, e] / (10.0 + divisor[i]), "y")


def causal_by_jax(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.tril(q @ k.T)
    return scores @ v / (10.0 + scores.sum(1, keepdims=True))


def two_filters(x: Tensor, g: Tensor, h: Tensor) -> Tensor:
    """The length of a gradient: two separable filters that are alike along one axis."""
    k, m = te.reduce_axis((0, 7), "k"), te.reduce_axis((0, 7), "m")
    shape = (x.shape[0] - 6, x.shape[1] - 6)
    a = te.compute(shape, lambda i, j: te.sum(g[k] * g[m] * x[i + k, j + m], axis=(k, m)), "a")
    b = te.compute(shape, lambda i, j: te.sum(g[k] * h[m] * x[i + k, j + m], axis=(k, m)), "b")
    return te.compute(shape, lambda i, j: a[i, j] * a[i, j] + b[i, j] * b[i, j], "y")


def filters_by_jax(x: Any, g: Any, h: Any) -> Any:
    def filtered(rows: Any, columns: Any) -> Any:
        kernel = (rows[:, None] * columns[None, :])[None, None]
        return jax.lax.conv_general_dilated(x[None, None], kernel, (1, 1), "VALID")[0, 0]

    return filtered(g, g) ** 2 + filtered(g, h) ** 2


def banded_smoother(p: Tensor, w: Tensor, v: Tensor) -> Tensor:
    """A mean of what lies within a band, weighted by how alike rows are, and how much was weighted."""
    n, size = p.shape
    d, j = te.reduce_axis((0, size), "d"), te.reduce_axis((0, n), "j")

    def over(i: Any) -> Any:
        return te.abs(i - j) <= 40

    top = te.compute(
        v.shape, lambda i, e: te.sum(p[i, d] * w[j, d] * v[j, e], axis=(d, j), where=over(i)), "top"
    )
    total = te.compute((n,), lambda i: te.sum(p[i, d] * w[j, d], axis=(d, j), where=over(i)), "total")
    return te.compute(v.shape, lambda i, e: top[i, e] + total[i], "y")


def banded_by_jax(p: Any, w: Any, v: Any) -> Any:
    at = jnp.arange(p.shape[0])
    scores = jnp.where(jnp.abs(at[:, None] - at[None, :]) <= 40, p @ w.T, 0)
    return scores @ v + scores.sum(1, keepdims=True)


CASES: dict[str, tuple[Callable[..., Tensor], Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "behind": (causal_attention, causal_by_jax, ((96, 16),) * 3),
    "before": (lambda *a: causal_attention(*a, first=True), causal_by_jax, ((96, 16),) * 3),
    "filters": (two_filters, filters_by_jax, ((40, 50), (7,), (7,))),
    "band": (banded_smoother, banded_by_jax, ((96, 16),) * 3),
}


def parts(y: Tensor, costs: Intermediates) -> list[PartialSum]:
    with planned_with(costs, frozenset(), True):
        return [t for t in topological_order(planned([y])) if isinstance(t, PartialSum)]


@pytest.mark.parametrize("name", CASES)
def test_one_part_for_several_sums(name: str) -> None:
    define, _, shapes = CASES[name]
    y = define(*(te.placeholder(s, name=f"a{n}") for n, s in enumerate(shapes)))
    assert len(parts(y, DEAR)) == 1


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name: str, rng: np.random.Generator) -> None:
    define, by_jax, shapes = CASES[name]
    arrays = [rng.standard_normal(s) for s in shapes]
    with planned_with(DEAR, frozenset(), True):
        found = planned([define(*(te.placeholder(s, "float64", f"a{n}") for n, s in enumerate(shapes)))])[0]
    inputs = sorted(
        (t for t in topological_order([found]) if isinstance(t, te.Placeholder)), key=lambda t: t.name
    )
    fn = te.function(inputs, found)
    np.testing.assert_allclose(fn(*arrays), by_jax(*arrays), rtol=1e-9, atol=1e-9)
    each = tuple(range(len(arrays)))
    own, wanted = (jax.grad(lambda *a, f=f: (f(*a) ** 2).sum(), each)(*arrays) for f in (fn, by_jax))
    for one, other in zip(own, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)


def moments(x: Tensor, g: Tensor) -> Tensor:
    """Means of windows and of their squares: what is summed along one axis differs by how often a factor stands."""
    k, m = te.reduce_axis((0, 7), "k"), te.reduce_axis((0, 7), "m")
    shape = (x.shape[0] - 6, x.shape[1] - 6)
    mean = te.compute(shape, lambda i, j: te.sum(g[k] * g[m] * x[i + k, j + m], axis=(k, m)), "mean")
    square = te.compute(
        shape, lambda i, j: te.sum(g[k] * g[m] * x[i + k, j + m] * x[i + k, j + m], axis=(k, m)), "square"
    )
    return te.compute(shape, lambda i, j: square[i, j] - mean[i, j] * mean[i, j], "y")


def test_a_square_is_another_part() -> None:
    assert len(parts(moments(te.placeholder((40, 50), name="x"), te.placeholder((7,), name="g")), DEAR)) == 2


def test_symbolic_sizes_and_export() -> None:
    n = te.var("n")
    q, k, v = (te.placeholder((n, 16), name=name) for name in "qkv")
    fn = te.function([q, k, v], causal_attention(q, k, v), platform="gpu")
    arrays = [np.random.default_rng(1).standard_normal((24, 16)).astype("float32") for _ in range(3)]
    np.testing.assert_allclose(fn(*arrays), causal_by_jax(*arrays), rtol=2e-4, atol=2e-4)
    (size,) = jax.export.symbolic_shape("n")
    given = [jax.ShapeDtypeStruct((size, 16), "float32")] * 3
    exported = jax.export.export(jax.jit(fn), platforms=("cpu",))(*given)
    np.testing.assert_allclose(exported.call(*arrays), causal_by_jax(*arrays), rtol=2e-4, atol=2e-4)


def test_where_loops_cost_nothing_sums_are_planned_alone() -> None:
    y = causal_attention(*(te.placeholder((96, 16), name=n) for n in "qkv"))
    assert len(parts(y, Intermediates())) == 2
