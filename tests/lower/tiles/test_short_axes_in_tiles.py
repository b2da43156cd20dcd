"""Tensors with a short axis in tiles: one tensor for each position, and all gradients from one pass."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.tensors.tensor import Tensor
from tests.xla_counts import Fused

BUDGET = 2000


def to_segments(x: Tensor, y: Tensor, ends: Tensor) -> Tensor:
    """The squared distance of the point (x[i], y[j]) from the nearest of three places of each f."""
    e = te.reduce_axis((0, 3), "e")

    def nearest(i: Any, j: Any, f: Any) -> Any:
        across, along = x[i] - ends[f, (e + 1) % 3, 0], y[j] - ends[f, e, 1]
        return te.min(te.clip(across, -1.0, 1.0) ** 2 + te.exp(along / 4), axis=e)

    return te.compute((x.shape[0], y.shape[0], ends.shape[0]), nearest, "far")


def plain_segments(x: Any, y: Any, ends: Any) -> Any:
    across = x[:, None, None, None] - jnp.roll(ends, -1, 1)[..., 0]
    along = y[:, None, None] - ends[..., 1]
    return jnp.min(jnp.clip(across, -1.0, 1.0) ** 2 + jnp.exp(along / 4), -1)


def weighted_powers(x: Tensor, y: Tensor, ends: Tensor) -> Tensor:
    """Sums of a large tensor over its short axis, at positions that a condition holds for, and with it kept."""
    f, e = te.reduce_axis((0, ends.shape[0]), "f"), te.reduce_axis((0, 3), "e")
    near = te.compute(
        (x.shape[0], y.shape[0], ends.shape[0], 3),
        lambda i, j, f, e: te.sin(x[i] * ends[f, e, 0]) * te.exp(-y[j] * ends[f, e, 1]),
        "near",
    )
    total = te.compute(
        (x.shape[0], y.shape[0]),
        lambda i, j: te.sum(near[i, j, f, e] ** 2, axis=[f, e], where=e < 2),
        "total",
    )
    j = te.reduce_axis((0, y.shape[0]), "j")
    kept = te.compute(
        (x.shape[0], 3), lambda i, e: te.sum(te.abs(near[i, j, f, (e + 2) % 3]), axis=[j, f]), "kept"
    )
    return te.compute(total.shape, lambda i, j: total[i, j] + kept[i, 0] * kept[i, 1] - kept[i, 2], "out")


def plain_powers(x: Any, y: Any, ends: Any) -> Any:
    near = jnp.sin(x[:, None, None, None] * ends[..., 0]) * jnp.exp(-y[:, None, None] * ends[..., 1])
    total = jnp.sum(near[..., :2] ** 2, (2, 3))
    kept = jnp.roll(jnp.sum(jnp.abs(near), (1, 2)), -2, 1)
    return total + (kept[:, 0] * kept[:, 1] - kept[:, 2])[:, None]


def neighbours(x: Tensor, y: Tensor, ends: Tensor) -> Tensor:
    """Positions behind a condition that lie outside, and reductions over positions that the element chooses."""
    e = te.reduce_axis((0, 3), "e")
    near = te.compute(
        (x.shape[0], y.shape[0], ends.shape[0], 3),
        lambda i, j, f, e: te.sin(x[i] * y[j] + ends[f, e, 0] * x[i]),
        "near",
    )
    before = te.compute(
        near.shape[:3],
        lambda i, j, f: te.sum(te.select(e >= 1, near[i, j, f, e - 1], 0.5) * near[i, j, f, e], axis=e),
        "before",
    )
    turned = te.compute(
        (*near.shape[:3], 2),
        lambda i, j, f, p: te.max(near[i, j, f, (e + p) % 3] * te.cast(e + 1, x.dtype), axis=e),
        "turned",
    )
    j, f = te.reduce_axis((0, y.shape[0]), "j"), te.reduce_axis((0, ends.shape[0]), "f")
    return te.compute(
        x.shape,
        lambda i: te.sum(before[i, j, f] * turned[i, j, f, 0] + turned[i, j, f, 1] ** 2, axis=[j, f]),
        "out",
    )


def plain_neighbours(x: Any, y: Any, ends: Any) -> Any:
    near = jnp.sin(x[:, None, None, None] * y[:, None, None] + ends[..., 0] * x[:, None, None, None])
    before = 0.5 * near[..., 0] + near[..., 0] * near[..., 1] + near[..., 1] * near[..., 2]
    factors = jnp.arange(1, 4)
    first, second = jnp.max(near * factors, -1), jnp.max(jnp.roll(near, -1, -1) * factors, -1)
    return jnp.sum(before * first + second**2, (1, 2))


CASES = {
    "minimum": (to_segments, plain_segments),
    "sums": (weighted_powers, plain_powers),
    "neighbours": (neighbours, plain_neighbours),
}


def arrays(points: int, faces: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [
        rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((points,), (points + 2,), (faces, 3, 2))
    ]


def graded(fn: Callable[..., Any]) -> Callable[..., Any]:
    return jax.value_and_grad(lambda *a: jnp.sum(jnp.sin(fn(*a))), (0, 1, 2))


def backward(source: str) -> str:
    """The body of the backward function, without its docstring."""
    return source[source.index("def backward(") : source.index("def _fwd(")].split('"""')[2]


def agree_with_plain(
    definition: Callable[..., Any], plain: Callable[..., Any], own: list[np.ndarray]
) -> None:
    """In float64, and operation by operation in JAX: compiled, an element may be rounded twice in two ways."""
    with jax.enable_x64(True):
        wide = [a.astype(np.float64) for a in own]
        fn = te.function(definition, max_memory=BUDGET)
        assert "_tile(" in fn.source(*wide)
        found, wanted = jax.jit(graded(fn))(*wide), graded(plain)(*wide)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("sizes", [(6, 11), (7, 5)])
def test_values_and_gradients_by_positions(name: str, sizes: tuple[int, int]) -> None:
    agree_with_plain(*CASES[name], arrays(*sizes))


def test_ties_among_positions_are_shared() -> None:
    """Equal elements receive equal parts, as in jax.grad of jnp.min."""
    own = arrays(5, 9)
    own[2][0] = own[2][0, 0]
    agree_with_plain(*CASES["minimum"], own)


def test_all_gradients_of_a_minimum_come_from_three_passes() -> None:
    """What depends on ``y`` alone is a tensor with an adjoint of its own, and so is what the taps of the distances share."""
    shapes = [jax.ShapeDtypeStruct(s, jnp.float32) for s in ((64,), (64,), (1000, 3, 2))]
    text = backward(te.function(to_segments).source(*shapes))
    passes = len(re.findall(r"lax\.(?:map|scan)\(", text))
    assert passes <= 3
    assert text.count("lax.reduce(") <= passes  # finds the places of all minima


def test_the_short_axis_of_a_tensor_that_is_not_reduced_over_stays() -> None:
    """Without a reduction over it there is nothing to write out."""

    def kept(x: Tensor, y: Tensor, ends: Tensor) -> Tensor:
        shape = (x.shape[0], y.shape[0], 3)
        near = te.compute(shape, lambda i, j, e: te.sin(x[i] * y[j] + ends[0, e, 0]), "near")
        j = te.reduce_axis((0, y.shape[0]), "j")
        return te.compute((x.shape[0], 3), lambda i, e: te.sum(near[i, j, e] ** 2, axis=j), "out")

    shapes = [jax.ShapeDtypeStruct(s, jnp.float32) for s in ((200,), (200,), (5, 3, 2))]
    source = te.function(kept, max_memory=BUDGET * 10).source(*shapes)
    forward = source[: source.index("def backward(")]
    assert "near_i" in forward and "near_0" not in forward


def test_a_result_with_a_short_axis_exists_as_it_is() -> None:
    def both(x: Tensor, y: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
        shape = (x.shape[0], y.shape[0], 3)
        near = te.compute(shape, lambda i, j, e: te.sin(x[i] * y[j] + ends[0, e, 0]), "near")
        e = te.reduce_axis((0, 3), "e")
        return near, te.compute(shape[:2], lambda i, j: te.sum(near[i, j, e] ** 2, axis=e), "out")

    own = arrays(20, 2)
    near, out = te.function(both, max_memory=BUDGET)(*own)
    wanted = np.sin(own[0][:, None, None] * own[1][:, None] + own[2][0, :, 0])
    np.testing.assert_allclose(near, wanted, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(out, (wanted**2).sum(2), rtol=1e-5, atol=1e-5)


def test_memory_of_the_gradients_of_a_minimum() -> None:
    """Less than twice the distances of all pairs from one of the places; plain JAX holds seven times these.

    How many places share a minimum is held, which two passes ask: 27 MB for 12, in 50 ms for 82 where each computes it again.
    """
    shapes = [jax.ShapeDtypeStruct(s, jnp.float32) for s in ((64,), (66,), (1000, 3, 2))]
    fn = te.function(to_segments)
    graded = jax.jit(jax.grad(lambda *a: jnp.sum(fn(*a)), (0, 1, 2)))
    memory: Any = Fused(graded.lower(*shapes)).memory_analysis()
    assert memory.temp_size_in_bytes < 2 * 64 * 66 * 1000 * 4


def test_an_element_is_compared_with_the_other_elements() -> None:
    """Not with a minimum that another loop has computed from elements that it has rounded otherwise."""
    p = te.reduce_axis((0, 3), "p")

    def nearest(a: te.Tensor, b: te.Tensor) -> te.Tensor:
        d = te.compute((60, 60, 3), lambda i, j, e: (a[i, e] - b[j, e]) * (a[i, e] + b[j, e]) * b[j, e], "d")
        return te.compute((60, 60), lambda i, j: te.min(d[i, j, p], axis=p), "m")

    fn = te.function(nearest, max_memory=4_000)
    a, b = np.random.default_rng(0).standard_normal((2, 60, 3)).astype(np.float32)
    text = fn.source(a, b)
    backward = text[text.index("def backward") :]
    hits = [line for line in backward.splitlines() if " > " in line]
    assert hits and not any(f"> {name}" in line for line in hits for name in ("m_", "extremum"))
    found = jax.vjp(jax.jit(fn), a, b)[1](np.ones((60, 60), np.float32))
    with jax.disable_jit():
        plain = lambda a, b: jnp.min((a[:, None] - b) * (a[:, None] + b) * b, axis=2)  # noqa: E731
        expected = jax.vjp(plain, a, b)[1](jnp.ones((60, 60), jnp.float32))
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-4, atol=1e-4)
