"""Loops of JAX that read and write arrays at their counter, as one writes them first: values and gradients by te.grad beside jax.grad.

    python benchmarks/jax_loops.py [names] [--write]

Both programs are called in turn, for 20 ms each, and the median of their processor times is kept. ``--write`` renews the table of docs/results/loops.md.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jaxte as te

PAGE = Path(__file__).parent.parent / "docs" / "results" / "loops.md"
BEGIN, END = "<!-- jax loops -->", "<!-- /jax loops -->"
ROUNDS = 7
Array = Any


@dataclass(frozen=True)
class Kernel:
    """A function of arrays with loops, the shapes that it is timed with, and small ones that it is tested with."""

    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    small: tuple[tuple[int, ...], ...]

    def loss(self, *args: Array) -> Array:
        """A number that all results go into, each with its own factors."""
        found = jnp.zeros((), args[0].dtype)
        for leaf in jax.tree.leaves(self.function(*args)):
            weights = jnp.cos(jnp.arange(leaf.size, dtype=leaf.dtype)).reshape(leaf.shape)
            found = found + jnp.sum(leaf * weights)
        return found

    def arguments(self, small: bool = False) -> list[Array]:
        rng = np.random.default_rng(0)
        dtype = jnp.zeros(()).dtype
        return [jnp.asarray(rng.normal(size=s), dtype) for s in (self.small if small else self.shapes)]


KERNELS: dict[str, Kernel] = {}


def kernel(
    shapes: Sequence[tuple[int, ...]], small: Sequence[tuple[int, ...]]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(f: Callable[..., Any]) -> Callable[..., Any]:
        KERNELS[f.__name__] = Kernel(f, tuple(shapes), tuple(small))
        return f

    return register


def _loop(first: int, last: int, body: Callable[..., Any], carry: Any) -> Any:
    return lax.fori_loop(first, last, body, carry)


@kernel([(200, 200), (200, 160)], [(6, 6), (6, 4)])
def trmm(A: Array, B: Array) -> Array:
    rows = jnp.arange(A.shape[0])
    return _loop(0, len(A), lambda i, B: B.at[i].set(1.5 * (B[i] + jnp.where(rows > i, A[:, i], 0) @ B)), B)


@kernel([(60, 60), (60, 50)], [(5, 5), (5, 4)])
def trmm_elements(A: Array, B: Array) -> Array:
    M, N = B.shape

    def outer(i: Array, B: Array) -> Array:
        def inner(j: Array, B: Array) -> Array:
            a = jnp.where(jnp.arange(M) > i, A[:, i], 0.0)
            b = jnp.where(jnp.arange(M) > i, B[:, j], 0.0)
            return B.at[i, j].set(B[i, j] + jnp.dot(a, b))

        return _loop(0, N, inner, B)

    return _loop(0, M, outer, B) * 1.5


@kernel([(160, 160), (160, 120), (160, 120)], [(6, 6), (6, 4), (6, 4)])
def symm(A: Array, B: Array, C: Array) -> Array:
    rows = jnp.arange(len(A))

    def body(i: Array, C: Array) -> Array:
        left = jnp.where(rows < i, A[i], 0.0)
        C = C + left[:, None] * (1.2 * B[i])[None, :]
        return C.at[i].set(0.7 * C[i] + 1.2 * B[i] * A[i, i] + 1.2 * (left @ B))

    return _loop(0, len(A), body, C)


@kernel([(200, 200), (200, 150)], [(5, 5), (5, 4)])
def syrk(C: Array, A: Array) -> Array:
    columns = jnp.arange(len(C))

    def body(i: Array, C: Array) -> Array:
        below = columns <= i
        return C.at[i].set(jnp.where(below, C[i] * 0.7 + 1.5 * (A @ A[i]), C[i]))

    return _loop(0, len(C), body, C)


@kernel([(40, 50, 60), (60, 60)], [(3, 4, 5), (5, 5)])
def doitgen(A: Array, C4: Array) -> Array:
    def outer(r: Array, A: Array) -> Array:
        return _loop(0, A.shape[1], lambda q, A: A.at[r, q].set(A[r, q] @ C4), A)

    return _loop(0, len(A), outer, A)


@kernel([(240, 200)], [(6, 4)])
def covariance(X: Array) -> Array:
    N, M = X.shape
    X = X - X.mean(0)
    return _loop(0, M, lambda i, c: c.at[i].set(X[:, i] @ X / (N - 1)), jnp.zeros((M, M), X.dtype))


@kernel([(5000,)], [(9,)])
def garch(r: Array) -> Array:
    def body(t: Array, s: Array) -> Array:
        return s.at[t].set(0.1 + 0.2 * r[t - 1] ** 2 + 0.7 * s[t - 1])

    s = _loop(1, len(r), body, jnp.ones_like(r))
    return jnp.log(s) + r**2 / s


@kernel([(5000,)], [(9,)])
def returns(r: Array) -> Array:
    T = len(r)

    def body(k: Array, g: Array) -> Array:
        return g.at[T - 1 - k].set(r[T - 1 - k] + 0.99 * g[T - k])

    return _loop(0, T, body, jnp.zeros(T + 1, r.dtype))


@kernel([(5000,), (3,), (2,)], [(9,), (3,), (2,)])
def biquad(x: Array, b: Array, a: Array) -> Array:
    def body(n: Array, y: Array) -> Array:
        new = b[0] * x[n] + b[1] * x[n - 1] + b[2] * x[n - 2]
        return y.at[n].set(new - 0.1 * a[0] * y[n - 1] - 0.1 * a[1] * y[n - 2])

    return _loop(2, len(x), body, jnp.zeros_like(x))


@kernel([(2000,)] * 4, [(7,)] * 4)
def thomas(a: Array, b: Array, c: Array, d: Array) -> Array:
    b, n = b + 4, len(b)

    def forward(i: Array, state: Any) -> Any:
        cp, dp = state
        den = b[i] - a[i] * cp[i - 1]
        return cp.at[i].set(c[i] / den), dp.at[i].set((d[i] - a[i] * dp[i - 1]) / den)

    first = jnp.zeros_like(c).at[0].set(c[0] / b[0]), jnp.zeros_like(d).at[0].set(d[0] / b[0])
    cp, dp = _loop(1, n, forward, first)

    def back(k: Array, x: Array) -> Array:
        i = n - 2 - k
        return x.at[i].set(dp[i] - cp[i] * x[i + 1])

    return _loop(0, n - 1, back, jnp.zeros_like(d).at[n - 1].set(dp[n - 1]))


@kernel([(3,), (3,), (1000,)], [(3,), (3,), (5,)])
def runge_kutta(y0: Array, p: Array, h: Array) -> Array:
    def slope(y: Array) -> Array:
        return jnp.stack([p[0] * (y[1] - y[0]), y[0] * (p[1] - y[2]) - y[1], y[0] * y[1] - p[2] * y[2]])

    def body(i: Array, ys: Array) -> Array:
        y, step = ys[i], 0.005 + 1e-5 * h[i]
        k1 = slope(y)
        k2 = slope(y + step / 2 * k1)
        k3 = slope(y + step / 2 * k2)
        return ys.at[i + 1].set(y + step / 6 * (k1 + 2 * k2 + 2 * k3 + slope(y + step * k3)))

    return _loop(0, len(h), body, jnp.zeros((len(h) + 1, 3), y0.dtype).at[0].set(y0))


@kernel([(500, 300)], [(5, 4)])
def softmax_rows(x: Array) -> Array:
    def body(i: Array, o: Array) -> Array:
        e = jnp.exp(x[i] - jnp.max(x[i]))
        return o.at[i].set(e / jnp.sum(e))

    return _loop(0, len(x), body, jnp.zeros_like(x))


@kernel([(4096,), (32,)], [(9,), (3,)])
def causal_convolution(x: Array, w: Array) -> Array:
    padded = jnp.pad(x, (len(w) - 1, 0))

    def body(t: Array, y: Array) -> Array:
        return y.at[t].set(jnp.dot(lax.dynamic_slice(padded, (t,), (len(w),)), w))

    return _loop(0, len(x), body, jnp.zeros_like(x))


@kernel([(64, 64)], [(5, 6)])
def seidel(x: Array) -> Array:
    def outer(i: Array, x: Array) -> Array:
        def inner(j: Array, x: Array) -> Array:
            above = x[i - 1, j - 1] + x[i - 1, j] + x[i - 1, j + 1]
            below = x[i + 1, j - 1] + x[i + 1, j] + x[i + 1, j + 1]
            return x.at[i, j].set((above + x[i, j - 1] + x[i, j] + x[i, j + 1] + below) / 9)

        return _loop(1, x.shape[1] - 1, inner, x)

    return _loop(1, len(x) - 1, outer, x)


@kernel([(400,)], [(6,)])
def wave(u0: Array) -> Array:
    steps = 400 if len(u0) > 10 else 6

    def body(n: Array, u: Array) -> Array:
        around = jnp.roll(u[n], 1) - 2 * u[n] + jnp.roll(u[n], -1)
        return u.at[n + 1].set(2 * u[n] - u[n - 1] + 0.2 * around)

    first = jnp.zeros((steps + 1, len(u0)), u0.dtype).at[0].set(u0).at[1].set(u0)
    return _loop(1, steps, body, first)


@kernel([(256, 32), (32, 32)], [(6, 3), (3, 3)])
def viterbi(e: Array, T: Array) -> Array:
    def body(t: Array, v: Array) -> Array:
        return v.at[t].set(e[t] + jnp.max(v[t - 1][:, None] + T, axis=0))

    return _loop(1, len(e), body, jnp.zeros_like(e).at[0].set(e[0]))


@kernel([(120,)], [(6,)])
def durbin(r: Array) -> Array:
    r, n = r * 0.1, len(r)

    def body(k: Array, state: Any) -> Any:
        y, alpha, beta = state
        beta = beta * (1 - alpha * alpha)
        earlier, turned = jnp.arange(n) < k, (k - 1 - jnp.arange(n)) % n
        alpha = -(r[k] + jnp.dot(jnp.where(earlier, r[turned], 0.0), y)) / beta
        y = y + jnp.where(earlier, alpha * y[turned], 0.0)
        return y.at[k].set(alpha), alpha, beta

    one = jnp.ones((), r.dtype)
    return _loop(1, n, body, (jnp.zeros_like(r).at[0].set(-r[0]), -r[0], one))[0]


@kernel([(100, 80)], [(6, 4)])
def gramschmidt(A: Array) -> Array:
    A = A + 3 * jnp.eye(*A.shape, dtype=A.dtype)
    columns = jnp.arange(A.shape[1])

    def body(k: Array, state: Any) -> Any:
        A, Q, R = state
        norm = jnp.sqrt(A[:, k] @ A[:, k])
        q = A[:, k] / norm
        row = jnp.where(columns > k, q @ A, 0.0)
        return A - q[:, None] * row[None], Q.at[:, k].set(q), R.at[k].set(row.at[k].set(norm))

    empty = jnp.zeros((A.shape[1],) * 2, A.dtype)
    return _loop(0, A.shape[1], body, (A, jnp.zeros_like(A), empty))[1:]


@kernel([(100, 100)], [(6, 6)])
def jacobi_2d(A: Array) -> Array:
    def mean(A: Array) -> Array:
        return 0.2 * (A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1])

    def body(t: Array, state: Any) -> Any:
        A, B = state
        B = B.at[1:-1, 1:-1].set(mean(A))
        return A.at[1:-1, 1:-1].set(mean(B)), B

    return _loop(0, 40, body, (A, A))


@kernel([(80, 80), (80,)], [(6, 6), (6,)])
def substitution(L: Array, b: Array) -> Array:
    L = jnp.tril(L) * 0.1 + 2 * jnp.eye(len(b), dtype=L.dtype)
    rows = jnp.arange(len(b))

    def body(i: Array, x: Array) -> Array:
        return x.at[i].set((b[i] - jnp.where(rows < i, L[i], 0.0) @ x) / L[i, i])

    return _loop(0, len(b), body, jnp.zeros_like(b))


@kernel([(400, 300), (300,), (400,)], [(5, 4), (4,), (5,)])
def bicg(A: Array, p: Array, r: Array) -> Array:
    def body(i: Array, state: Any) -> Any:
        q, s = state
        return q.at[i].set(A[i] @ p), s + A[i] * r[i]

    return _loop(0, len(A), body, (jnp.zeros_like(r), jnp.zeros_like(p)))


@kernel([(64, 64)] * 3, [(5, 6)] * 3)
def fdtd_2d(ex: Array, ey: Array, hz: Array) -> Array:
    def body(t: Array, state: Any) -> Any:
        ex, ey, hz = state
        ey = ey.at[0].set(t * 0.1).at[1:].add(-0.5 * (hz[1:] - hz[:-1]))
        ex = ex.at[:, 1:].add(-0.5 * (hz[:, 1:] - hz[:, :-1]))
        curl = ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]
        return ex, ey, hz.at[:-1, :-1].add(-0.7 * curl)

    return _loop(0, 20, body, (ex, ey, hz))


@kernel([(60, 60)], [(6, 6)])
def adi_sweep(u: Array) -> Array:
    n = len(u)

    def row(i: Array, v: Array) -> Array:
        def forward(j: Array, state: Any) -> Any:
            p, q = state
            den = 1.6 - 0.3 * p[i, j - 1]
            right = 0.4 * u[j, i] + 0.3 * (u[j, i - 1] + u[j, i + 1])
            return p.at[i, j].set(0.3 / den), q.at[i, j].set((right + 0.3 * q[i, j - 1]) / den)

        p, q = _loop(1, n - 1, forward, (jnp.zeros_like(u), jnp.zeros_like(u).at[i, 0].set(1.0)))

        def back(k: Array, v: Array) -> Array:
            j = n - 2 - k
            return v.at[j, i].set(p[i, j] * v[j + 1, i] + q[i, j])

        return _loop(0, n - 2, back, v.at[n - 1, i].set(1.0))

    return _loop(1, n - 1, row, jnp.zeros_like(u))


@kernel([(200, 3)], [(5, 3)])
def forces(x: Array) -> Array:
    def body(i: Array, f: Array) -> Array:
        d = x - x[i]
        r = jnp.sum(d * d, -1) + 0.1
        return f.at[i].set(jnp.sum(d / r[:, None] ** 1.5, 0))

    return _loop(0, len(x), body, jnp.zeros_like(x))


@kernel([(60,), (60,)], [(4,), (5,)])
def soft_alignment(a: Array, b: Array) -> Array:
    def outer(i: Array, H: Array) -> Array:
        def inner(j: Array, H: Array) -> Array:
            score = jnp.cos(a[i - 1] - b[j - 1])
            ways = jnp.stack([H[i - 1, j - 1] + score, H[i - 1, j] - 1, H[i, j - 1] - 1])
            return H.at[i, j].set(jax.nn.logsumexp(ways))

        return _loop(1, len(b) + 1, inner, H)

    return _loop(1, len(a) + 1, outer, jnp.zeros((len(a) + 1, len(b) + 1), a.dtype))


@kernel([(2000,)] * 3, [(5,)] * 3)
def arc_distance(a: Array, b: Array, c: Array) -> Array:
    def body(i: Array, o: Array) -> Array:
        own = jnp.sin(a[i] / 2) ** 2 + jnp.cos(b[i]) ** 2 * jnp.sin(c[i] / 2) ** 2 + 0.1
        return o.at[i].set(2 * jnp.arctan2(jnp.sqrt(own), jnp.sqrt(3 - own)))

    return _loop(0, len(a), body, jnp.zeros_like(a))


@kernel([(300, 64), (40, 64)], [(6, 3), (4, 3)])
def attention_rows(q: Array, k: Array) -> Array:
    def body(i: Array, o: Array) -> Array:
        return o.at[i].set(jax.nn.softmax(k @ q[i]) @ k)

    return _loop(0, len(q), body, jnp.zeros_like(q))


@kernel([(2000, 3)], [(6, 3)])
def polynomials(x: Array) -> Array:
    """Chebyshev's, of which each is made of the two before."""

    def body(n: Array, p: Array) -> Array:
        return p.at[n].set(2 * jnp.tanh(x[:, 0]) * p[n - 1] - p[n - 2])

    first = jnp.ones((12, len(x)), x.dtype).at[1].set(jnp.tanh(x[:, 0]))
    return _loop(2, 12, body, first)


def row(name: str) -> str:
    """One line of the table."""
    own = KERNELS[name]
    args, places = own.arguments(), tuple(range(len(own.shapes)))

    def function(*args: Array) -> Array:
        return own.loss(*args)

    programs, seconds = [], []
    for gradient in (jax.value_and_grad(function, places), te.value_and_grad(function, places)):
        begin = time.perf_counter()
        lowered = jax.jit(gradient).lower(*args)
        seconds.append(time.perf_counter() - begin)
        programs.append(lowered.compile())
    results = [jax.block_until_ready(p(*args)) for p in programs]
    pairs = zip(*(jax.tree.leaves(r[1]) for r in results), strict=True)
    error = max(float(jnp.max(jnp.abs(a - b)) / (1e-30 + jnp.max(jnp.abs(a)))) for a, b in pairs)
    times: list[list[float]] = [[], []]
    for _ in range(ROUNDS):
        for n, program in enumerate(programs):
            times[n].append(_milliseconds(program, args))
    left, right = map(statistics.median, times)
    held = [p.memory_analysis().temp_size_in_bytes / 1e6 for p in programs]
    loops = [
        str(jax.make_jaxpr(p)(*args)).count("scan[")
        for p in (_gradient(function, places, g) for g in (jax, te))
    ]
    return (
        f"| {name} | {left:.2f} | {right:.2f} | {left / right:.1f} | {held[0]:.2f} | {held[1]:.2f} | {loops[0]} / {loops[1]} "
        f"| {seconds[1]:.1f} | {error:.0e} |"
    )


def _gradient(function: Callable[..., Any], places: tuple[int, ...], by: Any) -> Callable[..., Any]:
    return by.grad(function, places)  # type: ignore[no-any-return]


def _milliseconds(program: Callable[..., Any], args: Sequence[Any]) -> float:
    calls, begin, clock = 0, time.process_time(), time.perf_counter()
    while time.perf_counter() - clock < 0.02:
        jax.block_until_ready(program(*args))
        calls += 1
    return (time.process_time() - begin) / calls * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(KERNELS))
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    lines = []
    for name in given.names:
        lines.append(row(name))
        print(lines[-1], flush=True)
    factors = [float(line.split("|")[4]) for line in lines]
    mean = f"{len(lines)} loops, geometric mean {np.exp(np.mean(np.log(factors))):.1f}, the least {min(factors):.2f}."
    print(mean)
    if given.write:
        head = [
            "| loop | jax.grad, ms | te.grad, ms | times | temporaries, MB | te.grad, MB | loops in the gradient | tracing, s | difference |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        text = PAGE.read_text(encoding="utf-8")
        before, _, rest = text.partition(BEGIN)
        made = "\n".join([before + BEGIN, mean, "", *head, *lines, END + rest.partition(END)[2]])
        PAGE.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
