"""Kernels of linear algebra, stencils and dynamic programming as ordinary loops over NumPy arrays, each with arguments of a few elements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Kernel:
    """``run`` and how its arguments are made; ``integers`` of them have no gradient."""

    run: Callable[..., Any]
    make: Callable[[np.random.Generator], list[Any]]


def normal(*shapes):
    return lambda rng: [s if isinstance(s, (int, float)) else rng.normal(size=s) for s in shapes]


def _definite(n: int, *more):
    """A well conditioned symmetric matrix first."""

    def make(rng):
        root = rng.normal(size=(n, n)) * 0.3
        return [root @ root.T + 2 * np.eye(n), *(rng.normal(size=s) for s in more)]

    return make


def trmm(alpha, A, B):
    M, N = B.shape
    for i in range(M):
        for j in range(N):
            for k in range(i + 1, M):
                B[i, j] += A[k, i] * B[k, j]
            B[i, j] *= alpha


def symm(alpha, beta, C, A, B):
    M, N = C.shape
    for i in range(M):
        for j in range(N):
            temp = 0.0
            for k in range(i):
                C[k, j] += alpha * B[i, j] * A[i, k]
                temp += B[k, j] * A[i, k]
            C[i, j] = beta * C[i, j] + alpha * B[i, j] * A[i, i] + alpha * temp


def syrk(alpha, beta, C, A):
    N, M = A.shape
    for i in range(N):
        for j in range(i + 1):
            C[i, j] *= beta
        for k in range(M):
            for j in range(i + 1):
                C[i, j] += alpha * A[i, k] * A[j, k]


def syr2k(alpha, beta, C, A, B):
    N, M = A.shape
    for i in range(N):
        for j in range(i + 1):
            C[i, j] *= beta
        for k in range(M):
            for j in range(i + 1):
                C[i, j] += A[j, k] * alpha * B[i, k] + B[j, k] * alpha * A[i, k]


def lu(A):
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            for k in range(j):
                A[i, j] -= A[i, k] * A[k, j]
            A[i, j] /= A[j, j]
        for j in range(i, n):
            for k in range(i):
                A[i, j] -= A[i, k] * A[k, j]


def cholesky(A):
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            for k in range(j):
                A[i, j] -= A[i, k] * A[j, k]
            A[i, j] /= A[j, j]
        for k in range(i):
            A[i, i] -= A[i, k] ** 2
        A[i, i] = np.sqrt(A[i, i])


def durbin(r):
    n = len(r)
    y = np.zeros(n)
    z = np.empty(n)
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, n):
        beta *= 1.0 - alpha * alpha
        total = 0.0
        for i in range(k):
            total += r[k - i - 1] * y[i]
        alpha = -(r[k] + total) / beta
        for i in range(k):
            z[i] = y[i] + alpha * y[k - i - 1]
        for i in range(k):
            y[i] = z[i]
        y[k] = alpha
    return y


def gramschmidt(A):
    M, N = A.shape
    Q = np.zeros((M, N))
    R = np.zeros((N, N))
    for k in range(N):
        norm = 0.0
        for i in range(M):
            norm += A[i, k] * A[i, k]
        R[k, k] = np.sqrt(norm)
        for i in range(M):
            Q[i, k] = A[i, k] / R[k, k]
        for j in range(k + 1, N):
            for i in range(M):
                R[k, j] += Q[i, k] * A[i, j]
            for i in range(M):
                A[i, j] -= Q[i, k] * R[k, j]
    return A, Q, R


def seidel_2d(steps, A):
    N = A.shape[0]
    for _t in range(steps):
        for i in range(1, N - 1):
            for j in range(1, N - 1):
                A[i, j] = (
                    A[i - 1, j - 1] + A[i - 1, j] + A[i - 1, j + 1] + A[i, j - 1] + A[i, j] + A[i, j + 1]
                    + A[i + 1, j - 1] + A[i + 1, j] + A[i + 1, j + 1]
                ) / 9.0  # fmt: skip


def jacobi_1d(steps, A, B):
    for _t in range(1, steps):
        for i in range(1, len(A) - 1):
            B[i] = 0.33333 * (A[i - 1] + A[i] + A[i + 1])
        for i in range(1, len(A) - 1):
            A[i] = 0.33333 * (B[i - 1] + B[i] + B[i + 1])


def jacobi_2d(steps, A, B):
    for _t in range(1, steps):
        B[1:-1, 1:-1] = 0.2 * (A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1])
        A[1:-1, 1:-1] = 0.2 * (B[1:-1, 1:-1] + B[1:-1, :-2] + B[1:-1, 2:] + B[2:, 1:-1] + B[:-2, 1:-1])


def heat_3d(steps, A, B):
    n = A.shape[0] - 1
    for _t in range(steps):
        for i in range(1, n):
            for j in range(1, n):
                for k in range(1, n):
                    B[i, j, k] = (
                        0.125 * (A[i + 1, j, k] - 2 * A[i, j, k] + A[i - 1, j, k])
                        + 0.125 * (A[i, j + 1, k] - 2 * A[i, j, k] + A[i, j - 1, k])
                        + 0.125 * (A[i, j, k + 1] - 2 * A[i, j, k] + A[i, j, k - 1])
                        + A[i, j, k]
                    )
        for i in range(1, n):
            for j in range(1, n):
                for k in range(1, n):
                    A[i, j, k] = 0.5 * B[i, j, k] + 0.1 * (B[i + 1, j, k] + B[i - 1, j, k])


def adi(steps, u):
    n = u.shape[0]
    v = np.zeros((n, n))
    p = np.zeros((n, n))
    q = np.zeros((n, n))
    a, b, c, d = -0.3, 1.6, -0.3, -0.2
    for _t in range(steps):
        for i in range(1, n - 1):
            v[0, i] = 1.0
            p[i, 0] = 0.0
            q[i, 0] = v[0, i]
            for j in range(1, n - 1):
                p[i, j] = -c / (a * p[i, j - 1] + b)
                q[i, j] = (
                    -d * u[j, i - 1] + (1.0 + 2.0 * d) * u[j, i] - d * u[j, i + 1] - a * q[i, j - 1]
                ) / (a * p[i, j - 1] + b)
            v[n - 1, i] = 1.0
            for j in range(n - 2, 0, -1):
                v[j, i] = p[i, j] * v[j + 1, i] + q[i, j]
        for i in range(1, n - 1):
            u[i, 0] = 1.0
            p[i, 0] = 0.0
            q[i, 0] = u[i, 0]
            for j in range(1, n - 1):
                p[i, j] = -c / (a * p[i, j - 1] + b)
                q[i, j] = (
                    -d * v[i - 1, j] + (1.0 + 2.0 * d) * v[i, j] - d * v[i + 1, j] - a * q[i, j - 1]
                ) / (a * p[i, j - 1] + b)
            u[i, n - 1] = 1.0
            for j in range(n - 2, 0, -1):
                u[i, j] = p[i, j] * u[i, j + 1] + q[i, j]


def fdtd_2d(steps, ex, ey, hz, fict):
    for t in range(steps):
        ey[0, :] = fict[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


def correlation(data):
    N, M = data.shape
    mean = np.zeros(M)
    stddev = np.zeros(M)
    corr = np.zeros((M, M))
    for j in range(M):
        for i in range(N):
            mean[j] += data[i, j]
        mean[j] /= N
    for j in range(M):
        for i in range(N):
            stddev[j] += (data[i, j] - mean[j]) * (data[i, j] - mean[j])
        stddev[j] = np.sqrt(stddev[j] / N)
        if stddev[j] <= 0.1:
            stddev[j] = 1.0
    for i in range(N):
        for j in range(M):
            data[i, j] -= mean[j]
            data[i, j] /= np.sqrt(N) * stddev[j]
    for i in range(M - 1):
        corr[i, i] = 1.0
        for j in range(i + 1, M):
            for k in range(N):
                corr[i, j] += data[k, i] * data[k, j]
            corr[j, i] = corr[i, j]
    corr[M - 1, M - 1] = 1.0
    return data, corr


def covariance(data):
    N, M = data.shape
    mean = np.zeros(M)
    cov = np.zeros((M, M))
    for j in range(M):
        for i in range(N):
            mean[j] += data[i, j]
        mean[j] /= N
    for i in range(N):
        for j in range(M):
            data[i, j] -= mean[j]
    for i in range(M):
        for j in range(i, M):
            for k in range(N):
                cov[i, j] += data[k, i] * data[k, j]
            cov[i, j] /= N - 1.0
            cov[j, i] = cov[i, j]
    return data, cov


def doitgen(A, C4):
    NR, NQ, NP = A.shape
    total = np.zeros(NP)
    for r in range(NR):
        for q in range(NQ):
            for p in range(NP):
                total[p] = 0.0
                for s in range(NP):
                    total[p] += A[r, q, s] * C4[s, p]
            for p in range(NP):
                A[r, q, p] = total[p]


def deriche(alpha, image):
    k = (
        (1.0 - np.exp(-alpha))
        * (1.0 - np.exp(-alpha))
        / (1.0 + alpha * np.exp(-alpha) * 2.0 - np.exp(2.0 * alpha))
    )
    a1, a2 = k, k * np.exp(-alpha) * (alpha - 1.0)
    a3, a4 = k * np.exp(-alpha) * (alpha + 1.0), -k * np.exp(-2.0 * alpha)
    b1, b2 = 2.0 ** (-alpha), -np.exp(-2.0 * alpha)
    W, H = image.shape
    y1 = np.empty((W, H))
    y2 = np.empty((W, H))
    out = np.empty((W, H))
    for i in range(W):
        before, last, second = 0.0, 0.0, 0.0
        for j in range(H):
            y1[i, j] = a1 * image[i, j] + a2 * before + b1 * last + b2 * second
            before = image[i, j]
            second = last
            last = y1[i, j]
    for i in range(W):
        up, up2, next1, next2 = 0.0, 0.0, 0.0, 0.0
        for j in range(H - 1, -1, -1):
            y2[i, j] = a3 * up + a4 * up2 + b1 * next1 + b2 * next2
            up2 = up
            up = image[i, j]
            next2 = next1
            next1 = y2[i, j]
    for i in range(W):
        for j in range(H):
            out[i, j] = y1[i, j] + y2[i, j]
    return out


def nussinov(score):
    """The best pairing of a sequence; ``score[i, j]`` is that of one pair."""
    n = score.shape[0]
    table = np.zeros((n, n))
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            table[i, j] = max(table[i, j], table[i, j - 1])
            table[i, j] = max(table[i, j], table[i + 1, j])
            if i < j - 1:
                table[i, j] = max(table[i, j], table[i + 1, j - 1] + score[i, j])
            else:
                table[i, j] = max(table[i, j], table[i + 1, j - 1])
            for k in range(i + 1, j):
                table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])
    return table


def floyd_warshall(path):
    n = path.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                path[i, j] = min(path[i, j], path[i, k] + path[k, j])


KERNELS = {
    "trmm": Kernel(trmm, normal(1.5, (4, 4), (4, 3))),
    "symm": Kernel(symm, normal(1.5, 1.2, (4, 3), (4, 4), (4, 3))),
    "syrk": Kernel(syrk, normal(1.5, 1.2, (4, 4), (4, 3))),
    "syr2k": Kernel(syr2k, normal(1.5, 1.2, (4, 4), (4, 3), (4, 3))),
    "lu": Kernel(lu, _definite(4)),
    "cholesky": Kernel(cholesky, _definite(4)),
    "durbin": Kernel(durbin, lambda rng: [rng.normal(size=4) * 0.2]),
    "gramschmidt": Kernel(gramschmidt, normal((4, 3))),
    "seidel_2d": Kernel(seidel_2d, normal(2, (4, 4))),
    "jacobi_1d": Kernel(jacobi_1d, normal(4, (6,), (6,))),
    "jacobi_2d": Kernel(jacobi_2d, normal(3, (5, 5), (5, 5))),
    "heat_3d": Kernel(heat_3d, normal(2, (4, 4, 4), (4, 4, 4))),
    "adi": Kernel(adi, normal(2, (4, 4))),
    "fdtd_2d": Kernel(fdtd_2d, normal(2, (4, 5), (4, 5), (4, 5), (2,))),
    "correlation": Kernel(correlation, normal((5, 3))),
    "covariance": Kernel(covariance, normal((5, 3))),
    "doitgen": Kernel(doitgen, normal((2, 3, 4), (4, 4))),
    "deriche": Kernel(deriche, normal(0.25, (3, 4))),
    "nussinov": Kernel(nussinov, lambda rng: [abs(rng.normal(size=(4, 4)))]),
    "floyd_warshall": Kernel(floyd_warshall, lambda rng: [rng.uniform(1, 9, size=(3, 3))]),
}  # fmt: skip
