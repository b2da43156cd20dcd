"""Functions that other steps of planning and forms serve, of flat arrays, edges, long sums and choices by data: see ``mechanisms.py``."""

from __future__ import annotations

from collections.abc import Callable

import jaxte as te
from jaxte.tensors.tensor import Tensor
from tests.lower.mechanism_functions import summed

# --- elements that are read several times


def energies_enlarged(x: Tensor) -> Tensor:
    """The energy of an image of three times the size."""
    (n, m), (i, j) = x.shape, summed(i=3 * x.shape[0], j=3 * x.shape[1])
    u = te.compute((3 * n, 3 * m), lambda a, b: x[a // 3, b // 3], "enlarged")
    return te.compute((1,), lambda _: te.sum(u[i, j] ** 2, axis=[i, j]), "y")


def loudness_held(x: Tensor) -> Tensor:
    """How loud samples are that are held for three steps each."""
    (b, n), (k,) = x.shape, summed(k=3 * x.shape[1])
    u = te.compute((b, 3 * n), lambda i, a: x[i, a // 3], "held")
    return te.compute((b,), lambda i: te.sum(te.tanh(u[i, k]) ** 2, axis=k), "y")


def classes_enlarged(x: Tensor) -> Tensor:
    """A penalty on the scores of a map of classes, each of sixteen pixels."""
    (n, m, c), (i, j) = x.shape, summed(i=4 * x.shape[0], j=4 * x.shape[1])
    u = te.compute((4 * n, 4 * m, c), lambda a, b, c: x[a // 4, b // 4, c], "enlarged")
    return te.compute((c,), lambda o: te.sum(te.log1p(u[i, j, o] ** 2), axis=[i, j]), "y")


# --- flat arrays


def flat_images(x: Tensor, w: Tensor) -> Tensor:
    """Filtered images of 30 by 40, one behind the other."""
    p, q = summed(p=5, q=5)
    body = lambda b, i, j: te.sum(x[b * 1200 + (i + p) * 40 + j + q] * w[p, q], axis=[p, q])  # noqa: E731
    return te.compute((3, 26, 36), body, "y")


def flat_volume(x: Tensor, w: Tensor) -> Tensor:
    """A filtered volume of 12 by 16 by 20."""
    p, q, r = summed(p=3, q=3, r=3)
    at = lambda i, j, k: x[(i + p) * 320 + (j + q) * 20 + k + r]  # noqa: E731
    return te.compute((10, 14, 18), lambda i, j, k: te.sum(at(i, j, k) * w[p, q, r], axis=[p, q, r]), "y")


def interleaved_channels(x: Tensor, w: Tensor) -> Tensor:
    """A filter along time of sixteen channels, sample by sample."""
    (k,) = summed(k=9)
    return te.compute((192, 16), lambda t, c: te.tanh(te.sum(x[(t + k) * 16 + c] * w[k], axis=k)), "y")


# --- reads that are held at an end that a condition keeps them from


def causal(x: Tensor, w: Tensor) -> Tensor:
    """A filter of what came before, zero before the first."""
    (k,) = summed(k=w.shape[0])
    at = lambda b, t, c: te.select(t - k >= 0, x[b, te.maximum(t - k, 0), c], 0.0)  # noqa: E731
    return te.compute(x.shape, lambda b, t, c: te.tanh(te.sum(at(b, t, c) * w[k, c], axis=k)), "y")


def lagged(x: Tensor, w: Tensor) -> Tensor:
    """A regression on the last values of each series."""
    last, (k,) = x.shape[0] - 1, summed(k=w.shape[0])
    body = lambda t, c: te.sum(te.select(t >= k, x[te.clip(t - k, 0, last), c] * w[k], 0.0), axis=k)  # noqa: E731
    return te.compute(x.shape, body, "y")


def padded_filter(x: Tensor, w: Tensor) -> Tensor:
    """A filter over an image with zeros around it."""
    (n, m), (p, q) = x.shape, summed(p=3, q=3)

    def at(a: te.Expr, b: te.Expr) -> te.Expr:
        inside = (a >= 0) & (a < n) & (b >= 0) & (b < m)
        return te.select(inside, x[te.clip(a, 0, n - 1), te.clip(b, 0, m - 1)], 0.0)

    body = lambda i, j: te.relu(te.sum(at(i + p - 1, j + q - 1) * w[p, q], axis=[p, q]))  # noqa: E731
    return te.compute((n, m), body, "y")


# --- products of several arrays


def decomposition_error(t: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """How far a sum of outer products of three vectors is off."""
    (r,) = summed(r=a.shape[1])
    return te.compute(t.shape, lambda i, j, k: te.sum(a[i, r] * b[j, r] * c[k, r], axis=r) - t[i, j, k], "y")


def four_way_error(t: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    """The same of four vectors, squared."""
    (r,) = summed(r=a.shape[1])
    own = lambda i, j, k, n: te.sum(a[i, r] * b[j, r] * c[k, r] * d[n, r], axis=r)  # noqa: E731
    return te.compute(t.shape, lambda i, j, k, n: (own(i, j, k, n) - t[i, j, k, n]) ** 2, "y")


def components(t: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """How much of each component there is in an array."""
    i, j, k = summed(i=t.shape[0], j=t.shape[1], k=t.shape[2])
    body = lambda r: te.sum(t[i, j, k] * a[i, r] * b[j, r] * c[k, r], axis=[i, j, k])  # noqa: E731
    return te.compute((a.shape[1],), body, "y")


# --- long sums at a few shifts


def delays(x: Tensor, w: Tensor) -> Tensor:
    """How alike several channels are to a pattern of nearly their length, at each delay."""
    c, k = summed(c=x.shape[0], k=w.shape[1])
    body = lambda d: te.tanh(te.sum(x[c, d + k] * w[c, k], axis=[c, k]))  # noqa: E731
    return te.compute((x.shape[1] - w.shape[1] + 1,), body, "y")


def covariances(x: Tensor) -> Tensor:
    """Of each series with itself some steps later."""
    n, (t,) = x.shape[1] - 40, summed(t=x.shape[1] - 40)
    return te.compute((x.shape[0], 41), lambda b, d: te.sum(x[b, t] * x[b, t + d], axis=t) / n, "y")


def microphones(a: Tensor, b: Tensor) -> Tensor:
    """How much later a sound arrives at the second one of each pair."""
    (t,) = summed(t=a.shape[1])
    body = lambda p, d: te.exp(te.sum(a[p, t] * b[p, t + d], axis=t) / a.shape[1])  # noqa: E731
    return te.compute((a.shape[0], b.shape[1] - a.shape[1] + 1), body, "y")


# --- sums over what data choose for each row


def _chosen(x: Tensor, rows: int, where: Callable[[te.Axis, te.Axis], te.Expr]) -> Tensor:
    (i,) = summed(i=x.shape[0])
    return te.compute(
        (rows, x.shape[1]), lambda s, c: te.sum(te.tanh(x[i, c]), axis=i, where=where(i, s)), "y"
    )


def lately(x: Tensor, t: Tensor, now: Tensor) -> Tensor:
    """What happened within a time before each question."""
    return _chosen(x, now.shape[0], lambda i, s: (t[i] <= now[s]) & (t[i] > now[s] - 0.5))


def within_reach(x: Tensor, p: Tensor, q: Tensor) -> Tensor:
    """Sums over points of the plane that are near."""
    near = lambda i, s: (p[i, 0] - q[s, 0]) ** 2 + (p[i, 1] - q[s, 1]) ** 2 < 1.0  # noqa: E731
    return _chosen(x, q.shape[0], near)


def better_ranked(x: Tensor, rank: Tensor, bound: Tensor) -> Tensor:
    """Sums over those that rank above each bound."""
    return _chosen(x, bound.shape[0], lambda i, s: rank[i] > bound[s])
