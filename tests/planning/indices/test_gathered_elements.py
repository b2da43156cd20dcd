"""Elements at positions that are data, read in windows of these positions: gathered once, and what flows back to them is added up before it is scattered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from harness.sides import with_gradients
from jaxte.planning.graph import planned
from jaxte.planning.indices.shared_elements import Shared
from jaxte.tensors.structure import topological_order
from tests.xla_counts import Fused

N, M, K = 96, 80, 9


def aligned(b: te.Tensor, p: te.Tensor, q: te.Tensor) -> te.Tensor:
    """Scores of two sequences along diagonals."""
    k = te.reduce_axis((0, K), "k")
    shape = (p.shape[0] - K + 1, q.shape[0] - K + 1)
    return te.compute(shape, lambda i, j: te.sum(b[p[i + k], q[j + k]], axis=k), "s")


def plain_aligned(b: jax.Array, p: Any, q: Any) -> jax.Array:
    s = b[p[:, None], q]
    return sum(s[k : k + len(p) - K + 1, k : k + len(q) - K + 1] for k in range(K))  # type: ignore[return-value]


def smoothed(v: te.Tensor, w: te.Tensor, p: te.Tensor) -> te.Tensor:
    """A filter over elements that are looked up."""
    k = te.reduce_axis((0, w.shape[0]), "k")
    return te.compute(
        (v.shape[0], p.shape[0] - w.shape[0] + 1), lambda b, i: te.sum(w[k] * v[b, p[i + k]], axis=k), "y"
    )


def plain_smoothed(v: jax.Array, w: jax.Array, p: Any) -> jax.Array:
    return sum(w[k] * v[:, p][:, k : k + len(p) - len(w) + 1] for k in range(len(w)))  # type: ignore[return-value]


def along_a_path(x: te.Tensor, p: te.Tensor) -> te.Tensor:
    """Squares of steps along a path through points."""
    c = te.reduce_axis((0, x.shape[1]), "c")
    return te.compute((p.shape[0] - 1,), lambda i: te.sum((x[p[i + 1], c] - x[p[i], c]) ** 2, axis=c), "y")


def plain_along_a_path(x: jax.Array, p: Any) -> jax.Array:
    return jnp.sum((x[p[1:]] - x[p[:-1]]) ** 2, 1)


Case = tuple[Callable[..., Any], Callable[..., Any], tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]
# the definition, plain JAX, the shapes of what is read, and of the positions
CASES: dict[str, Case] = {
    "aligned": (aligned, plain_aligned, ((20, 20),), ((N,), (M,))),
    "smoothed": (smoothed, plain_smoothed, ((4, 50), (7,)), ((2000,),)),
    "path": (along_a_path, plain_along_a_path, ((30, 3),), ((2000,),)),
}


def arguments(name: str, rng: np.random.Generator) -> list[np.ndarray]:
    _, _, shapes, positions = CASES[name]
    values = [rng.standard_normal(s).astype("float32") for s in shapes]
    return [
        *values,
        *(rng.integers(0, shapes[0][-1] if name != "path" else 30, s).astype("int32") for s in positions),
    ]


def gathered(build: Callable[..., Any], arrays: list[np.ndarray]) -> list[Shared]:
    inputs = [te.placeholder(a.shape, str(a.dtype), f"a{n}") for n, a in enumerate(arrays)]
    return [t for t in topological_order(planned([build(*inputs)])) if isinstance(t, Shared)]


@pytest.mark.parametrize("name", CASES)
def test_each_is_gathered_and_scattered_once(name: str, rng: np.random.Generator) -> None:
    build, plain, shapes, _ = CASES[name]
    arrays = arguments(name, rng)
    assert len(gathered(build, arrays)) == 1
    fn, given = te.function(build), tuple(range(len(shapes)))
    head = jax.eval_shape(plain, *arrays)
    heads = [rng.standard_normal(head.shape).astype("float32")]
    ours, theirs = (with_gradients(f, given) for f in (fn, plain))
    for found, expected in zip(jax.jit(ours)(heads, *arrays), theirs(heads, *arrays), strict=True):
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4)
    lowered = jax.jit(ours).lower(heads, *arrays)
    assert lowered.as_text().count('"stablehlo.scatter"(') <= 2  # by one position after the other


def test_what_is_scattered_is_no_larger_than_what_is_gathered(rng: np.random.Generator) -> None:
    arrays = arguments("aligned", rng)
    heads = [np.ones((N - K + 1, M - K + 1), "float32")]
    ours, theirs = (
        Fused(jax.jit(with_gradients(f, (0,))).lower(heads, *arrays)).cost_analysis()
        for f in (te.function(aligned), plain_aligned)
    )
    assert ours["flops"] < 1.3 * theirs["flops"]  # nine times as many sums with an element for each tap


def test_positions_out_of_range_are_no_numbers_and_receive_nothing(rng: np.random.Generator) -> None:
    b, p, q = arguments("aligned", rng)
    p[10], q[20] = 25, -1
    fn = te.function(aligned)
    found, back = jax.vjp(lambda b: fn(b, p, q), b)
    inside = np.where(((p >= 0) & (p < 20))[:, None] & ((q >= 0) & (q < 20)), b[p % 20][:, q % 20], np.nan)
    expected = sum(inside[k : k + N - K + 1, k : k + M - K + 1] for k in range(K))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    (db,) = back(np.ones((N - K + 1, M - K + 1), "float32"))
    counts = np.zeros((20, 20))
    for i in range(N - K + 1):
        for k in range(K):
            for j in range(M - K + 1):
                if 0 <= p[i + k] < 20 and 0 <= q[j + k] < 20:
                    counts[p[i + k], q[j + k]] += 1
    np.testing.assert_allclose(db, counts, rtol=1e-5)


def test_other_elements_stay() -> None:
    """An element for each point; rows of a table that are multiplied by a matrix, whose products are gathered as well."""

    def once(x: te.Tensor, p: te.Tensor) -> te.Tensor:
        return te.compute(p.shape, lambda i: x[p[i]] * 2.0, "y")

    def embedded(e: te.Tensor, w: te.Tensor, s: te.Tensor) -> te.Tensor:
        k, c = te.reduce_axis((0, w.shape[0]), "k"), te.reduce_axis((0, e.shape[1]), "c")
        shape = (s.shape[0] - w.shape[0] + 1, w.shape[2])
        return te.compute(shape, lambda i, o: te.sum(e[s[i + k], c] * w[k, c, o], axis=(k, c)), "y")

    def letters(e: te.Tensor, w: te.Tensor, s: te.Tensor) -> te.Tensor:
        c = te.reduce_axis((0, e.shape[1]), "c")
        return te.compute((s.shape[0], w.shape[1]), lambda i, o: te.sum(e[s[i], c] * w[c, o], axis=c), "y")

    positions = np.zeros(4000, "int32")
    assert not gathered(once, [np.zeros(30, "float32"), positions])
    assert not gathered(embedded, [np.zeros((20, 16), "float32"), np.zeros((5, 16, 8), "float32"), positions])
    assert not gathered(letters, [np.zeros((20, 16), "float32"), np.zeros((16, 8), "float32"), positions])
