"""Functions of several fields that rules serve which were made for others: see ``mechanisms.py``."""

from __future__ import annotations

from typing import Any

import numpy as np

import jaxte as te
from jaxte.tensors.tensor import Tensor


def summed(**extents: int) -> list[te.Axis]:
    return [te.reduce_axis((0, extent), name) for name, extent in extents.items()]


# --- terms at residues


def haar(x: Tensor) -> Tensor:
    """Products of the details of a wavelet."""
    at = lambda b, i, j: x[b, 2 * i, 2 * j] + x[b, 2 * i + 1, 2 * j]  # noqa: E731
    other = lambda b, i, j: x[b, 2 * i, 2 * j + 1] - x[b, 2 * i + 1, 2 * j + 1]  # noqa: E731
    return te.compute((3, 16, 24), lambda b, i, j: at(b, i, j) * other(b, i, j), "y")


def gated_pairs(x: Tensor) -> Tensor:
    """A gated linear unit, a value beside its gate."""
    return te.compute((20, 32), lambda b, i: x[b, 2 * i] * te.sigmoid(x[b, 2 * i + 1]), "y")


def triples(x: Tensor) -> Tensor:
    """A polar form of three numbers each."""
    return te.compute((90,), lambda i: x[3 * i] * x[3 * i + 1] - te.sin(x[3 * i + 2]), "y")


# --- gathers laid out


def _floors(at: Tensor, name: str) -> Tensor:
    return te.compute(at.shape, lambda *i: te.cast(te.floor(at[i]), "int32"), name)


def warped(x: Tensor, at: Tensor, w: Tensor) -> Tensor:
    """Sequences of features, between positions, mixed."""
    first, (c,) = _floors(at, "first"), summed(c=x.shape[1])

    def sample(n: Any, c: Any, i: Any) -> Any:
        part = at[n, i] - te.floor(at[n, i])
        inside = lambda y: (y >= 0) & (y < x.shape[3])  # noqa: E731
        ends = [te.select(inside(first[n, i] + k), x[n, c, 0, first[n, i] + k], 0.0) for k in range(2)]
        return ends[0] * (1 - part) + ends[1] * part

    s = te.compute((*x.shape[:2], at.shape[1]), sample, "s")
    return te.compute(
        (x.shape[0], w.shape[1], at.shape[1]),
        lambda n, o, i: te.sum(te.tanh(s[n, c, i]) * w[c, o], axis=c),
        "y",
    )


def looked_up(x: Tensor, at: Tensor, w: Tensor) -> Tensor:
    """Features of other pixels, squashed, mixed."""
    (c,) = summed(c=x.shape[1])
    s = te.compute((*x.shape[:2], at.shape[1]), lambda n, c, i: te.tanh(x[n, c, at[n, i]]), "s")
    return te.compute(
        (x.shape[0], w.shape[0], at.shape[1]), lambda n, o, i: te.sum(w[o, c] * s[n, c, i], axis=c), "y"
    )


def picked(x: Tensor, rows: Tensor, columns: Tensor, w: Tensor) -> Tensor:
    """Pixels of images at pairs of positions."""
    (c,) = summed(c=x.shape[1])
    s = te.compute(
        (*x.shape[:2], rows.shape[1]), lambda n, c, i: te.sin(x[n, c, rows[n, i], columns[n, i]]), "s"
    )
    return te.compute(
        (x.shape[0], rows.shape[1], w.shape[1]), lambda n, i, o: te.sum(s[n, c, i] * w[c, o], axis=c), "y"
    )


# --- powers, choices and weights


def wind_power(v: Tensor) -> Tensor:
    """A power of a sum of squares."""
    (k,) = summed(k=6)
    return te.compute((40,), lambda i: te.sum(te.square(v[i, k]) + 0.1, axis=k) ** 0.75, "p")


def flow_rate(d: Tensor, s: Tensor) -> Tensor:
    return te.compute((30,), lambda i: (te.square(d[i]) + 1.0) ** 1.25 * te.sqrt(te.square(s[i]) + 1), "q")


def quarter_root(x: Tensor) -> Tensor:
    return te.compute((20, 9), lambda i, j: x[i, j] * (te.exp(x[i, j]) + 1) ** -0.25, "y")


def signed(x: Tensor, c: Tensor) -> Tensor:
    """Squares by the sign of a charge."""
    (k,) = summed(k=48)
    body = lambda i: te.select(c[i] > 0, x[i, k] * c[i], -x[i, k]) * x[i, k]  # noqa: E731
    return te.compute((60,), lambda i: te.sum(body(i), axis=k), "y")


def routed(q: Tensor, x: Tensor, g: Tensor) -> Tensor:
    """Scores with a gate for some rows."""
    (d,) = summed(d=32)
    body = lambda i, j: te.select(g[i] > 0, q[i, d] * x[j, d] * g[i], q[i, d] * x[j, d])  # noqa: E731
    return te.compute((60, 40), lambda i, j: te.sum(body(i, j), axis=d), "s")


def clipped(x: Tensor, w: Tensor, r: Tensor) -> Tensor:
    """Predictions that are held back by two rules."""
    (k,) = summed(k=40)
    body = lambda i: te.select(te.abs(r[i]) > 1, x[i, k] * w[k] * r[i], x[i, k] * w[k] * te.sin(r[i]))  # noqa: E731
    return te.compute((60,), lambda i: te.sum(body(i), axis=k), "y")


def mixed_rows(x: Tensor, y: Tensor, s: Tensor, t: Tensor, w: Tensor) -> Tensor:
    """Two rows in shares, times a third."""
    (k,) = summed(k=16)
    body = lambda e: w[e, 0] * x[s[e], k] * y[e, k] + w[e, 1] * x[t[e], k] * y[e, k]  # noqa: E731
    return te.compute((200,), lambda e: te.sum(body(e), axis=k), "z")


def barycentric(x: Tensor, y: Tensor, w: Tensor, at: Tensor) -> Tensor:
    """What the corners of triangles have, in shares, along a direction."""
    (k,) = summed(k=24)
    corner = lambda e, n: w[e, n] * x[at[n, e], k] * y[e, k]  # noqa: E731
    return te.compute((200,), lambda e: te.sum(corner(e, 0) + corner(e, 1) + corner(e, 2), axis=k), "z")


def attended(x: Tensor, at: Tensor, w: Tensor, q: Tensor) -> Tensor:
    """A score of a query with two rows, less than all of each."""
    (k,) = summed(k=8)
    body = lambda e: w[e, 0] * x[at[e, 0], k] * te.tanh(q[e, k]) - w[e, 1] * x[at[e, 1], k] * q[e, k]  # noqa: E731
    return te.compute((90,), lambda e: te.sum(body(e), axis=k), "s")


# --- rows at positions


def areas(v: Tensor, faces: Tensor) -> Tensor:
    """Twice the squared areas of triangles."""
    side = lambda f, c, n: v[faces[f, n], c] - v[faces[f, 0], c]  # noqa: E731
    across = lambda f, c, d: side(f, c, 1) * side(f, d, 2) - side(f, d, 1) * side(f, c, 2)  # noqa: E731
    return te.compute(
        (80,), lambda f: across(f, 0, 1) ** 2 + across(f, 1, 2) ** 2 + across(f, 2, 0) ** 2, "area"
    )


def springs(v: Tensor, edges: Tensor) -> Tensor:
    """Energies of springs, softer upwards."""
    along = lambda e, c: v[edges[e, 1], c] - v[edges[e, 0], c]  # noqa: E731
    return te.compute(
        (80,), lambda e: along(e, 0) ** 2 + along(e, 1) ** 2 + te.sqrt(1 + along(e, 2) ** 2), "energy"
    )


def planes(v: Tensor, at: Tensor, normal: Tensor) -> Tensor:
    """Products with each component of chosen points and with the next one."""
    turned = lambda i, c: v[at[i], c] * normal[i, c] - v[at[i], (c + 1) % 3] * normal[i, (c + 2) % 3]  # noqa: E731
    return te.compute((80, 3), turned, "y")


# --- products with slices


def polynomial(x: Tensor, w: Tensor) -> Tensor:
    """A layer of functions of its features."""
    (k,) = summed(k=8)
    of = lambda f, n, b, i, o: f(x[b, i, k]) * w[n, k, o]  # noqa: E731
    features = (lambda v: v, te.square, te.sin, te.cos)
    return te.compute(
        (4, 100, 64), lambda *at: te.sum(sum(of(f, n, *at) for n, f in enumerate(features)), axis=k), "y"
    )


def three_inputs(x: Tensor, h: Tensor, z: Tensor, w: Tensor) -> Tensor:
    """A gate of three inputs."""
    (k,) = summed(k=16)
    parts = lambda i, o: x[i, k] * w[0, k, o] + h[i, k] * w[1, k, o] + z[i, k] * w[2, k, o]  # noqa: E731
    g = te.compute((200, 64), lambda i, o: te.sum(parts(i, o), axis=k), "g")
    return te.compute(g.shape, lambda i, o: te.tanh(g[i, o]), "y")


def of_differences(x: Tensor, w: Tensor) -> Tensor:
    """A layer of a sequence, its slopes and its bends."""
    (k,) = summed(k=20)
    slope = te.compute((298, 20), lambda i, c: te.abs(x[i + 1, c] - x[i, c]), "slope")
    bend = te.compute((298, 20), lambda i, c: te.abs(x[i + 2, c] - 2 * x[i + 1, c] + x[i, c]), "bend")
    parts = lambda i, o: x[i, k] * w[0, k, o] + slope[i, k] * w[1, k, o] + bend[i, k] * w[2, k, o]  # noqa: E731
    return te.compute((298, 96), lambda i, o: te.sum(parts(i, o), axis=k), "y")


# --- rotations


def cyclic_windows(x: Tensor) -> Tensor:
    """Windows of 5 x 4 of an image that goes around."""
    return te.compute(
        (2, 20, 20, 3),
        lambda b, a, t, c: x[b, (a // 5 * 5 + t // 4 + 2) % 20, (a % 5 * 4 + t % 4 + 1) % 20, c],
        "y",
    )


def blocks_of_a_torus(x: Tensor) -> Tensor:
    """Blocks of 6 x 6 x 2 of a periodic volume."""
    at = lambda a, t: ((a // 2 * 6 + t // 12 + 1) % 12, (a % 2 * 6 + t // 2 % 6 + 1) % 12)  # noqa: E731
    return te.compute((4, 72, 3), lambda a, t, z: x[(*at(a, t), 2 * z + t % 2)], "y")


def mirrored_windows(x: Tensor) -> Tensor:
    """Windows of 7 x 7, counted from the other end."""
    return te.compute(
        (16, 49), lambda a, t: x[(a // 4 * 7 + t // 7 - 3) % 28, (3 - a % 4 * 7 - t % 7) % 28], "y"
    )


# --- frames


def filter_bank(x: Tensor, w: Tensor) -> Tensor:
    """192 filters of 64 taps for each of several channels."""
    (t,) = summed(t=64)
    return te.compute((2, 3, 15, 192), lambda b, e, i, o: te.sum(x[b, e, 32 * i + t] * w[t, o], axis=t), "y")


def seasons(x: Tensor, w: Tensor) -> Tensor:
    """What weeks of hours say of each station, a day apart."""
    (t,) = summed(t=168)
    return te.compute((20, 5, 64), lambda i, s, o: te.sum(x[24 * i + t, s] * w[t, o], axis=t), "y")


def cosines(x: Tensor, w: Tensor) -> Tensor:
    """A lapped transform of several sensors."""
    (t,) = summed(t=128)
    return te.compute((6, 29, 48), lambda n, i, f: te.sum(x[32 * i + t, n] * w[f, t], axis=t), "y")


# --- products multiplied out


def relative_values(p: Tensor, v: Tensor, r: Tensor) -> Tensor:
    """Weighted sums of values and of what distances add to them."""
    (j,) = summed(j=40)
    return te.compute(
        (3, 40, 16), lambda b, i, d: te.sum(p[b, i, j] * (v[b, j, d] + r[i - j + 39, d]), axis=j), "o"
    )


def additive(a: Tensor, b: Tensor, w: Tensor) -> Tensor:
    """Scores of sums of two vectors."""
    (d,) = summed(d=12)
    return te.compute((50, 40), lambda i, j: te.sum(w[d] * (a[i, d] + b[j, d]), axis=d), "s")


def rows_and_columns(q: Tensor, row: Tensor, column: Tensor) -> Tensor:
    """Scores of an image by distances of rows and of columns."""
    (d,) = summed(d=16)
    body = lambda y, x, u, v: te.sum(q[y, x, d] * (row[y - u + 7, d] + column[x - v + 7, d]), axis=d)  # noqa: E731
    return te.compute((8, 8, 8, 8), body, "s")


# --- sums over copies with continued ends


def _reflected(i: Any, n: int) -> Any:
    return (n - 1) - te.abs((n - 1) - te.abs(i))


def derivative(x: Tensor, g: Tensor, h: Tensor) -> Tensor:
    """A derivative of a smoothed image, mirrored at its edges."""
    p, q = summed(p=7, q=7)
    at = lambda i, j: (_reflected(i + p - 3, 24), _reflected(j + q - 3, 20))  # noqa: E731
    body = lambda i, j: te.sum(g[p] * h[q] * x[at(i, j)], axis=[p, q])  # noqa: E731
    return te.compute((24, 20), body, "y")


def smoothed_volume(x: Tensor, g: Tensor) -> Tensor:
    """A volume smoothed along all axes, mirrored at its ends."""
    p, q, r = summed(p=3, q=3, r=3)
    at = lambda *i: tuple(_reflected(k, 8) for k in i)  # noqa: E731
    body = lambda i, j, k: te.sum(g[p] * g[q] * g[r] * x[at(i + p - 1, j + q - 1, k + r - 1)], axis=[p, q, r])  # noqa: E731
    return te.compute((8, 8, 8), body, "y")


def smoothed_frames(x: Tensor, g: Tensor) -> Tensor:
    """Sequences smoothed in time and over mirrored bands."""
    p, q = summed(p=9, q=9)
    body = lambda b, t, f: te.sum(g[p] * g[q] * x[b, t + p, _reflected(f + q - 4, 30)], axis=[p, q])  # noqa: E731
    return te.compute((2, 16, 30), body, "y")


# --- tiles


def _scores(q: Tensor, x: Tensor) -> Tensor:
    heads, n, d = q.shape
    (e,) = summed(e=d)
    return te.compute(
        (heads, n, x.shape[1] - n + 1), lambda h, i, k: te.sum(q[h, i, e] * x[h, i + k, e], axis=e), "s"
    )


def _averaged(p: Tensor, y: Tensor) -> Tensor:
    (k,) = summed(k=p.shape[2])
    return te.compute(
        (*p.shape[:2], y.shape[2]), lambda h, i, d: te.sum(p[h, i, k] * y[h, i + k, d], axis=k), "o"
    )


def gates(q: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Weights that are no softmax."""
    s = _scores(q, x)
    return _averaged(te.compute(s.shape, lambda h, i, k: te.sigmoid(s[h, i, k]), "p"), y)


def recent(q: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Attention that leaves out what was before the beginning."""
    s = _scores(q, x)
    held = te.compute(s.shape, lambda h, i, k: te.select(i + k >= 5, s[h, i, k], -1e9), "held")
    return _averaged(te.ops.softmax(held), y)


def every_other(q: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Weights of some distances only."""
    s = _scores(q, x)
    chosen = lambda h, i, k: te.select(k % 3 != 1, te.cos(s[h, i, k]) + 2.0, 0.5)  # noqa: E731
    return _averaged(te.compute(s.shape, chosen, "p"), y)


def local_kernel(x: Tensor, z: Tensor, h: Tensor) -> Tensor:
    """A kernel of what is near in a sequence."""
    (k,) = summed(k=32)
    d = te.compute((64, 32), lambda i, k: te.exp(-((x[i] - z[i + k]) ** 2)), "d")
    return te.compute((64,), lambda i: te.sum(d[i, k] * h[i + k], axis=k), "y")


def robust_distances(x: Tensor, z: Tensor) -> Tensor:
    """Distances of two curves, point by point within a window."""
    (k,) = summed(k=24)
    far = lambda i, k: (x[i, 0] - z[i + k, 0]) ** 2 + (x[i, 1] - z[i + k, 1]) ** 2  # noqa: E731
    d = te.compute((60, 24), lambda i, k: te.log(1 + far(i, k)), "d")
    return te.compute((60,), lambda i: te.sum(d[i, k] * d[i, k], axis=k), "y")


# --- bands


def dilated_scores(q: Tensor, x: Tensor) -> Tensor:
    (e,) = summed(e=16)
    return te.compute((2, 128, 48), lambda h, i, k: te.sum(q[h, i, e] * x[h, i + 2 * k, e], axis=e), "s")


def dilated_sums(p: Tensor, x: Tensor) -> Tensor:
    (k,) = summed(k=48)
    return te.compute((128, 16), lambda i, d: te.sum(p[i, k] * x[i + 3 * k, d], axis=k), "o")


def stepped_scores(q: Tensor, x: Tensor) -> Tensor:
    """Windows that move by three and look at every other column."""
    (e,) = summed(e=32)
    return te.compute((100, 48), lambda i, k: te.sum(q[i, e] * x[3 * i + 2 * k, e], axis=e), "s")


def neighbours(q: Tensor, x: Tensor) -> Tensor:
    """Scores of an image with what is around each pixel."""
    (e,) = summed(e=16)
    return te.compute((16, 16, 5, 7), lambda i, j, p, r: te.sum(q[i, j, e] * x[i + p, j + r, e], axis=e), "s")


def strided_neighbours(q: Tensor, x: Tensor) -> Tensor:
    """Scores of a coarse image with what is around each pixel in a finer one."""
    (e,) = summed(e=16)
    body = lambda i, j, p, r: te.sum(q[i, j, e] * x[2 * i + p, j + r, e], axis=e)  # noqa: E731
    return te.compute((20, 24, 6, 9), body, "s")


def around_in_time(q: Tensor, x: Tensor) -> Tensor:
    """Scores of a film with what comes after each pixel, in several heads."""
    (e,) = summed(e=16)
    return te.compute(
        (2, 16, 20, 5, 9), lambda h, t, j, p, r: te.sum(q[h, t, j, e] * x[h, t + p, j + r, e], axis=e), "s"
    )


# --- every so many elements, held at the ends


def halved(x: Tensor) -> Tensor:
    return te.compute((16, 5), lambda i, c: x[te.clip(2 * i - 1, 0, 29), c], "y")


def thirds(x: Tensor) -> Tensor:
    return te.compute((11,), lambda i: te.sin(x[te.minimum(3 * i + 1, 29)]), "y")


def backwards(x: Tensor) -> Tensor:
    return te.compute((2, 18), lambda b, i: x[b, te.clip(33 - 2 * i, 0, 32)] * 2, "y")


# --- slopes of pairs


def ranked(s: Tensor, y: Tensor) -> Tensor:
    """Logistic losses of pairs in the wrong order."""
    i, j = summed(i=s.shape[1], j=s.shape[1])
    wrong = lambda b: te.logical_and(j < i, y[b, i] > y[b, j])  # noqa: E731
    loss = lambda b: te.select(wrong(b), te.log1p(te.exp(s[b, j] - s[b, i])), 0.0)  # noqa: E731
    return te.compute((s.shape[0],), lambda b: te.sum(loss(b), axis=(i, j)), "l")


def heard(x: Tensor, y: Tensor, loud: Tensor) -> Tensor:
    """What is heard at places of sources along a line."""
    (j,) = summed(j=y.shape[0])
    return te.compute(
        x.shape, lambda i: te.sum(loud[j] * te.exp(-((x[i] - y[j]) ** 2) * 0.5), axis=j), "heard"
    )


def coupled(x: Tensor) -> Tensor:
    """The free energy of units in pairs."""
    i, j = summed(i=x.shape[1], j=x.shape[1])
    body = lambda b: te.log(1 + te.exp(x[b, i] * x[b, j]))  # noqa: E731
    return te.compute((x.shape[0],), lambda b: te.sum(body(b), axis=(i, j), where=i < j), "f")


# --- functions of positions


def harmonics(a: Tensor) -> Tensor:
    """A signal of amplitudes at multiples of a frequency."""
    (f,) = summed(f=a.shape[1])
    return te.compute((a.shape[0], 96), lambda b, t: te.sum(a[b, f] * te.cos(0.01 * f * t), axis=f), "y")


def turned(x: Tensor) -> Tensor:
    """Pairs of features, turned by angles that grow with the position."""
    angle = lambda t, c: te.cast(t, "float32") / te.power(100.0, te.cast(c, "float32") / 64)  # noqa: E731
    return te.compute(
        (*x.shape[:2], 64), lambda b, t, c: x[b, t, c] * te.cos(angle(t, c)) + x[b, t, c + 64], "y"
    )


def lapped(x: Tensor) -> Tensor:
    """Blocks of a signal by cosines of twice their length."""
    t = te.reduce_axis((0, 128), "t")
    basis = te.compute((128, 64), lambda t, k: te.cos((np.pi / 64) * (t + 32.5) * (k + 0.5)), "basis")
    return te.compute((15, 64), lambda i, k: te.sum(x[64 * i + t] * basis[t, k], axis=t), "y")
