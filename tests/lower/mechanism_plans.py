"""Functions of several fields that steps of planning and forms serve which change few of the suite and the corpus: see ``mechanisms.py``."""

from __future__ import annotations

from typing import Any

import jaxte as te
from jaxte.tensors.tensor import Tensor
from tests.lower.mechanism_functions import summed

# --- matrices of pairs of which a few diagonals are read


def novelty(x: Tensor) -> Tensor:
    """How alike the frames of a recording are to the next ones."""
    n, (c, k) = x.shape[0], summed(c=x.shape[1], k=8)
    alike = te.compute(
        (n, n), lambda i, j: te.exp(-te.sum((x[i, c] - x[j, c]) ** 2, axis=c) / x.shape[1]), "alike"
    )
    return te.compute((n - 8,), lambda i: te.sum(alike[i, i + k + 1], axis=k), "y")


def bond_angles(x: Tensor) -> Tensor:
    """Angles along a chain by the distances of its atoms."""
    n, (c,) = x.shape[0], summed(c=3)
    d = te.compute((n, n), lambda i, j: te.sqrt(te.sum((x[i, c] - x[j, c]) ** 2, axis=c) + 0.01), "distance")

    def cosine(i: te.Axis) -> te.Expr:
        a, b = d[i, i + 1], d[i + 1, i + 2]
        return (a**2 + b**2 - d[i, i + 2] ** 2) / (a * b)

    return te.compute((n - 2,), cosine, "y")


def walks(x: Tensor) -> Tensor:
    """Words that follow each other are alike."""
    n, (c, j) = x.shape[0], summed(c=x.shape[1], j=x.shape[0])
    score = lambda i: te.sum(x[i, c] * x[j, c], axis=c)  # noqa: E731
    return te.compute((n,), lambda i: te.sum(te.softplus(-score(i)), axis=j, where=te.abs(i - j) <= 3), "y")


# --- sums of which a part is read


def thinned(x: Tensor, w: Tensor) -> Tensor:
    """Every fourth element of what a filter gives."""
    b, n, (k,) = x.shape[0], x.shape[1] - 32, summed(k=33)
    y = te.compute((b, n), lambda i, t: te.sum(x[i, t + k] * w[k], axis=k), "filtered")
    return te.compute((b, n // 4), lambda i, t: te.tanh(y[i, 4 * t]), "y")


def matched(a: Tensor, b: Tensor) -> Tensor:
    """Scores of pairs that belong together, of a matrix of all pairs."""
    n, (c,) = a.shape[0], summed(c=a.shape[1])
    s = te.compute((n, n), lambda i, j: te.sum(a[i, c] * b[j, c], axis=c), "s")
    return te.compute((n,), lambda i: te.softplus(-s[i, i]), "y")


def pyramid(x: Tensor, w: Tensor) -> Tensor:
    """An image of half the size."""
    p, q = summed(p=5, q=5)
    y = te.compute((2, 60, 60), lambda b, i, j: te.sum(x[b, i + p, j + q] * w[p, q], axis=[p, q]), "blurred")
    return te.compute((2, 30, 30), lambda b, i, j: y[b, 2 * i, 2 * j], "y")


# --- sums that equations with data decide


def one_hot_rows(e: Tensor, t: Tensor) -> Tensor:
    (k,) = summed(k=e.shape[0])
    one = lambda i: te.cast(t[i] == k, "float32")  # noqa: E731
    return te.compute((t.shape[0], e.shape[1]), lambda i, c: te.sum(one(i) * e[k, c], axis=k), "y")


def losses_of_labels(x: Tensor, t: Tensor) -> Tensor:
    (k,) = summed(k=x.shape[1])
    own = lambda i: te.sum(te.select(k == t[i], x[i, k], 0.0), axis=k)  # noqa: E731
    return te.compute((t.shape[0],), lambda i: te.logsumexp(x[i, k], axis=k) - own(i), "y")


def sums_of_classes(x: Tensor, t: Tensor) -> Tensor:
    (i,) = summed(i=x.shape[0])
    return te.compute(
        (30, x.shape[1]), lambda k, c: te.sum(te.select(t[i] == k, te.tanh(x[i, c]), 0.0), axis=i), "y"
    )


# --- functions of the elements of windows


def envelopes(x: Tensor) -> Tensor:
    (k,) = summed(k=64)
    n = x.shape[1] - 63
    return te.compute((x.shape[0], n), lambda b, t: te.max(te.abs(te.tanh(x[b, t + k])), axis=k), "y")


def dilated(x: Tensor) -> Tensor:
    p, q = summed(p=9, q=9)
    n, m = x.shape[0] - 8, x.shape[1] - 8
    return te.compute((n, m), lambda i, j: te.max(te.exp(x[i + p, j + q]), axis=[p, q]), "y")


def below_the_peak(x: Tensor) -> Tensor:
    (k,) = summed(k=100)
    shape = (x.shape[0], x.shape[1] - 99)
    peak = te.compute(shape, lambda b, t: te.max(te.log(1 + x[b, t + k] ** 2), axis=k), "peak")
    return te.compute(shape, lambda b, t: peak[b, t] - x[b, t + 99], "y")


# --- rows of tables, and matrices of a table


def kinds(e: Tensor, w: Tensor, t: Tensor) -> Tensor:
    """Features of atoms by their kind, through a layer."""
    (c,) = summed(c=e.shape[1])
    return te.compute(
        (t.shape[0], w.shape[1]), lambda i, o: te.tanh(te.sum(e[t[i], c] * w[c, o], axis=c)), "y"
    )


def unigrams(e: Tensor, t: Tensor, v: Tensor) -> Tensor:
    (c,) = summed(c=e.shape[1])
    return te.compute(t.shape, lambda i, j: te.sum(te.tanh(e[t[i, j], c]) * v[c], axis=c), "y")


def energies_of_codes(e: Tensor, t: Tensor) -> Tensor:
    (c,) = summed(c=e.shape[1])
    return te.compute(t.shape, lambda i: te.sum(e[t[i], c] ** 2, axis=c), "y")


def relations(x: Tensor, w: Tensor, t: Tensor) -> Tensor:
    """Messages by the kind of an edge."""
    (c,) = summed(c=x.shape[1])
    return te.compute((x.shape[0], w.shape[2]), lambda i, o: te.sum(x[i, c] * w[t[i], c, o], axis=c), "y")


def species(x: Tensor, w: Tensor, t: Tensor) -> Tensor:
    (c,) = summed(c=x.shape[2])
    body = lambda i, j, o: te.tanh(te.sum(x[i, j, c] * w[t[i, j], c, o], axis=c))  # noqa: E731
    return te.compute((*x.shape[:2], w.shape[2]), body, "y")


def tasks(x: Tensor, w: Tensor, b: Tensor, t: Tensor) -> Tensor:
    (c,) = summed(c=x.shape[1])
    body = lambda i, o: te.sum(x[i, c] * w[t[i], c, o], axis=c) + b[t[i], o]  # noqa: E731
    return te.compute((x.shape[0], w.shape[2]), body, "y")


# --- factors at positions that wrap


def musical_keys(x: Tensor, w: Tensor) -> Tensor:
    """How well the tones of a piece fit the profiles of all keys."""
    (k,) = summed(k=12)
    body = lambda t, j, o: te.sum(x[t, k] * w[(k - j) % 12, o], axis=k)  # noqa: E731
    return te.compute((x.shape[0], 12, w.shape[1]), body, "y")


def tariffs(load: Tensor, price: Tensor) -> Tensor:
    """What each day costs where it begins some hours later."""
    (h,) = summed(h=24)
    return te.compute(load.shape, lambda d, s: te.sum(load[d, h] * price[(h + s) % 24], axis=h), "y")


def rings(x: Tensor, w: Tensor) -> Tensor:
    """Molecules of six atoms in a ring, which know how far apart they are."""
    (k,) = summed(k=6)
    body = lambda n, p, c: te.tanh(te.sum(x[n, k, c] * w[(p - k) % 6], axis=k))  # noqa: E731
    return te.compute(x.shape, body, "y")


# --- weights that one number decides


def memories(x: Tensor, s: Tensor) -> Tensor:
    """A sequence as it is remembered at several rates."""
    n, (k,) = x.shape[0], summed(k=x.shape[0])
    body = lambda h, i: te.sum(te.exp(-(s[h] ** 2) * te.abs(i - k)) * x[k], axis=k)  # noqa: E731
    return te.compute((s.shape[0], n), body, "y")


def excitations(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Rates of events, each of which makes later ones of its kind likelier for a time."""
    n, (k,) = x.shape[0], summed(k=x.shape[0])

    def rate(t: te.Axis, u: te.Axis) -> te.Expr:
        after = te.exp(-(b[u] ** 2) * (t - k)) * x[k, u] ** 2 * a[u] ** 2
        return te.log(1 + te.sum(after, axis=k, where=k < t))

    return te.compute((n, x.shape[1]), rate, "y")


def interference(x: Tensor, s: Tensor) -> Tensor:
    """The energy of waves from sources along a line."""
    i, k = summed(i=x.shape[0], k=x.shape[0])
    return te.compute((1,), lambda _: te.sum(te.cos(s[0] * (i - k)) * x[i] * x[k], axis=[i, k]), "y")


# --- weights of a convolution under conditions on its taps


def _taps(x: Tensor, w: Tensor, where: Any) -> Tensor:
    p, q, c = summed(p=w.shape[0], q=w.shape[1], c=w.shape[2])
    shape = (x.shape[0], x.shape[1] - w.shape[0] + 1, x.shape[2] - w.shape[1] + 1, w.shape[3])
    body = lambda b, i, j, o: te.sum(  # noqa: E731
        x[b, i + p, j + q, c] * w[p, q, c, o], axis=[p, q, c], where=where(p, q)
    )
    return te.compute(shape, body, "y")


def earlier_pixels(x: Tensor, w: Tensor) -> Tensor:
    return _taps(x, w, lambda p, q: 5 * p + q < 12)


def upper_taps(x: Tensor, w: Tensor) -> Tensor:
    return _taps(x, w, lambda p, q: p <= q)


def hexagons(x: Tensor, w: Tensor) -> Tensor:
    return _taps(x, w, lambda p, q: te.abs(p - q) <= 2)


# --- loops of Python


def relaxed(x: Tensor) -> Tensor:
    n = x.shape[0]
    for s in range(48):
        x = te.compute((n,), lambda i, x=x: 0.5 * x[i] + 0.25 * (x[(i + 1) % n] + x[(i - 1) % n]), f"x{s}")
    return x


def recurrent(h: Tensor, w: Tensor) -> Tensor:
    (k,) = summed(k=h.shape[0])
    for s in range(24):
        h = te.compute(h.shape, lambda i, h=h: te.tanh(te.sum(w[i, k] * h[k], axis=k)), f"h{s}")
    return h


def pendulums(q: Tensor, p: Tensor) -> Tensor:
    for s in range(24):
        p = te.compute(q.shape, lambda i, q=q, p=p: p[i] - 0.1 * te.sin(q[i]), f"p{s}")
        q = te.compute(q.shape, lambda i, q=q, p=p: q[i] + 0.1 * p[i], f"q{s}")
    return q


# --- edges that are held


def causal(x: Tensor, w: Tensor) -> Tensor:
    (k,) = summed(k=w.shape[0])
    past = lambda b, t, c: te.select(t - k >= 0, x[b, te.maximum(t - k, 0), c], 0.0)  # noqa: E731
    return te.compute(x.shape, lambda b, t, c: te.tanh(te.sum(past(b, t, c) * w[k, c], axis=k)), "y")


# --- convolutions of groups


def grouped(x: Tensor, w: Tensor) -> Tensor:
    p, q, c = summed(p=3, q=3, c=8)
    body = lambda b, i, j, o: te.sum(x[b, i + p, j + q, o // 8 * 8 + c] * w[p, q, c, o], axis=[p, q, c])  # noqa: E731
    return te.compute((x.shape[0], x.shape[1] - 2, x.shape[2] - 2, w.shape[3]), body, "y")


def own_kernels(x: Tensor, w: Tensor) -> Tensor:
    """Kernels that each image has for itself."""
    p, q, c = summed(p=5, q=5, c=x.shape[3])
    body = lambda b, i, j, o: te.sum(x[b, i + p, j + q, c] * w[b, p, q, c, o], axis=[p, q, c])  # noqa: E731
    return te.compute((x.shape[0], x.shape[1] - 4, x.shape[2] - 4, w.shape[4]), body, "y")


def voices(x: Tensor, w: Tensor) -> Tensor:
    """Filters of several channels that each speaker has for itself."""
    k, c = summed(k=w.shape[1], c=x.shape[2])
    shape = (x.shape[0], x.shape[1] - w.shape[1] + 1, w.shape[3])
    return te.compute(shape, lambda b, t, o: te.sum(x[b, t + k, c] * w[b, k, c, o], axis=[k, c]), "y")


def grouped_volumes(x: Tensor, w: Tensor) -> Tensor:
    p, q, r, c = summed(p=3, q=3, r=3, c=4)
    at = lambda b, i, j, k, o: x[b, i + p, j + q, k + r, o // 4 * 4 + c] * w[p, q, r, c, o]  # noqa: E731
    shape = (x.shape[0], *(n - 2 for n in x.shape[1:4]), w.shape[4])
    return te.compute(shape, lambda *i: te.sum(at(*i), axis=[p, q, r, c]), "y")


def own_volumes(x: Tensor, w: Tensor) -> Tensor:
    p, q, r, c = summed(p=3, q=3, r=3, c=4)
    at = lambda b, i, j, k, o: x[b, i + p, j + q, k + r, c] * w[b, p, q, r, c, o]  # noqa: E731
    shape = (x.shape[0], *(n - 2 for n in x.shape[1:4]), w.shape[5])
    return te.compute(shape, lambda *i: te.sum(at(*i), axis=[p, q, r, c]), "y")


def grouped_films(x: Tensor, w: Tensor) -> Tensor:
    """Two frames and five times three pixels, in groups of four features."""
    p, q, r, c = summed(p=2, q=5, r=3, c=4)
    at = lambda b, i, j, k, o: x[b, i + p, j + q, k + r, o // 4 * 4 + c] * w[p, q, r, c, o]  # noqa: E731
    shape = (x.shape[0], x.shape[1] - 1, x.shape[2] - 4, x.shape[3] - 2, w.shape[4])
    return te.compute(shape, lambda *i: te.sum(at(*i), axis=[p, q, r, c]), "y")


# --- prefixes of extrema and products, and long filters


def records(x: Tensor) -> Tensor:
    (k,) = summed(k=x.shape[0])
    return te.compute(x.shape, lambda i, c: te.max(x[k, c], axis=k, where=k <= i), "y")


def growth(x: Tensor) -> Tensor:
    (k,) = summed(k=x.shape[1])
    return te.compute(x.shape, lambda c, i: te.prod(1 + 0.01 * x[c, k], axis=k, where=k <= i), "y")


def lows_ahead(x: Tensor) -> Tensor:
    (k,) = summed(k=x.shape[1])
    return te.compute(x.shape, lambda c, i: te.min(x[c, k], axis=k, where=k >= i), "y")


def reverb(x: Tensor, w: Tensor) -> Tensor:
    (k,) = summed(k=w.shape[0])
    n = x.shape[1] - w.shape[0] + 1
    return te.compute((x.shape[0], n), lambda b, t: te.sum(x[b, t + k] * w[k], axis=k), "y")


def point_spread(x: Tensor, w: Tensor) -> Tensor:
    p, q = summed(p=w.shape[0], q=w.shape[1])
    shape = (x.shape[0], *(n - m + 1 for n, m in zip(x.shape[1:], w.shape, strict=True)))
    return te.compute(shape, lambda b, i, j: te.sum(x[b, i + p, j + q] * w[p, q], axis=[p, q]), "y")


def lags(x: Tensor, w: Tensor) -> Tensor:
    (k,) = summed(k=w.shape[0])
    return te.compute((x.shape[0] - w.shape[0] + 1,), lambda t: te.sum(x[t + k] * w[k], axis=k), "y")


# --- maxima of long windows that are no functions


def highest(x: Tensor) -> Tensor:
    (k,) = summed(k=101)
    return te.compute((x.shape[0], x.shape[1] - 100), lambda b, i: te.max(x[b, i + k], axis=k), "y")


def eroded(x: Tensor) -> Tensor:
    (k,) = summed(k=80)
    return te.compute((x.shape[0], x.shape[1] - 79), lambda b, i: te.min(x[b, i + k], axis=k), "y")


def ranges(x: Tensor) -> Tensor:
    (k,) = summed(k=90)
    at = lambda b, i: x[b, i + k]  # noqa: E731
    shape = (x.shape[0], x.shape[1] - 89)
    return te.compute(shape, lambda b, i: te.max(at(b, i), axis=k) - te.min(at(b, i), axis=k), "y")


# --- windows over positions of which the digits are read


def hours_of_days(x: Tensor, w: Tensor) -> Tensor:
    """A filter along hours, of features of days."""
    k, c = summed(k=w.shape[0], c=x.shape[1])
    n, h = x.shape[0], x.shape[2]
    at = lambda t, o: x[(t + k) // h, c, (t + k) % h] * w[k, c, o]  # noqa: E731
    return te.compute((n * h - w.shape[0] + 1, w.shape[2]), lambda t, o: te.sum(at(t, o), axis=[k, c]), "y")


def blocks_of_pixels(x: Tensor, w: Tensor) -> Tensor:
    """A convolution of an image whose pixels are features of blocks of 2 x 2, as after a pixel shuffle."""
    p, q, c = summed(p=3, q=3, c=w.shape[2])
    n, m, features = x.shape[1], x.shape[2], w.shape[2]

    def element(b: te.Axis, i: te.Axis, j: te.Axis, o: te.Axis) -> te.Expr:
        u, v = i + p, j + q
        read = x[b, u // 2, v // 2, (u % 2 * 2 + v % 2) * features + c]
        return te.sum(read * w[p, q, c, o], axis=[p, q, c])

    return te.compute((x.shape[0], 2 * n - 2, 2 * m - 2, w.shape[3]), element, "y")


def tiled_image(x: Tensor) -> Tensor:
    """Smoothed differences of an image that is stored in tiles."""
    p, q = summed(p=3, q=3)
    n, m, h, w = x.shape
    at = lambda i, j: x[i // h, j // w, i % h, j % w]  # noqa: E731
    shape = n * h - 2, m * w - 2
    return te.compute(shape, lambda i, j: te.sum(te.tanh(at(i + p, j + q)) * (p - 1 + q), axis=[p, q]), "y")


# --- recurrences that look back several positions


def plucked_string(x: Tensor) -> Tensor:
    """A delay line that hands on the mean of two neighbours, from its end to its beginning (Karplus and Strong)."""
    return te.recurrence(
        x.shape, lambda y, t, c: x[t, c] + 0.49 * (y[t - 25, c] + y[t - 26, c]), init=0.0, name="y"
    )


def dilated_cells(x: Tensor, w: Tensor) -> Tensor:
    """Cells that see every fourth position of a sequence."""
    (k,) = summed(k=x.shape[2])
    return te.recurrence(
        x.shape,
        lambda h, t, b, i: te.tanh(x[t, b, i] + te.sum(h[t - 4, b, k] * w[k, i], axis=k)),
        init=0.0,
        name="h",
    )


def same_month(x: Tensor, a: Tensor) -> Tensor:
    """A smoothed value for each month of a year, from the last one to the first."""
    return te.recurrence(
        x.shape,
        lambda s, t, c: a[0] * x[t, c] + (1 - a[0]) * te.tanh(a[1] * s[t + 12, c]),
        init=0.0,
        reverse=True,
        name="s",
    )


# --- recurrences of several tensors, one of which has an axis less


def likelihood(e: Tensor, w: Tensor) -> Tensor:
    """A hidden Markov model, scaled in each step by the sum of its row."""
    (i, k) = summed(i=e.shape[2], k=e.shape[2])
    a, s = te.recurrence(
        e.shape,
        lambda a, s, t, b, j: (
            e[t, b, j] ** 2 * (0.1 + te.sum(a[t - 1, b, i] / s[t, b, j] * w[i, j] ** 2, axis=i)),
            1 + te.sum(a[t - 1, b, k], axis=k),
        ),
        init=(1.0, 1.0),
    )
    return te.compute(e.shape, lambda t, b, j: a[t, b, j] / s[t, b, j])


def normalised_cells(x: Tensor, w: Tensor) -> Tensor:
    """Cells whose row has a length of one before it is multiplied."""
    (i, k) = summed(i=x.shape[2], k=x.shape[2])
    h, _ = te.recurrence(
        x.shape,
        lambda h, n, t, b, j: (
            te.tanh(x[t, b, j] + te.sum(h[t - 1, b, i] / n[t, b, j] * w[i, j], axis=i)),
            te.sqrt(0.1 + te.sum(h[t - 1, b, k] ** 2, axis=k)),
        ),
        init=(0.0, 1.0),
    )
    return h


def scores_of_paths(e: Tensor, w: Tensor) -> Tensor:
    """The logarithm of a sum over all paths, the largest of a row taken off."""
    (i, k) = summed(i=e.shape[2], k=e.shape[2])
    a, _ = te.recurrence(
        e.shape,
        lambda a, m, t, b, j: (
            m[t, b, j]
            + te.log(te.sum(te.exp(a[t - 1, b, i] - m[t, b, j]) * te.exp(w[i, j]), axis=i))
            + e[t, b, j],
            te.max(a[t - 1, b, k], axis=k),
        ),
        init=(0.0, 0.0),
    )
    return a


# --- reductions over all positions but one


def messages(x: Tensor) -> Tensor:
    """What all other variables of a check say of each one: decoding by belief propagation."""
    (j,) = summed(j=x.shape[1])
    return te.compute(x.shape, lambda c, i: te.prod(te.tanh(0.5 * x[c, j]), axis=j, where=j != i), "y")


def rates(gains: Tensor) -> Tensor:
    """Rates of users, each of which hears all others as noise."""
    n, (j,) = gains.shape[1], summed(j=gains.shape[1])
    others = te.compute(
        (gains.shape[0], n), lambda s, i: te.sum(gains[s, j] ** 2, axis=j, where=j != i), "others"
    )
    return te.compute((gains.shape[0], n), lambda s, i: te.log1p(gains[s, i] ** 2 / (1 + others[s, i])), "y")


def left_out(x: Tensor) -> Tensor:
    """How far each row is from the mean of the others."""
    n, (j,) = x.shape[0], summed(j=x.shape[0])
    return te.compute(x.shape, lambda i, c: x[i, c] - te.sum(x[j, c], axis=j, where=j != i) / (n - 1), "y")


# --- slopes at edges, in loops


def left_to_right(e: Tensor) -> Tensor:
    """Hidden states of which each is reached from itself and the one before, in logarithms."""
    n, states = e.shape

    def step(a: Tensor, t: te.Axis, k: te.Axis) -> te.Expr:
        return (
            te.logaddexp(a[t - 1, k], te.select(k >= 1, a[t - 1, te.maximum(k - 1, 0)], -1e9)) + e[t + 1, k]
        )

    first = te.compute((1, states), lambda z, k: e[0, k], "first")
    return te.recurrence((n - 1, states), step, init=first, name="a")


def coupled_phases(w: Tensor, start: Tensor) -> Tensor:
    """Oscillators in a row, each drawn to its neighbours."""
    (n,) = w.shape

    def step(x: Tensor, t: te.Axis, i: te.Axis) -> te.Expr:
        there = te.select(i < n - 1, te.sin(x[t - 1, i + 1] - x[t - 1, i]), 0.0)
        return x[t - 1, i] + 0.1 * (
            w[i] + there - te.select(i >= 1, te.sin(x[t - 1, i] - x[t - 1, i - 1]), 0.0)
        )

    return te.recurrence((40, n), step, init=te.compute((1, n), lambda z, i: start[i], "first"), name="x")


def stirred_ring(start: Tensor) -> Tensor:
    """A ring that diffuses and is driven by products of neighbours."""
    (n,) = start.shape

    def step(x: Tensor, t: te.Axis, i: te.Axis) -> te.Expr:
        before = x[t - 1, (i - 1) % n]
        spread = before - 2 * x[t - 1, i] + x[t - 1, (i + 1) % n]
        return x[t - 1, i] + 0.2 * spread + 0.1 * te.sin(x[t - 1, i] * before)

    return te.recurrence((40, n), step, init=te.compute((1, n), lambda z, i: start[i], "first"), name="x")
