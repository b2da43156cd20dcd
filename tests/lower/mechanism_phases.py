"""Reductions at even and at odd rows, or at each of three: for ``tests/lower/mechanism_rows.py``."""

from __future__ import annotations

import jaxte as te
from jaxte import Tensor


def pruned(below: Tensor, moves: Tensor) -> Tensor:
    """Likelihoods of states in a tree, of what is below both branches of each node."""
    t, s = te.reduce_axis((0, below.shape[2]), "t"), te.reduce_axis((0, below.shape[2]), "s")
    return te.compute(
        (below.shape[0] // 2, *below.shape[1:]),
        lambda i, site, a: (
            te.sum(moves[2 * i, a, t] * below[2 * i, site, t], axis=t)
            * te.sum(moves[2 * i + 1, a, s] * below[2 * i + 1, site, s], axis=s)
        ),
        "pruned",
    )


def gated(x: Tensor, w: Tensor) -> Tensor:
    """What every second row is projected to, times what the row after it is."""
    k, m = te.reduce_axis((0, x.shape[1]), "k"), te.reduce_axis((0, x.shape[1]), "m")
    return te.compute(
        (x.shape[0] // 2, w.shape[1]),
        lambda i, o: (
            te.sum(x[2 * i, k] * w[k, o], axis=k) * te.sigmoid(te.sum(x[2 * i + 1, m] * w[m, o], axis=m))
        ),
        "gated",
    )


def triplets(x: Tensor, w: Tensor) -> Tensor:
    """How much nearer the second of three is to the first than the third is, by a metric."""
    k, n = te.reduce_axis((0, x.shape[1]), "k"), x.shape[0] // 3
    c = te.reduce_axis((0, w.shape[1]), "c")
    a, b, d = (
        te.compute((n, w.shape[1]), lambda i, o, r=r: te.sum(x[3 * i + r, k] * w[k, o], axis=k), f"of{r}")
        for r in range(3)
    )
    return te.compute(
        (n,), lambda i: te.sum((a[i, c] - b[i, c]) ** 2 - (a[i, c] - d[i, c]) ** 2, axis=c), "triplets"
    )
