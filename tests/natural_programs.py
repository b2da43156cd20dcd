"""Programs as a user spells them first, whose factors neighbouring reads share, or whose reads coincide: builders and their arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

import jaxte as te

_RNG = np.random.default_rng(0)
SEGMENTS = np.array([0, 0, 1, 2, 2, 2, 0], "int32")


def roi_align(x: te.Tensor, boxes: te.Tensor) -> te.Tensor:
    """Bilinear samples of an image within regions, at positions that are clipped."""
    n, m = x.shape

    def element(r: Any, p: Any, q: Any) -> Any:
        y = te.clip(boxes[r, 0] + (p + 0.5) * (boxes[r, 2] - boxes[r, 0]) / 3, 0, n - 1)
        z = te.clip(boxes[r, 1] + (q + 0.5) * (boxes[r, 3] - boxes[r, 1]) / 3, 0, m - 1)
        y0, z0 = te.cast(te.floor(y), "int32"), te.cast(te.floor(z), "int32")
        y1, z1 = te.minimum(y0 + 1, n - 1), te.minimum(z0 + 1, m - 1)
        dy, dz = y - y0, z - z0
        upper = x[y0, z0] * (1 - dz) + x[y0, z1] * dz
        return upper * (1 - dy) + (x[y1, z0] * (1 - dz) + x[y1, z1] * dz) * dy

    return te.compute((boxes.shape[0], 3, 3), element, "roi")


def perona_malik(u: te.Tensor) -> te.Tensor:
    """Two steps of nonlinear diffusion with edges held."""
    n, m = u.shape
    for _ in range(2):

        def element(i: Any, j: Any, u: te.Tensor = u) -> Any:
            here = total = u[i, j]
            for a, b in ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)):
                d = u[te.clip(a, 0, n - 1), te.clip(b, 0, m - 1)] - here
                total = total + 0.2 * d * te.exp(-d * d / 0.5)
            return total

        u = te.compute((n, m), element, "u")
    return u


def embedded_atoms(r: te.Tensor) -> te.Tensor:
    """Energies of atoms in the density of the others."""
    n = r.shape[0]
    k, j, others = te.reduce_axis((0, 3), "k"), te.reduce_axis((0, n), "j"), te.reduce_axis((0, n), "l")
    d2 = te.compute((n, n), lambda a, b: te.sum((r[a, k] - r[b, k]) * (r[a, k] - r[b, k]), axis=k), "d2")
    rho = te.compute((n,), lambda i: te.sum(te.exp(-te.sqrt(d2[i, j])), axis=j, where=j != i), "rho")

    def pair(i: Any) -> Any:
        d = te.sqrt(d2[i, others])
        return te.sum(te.exp(-2 * d) / d, axis=others, where=others != i)

    pairs = te.compute((n,), pair, "pairs")
    return te.compute((n,), lambda i: 0.5 * pairs[i] - te.sqrt(rho[i]), "energy")


def segment_softmax(x: te.Tensor, s: te.Tensor) -> te.Tensor:
    """Shares of elements within their segments."""
    n, k, other = x.shape[0], te.reduce_axis((0, x.shape[0]), "k"), te.reduce_axis((0, x.shape[0]), "l")
    top = te.compute((3,), lambda a: te.max(x[k], axis=k, where=s[k] == a), "top")
    e = te.compute((n,), lambda i: te.exp(x[i] - top[s[i]]), "e")
    total = te.compute((3,), lambda a: te.sum(e[other], axis=other, where=s[other] == a), "total")
    return te.compute((n,), lambda i: e[i] / total[s[i]], "p")


PROGRAMS: dict[str, tuple[Any, tuple[np.ndarray, ...]]] = {
    "roi_align": (
        roi_align,
        (_RNG.normal(size=(6, 7)), np.array([[0.3, 0.4, 4.2, 5.1], [1.1, -0.7, 6.3, 4.4]])),
    ),
    "perona_malik": (perona_malik, (_RNG.normal(size=(4, 5)),)),
    "embedded_atoms": (embedded_atoms, (_RNG.normal(size=(5, 3)),)),
    "segment_softmax": (segment_softmax, (_RNG.normal(size=7), SEGMENTS)),
}
