"""The same kernels in JAX, written independently as one writes them there: ``fori_loop`` with ``.at[...]`` where elements depend on each other, whole arrays elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.lax import fori_loop

Array = Any


def trmm(alpha: float, A: Array, B: Array) -> Array:
    M, N = B.shape
    rows = jnp.arange(M)

    def column(i: Any, j: Any, B: Array) -> Array:
        below = jnp.where(rows > i, A[:, i], 0.0)
        return B.at[i, j].set(alpha * (B[i, j] + below @ B[:, j]))

    return fori_loop(0, M, lambda i, B: fori_loop(0, N, lambda j, B: column(i, j, B), B), B)


def symm(alpha: float, beta: float, C: Array, A: Array, B: Array) -> Array:
    M, N = C.shape
    rows = jnp.arange(M)

    def element(i: Any, j: Any, C: Array) -> Array:
        left = jnp.where(rows < i, A[i, :], 0.0)
        C = C.at[:, j].add(alpha * B[i, j] * left)
        return C.at[i, j].set(beta * C[i, j] + alpha * B[i, j] * A[i, i] + alpha * (B[:, j] @ left))

    return fori_loop(0, M, lambda i, C: fori_loop(0, N, lambda j, C: element(i, j, C), C), C)


def syrk(alpha: float, beta: float, C: Array, A: Array) -> Array:
    N, M = A.shape
    columns = jnp.arange(N)

    def row(i: Any, C: Array) -> Array:
        scaled = jnp.where(columns <= i, beta * C[i, :], C[i, :])

        def add(k: Any, row: Array) -> Array:
            return row + jnp.where(columns <= i, alpha * A[i, k] * A[:, k], 0.0)

        return C.at[i, :].set(fori_loop(0, M, add, scaled))

    return fori_loop(0, N, row, C)


def syr2k(alpha: float, beta: float, C: Array, A: Array, B: Array) -> Array:
    N, M = A.shape
    columns = jnp.arange(N)

    def row(i: Any, C: Array) -> Array:
        scaled = jnp.where(columns <= i, beta * C[i, :], C[i, :])

        def add(k: Any, row: Array) -> Array:
            new = A[:, k] * alpha * B[i, k] + B[:, k] * alpha * A[i, k]
            return row + jnp.where(columns <= i, new, 0.0)

        return C.at[i, :].set(fori_loop(0, M, add, scaled))

    return fori_loop(0, N, row, C)


def lu(A: Array) -> Array:
    n = A.shape[0]
    at = jnp.arange(n)

    def row(i: Any, A: Array) -> Array:
        def lower(j: Any, A: Array) -> Array:
            return A.at[i, j].set((A[i, j] - jnp.where(at < j, A[i, :], 0.0) @ A[:, j]) / A[j, j])

        def upper(j: Any, A: Array) -> Array:
            return A.at[i, j].add(-jnp.where(at < i, A[i, :], 0.0) @ A[:, j])

        def element(j: Any, A: Array) -> Array:
            return jax.lax.cond(j < i, lower, upper, j, A)

        return fori_loop(0, n, element, A)

    return fori_loop(0, n, row, A)


def cholesky(A: Array) -> Array:
    n = A.shape[0]
    at = jnp.arange(n)

    def row(i: Any, A: Array) -> Array:
        def element(j: Any, A: Array) -> Array:
            new = (A[i, j] - jnp.where(at < j, A[i, :] * A[j, :], 0.0).sum()) / A[j, j]
            return A.at[i, j].set(jnp.where(j < i, new, A[i, j]))

        A = fori_loop(0, n, element, A)
        return A.at[i, i].set(jnp.sqrt(A[i, i] - jnp.where(at < i, A[i, :] ** 2, 0.0).sum()))

    return fori_loop(0, n, row, A)


def durbin(r: Array) -> Array:
    n = len(r)
    at = jnp.arange(n)

    def step(k: Any, carry: Any) -> Any:
        y, alpha, beta = carry
        beta = beta * (1 - alpha * alpha)
        back = jnp.roll(y[::-1], k)  # y[k - 1 - i] at i
        known = at < k
        mirrored = jnp.roll(r[::-1], k)  # r[k - 1 - i] at i
        alpha = -(r[k] + jnp.where(known, mirrored * y, 0.0).sum()) / beta
        y = jnp.where(known, y + alpha * back, y).at[k].set(alpha)
        return y, alpha, beta

    start = jnp.zeros(n, r.dtype).at[0].set(-r[0]), -r[0], jnp.ones((), r.dtype)
    return fori_loop(1, n, step, start)[0]


def gramschmidt(A: Array) -> Any:
    M, N = A.shape

    def column(k: Any, carry: Any) -> Any:
        A, Q, R = carry
        norm = jnp.sqrt(A[:, k] @ A[:, k])
        R, Q = R.at[k, k].set(norm), Q.at[:, k].set(A[:, k] / norm)

        def others(j: Any, carry: Any) -> Any:
            A, R = carry
            own = jnp.where(j > k, Q[:, k] @ A[:, j], 0.0)
            R = R.at[k, j].add(own)
            return A.at[:, j].add(-Q[:, k] * own), R

        A, R = fori_loop(0, N, others, (A, R))
        return A, Q, R

    return fori_loop(0, N, column, (A, jnp.zeros((M, N), A.dtype), jnp.zeros((N, N), A.dtype)))


def seidel_2d(steps: int, A: Array) -> Array:
    N = A.shape[0]

    def row(i: Any, A: Array) -> Array:
        up, own, down = A[i - 1], A[i], A[i + 1]
        own = own.at[1:-1].add(up[:-2] + up[1:-1] + up[2:] + own[2:] + down[:-2] + down[1:-1] + down[2:])
        own = fori_loop(1, N - 1, lambda j, own: own.at[j].set((own[j] + own[j - 1]) / 9.0), own)
        return A.at[i].set(own)

    return fori_loop(0, steps, lambda _, A: fori_loop(1, N - 1, row, A), A)


def jacobi_1d(steps: int, A: Array, B: Array) -> Any:
    def step(_: Any, carry: Any) -> Any:
        A, B = carry
        B = B.at[1:-1].set(0.33333 * (A[:-2] + A[1:-1] + A[2:]))
        A = A.at[1:-1].set(0.33333 * (B[:-2] + B[1:-1] + B[2:]))
        return A, B

    return fori_loop(1, steps, step, (A, B))


def jacobi_2d(steps: int, A: Array, B: Array) -> Any:
    def mean(A: Array) -> Array:
        return 0.2 * (A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1])

    def step(_: Any, carry: Any) -> Any:
        A, B = carry
        B = B.at[1:-1, 1:-1].set(mean(A))
        return A.at[1:-1, 1:-1].set(mean(B)), B

    return fori_loop(1, steps, step, (A, B))


def heat_3d(steps: int, A: Array, B: Array) -> Any:
    i = slice(1, -1)

    def step(_: Any, carry: Any) -> Any:
        A, B = carry
        own = A[i, i, i]
        new = (
            0.125 * (A[2:, i, i] - 2 * own + A[:-2, i, i]) + 0.125 * (A[i, 2:, i] - 2 * own + A[i, :-2, i])
            + 0.125 * (A[i, i, 2:] - 2 * own + A[i, i, :-2]) + own
        )  # fmt: skip
        B = B.at[i, i, i].set(new)
        A = A.at[i, i, i].set(0.5 * B[i, i, i] + 0.1 * (B[2:, i, i] + B[:-2, i, i]))
        return A, B

    return fori_loop(0, steps, step, (A, B))


def adi(steps: int, u: Array) -> Array:
    n = u.shape[0]
    a, b, c, d = -0.3, 1.6, -0.3, -0.2

    def sweep(right: Array) -> Array:
        """One implicit sweep, of all lines at once: ``right[j]`` is what position ``j`` of each line has."""

        def down(j: Any, carry: Any) -> Any:
            p, q = carry
            below = a * p[:, j - 1] + b
            return p.at[:, j].set(-c / below), q.at[:, j].set((right[j - 1] - a * q[:, j - 1]) / below)

        lines = right.shape[1]
        p = jnp.zeros((lines, n), u.dtype)
        p, q = fori_loop(1, n - 1, down, (p, p.at[:, 0].set(1.0)))
        x = jnp.ones((lines, n), u.dtype)

        def up(m: Any, x: Array) -> Array:
            j = n - 2 - m
            return x.at[:, j].set(p[:, j] * x[:, j + 1] + q[:, j])

        return fori_loop(0, n - 2, up, x)

    def explicit(u: Array) -> Array:
        """Along the second axis."""
        return -d * u[:, :-2] + (1 + 2 * d) * u[:, 1:-1] - d * u[:, 2:]

    def step(_: Any, carry: Any) -> Any:
        u, v = carry
        v = v.at[:, 1:-1].set(sweep(explicit(u)[1:-1]).T)
        return u.at[1:-1, :].set(sweep(explicit(v.T)[1:-1])), v

    return fori_loop(0, steps, step, (u, jnp.zeros((n, n), u.dtype)))[0]


def fdtd_2d(steps: int, ex: Array, ey: Array, hz: Array, fict: Array) -> Any:
    def step(t: Any, carry: Any) -> Any:
        ex, ey, hz = carry
        ey = ey.at[0, :].set(fict[t])
        ey = ey.at[1:, :].add(-0.5 * (hz[1:, :] - hz[:-1, :]))
        ex = ex.at[:, 1:].add(-0.5 * (hz[:, 1:] - hz[:, :-1]))
        hz = hz.at[:-1, :-1].add(-0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]))
        return ex, ey, hz

    return fori_loop(0, steps, step, (ex, ey, hz))


def correlation(data: Array) -> Any:
    N, M = data.shape
    mean, stddev = data.mean(0), data.std(0)
    stddev = jnp.where(stddev <= 0.1, 1.0, stddev)
    data = (data - mean) / (jnp.sqrt(N) * stddev)

    def row(i: Any, corr: Array) -> Array:
        own = jnp.where(jnp.arange(M) > i, data[:, i] @ data, corr[i, :])
        corr = corr.at[i, :].set(own)
        return corr.at[:, i].set(jnp.where(jnp.arange(M) > i, own, corr[:, i]))

    return data, fori_loop(0, M - 1, row, jnp.eye(M, dtype=data.dtype))


def covariance(data: Array) -> Any:
    N, M = data.shape
    data = data - data.mean(0)

    def row(i: Any, cov: Array) -> Array:
        own = jnp.where(jnp.arange(M) >= i, data[:, i] @ data / (N - 1.0), cov[i, :])
        cov = cov.at[i, :].set(own)
        return cov.at[:, i].set(jnp.where(jnp.arange(M) >= i, own, cov[:, i]))

    return data, fori_loop(0, M, row, jnp.zeros((M, M), data.dtype))


def doitgen(A: Array, C4: Array) -> Array:
    NR, NQ, _ = A.shape

    def row(r: Any, q: Any, A: Array) -> Array:
        return A.at[r, q, :].set(A[r, q, :] @ C4)

    return fori_loop(0, NR, lambda r, A: fori_loop(0, NQ, lambda q, A: row(r, q, A), A), A)


def deriche(alpha: float, image: Array) -> Array:
    e = jnp.exp(-alpha)
    k = (1 - e) * (1 - e) / (1 + alpha * e * 2 - jnp.exp(2 * alpha))
    a1, a2, a3, a4 = k, k * e * (alpha - 1), k * e * (alpha + 1), -k * jnp.exp(-2 * alpha)
    b1, b2 = 2.0 ** (-alpha), -jnp.exp(-2 * alpha)
    W, H = image.shape
    y1 = jnp.zeros((W, H), image.dtype).at[:, 0].set(a1 * image[:, 0])
    y1 = y1.at[:, 1].set(a1 * image[:, 1] + a2 * image[:, 0] + b1 * y1[:, 0])

    def right(j: Any, y: Array) -> Array:
        return y.at[:, j].set(a1 * image[:, j] + a2 * image[:, j - 1] + b1 * y[:, j - 1] + b2 * y[:, j - 2])

    y1 = fori_loop(2, H, right, y1)
    y2 = jnp.zeros((W, H), image.dtype).at[:, H - 2].set(a3 * image[:, H - 1])

    def left(m: Any, y: Array) -> Array:
        j = H - 3 - m
        return y.at[:, j].set(
            a3 * image[:, j + 1] + a4 * image[:, j + 2] + b1 * y[:, j + 1] + b2 * y[:, j + 2]
        )

    return y1 + fori_loop(0, H - 2, left, y2)


def nussinov(score: Array) -> Array:
    n = score.shape[0]
    at = jnp.arange(n)

    def element(i: Any, j: Any, table: Array) -> Array:
        own = jnp.maximum(jnp.maximum(table[i, j], table[i, j - 1]), table[i + 1, j])
        own = jnp.maximum(own, table[i + 1, j - 1] + jnp.where(i < j - 1, score[i, j], 0.0))
        below = jnp.roll(table[:, j], -1)  # table[k + 1, j] at k
        splits = jnp.where((at > i) & (at < j), table[i, :] + below, 0.0)
        own = jnp.maximum(own, splits.max())
        return table.at[i, j].set(jnp.where(j > i, own, table[i, j]))

    def row(m: Any, table: Array) -> Array:
        i = n - 2 - m
        return fori_loop(0, n, lambda j, table: element(i, j, table), table)

    return fori_loop(0, n - 1, row, jnp.zeros((n, n), score.dtype))


def floyd_warshall(path: Array) -> Array:
    def step(k: Any, path: Array) -> Array:
        return jnp.minimum(path, path[:, k][:, None] + path[k, :][None, :])

    return fori_loop(0, path.shape[0], step, path)


def trisolv(L: Array, x: Array, b: Array) -> Array:
    at = jnp.arange(len(b))

    def row(i: Any, x: Array) -> Array:
        return x.at[i].set((b[i] - jnp.where(at < i, L[i, :], 0.0) @ x) / L[i, i])

    return fori_loop(0, len(b), row, x)


def ludcmp(A: Array, b: Array) -> Any:
    n = len(b)
    at = jnp.arange(n)
    A = lu(A)

    def down(i: Any, y: Array) -> Array:
        return y.at[i].set(b[i] - jnp.where(at < i, A[i, :], 0.0) @ y)

    y = fori_loop(0, n, down, jnp.zeros_like(b))

    def up(m: Any, x: Array) -> Array:
        i = n - 1 - m
        return x.at[i].set((y[i] - jnp.where(at > i, A[i, :], 0.0) @ x) / A[i, i])

    return A, fori_loop(0, n, up, jnp.zeros_like(b)), y


def softmax(x: Array) -> Array:
    e = jnp.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def mlp(x: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> Array:
    return softmax(jnp.maximum(x @ w1 + b1, 0) @ w2 + b2)


def conv2d(data: Array, weights: Array, bias: Array) -> Array:
    K = weights.shape[0]
    N, H, W = data.shape[0], data.shape[1] - K + 1, data.shape[2] - K + 1

    def pixel(i: Any, j: Any, out: Array) -> Array:
        window = jax.lax.dynamic_slice(data, (0, i, j, 0), (N, K, K, data.shape[3]))
        return out.at[:, i, j, :].set(jnp.einsum("nkmc,kmcf->nf", window, weights))

    out = jnp.zeros((N, H, W, weights.shape[3]), data.dtype)
    out = fori_loop(0, H, lambda i, out: fori_loop(0, W, lambda j, out: pixel(i, j, out), out), out)
    return out + bias


def lenet(image: Array, conv: Array, bias: Array, dense: Array) -> Array:
    K = conv.shape[0]
    H, W, F = image.shape[0] - K + 1, image.shape[1] - K + 1, conv.shape[2]

    def pixel(i: Any, j: Any, out: Array) -> Array:
        window = jax.lax.dynamic_slice(image, (i, j), (K, K))
        return out.at[i, j, :].set(jnp.einsum("km,kmf->f", window, conv))

    out = jnp.zeros((H, W, F), image.dtype)
    out = fori_loop(0, H, lambda i, out: fori_loop(0, W, lambda j, out: pixel(i, j, out), out), out)
    out = jnp.maximum(out + bias, 0)[: H // 2 * 2, : W // 2 * 2]
    pooled = out.reshape(H // 2, 2, W // 2, 2, F).max((1, 3))
    return jnp.einsum("ijf,ijfo->o", pooled, dense)


def arc_distance(theta_1: Array, phi_1: Array, theta_2: Array, phi_2: Array) -> Array:
    turned = jnp.cos(theta_1) * jnp.cos(theta_2) * jnp.sin((phi_2 - phi_1) / 2) ** 2
    temp = jnp.sin((theta_2 - theta_1) / 2) ** 2 + turned
    return 2 * jnp.arctan2(jnp.sqrt(temp), jnp.sqrt(1 - temp))


def compute(first: Array, second: Array, a: float, b: float, c: float) -> Array:
    return jnp.minimum(jnp.maximum(first, -0.5), 0.5) * a + second * b + c


def azimint_naive(data: Array, radius: Array, count: int) -> Array:
    largest = radius.max()

    def ring(i: Any, res: Array) -> Array:
        inside = (largest * i / count <= radius) & (radius < largest * (i + 1) / count)
        return res.at[i].set(jnp.where(inside, data, 0.0).sum() / jnp.maximum(inside.sum(), 1))

    return fori_loop(0, count, ring, jnp.zeros(count, data.dtype))


def go_fast(a: Array) -> Array:
    return a + fori_loop(0, a.shape[0], lambda i, trace: trace + jnp.tanh(a[i, i]), jnp.zeros((), a.dtype))


def nbody(mass: Array, pos: Array, vel: Array, steps: int, dt: float, G: float, softening: float) -> Any:
    def pull(pos: Array) -> Array:
        away = pos[None, :, :] - pos[:, None, :]
        inverse = ((away**2).sum(-1) + softening**2) ** -1.5
        return G * jnp.einsum("ijk,ij,j->ik", away, inverse, mass)

    def step(t: Any, carry: Any) -> Any:
        pos, vel, acc, energy = carry
        vel = vel + acc * dt / 2
        pos = pos + vel * dt
        acc = pull(pos)
        vel = vel + acc * dt / 2
        return pos, vel, acc, energy.at[t].set(0.5 * (mass[:, None] * vel**2).sum())

    start = pos, vel, jnp.zeros_like(pos), jnp.zeros(steps, pos.dtype)
    pos, vel, _, energy = fori_loop(0, steps, step, start)
    return pos, vel, energy


def hdiff(field: Array, coefficients: Array) -> Array:
    rows, columns = field.shape[0] - 4, field.shape[1] - 4
    i, j = slice(1, rows + 3), slice(1, columns + 3)
    lap = 4 * field[i, j] - (
        field[2 : rows + 4, j] + field[: rows + 2, j] + field[i, 2 : columns + 4] + field[i, : columns + 2]
    )
    res = lap[1:, 1 : columns + 1] - lap[:-1, 1 : columns + 1]
    j = slice(2, columns + 2)
    along = jnp.where(res * (field[2 : rows + 3, j] - field[1 : rows + 2, j]) > 0, 0.0, res)
    res = lap[1 : rows + 1, 1:] - lap[1 : rows + 1, :-1]
    i = slice(2, rows + 2)
    across = jnp.where(res * (field[i, 2 : columns + 3] - field[i, 1 : columns + 2]) > 0, 0.0, res)
    return field[i, j] - coefficients * (along[1:] - along[:-1] + across[:, 1:] - across[:, :-1])


def vadv(u_stage: Array, wcon: Array, u_pos: Array, utens: Array, step: float) -> Array:
    levels = u_pos.shape[2]
    both = 0.25 * (wcon[1:, :, :] + wcon[:-1, :, :])

    def level(k: Any, first: Any, last: Any, before: Any) -> Any:
        c, d = before
        gav, gcv = -both[:, :, k], both[:, :, jnp.minimum(k + 1, levels - 1)]
        own, up, down = (u_stage[:, :, m] for m in (k, jnp.minimum(k + 1, levels - 1), jnp.maximum(k - 1, 0)))
        a, e = jnp.where(first, 0.0, gav * 0.5), jnp.where(last, 0.0, gcv * 0.5)
        corr = -a * (down - own) - e * (up - own)
        b, right = step - a - e, step * u_pos[:, :, k] + utens[:, :, k] + corr
        divided = 1.0 / (b - c * a)
        return e * divided, (right - d * a) * divided

    def down(k: Any, carry: Any) -> Any:
        c, d = carry
        back = jnp.maximum(k - 1, 0)
        new = level(k, k == 0, k == levels - 1, (c[:, :, back], d[:, :, back]))
        return c.at[:, :, k].set(new[0]), d.at[:, :, k].set(new[1])

    nothing = jnp.zeros_like(u_pos)
    c, d = fori_loop(0, levels, down, (nothing, nothing))
    out = nothing.at[:, :, -1].set(step * (d[:, :, -1] - u_pos[:, :, -1]))

    def up(m: Any, out: Array) -> Array:
        k = levels - 2 - m
        x = d[:, :, k] - c[:, :, k] * (out[:, :, k + 1] / step + u_pos[:, :, k + 1])
        return out.at[:, :, k].set(step * (x - u_pos[:, :, k]))

    return fori_loop(0, levels - 1, up, out)


def cavity_flow(
    steps: int,
    inner: int,
    u: Array,
    v: Array,
    dt: float,
    dx: float,
    dy: float,
    p: Array,
    rho: float,
    nu: float,
) -> Any:
    i = slice(1, -1)

    def source(u: Array, v: Array) -> Array:
        across, down = (u[i, 2:] - u[i, :-2]) / (2 * dx), (v[2:, i] - v[:-2, i]) / (2 * dy)
        shear = (u[2:, i] - u[:-2, i]) / (2 * dy) * (v[i, 2:] - v[i, :-2]) / (2 * dx)
        return rho * ((across + down) / dt - across**2 - 2 * shear - down**2)

    def step(_: Any, carry: Any) -> Any:
        u, v, p = carry
        un, vn, b = u, v, source(u, v)

        def pressure(_: Any, p: Array) -> Array:
            new = (p[i, 2:] + p[i, :-2]) * dy**2 + (p[2:, i] + p[:-2, i]) * dx**2 - dx**2 * dy**2 * b
            p = p.at[i, i].set(new / (2 * (dx**2 + dy**2)))
            p = p.at[:, -1].set(p[:, -2])
            p = p.at[0, :].set(p[1, :])
            return p.at[:, 0].set(p[:, 1]).at[-1, :].set(0.0)

        p = fori_loop(0, inner, pressure, p)
        own, other = un[i, i], vn[i, i]
        u = u.at[i, i].set(
            own - own * dt / dx * (own - un[i, :-2]) - other * dt / dy * (own - un[:-2, i])
            - dt / (2 * rho * dx) * (p[i, 2:] - p[i, :-2]) + nu * dt / dx**2 * (un[i, 2:] - 2 * own + un[i, :-2])
        )  # fmt: skip
        v = v.at[i, i].set(
            other - own * dt / dx * (other - vn[i, :-2]) - dt / (2 * rho * dy) * (p[2:, i] - p[:-2, i])
        )
        u = u.at[0, :].set(0.0).at[:, 0].set(0.0).at[:, -1].set(0.0).at[-1, :].set(1.0)
        v = v.at[0, :].set(0.0).at[-1, :].set(0.0).at[:, 0].set(0.0).at[:, -1].set(0.0)
        return u, v, p

    return fori_loop(0, steps, step, (u, v, p))


def channel_flow(steps: int, u: Array, p: Array, dt: float, dx: float, force: float) -> Array:
    i = slice(1, -1)

    def step(_: Any, u: Array) -> Array:
        right, left = jnp.roll(u, -1, 1), jnp.roll(u, 1, 1)
        push = jnp.roll(p, -1, 1) - jnp.roll(p, 1, 1)
        new = u - dt / dx * u * (u - left) - dt / (2 * dx) * push
        around = right - 2 * u + left + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 0)
        new = new + dt / dx**2 * around + force * dt
        return u.at[i].set(new[i]).at[0, :].set(0.0).at[-1, :].set(0.0)

    return fori_loop(0, steps, step, u)


BY_HAND: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        trmm, symm, syrk, syr2k, lu, cholesky, durbin, gramschmidt, seidel_2d, jacobi_1d, jacobi_2d, heat_3d, adi, fdtd_2d, correlation,
        covariance, doitgen, deriche, nussinov, floyd_warshall, trisolv, ludcmp, softmax, mlp, conv2d, lenet, arc_distance, compute,
        azimint_naive, go_fast, nbody, hdiff, vadv, cavity_flow, channel_flow,
    )
}  # fmt: skip
