"""Functions that steps for windows, rings, large kernels, scales and accelerators serve: see ``mechanisms.py``."""

from __future__ import annotations

from collections.abc import Callable

import jaxte as te
from jaxte.lang.expr import Expr
from jaxte.tensors.tensor import Tensor
from tests.lower.mechanism_functions import summed

# --- extrema of windows, of which equal elements share


def closed(x: Tensor) -> Tensor:
    """How far an image of heights is below the highest point around."""
    p, q = summed(p=9, q=9)
    shape = (x.shape[0] - 8, x.shape[1] - 8)
    return te.compute(shape, lambda i, j: te.max(te.exp(x[i + p, j + q]), axis=[p, q]) - x[i + 4, j + 4], "y")


def peaks(x: Tensor) -> Tensor:
    """The loudest cell around each of a volume."""
    p, q, r = summed(p=5, q=5, r=5)
    n, m, l = (size - 4 for size in x.shape)  # noqa: E741
    body = lambda i, j, k: te.max(te.abs(x[i + p, j + q, k + r]), axis=[p, q, r])  # noqa: E731
    return te.compute((n, m, l), body, "y")


def dark_channel(x: Tensor) -> Tensor:
    """The darkest of all colours around a pixel, by which haze is estimated."""
    p, q, c = summed(p=15, q=15, c=x.shape[0])
    darkest = te.compute(x.shape[1:], lambda i, j: te.min(x[c, i, j], axis=c), "darkest")
    shape = tuple(size - 14 for size in x.shape[1:])
    return te.compute(shape, lambda i, j: te.min(darkest[i + p, j + q], axis=[p, q]), "y")


# --- extrema of windows, of which the first or the last one counts


def pooled(x: Tensor) -> Tensor:
    p, q = summed(p=2, q=2)
    b, c, n, m = x.shape
    body = lambda b, c, i, j: te.max(x[b, c, 2 * i + p, 2 * j + q], axis=[p, q], ties="first")  # noqa: E731
    return te.compute((b, c, n // 2, m // 2), body, "y")


def blocks(x: Tensor) -> Tensor:
    """The lowest of blocks of three by two."""
    p, q = summed(p=3, q=2)
    b, n, m = x.shape
    body = lambda b, i, j: te.min(x[b, 3 * i + p, 2 * j + q], axis=[p, q], ties="last")  # noqa: E731
    return te.compute((b, n // 3, m // 2), body, "y")


def cells(x: Tensor) -> Tensor:
    """The highest of eight cells of a volume."""
    p, q, r = summed(p=2, q=2, r=2)
    n, m, l = (size // 2 for size in x.shape)  # noqa: E741
    body = lambda i, j, k: te.max(x[2 * i + p, 2 * j + q, 2 * k + r], axis=[p, q, r], ties="first")  # noqa: E731
    return te.compute((n, m, l), body, "y")


def wide_pool(x: Tensor) -> Tensor:
    p, q = summed(p=9, q=9)
    b, n, m, c = x.shape
    body = lambda b, i, j, c: te.max(x[b, i + p, j + q, c], axis=[p, q], ties="first")  # noqa: E731
    return te.compute((b, n - 8, m - 8, c), body, "y")


def hollows(x: Tensor) -> Tensor:
    p, q, r = summed(p=5, q=5, r=5)
    n, m, l = (size - 4 for size in x.shape)  # noqa: E741
    body = lambda i, j, k: te.min(x[i + p, j + q, k + r], axis=[p, q, r], ties="first")  # noqa: E731
    return te.compute((n, m, l), body, "y")


def ridge(x: Tensor) -> Tensor:
    """How far the middle is below the highest of seven by eleven."""
    p, q = summed(p=7, q=11)
    shape = (x.shape[0] - 6, x.shape[1] - 10)
    body = lambda i, j: te.max(x[i + p, j + q], axis=[p, q], ties="last") - x[i + 3, j + 5]  # noqa: E731
    return te.compute(shape, body, "y")


# --- differences of sums up to a position


def rolling_mean(x: Tensor) -> Tensor:
    (k,), (b, n) = summed(k=x.shape[1]), x.shape
    upto = te.compute((b, n), lambda i, t: te.sum(x[i, k], axis=k, where=k <= t), "upto")
    return te.compute((b, n - 20), lambda i, t: (upto[i, t + 20] - upto[i, t]) / 20, "y")


def integral_image(x: Tensor) -> Tensor:
    """Sums of boxes by the sums of all that is above and left."""
    (p, q), (n, m) = summed(p=x.shape[0], q=x.shape[1]), x.shape
    s = te.compute((n, m), lambda i, j: te.sum(x[p, q], axis=[p, q], where=(p <= i) & (q <= j)), "s")
    return te.compute((n - 5, m - 5), lambda i, j: s[i + 5, j + 5] - s[i, j + 5] - s[i + 5, j] + s[i, j], "y")


def rolling_variance(x: Tensor) -> Tensor:
    (k,), (b, n) = summed(k=x.shape[1]), x.shape
    first = te.compute((b, n), lambda i, t: te.sum(x[i, k], axis=k, where=k <= t), "first")
    second = te.compute((b, n), lambda i, t: te.sum(x[i, k] ** 2, axis=k, where=k <= t), "second")
    mean = lambda s, i, t: (s[i, t + 30] - s[i, t]) / 30  # noqa: E731
    return te.compute((b, n - 30), lambda i, t: mean(second, i, t) - mean(first, i, t) ** 2, "y")


# --- rings


def lattice(x: Tensor) -> Tensor:
    """A cell of a torus and its eight neighbours."""
    n, m = x.shape
    around = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if (a, b) != (0, 0)]
    body = lambda i, j: te.tanh(sum(x[(i + a) % n, (j + b) % m] for a, b in around) - x[i, j] ** 3)  # noqa: E731
    return te.compute((n, m), body, "y")


def coupled_ring(x: Tensor) -> Tensor:
    """Oscillators that pull each other, less where they are farther apart."""
    n = x.shape[0]
    return te.compute((n,), lambda i: sum(te.sin(x[(i + d) % n] - x[i]) / d for d in range(1, 11)), "y")


def corners(x: Tensor) -> Tensor:
    """The differences of a cell of a periodic volume from its corners."""
    n, m, l = x.shape  # noqa: E741
    signs = [(a, b, c) for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)]
    at = lambda i, j, k: x[i % n, j % m, k % l]  # noqa: E731
    body = lambda i, j, k: sum((x[i, j, k] - at(i + a, j + b, k + c)) ** 2 for a, b, c in signs)  # noqa: E731
    return te.compute((n, m, l), body, "y")


# --- large kernels


def pointed(x: Tensor, w: Tensor) -> Tensor:
    """An image under a point spread."""
    (p, q), (n, m) = summed(p=w.shape[0], q=w.shape[1]), x.shape
    shape = (n - w.shape[0] + 1, m - w.shape[1] + 1)
    return te.compute(shape, lambda i, j: te.sum(x[i + p, j + q] * w[p, q], axis=[p, q]), "y")


def blurred(x: Tensor, w: Tensor) -> Tensor:
    """Images under the same kernel."""
    (p, q), (b, n, m) = summed(p=w.shape[0], q=w.shape[1]), x.shape
    shape = (b, n - w.shape[0] + 1, m - w.shape[1] + 1)
    return te.compute(shape, lambda b, i, j: te.sum(x[b, i + p, j + q] * w[p, q], axis=[p, q]), "y")


def seen_backwards(x: Tensor, w: Tensor) -> Tensor:
    """A scene under a kernel that is read from its end."""
    (p, q), (n, m) = summed(p=w.shape[0], q=w.shape[1]), x.shape
    (a, b) = (size - 1 for size in w.shape)
    body = lambda i, j: te.tanh(te.sum(x[i + p, j + q] * w[a - p, b - q], axis=[p, q]))  # noqa: E731
    return te.compute((n - a, m - b), body, "y")


def registered(x: Tensor, y: Tensor) -> Tensor:
    """How alike two images are, at each shift of one of them."""
    (i, j), (n, m) = summed(i=y.shape[0], j=y.shape[1]), y.shape
    shape = (x.shape[0] - n + 1, x.shape[1] - m + 1)
    return te.compute(shape, lambda a, b: te.sum(x[i + a, j + b] * y[i, j], axis=[i, j]), "r")


# --- scales of rows and columns


def balanced(x: Tensor, columns: Tensor, rows: Tensor) -> Tensor:
    """A matrix scaled by its columns, and then by its rows."""
    u = te.compute(x.shape, lambda i, j: x[i, j] * columns[j], "u")
    return te.compute(x.shape, lambda i, j: u[i, j] * rows[i], "y")


def gated(x: Tensor, gain: Tensor, weights: Tensor) -> Tensor:
    """Features with gains, as a gate for each row lets them through."""
    (k,) = summed(k=x.shape[1])
    u = te.compute(x.shape, lambda i, j: x[i, j] * gain[j], "u")
    gate = te.compute(x.shape[:1], lambda i: te.tanh(te.sum(x[i, k] * weights[k], axis=k)), "gate")
    return te.compute(x.shape, lambda i, j: u[i, j] * gate[i], "y")


def standardised(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Rows by their mean and deviation, with a scale of each column, one step after the other."""
    (k,), m = summed(k=x.shape[1]), x.shape[1]
    mean = te.compute(x.shape[:1], lambda i: te.sum(x[i, k], axis=k) / m, "mean")
    own = te.compute(x.shape, lambda i, j: x[i, j] - mean[i], "own")
    variance = te.compute(x.shape[:1], lambda i: te.sum(own[i, k] ** 2, axis=k) / m, "variance")
    u = te.compute(x.shape, lambda i, j: own[i, j] * te.rsqrt(variance[i] + 1e-5), "u")
    return te.compute(x.shape, lambda i, j: u[i, j] * scale[j] + shift[j], "y")


# --- what some element of a sum reads, but none that is read


def _since(of: Callable[[Expr], Expr], u: Tensor, t: Tensor, v: Tensor, w: Tensor) -> Tensor:
    """What events at ``u`` come to by ``v``, of those before ``t``, where that is before ``v``."""
    (k,) = summed(k=u.shape[0])
    body = lambda c, i: te.sum(w[k] * of(v[c] - u[k]), axis=k, where=u[k] <= t[i])  # noqa: E731
    s = te.compute((v.shape[0], t.shape[0]), body, "s")
    return te.compute(s.shape, lambda c, i: te.select(t[i] <= v[c], s[c, i], 0.0), "y")


def heat(u: Tensor, t: Tensor, v: Tensor, w: Tensor) -> Tensor:
    return _since(te.sqrt, u, t, v, w)


def ages(u: Tensor, t: Tensor, v: Tensor, w: Tensor) -> Tensor:
    return _since(te.log, u, t, v, w)


def growth(u: Tensor, t: Tensor, v: Tensor, w: Tensor) -> Tensor:
    return _since(lambda d: d**1.5, u, t, v, w)


# --- rows of few tables, and sums of few classes


def few_bins(x: Tensor, t: Tensor) -> Tensor:
    (i,) = summed(i=x.shape[0])
    return te.compute((8, x.shape[1]), lambda k, c: te.sum(x[i, c], axis=i, where=t[i] == k), "y")


def clusters(x: Tensor, t: Tensor) -> Tensor:
    """The spread of each cluster."""
    (i,) = summed(i=x.shape[0])
    return te.compute((4, x.shape[1]), lambda k, c: te.sum(x[i, c] ** 2, axis=i, where=t[i] == k), "y")


def embedded(e: Tensor, t: Tensor) -> Tensor:
    """Linear in the table: what is added to it is finite, also for a row that is not there."""
    return te.compute((t.shape[0], e.shape[1]), lambda i, c: e[t[i], c] * (1 + c), "y")


# --- running reductions whose steps hand on two values

_composed = te.comm_reducer(
    lambda f, g: (f[0] * g[0], f[1] * g[0] + g[1]),
    lambda a, b: (te.const(1.0, a), te.const(0.0, b)),
    "composed",
)
_turned = te.comm_reducer(
    lambda f, g: (f[0] * g[0] - f[1] * g[1], f[0] * g[1] + f[1] * g[0]),
    lambda a, b: (te.const(1.0, a), te.const(0.0, b)),
    "turned",
)


def discounted(x: Tensor) -> Tensor:
    """Returns from each step on, of which each is worth what the next ones leave of it."""
    (j,) = summed(j=x.shape[1])
    body = lambda b, i: _composed((te.tanh(x[b, j]), x[b, j]), axis=j, where=j >= i)[1]  # noqa: E731
    return te.compute(x.shape, body, "y")


def phases(x: Tensor, y: Tensor) -> Tensor:
    """The imaginary part of a product of all complex numbers so far."""
    (j,) = summed(j=x.shape[1])
    return te.compute(x.shape, lambda b, i: _turned((x[b, j], y[b, j]), axis=j, where=j <= i)[1], "y")


def propagated(x: Tensor, y: Tensor) -> Tensor:
    """The real part of one, of all from each position on."""
    (j,) = summed(j=x.shape[1])
    return te.compute(x.shape, lambda b, i: _turned((x[b, j], y[b, j]), axis=j, where=j >= i)[0], "y")
