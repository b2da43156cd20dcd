"""Rows at positions that are data are added in vectors: wide ones are scattered, single elements of few kinds are a product."""

from __future__ import annotations

import numpy as np

import jaxte as te


def _added(table: te.Tensor, kind: te.Tensor) -> te.Tensor:
    i, extents = te.reduce_axis((0, kind.shape[0]), "i"), table.shape[1:]
    return te.compute((20, *extents), lambda t, *r: te.sum(table[(i, *r)], axis=i, where=kind[i] == t), "y")


def test_wide_rows_are_scattered_on_a_cpu() -> None:
    rows, kind = np.ones((1024, 32, 32), "float32"), np.zeros(1024, "int32")
    text = str(te.source(te.function(_added), rows, kind))
    assert ".at[kind].add(" in text
    assert "one_hot" not in text


def test_remainders_of_remainders_are_one() -> None:
    """The gradient of what is read half of its length further on reads a table at the same place."""
    x, table = te.placeholder((32,), name="x"), te.placeholder((16,), name="table")
    y = te.compute((32,), lambda c: x[(c + 16) % 32] * table[(c + 16) % 32 % 16], "y")
    assert "table[c % 16]" in te.formula(y) or "jnp.tile(table, 2)" in te.source(y)
    assert "roll(jnp.tile" not in te.source(y)


def test_what_may_be_beyond_a_tensor_is_multiplied_by_no_zero() -> None:
    """The product was NaN in all rows: the second position is in range where the choice around the sum holds alone, which its values do not know of."""
    x, head = te.placeholder((2, 4), name="x"), te.placeholder((3,), name="H")
    place = te.placeholder((4,), "int32", name="place")
    i = te.reduce_axis((0, 3), "i")
    y = te.compute(
        (2, 4),
        lambda p, q: te.select(
            place[0] == q, te.sum(head[i] * x[place[i], place[0]], axis=i, where=place[i] == p), 0.0
        ),
        "y",
    )
    feeds = {
        x: np.arange(1.0, 9.0, dtype="float32").reshape(2, 4),
        head: np.ones(3, "float32"),
        place: np.array([1, 7, 0, 1], "int32"),
    }
    expected = te.interpret(y, feeds)
    assert np.isfinite(expected).all()
    forced = te.function([*feeds], y, forms={"*": "one-hot product"})
    np.testing.assert_allclose(forced(*feeds.values()), expected)
    np.testing.assert_allclose(te.evaluate(y, feeds), expected)
