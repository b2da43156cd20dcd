"""More functions of several fields that rules serve which were made for others: sums over windows, of volumes, extrema, recurrences."""

from __future__ import annotations

from typing import Any

import jaxte as te
from jaxte.tensors.tensor import Tensor
from tests.lower.mechanism_functions import summed

# --- masks in place of pads


def guided(x: Tensor, g: Tensor) -> Tensor:
    """Sequences smoothed where a second one is alike."""
    (k,) = summed(k=15)
    weight = lambda b, i: te.exp(-((g[b, i + k] - g[b, i + 7]) ** 2))  # noqa: E731
    return te.compute((6, 586), lambda b, i: te.sum(weight(b, i) * x[b, i + k], axis=k), "y")


def soft_ranks(x: Tensor) -> Tensor:
    """How many neighbours are brighter, about."""
    p, q = summed(p=5, q=5)
    more = lambda i, j: te.sigmoid(4 * (x[i + p, j + q] - x[i + 2, j + 2]))  # noqa: E731
    return te.compute((56, 60), lambda i, j: te.sum(more(i, j), axis=[p, q]), "r")


def shifted_means(x: Tensor) -> Tensor:
    """A step of the mean shift in a volume."""
    p, q, r = summed(p=3, q=3, r=3)
    near = lambda i, j, k: x[i + p, j + q, k + r]  # noqa: E731
    far = lambda *i: near(*i) - x[tuple(n + 1 for n in i)]  # noqa: E731
    return te.compute((14, 16, 18), lambda *i: te.sum(far(*i) * te.exp(-(far(*i) ** 2)), axis=[p, q, r]), "m")


# --- vectors in several dimensions


def pooled(x: Tensor, m: Tensor) -> Tensor:
    """Features of an image where a map says so."""
    i, j = summed(i=x.shape[0], j=x.shape[1])
    return te.compute((x.shape[2],), lambda c: te.sum(x[i, j, c] * m[i, j], axis=[i, j]), "y")


def moments(b: Tensor, rho: Tensor) -> Tensor:
    """Moments of a volume."""
    i, j, k = summed(i=rho.shape[0], j=rho.shape[1], k=rho.shape[2])
    return te.compute((b.shape[3],), lambda f: te.sum(b[i, j, k, f] * rho[i, j, k], axis=[i, j, k]), "m")


def weighted(x: Tensor, w: Tensor) -> Tensor:
    """Channels of images by weights of each image."""
    (c,) = summed(c=x.shape[1])
    shape = (x.shape[0], *x.shape[2:])
    return te.compute(shape, lambda b, i, j: te.sum(x[b, c, i, j] * w[b, c], axis=c), "y")


# --- convolutions, by image and of volumes


def spectrograms(x: Tensor, w: Tensor) -> Tensor:
    """Windows that are longer in time than in frequency."""
    c, p, q = summed(c=x.shape[1], p=w.shape[2], q=w.shape[3])
    shape = (x.shape[0], w.shape[0], x.shape[2] - w.shape[2] + 1, x.shape[3] - w.shape[3] + 1)
    return te.compute(
        shape, lambda b, o, t, f: te.sum(x[b, c, t + p, f + q] * w[o, c, p, q], axis=[c, p, q]), "y"
    )


def upright(x: Tensor, w: Tensor) -> Tensor:
    """Windows that are higher than wide, of kernels whose features come last."""
    c, p, q = summed(c=x.shape[1], p=w.shape[0], q=w.shape[1])
    shape = (x.shape[0], w.shape[3], x.shape[2] - w.shape[0] + 1, x.shape[3] - w.shape[1] + 1)
    return te.compute(
        shape, lambda b, o, i, j: te.sum(x[b, c, i + p, j + q] * w[p, q, c, o], axis=[c, p, q]), "y"
    )


def sparse_windows(x: Tensor, w: Tensor) -> Tensor:
    """Windows with holes, of frames, each after the other."""
    c, p, q = summed(c=x.shape[1], p=3, q=3)
    shape = (x.shape[0], w.shape[0], x.shape[2] - 6, x.shape[3] - 4)
    return te.compute(
        shape, lambda b, o, i, j: te.sum(x[b, c, i + 3 * p, j + 2 * q] * w[o, c, p, q], axis=[c, p, q]), "y"
    )


def video(x: Tensor, w: Tensor) -> Tensor:
    """Every other frame, of channels that come last."""
    c, r, p, q = summed(c=4, r=3, p=3, q=3)
    body = lambda b, t, i, j, o: x[b, 2 * t + r, i + p, j + q, c] * w[r, p, q, c, o]  # noqa: E731
    return te.compute((2, 4, 8, 8, 8), lambda *at: te.sum(body(*at), axis=[c, r, p, q]), "y")


def light_field(x: Tensor, w: Tensor) -> Tensor:
    """Four dimensions: two of directions, two of places."""
    p, q, r, s = summed(p=2, q=2, r=3, s=3)
    body = lambda o, u, v, i, j: x[u + p, v + q, i + r, j + s] * w[o, p, q, r, s]  # noqa: E731
    return te.compute((8, 3, 3, 8, 8), lambda *at: te.sum(body(*at), axis=[p, q, r, s]), "y")


def holes_in_a_volume(x: Tensor, w: Tensor) -> Tensor:
    c, r, p, q = summed(c=6, r=3, p=3, q=3)
    body = lambda b, o, t, i, j: x[b, c, t + 2 * r, i + 2 * p, j + 2 * q] * w[o, c, r, p, q]  # noqa: E731
    return te.compute((2, 8, 5, 8, 8), lambda *at: te.sum(body(*at), axis=[c, r, p, q]), "y")


# --- recurrences


def returns(r: Tensor) -> Tensor:
    """Discounted sums of what comes later."""
    (s,) = summed(s=r.shape[1])
    return te.compute(r.shape, lambda b, t: te.sum(0.97 ** (s - t) * r[b, s], axis=s, where=s >= t), "g")


def leaky(i: Tensor, rate: Tensor) -> Tensor:
    """Voltages of neurons that leak at one rate."""
    (s,) = summed(s=i.shape[0])
    weight = lambda t: te.exp(-te.abs(rate[0]) * (t - s))  # noqa: E731
    return te.compute(i.shape, lambda t, n: te.sum(weight(t) * i[s, n], axis=s, where=s <= t), "v")


def decayed(x: Tensor) -> Tensor:
    """A trace of squares by lags."""
    (s,) = summed(s=x.shape[0])
    return te.compute(x.shape, lambda t: te.sum(0.9**s * x[t - s] ** 2, axis=s, where=s <= t), "e")


# --- extrema of what is computed


def hausdorff(x: Tensor, y: Tensor) -> Tensor:
    """The farthest of the nearest."""
    i, j, c = summed(i=x.shape[0], j=y.shape[0], c=2)
    d = te.compute((x.shape[0], y.shape[0]), lambda i, j: te.sum((x[i, c] - y[j, c]) ** 2, axis=c), "d")
    near = te.compute((x.shape[0],), lambda i: te.min(d[i, j], axis=j), "near")
    return te.compute((), lambda: te.max(near[i], axis=i), "far")


def late_interaction(q: Tensor, d: Tensor) -> Tensor:
    """Each word's best match, summed."""
    i, j, e = summed(i=q.shape[0], j=d.shape[1], e=q.shape[1])
    s = te.compute(
        (d.shape[0], q.shape[0], d.shape[1]), lambda n, i, j: te.sum(q[i, e] * d[n, j, e], axis=e), "s"
    )
    best = te.compute(s.shape[:2], lambda n, i: te.max(s[n, i, j], axis=j), "best")
    return te.compute(d.shape[:1], lambda n: te.sum(best[n, i], axis=i), "y")


def lower_envelope(f: Tensor, a: Tensor) -> Tensor:
    """The least of parabolas of several widths."""
    (q,) = summed(q=f.shape[1])
    body = lambda r, p: f[r, q] + te.exp(a[q]) * te.cast((p - q) * (p - q), "float32")  # noqa: E731
    return te.compute(f.shape, lambda r, p: te.min(body(r, p), axis=q), "d")


# --- differences of pairs


def laplacian(w: Tensor, x: Tensor) -> Tensor:
    """What each point differs from the others by, weighted."""
    (j,) = summed(j=x.shape[0])
    return te.compute(x.shape, lambda i, c: te.sum(w[i, j] * (x[i, c] - x[j, c]), axis=j), "u")


def repelled(x: Tensor) -> Tensor:
    """Points that move away from those near them."""
    n, d = x.shape
    j, q = summed(j=n, q=d)
    k = te.compute((n, n), lambda i, j: te.exp(-te.sum((x[i, q] - x[j, q]) ** 2, axis=q)), "k")
    return te.compute((n, d), lambda i, c: te.sum(k[i, j] * (x[i, c] - x[j, c]), axis=j), "u")


def residuals(a: Tensor, x: Tensor, m: Tensor) -> Tensor:
    """Residuals to centres, weighted by their assignment."""
    (i,) = summed(i=x.shape[0])
    return te.compute(m.shape, lambda k, c: te.sum(a[i, k] * (x[i, c] - m[k, c]), axis=i), "v")


def saturating(a: Tensor, x: Tensor) -> Tensor:
    """Interactions of species that saturate."""
    (j,) = summed(j=x.shape[0])
    body = lambda i, c: te.sum(a[i, j] * x[j, c] / (9 + x[i, c] * x[j, c]), axis=j)  # noqa: E731
    return te.compute(x.shape, body, "g")


def intersections(h: Tensor, g: Tensor) -> Tensor:
    """What histograms have in common."""
    (k,) = summed(k=h.shape[1])
    shape = (h.shape[0], g.shape[0])
    return te.compute(shape, lambda i, j: te.sum(te.minimum(h[i, k], g[j, k]), axis=k), "s")


def canberra(x: Tensor, y: Tensor) -> Tensor:
    """Canberra distances."""
    (k,) = summed(k=x.shape[1])
    apart = lambda a, b: te.abs(a - b) / (1 + te.abs(a) + te.abs(b))  # noqa: E731
    shape = (x.shape[0], y.shape[0])
    return te.compute(shape, lambda i, j: te.sum(apart(x[i, k], y[j, k]), axis=k), "d")


def unions(x: Tensor) -> Tensor:
    """Sums over all subsets of each set, of several set functions."""
    (i,) = summed(i=x.shape[1])
    return te.compute(x.shape, lambda b, s: te.sum(x[b, i], axis=i, where=(s & i) == i), "z")


def parities(x: Tensor) -> Tensor:
    """The spectrum of functions of bits by the parities of all sets of bits (Walsh)."""
    (i,) = summed(i=x.shape[0])

    def sign(s: Any) -> Any:
        bits = s & i
        for shift in (4, 2, 1):
            bits = bits ^ (bits >> shift)
        return 1 - 2 * te.cast(bits & 1, "float32")

    return te.compute(x.shape, lambda s, c: te.sum(sign(s) * x[i, c], axis=i), "w")


def sierpinski(x: Tensor, y: Tensor) -> Tensor:
    """Products of functions of disjoint sets, by Pascal's triangle modulo two."""
    (i,) = summed(i=x.shape[0])
    return te.compute(x.shape, lambda s: te.sum(x[i] * y[i], axis=i, where=(s & i) == 0), "p")


# --- powers of products


def second_order(x: Tensor, v: Tensor) -> Tensor:
    """Interactions of all pairs of features, by latent vectors."""
    (f, g), (k,) = summed(f=x.shape[1], g=x.shape[1]), summed(k=v.shape[1])
    a = te.compute((x.shape[0], v.shape[1]), lambda n, k: te.sum(x[n, f] * v[f, k], axis=f), "a")
    b = te.compute((x.shape[0], v.shape[1]), lambda n, k: te.sum((x[n, g] * v[g, k]) ** 2, axis=g), "b")
    return te.compute((x.shape[0],), lambda n: 0.5 * te.sum(a[n, k] ** 2 - b[n, k], axis=k), "y")


def outer_energies(a: Tensor, b: Tensor) -> Tensor:
    """Energies of outer products."""
    i, j = summed(i=a.shape[1], j=b.shape[1])
    return te.compute((a.shape[0],), lambda n: te.sum((a[n, i] * b[n, j]) ** 2, axis=[i, j]), "y")


def demodulated(w: Tensor, s: Tensor) -> Tensor:
    """Norms of filters whose inputs are scaled for each image, as in StyleGAN2."""
    p, q, i = summed(p=w.shape[0], q=w.shape[1], i=w.shape[2])
    square = lambda b, o: te.sum((w[p, q, i, o] * s[b, i]) ** 2, axis=[p, q, i])  # noqa: E731
    return te.compute((s.shape[0], w.shape[3]), lambda b, o: te.rsqrt(square(b, o) + 1e-6), "d")


def joint_moments(x: Tensor, y: Tensor) -> Tensor:
    """Second moments of what two sides make together, for each point of time, weighted by one of them."""
    i, j = summed(i=x.shape[1], j=y.shape[1])
    return te.compute((x.shape[0],), lambda t: te.sum((x[t, i] * y[t, j]) ** 2 * y[t, j], axis=[i, j]), "m")


# --- exponentials up to each position


def partial_likelihood(x: Tensor, w: Tensor) -> Tensor:
    """Cox's regression: each event beside all that are still at risk."""
    k, i, j = summed(k=w.shape[0], i=x.shape[0], j=x.shape[0])
    eta = te.compute((x.shape[0],), lambda i: te.sum(x[i, k] * w[k], axis=k), "eta")
    risk = te.compute(eta.shape, lambda i: te.logsumexp(eta[j], axis=j, where=j >= i), "risk")
    return te.compute((), lambda: te.sum(risk[i] - eta[i], axis=i), "loss")


def listwise(s: Tensor) -> Tensor:
    """Plackett and Luce's likelihood of rankings."""
    i, j = summed(i=s.shape[1], j=s.shape[1])
    left = te.compute(s.shape, lambda b, i: te.logsumexp(s[b, j], axis=j, where=j >= i), "left")
    return te.compute((s.shape[0],), lambda b: te.sum(left[b, i] - s[b, i], axis=i), "loss")


def attention_free(k: Tensor, v: Tensor) -> Tensor:
    """Averages of all so far, by weights that each position has in each feature."""
    (s,) = summed(s=k.shape[0])
    total = te.compute(k.shape, lambda t, d: te.logsumexp(k[s, d], axis=s, where=s <= t), "total")
    return te.compute(
        k.shape, lambda t, d: te.sum(te.exp(k[s, d] - total[t, d]) * v[s, d], axis=s, where=s <= t), "y"
    )
