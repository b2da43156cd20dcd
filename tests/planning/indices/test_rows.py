"""Several elements of a gathered row are reads of a tensor of rows, gathered once and scattered once: what is emitted, and values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.planning.graph import planned
from jaxte.tensors.structure import Rows, topological_order

POINTS, FACES = 12, 20


def rows_of(tensor: te.Tensor) -> list[Rows]:
    return [t for t in topological_order(planned([tensor])) if isinstance(t, Rows)]


def normals(v: te.Tensor, faces: te.Tensor) -> te.Tensor:
    def element(f: Any, c: Any) -> Any:
        edge = lambda corner, c: v[faces[f, corner], c] - v[faces[f, 0], c]  # noqa: E731
        first, second = (c + 1) % 3, (c + 2) % 3
        return edge(1, first) * edge(2, second) - edge(1, second) * edge(2, first)

    return te.compute((faces.shape[0], 3), element, "normal")


def lengths(v: te.Tensor, faces: te.Tensor) -> te.Tensor:
    def element(f: Any) -> Any:
        x, y, z = (v[faces[f, 1], n] - v[faces[f, 0], n] for n in range(3))
        return te.sqrt(x * x + y * y + z * z + 1.0)

    return te.compute((faces.shape[0],), element, "length")


def by_numpy(name: str, v: Any, faces: Any) -> Any:
    a, b, c = (v[faces[:, n]] for n in range(3))
    return jnp.cross(b - a, c - a) if name == "normals" else jnp.sqrt(jnp.sum((b - a) ** 2, axis=1) + 1.0)


@pytest.mark.parametrize(("build", "rows"), [(normals, 3), (lengths, 2)], ids=["normals", "lengths"])
def test_rows_are_gathered_once_and_scattered_once(
    build: Callable[..., te.Tensor], rows: int, rng: np.random.Generator
) -> None:
    v = rng.standard_normal((POINTS, 3)).astype("float32")
    faces = rng.integers(0, POINTS, (FACES, 3)).astype("int32")
    given = te.placeholder(v.shape, name="v"), te.placeholder(faces.shape, "int32", "faces")
    assert len(rows_of(build(*given))) == rows
    fn = te.function(build)
    forward, backward = fn.source(v, faces).split("def backward")
    assert forward.count(".get(") == rows and backward.count(".get(") == 0
    assert backward.count(".add(") == rows
    expected, pull = jax.vjp(lambda v: by_numpy(build.__name__, v, faces), v)
    found, own = jax.vjp(lambda v: fn(v, faces), v)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(own(expected)[0], pull(expected)[0], rtol=1e-4, atol=1e-4)


def turned_halves(table: te.Tensor, angles: te.Tensor, at: te.Tensor) -> te.Tensor:
    """Numbers whose real parts stand before their imaginary ones, turned by angles: both halves of a long row are read."""
    count = angles.shape[0]
    k = te.reduce_axis((0, count), "k")

    def element(b: Any) -> Any:
        real, imaginary = table[at[b], k], table[at[b], count + k]
        return te.sum((real * te.cos(angles[k]) - imaginary * te.sin(angles[k])) ** 2, axis=k)

    return te.compute(at.shape, element, "y")


def test_long_rows_that_are_read_in_parts_are_gathered_once(rng: np.random.Generator) -> None:
    table, angles = (rng.standard_normal(s).astype("float32") for s in ((POINTS, 48), (24,)))
    at = rng.integers(0, POINTS, FACES).astype("int32")
    fn = te.function(turned_halves)
    forward, backward = fn.source(table, angles, at).split("def backward")
    assert forward.count(".get(") == 1 and backward.count(".get(") == 0 and backward.count(".add(") == 1

    def plain(table: Any, angles: Any) -> Any:
        rows = table[at]
        return jnp.sum((rows[:, :24] * jnp.cos(angles) - rows[:, 24:] * jnp.sin(angles)) ** 2, axis=1)

    expected, pull = jax.vjp(plain, table, angles)
    found, own = jax.vjp(lambda *v: fn(*v, at), table, angles)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    for mine, theirs in zip(own(expected), pull(expected), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-2)


def test_rows_stay_where_they_are_read() -> None:
    v, at = te.placeholder((POINTS, 3), name="v"), te.placeholder((FACES,), "int32", "at")
    wide = te.placeholder((POINTS, 100), name="wide")
    once = te.compute((FACES, 3), lambda f, c: v[at[f], c] * 2, "once")
    few = te.compute((FACES,), lambda f: wide[at[f], 0] * wide[at[f], 1], "few")
    edge = te.compute(
        (FACES,), lambda f: te.select(f > 0, v[at[f - 1], 0] * v[at[f - 1], 1] * v[at[f - 1], 2], 0.0), "edge"
    )
    integers = te.placeholder((POINTS, 2), "int32", "n")
    whole = te.compute((FACES,), lambda f: integers[at[f], 0] + integers[at[f], 1], "whole")
    assert not any(map(rows_of, (once, few, edge, whole)))


def test_corners_around_data_are_gathered_one_by_one(rng: np.random.Generator) -> None:
    """XLA fuses a gather at one position for each element, and writes one at an array of positions."""
    k, m = te.reduce_axis((0, 2), "k"), te.reduce_axis((0, 2), "m")

    def bilinear(x: te.Tensor, at: te.Tensor, w: te.Tensor) -> te.Tensor:
        def element(p: Any) -> Any:
            weight = te.select(k == 0, 1 - w[p, 0], w[p, 0]) * te.select(m == 0, 1 - w[p, 1], w[p, 1])
            return te.sum(weight * x[at[p, 0] + k, at[p, 1] + m], axis=(k, m))

        return te.compute((at.shape[0],), element, "y")

    x, w = rng.standard_normal((9, 8)).astype("float32"), rng.random((5, 2)).astype("float32")
    at = rng.integers(0, 7, (5, 2)).astype("int32")
    fn = te.function(bilinear)
    forward = fn.source(x, at, w).split("def backward")[0]
    assert forward.count(".get(") == 4 and "jnp.arange" not in forward
    corners = [(i, j) for i in (0, 1) for j in (0, 1)]
    weights = [np.where(i, w[:, 0], 1 - w[:, 0]) * np.where(j, w[:, 1], 1 - w[:, 1]) for i, j in corners]
    expected = sum(own * x[at[:, 0] + i, at[:, 1] + j] for own, (i, j) in zip(weights, corners, strict=True))
    np.testing.assert_allclose(fn(x, at, w), expected, rtol=1e-5)
