"""Indices at a distance from one axis: what they are, and what is on the other side."""

from __future__ import annotations

import jaxte as te
from jaxte.sets.piecewise_affine import neighbour

P = te.reduce_axis((0, 8), "i")
K = te.reduce_axis((0, 8), "k")


def test_distances() -> None:
    straight, wrapped = neighbour(P - 3, 8), neighbour((P + 10) % 8, 8)
    assert straight and (straight.axis, straight.distance, straight.period) == (P, -3, None)
    assert wrapped and (wrapped.distance, wrapped.period) == (2, 8)
    assert straight.opposite == neighbour(P + 3, 8)
    assert wrapped.opposite == neighbour((P - 2) % 8, 8)
    assert neighbour(P, 8) == straight.opposite.__class__(P, 0)


def test_what_is_no_neighbour() -> None:
    for index in (2 * P, P + K, (P + 1) % 7, (2 * P) % 8, P // 2, te.const(3)):
        assert neighbour(index, 8) is None
