"""Functions of pairs and of a third axis, which take long for each point: for ``tests/lower/mechanism_rows.py``."""

from __future__ import annotations

import jaxte as te
from jaxte import Tensor


def interference(d: Tensor, w: Tensor, a: Tensor) -> Tensor:
    """Waves of sources by their distances, at several frequencies."""
    j = te.reduce_axis((0, d.shape[1]), "j")
    return te.compute(
        (d.shape[0], w.shape[0]), lambda i, k: te.sum(te.sin(d[i, j] * w[k]) * a[j], axis=j), "y"
    )


def angles_apart(q: Tensor, k: Tensor, w: Tensor) -> Tensor:
    """How far angles are from those of others, weighted by these."""
    j = te.reduce_axis((0, k.shape[0]), "j")
    return te.compute(q.shape, lambda i, c: te.sum(w[j] * te.sin(q[i, c] - k[j, c]) ** 2, axis=j), "y")


def encoded(x: Tensor, f: Tensor, a: Tensor) -> Tensor:
    """Points of several clouds by the cosines of their coordinates at several frequencies, weighted by coordinate."""
    c = te.reduce_axis((0, x.shape[2]), "c")
    return te.compute(
        (*x.shape[:2], f.shape[0]), lambda b, i, k: te.sum(a[c] * te.cos(x[b, i, c] * f[k]), axis=c), "y"
    )
