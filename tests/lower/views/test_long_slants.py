"""Sums along slanted lines of more positions than a short axis has: one loop over slices, nothing laid out askew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jaxte as te
from tests.agreement import interpreted
from tests.xla_counts import Fused

LONG = 49


def slant(x: te.Tensor) -> te.Tensor:
    """Sums along the diagonals of panels."""
    r = te.reduce_axis((0, LONG), "r")
    return te.compute((3, 152), lambda b, i: te.sum(x[b, r, i + r], axis=r), "y")


def steep(x: te.Tensor) -> te.Tensor:
    """Squares along lines with a slope of two, of panels whose rows come first."""
    r = te.reduce_axis((0, LONG), "r")
    return te.compute((100, 3), lambda i, b: te.sum(x[r, i + 2 * r, b] ** 2, axis=r), "y")


def ahead(x: te.Tensor) -> te.Tensor:
    """Channels added up, each ahead by its number."""
    r = te.reduce_axis((0, LONG), "r")
    return te.compute((152,), lambda i: te.sum(te.abs(x[i + r, r]), axis=r), "y")


@pytest.mark.parametrize(
    ("build", "shape"), [(slant, (3, LONG, 200)), (steep, (LONG, 200, 3)), (ahead, (200, LONG))]
)
def test_slices_in_one_loop(build: Any, shape: tuple[int, ...], rng: np.random.Generator) -> None:
    x = te.placeholder(shape, name="x")
    y = build(x)
    feeds = {x: rng.normal(size=shape).astype("float32")}
    function = te.function([x], y)
    np.testing.assert_allclose(function(feeds[x]), interpreted(y, feeds), rtol=1e-4, atol=1e-4)
    program = Fused(function.lower(feeds[x]))
    assert program.memory_analysis().temp_size_in_bytes <= 4096
    forward = function.source().split("def backward")[0]
    assert "reshape" not in forward and "tile" not in forward
