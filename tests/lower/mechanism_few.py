"""Sums, products and maxima of all positions up to each of a few: for ``tests/lower/mechanism_rows.py``."""

from __future__ import annotations

import jaxte as te
from jaxte import Tensor


def below_each_category(p: Tensor) -> Tensor:
    """The probabilities of the categories up to each."""
    k = te.reduce_axis((0, p.shape[1]), "k")
    return te.compute(p.shape, lambda i, c: te.sum(p[i, k] ** 2, axis=k, where=k <= c), "y")


def weight_above(density: Tensor, depth: Tensor) -> Tensor:
    """What layers of soil bear, at each place of a field."""
    k = te.reduce_axis((0, density.shape[0]), "k")
    return te.compute(
        density.shape, lambda z, i, j: te.sum(density[k, i, j] * depth[k], axis=k, where=k < z), "y"
    )


def left_of_each_stage(q: Tensor) -> Tensor:
    """What the later stages of filters let through, in each channel."""
    k = te.reduce_axis((0, q.shape[1]), "k")
    return te.compute(q.shape, lambda b, s, c: te.prod(q[b, k, c], axis=k, where=k >= s), "y")
