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
