"""Recurrences as users know them, each beside the same as ``lax.scan``, written independently.

A case is a builder of Tensors, a function of arrays and arguments of float64; integers are no arguments of the gradient.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jaxte as te

T, N = 5, 3


@dataclass(frozen=True)
class Case:
    build: Callable[..., Any]
    reference: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    positive: tuple[int, ...] = ()

    def arguments(self, seed: int = 0) -> list[np.ndarray]:
        rng = np.random.default_rng(seed)
        found = [rng.normal(size=shape) * 0.7 for shape in self.shapes]
        return [abs(a) + 0.5 if n in self.positive else a for n, a in enumerate(found)]


def _axis(extent: int, name: str = "j") -> Any:
    return te.reduce_axis((0, extent), name)


def _product(W: Any, h: Any, at: Any, i: Any) -> Any:
    """Element ``i`` of ``W @ h[at]``."""
    j = _axis(W.shape[-1])
    return te.sum(W[i, j] * h[at, j], axis=j)


def rnn(x, U, W, h0):
    return te.recurrence(
        (T, N), lambda h, t, i: te.tanh(_product(U, x, t, i) + _product(W, h, t - 1, i)), init=h0
    )


def rnn_scan(x, U, W, h0):
    def step(h, x):
        h = jnp.tanh(U @ x + W @ h)
        return h, h

    return lax.scan(step, h0, x)[1]


def _gate(x, U, W, h, t, g, i):
    k, j = _axis(x.shape[1], "k"), _axis(N)
    return te.sum(U[g, i, k] * x[t, k], axis=k) + te.sum(W[g, i, j] * h[t - 1, j], axis=j)


def lstm(x, U, W):
    def cell(h, c, t, i):
        new = te.sigmoid(_gate(x, U, W, h, t, 0, i)) * te.tanh(_gate(x, U, W, h, t, 1, i))
        return (
            te.sigmoid(_gate(x, U, W, h, t, 2, i)) * te.tanh(c[t, i]),
            te.sigmoid(_gate(x, U, W, h, t, 3, i)) * c[t - 1, i] + new,
        )

    return te.recurrence((T, N), cell, init=0.0, dtype="float64")[0]


def lstm_scan(x, U, W):
    def step(carry, x):
        h, c = carry
        a, b, o, f = U @ x + W @ h
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(a) * jnp.tanh(b)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    return lax.scan(step, (jnp.zeros(N), jnp.zeros(N)), x)[1]


def gru(x, U, W):
    def cell(h, t, i):
        k, j = _axis(x.shape[1], "k"), _axis(N)
        z = te.sigmoid(_gate(x, U, W, h, t, 0, i))
        kept = te.sum(W[2, i, j] * te.sigmoid(_gate(x, U, W, h, t, 1, j)) * h[t - 1, j], axis=j)
        new = te.tanh(te.sum(U[2, i, k] * x[t, k], axis=k) + kept)
        return (1 - z) * h[t - 1, i] + z * new

    return te.recurrence((T, N), cell, init=0.0, dtype="float64")


def gru_scan(x, U, W):
    def step(h, x):
        z, r = jax.nn.sigmoid(U[0] @ x + W[0] @ h), jax.nn.sigmoid(U[1] @ x + W[1] @ h)
        h = (1 - z) * h + z * jnp.tanh(U[2] @ x + W[2] @ (r * h))
        return h, h

    return lax.scan(step, jnp.zeros(N), x)[1]


def garch(r, p):
    """Log likelihood of returns whose variance follows the last one and the last return."""
    v = te.recurrence(
        (T,),
        lambda v, t: p[0] + p[1] * te.select(t >= 1, r[t - 1] ** 2, 0.1) + p[2] * v[t - 1],
        init=0.3,
        dtype="float64",
    )
    t = _axis(T, "t")
    return te.compute((), lambda: te.sum(te.log(v[t]) + r[t] ** 2 / v[t], axis=t))


def garch_scan(r, p):
    def step(carry, r):
        v, before = carry
        v = p[0] + p[1] * before + p[2] * v
        return (v, r**2), jnp.log(v) + r**2 / v

    return lax.scan(step, (0.3, 0.1), r)[1].sum()


def biquad(x, b, a):
    """``y[t] = sum b[k] x[t - k] - sum a[k] y[t - 1 - k]``."""
    k, m = _axis(3, "k"), _axis(2, "m")
    return te.recurrence(
        (T,),
        lambda y, t: (
            te.sum(te.select(t - k >= 0, b[k] * x[t - k], 0.0), axis=k) - te.sum(a[m] * y[t - 1 - m], axis=m)
        ),
        init=0.0,
        dtype="float64",
    )


def biquad_scan(x, b, a):
    def step(carry, x):
        x1, x2, y1, y2 = carry
        y = b[0] * x + b[1] * x1 + b[2] * x2 - a[0] * y1 - a[1] * y2
        return (x, x1, y, y1), y

    return lax.scan(step, (0.0,) * 4, x)[1]


def envelope(x, p):
    """A compressor's: it rises at one rate and falls at another."""

    def level(e, t):
        rate = te.select(te.abs(x[t]) > e[t - 1], p[0], p[1])
        return e[t - 1] + rate * (te.abs(x[t]) - e[t - 1])

    return te.recurrence((T,), level, init=0.2, dtype="float64")


def envelope_scan(x, p):
    def step(e, x):
        e = e + jnp.where(jnp.abs(x) > e, p[0], p[1]) * (jnp.abs(x) - e)
        return e, e

    return lax.scan(step, 0.2, x)[1]


def leapfrog(q0, p0, w):
    """Pendulums: positions, then momenta of the new positions."""
    return te.recurrence(
        (T, N),
        lambda q, p, t, i: (q[t - 1, i] + 0.1 * p[t - 1, i], p[t - 1, i] - 0.1 * w[i] * te.sin(q[t, i])),
        init=(q0, p0),
    )


def leapfrog_scan(q0, p0, w):
    def step(carry, _):
        q, p = carry
        q = q + 0.1 * p
        p = p - 0.1 * w * jnp.sin(q)
        return (q, p), (q, p)

    return lax.scan(step, (q0, p0), None, length=T)[1]


def hmm(e, A, start):
    """Log probabilities of a hidden Markov model's states with all that was seen."""

    def forward(a, t, i):
        j = _axis(N)
        best = te.max(a[t - 1, j], axis=j)
        k = _axis(N, "k")
        return e[t, i] + best + te.log(te.sum(te.exp(a[t - 1, k] - best + A[k, i]), axis=k))

    return te.recurrence((T, N), forward, init=start)


def hmm_scan(e, A, start):
    def step(a, e):
        a = e + jax.nn.logsumexp(a[:, None] + A, axis=0)
        return a, a

    return lax.scan(step, start, e)[1]


def viterbi(e, A, start):
    j = _axis(N)
    return te.recurrence((T, N), lambda s, t, i: e[t, i] + te.max(s[t - 1, j] + A[j, i], axis=j), init=start)


def viterbi_scan(e, A, start):
    def step(s, e):
        s = e + (s[:, None] + A).max(axis=0)
        return s, s

    return lax.scan(step, start, e)[1]


def thomas(lower, diagonal, upper, b):
    """A tridiagonal system: elimination from the first row, substitution from the last."""
    factor, right = te.recurrence(
        (T,),
        lambda c, d, t: (
            upper[t] / (diagonal[t] - lower[t] * c[t - 1]),
            (b[t] - lower[t] * d[t - 1]) / (diagonal[t] - lower[t] * c[t - 1]),
        ),
        init=0.0,
        dtype="float64",
    )
    return te.recurrence(
        (T,), lambda x, t: right[t] - factor[t] * x[t + 1], init=0.0, reverse=True, dtype="float64"
    )


def thomas_scan(lower, diagonal, upper, b):
    def down(carry, row):
        (c, d), (low, diag, up, right) = carry, row
        pivot = diag - low * c
        c, d = up / pivot, (right - low * d) / pivot
        return (c, d), (c, d)

    def up(x, row):
        x = row[1] - row[0] * x
        return x, x

    rows = lax.scan(down, (0.0, 0.0), (lower, diagonal, upper, b))[1]
    return lax.scan(up, 0.0, rows, reverse=True)[1]


def returns(r, gamma, done):
    """Discounted rewards from the end, which begin anew where an episode is done."""
    return te.recurrence(
        (T,),
        lambda g, t: r[t] + te.select(done[t] > 0, 0.0, gamma[0] * g[t + 1]),
        init=0.0,
        reverse=True,
        dtype="float64",
    )


def returns_scan(r, gamma, done):
    def step(g, row):
        g = row[0] + jnp.where(row[1] > 0, 0.0, gamma[0] * g)
        return g, g

    return lax.scan(step, 0.0, (r, done), reverse=True)[1]


def stencil(u0, c):
    """Euler steps of Burgers' equation on a ring."""
    return te.recurrence(
        (T, 6),
        lambda u, t, i: (
            u[t - 1, i]
            + c[0] * (u[t - 1, (i + 1) % 6] - 2 * u[t - 1, i] + u[t - 1, (i + 5) % 6])
            - c[1] * u[t - 1, i] * (u[t - 1, (i + 1) % 6] - u[t - 1, (i + 5) % 6])
        ),
        init=u0,
    )


def stencil_scan(u0, c):
    def step(u, _):
        right, left = jnp.roll(u, -1), jnp.roll(u, 1)
        u = u + c[0] * (right - 2 * u + left) - c[1] * u * (right - left)
        return u, u

    return lax.scan(step, u0, None, length=T)[1]


CASES = {
    "rnn": Case(rnn, rnn_scan, ((T, 2), (N, 2), (N, N), (N,))),
    "lstm": Case(lstm, lstm_scan, ((T, 2), (4, N, 2), (4, N, N))),
    "gru": Case(gru, gru_scan, ((T, 2), (3, N, 2), (3, N, N))),
    "garch": Case(garch, garch_scan, ((T,), (3,)), (1,)),
    "biquad": Case(biquad, biquad_scan, ((T,), (3,), (2,))),
    "envelope": Case(envelope, envelope_scan, ((T,), (2,)), (1,)),
    "leapfrog": Case(leapfrog, leapfrog_scan, ((N,), (N,), (N,))),
    "hmm": Case(hmm, hmm_scan, ((T, N), (N, N), (N,))),
    "viterbi": Case(viterbi, viterbi_scan, ((T, N), (N, N), (N,))),
    "thomas": Case(thomas, thomas_scan, ((T,), (T,), (T,), (T,)), (1,)),
    "returns": Case(returns, returns_scan, ((T,), (1,), (T,))),
    "stencil": Case(stencil, stencil_scan, ((6,), (2,))),
}
