"""Conditions on data in adjoints: what equations imply is not tested again, choices by one condition are one choice."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

N, EDGES = 5, 12


def segment_softmax(s: te.Tensor, row: te.Tensor, n: int = N) -> te.Tensor:
    """The softmax of ``s`` over the elements of each row, shifted by the row's maximum."""
    edges = s.shape[0]
    e, f = te.reduce_axis((0, edges), "e"), te.reduce_axis((0, edges), "f")
    m = te.compute((n,), lambda i: te.max(s[e], axis=e, where=row[e] == i), "m")
    w = te.compute((edges,), lambda e: te.exp(s[e] - m[row[e]]), "w")
    total = te.compute((n,), lambda i: te.sum(w[f], axis=f, where=row[f] == i), "total")
    return te.compute((edges,), lambda e: w[e] / total[row[e]], "a")


def placeholders(positions: int = EDGES) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    return (
        te.placeholder((positions,), name="s"),
        te.placeholder((positions,), "int32", "row"),
        te.placeholder((positions,), name="H"),
    )


@pytest.mark.parametrize("edges", [2, EDGES])
def test_the_maximum_of_a_softmax_over_segments_has_no_adjoint(rng: np.random.Generator, edges: int) -> None:
    s, row, head = placeholders(edges)
    a = segment_softmax(s, row)
    (ds,) = te.differentiate(a, [s], head=head)
    assert not any(word in te.source(ds) for word in ("dm", "ties_m"))
    feeds = {
        s: rng.standard_normal(edges).astype("float32"),
        row: rng.integers(0, N, edges).astype("int32"),
        head: rng.standard_normal(edges).astype("float32"),
    }

    def plain(x: jax.Array) -> jax.Array:
        at = feeds[row]
        w = jnp.exp(x - jax.ops.segment_max(x, at, N)[at])
        return jnp.sum(feeds[head] * w / jax.ops.segment_sum(w, at, N)[at])

    expected = jax.grad(plain)(feeds[s])
    np.testing.assert_allclose(te.evaluate(ds, feeds), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(te.interpret(ds, feeds), expected, rtol=1e-5, atol=1e-6)


def test_a_maximum_over_other_segments_keeps_its_adjoint() -> None:
    """Shifted by the maximum of another row, a softmax over segments does change with it where rows differ."""
    s, row, head = placeholders()
    other = te.placeholder((EDGES,), "int32", "other")
    e, f = te.reduce_axis((0, EDGES), "e"), te.reduce_axis((0, EDGES), "f")
    m = te.compute((N,), lambda i: te.max(s[e], axis=e, where=row[e] == i), "m")
    w = te.compute((EDGES,), lambda e: te.exp(s[e] - m[other[e]]), "w")
    total = te.compute((N,), lambda i: te.sum(w[f], axis=f, where=row[f] == i), "total")
    a = te.compute((EDGES,), lambda e: w[e] / total[row[e]], "a")
    assert "dm" in te.source(te.differentiate(a, [s], head=head)[0])


def attended(edges: int, columns: int = 3) -> tuple[te.Tensor, list[te.Tensor]]:
    """Rows of ``v`` added up with the weights of a softmax over segments; its adjoint and what that is made from."""
    s, row, _ = placeholders(edges)
    v, head = te.placeholder((edges, columns), name="v"), te.placeholder((N, columns), name="H")
    a, e = segment_softmax(s, row), te.reduce_axis((0, edges), "e")
    y = te.compute((N, columns), lambda i, d: te.sum(a[e] * v[e, d], axis=e, where=row[e] == i), "y")
    return te.differentiate(y, [s], head=head)[0], [s, row, v, head]


def test_positions_that_are_outside_take_no_part(rng: np.random.Generator) -> None:
    """The gradient is that of the elements with a row alone, whatever the quotients of the others are."""
    ds, inputs = attended(EDGES)
    assert "!= 0" not in te.source(ds)  # it is known from the positions which elements take no part
    at = rng.integers(-2, N + 2, EDGES).astype("int32")
    kept = np.flatnonzero((at >= 0) & (at < N))
    assert 0 < len(kept) < EDGES
    x, v, h = (rng.standard_normal(shape).astype("float32") for shape in ((EDGES,), (EDGES, 3), (N, 3)))
    alone, others = attended(len(kept))
    expected = np.zeros(EDGES, "float32")
    expected[kept] = te.interpret(alone, dict(zip(others, (x[kept], at[kept], v[kept], h), strict=True)))
    feeds = dict(zip(inputs, (x, at, v, h), strict=True))
    np.testing.assert_allclose(te.evaluate(ds, feeds), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(te.interpret(ds, feeds), expected, rtol=1e-5, atol=1e-6)


def test_equations_imply_ranges() -> None:
    """``0 <= I[e] < n`` is not asked where ``I[e] == i``; where ``I[e] + 1 == i`` it may fail."""
    index, head = te.placeholder((EDGES,), "int32", "I"), te.placeholder((N,), name="H")
    e = te.reduce_axis((0, EDGES), "e")

    def adjoint(shift: int, extent: int = N) -> str:
        read = te.placeholder((extent,), name="x")
        y = te.compute(
            (N,), lambda i: te.sum(te.exp(read[index[e]]), axis=e, where=index[e] + shift == i), "y"
        )
        return repr(te.differentiate(y, [read], head=head)[0])

    assert "<" not in adjoint(0)
    assert "<" in adjoint(0, extent=N + 2)
    assert "<" in adjoint(1)


def test_choices_by_one_condition_are_one_choice() -> None:
    x, head = te.placeholder((7,), name="x"), te.placeholder((7,), name="H")
    y = te.compute((7,), lambda i: te.leaky_relu(x[i], 0.3), "y")
    (dx,) = te.differentiate(y, [x], head=head)
    assert repr(dx) == "dx[i] = select(x[i] >= 0, H[i], H[i] * 0.3)"
    squared = te.compute(
        (7,), lambda i: te.leaky_relu(x[i], 0.3) * te.leaky_relu(x[i], 0.3) - te.leaky_relu(x[i], 2), "y"
    )
    (dx,) = te.differentiate(squared, [x], head=head)
    assert te.source(dx).count("jnp.where(") == 2  # the choice in the value, and one in the slope


@pytest.mark.parametrize("dtype", ["uint32", "int32"])
def test_remainders_of_unsigned_data_are_of_no_number_below_zero(dtype: str) -> None:
    """``(q + j) % 3`` at ``j = r - a + 2`` was written ``(q + r - a - 1) % 3``, which an unsigned integer is not."""
    x, y, q, head = (
        te.placeholder((3,), name="x"),
        te.placeholder((3,), name="y"),
        te.placeholder((4,), dtype, "q"),
        te.placeholder((3, 4), name="H"),
    )
    z = te.compute((3, 4), lambda j, t: x[t % 2 + 1 - te.minimum(j, 1)] * y[(q[t] + j) % 3], "z")
    table = te.compute((3, 4), lambda j, t: (q[t] + j) % 3, "table")
    (dx,) = te.differentiate(z, [x], head)
    rng = np.random.default_rng(0)
    feeds = {
        y: np.float32(rng.normal(size=3)),
        q: np.zeros(4, dtype),
        head: np.float32(rng.normal(size=(3, 4))),
    }
    np.testing.assert_array_equal(te.evaluate(table, {q: feeds[q]}), np.arange(3)[:, None] + np.zeros((1, 4)))
    want = np.zeros(3)
    for j, t in np.ndindex(3, 4):
        want[t % 2 + 1 - min(j, 1)] += feeds[head][j, t] * feeds[y][j % 3]
    for found in (te.interpret(dx, feeds), te.evaluate(dx, feeds)):
        np.testing.assert_allclose(found, want, rtol=1e-5)
