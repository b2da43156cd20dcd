"""Kernels that NPBench writes with whole functions of NumPy (a histogram, covariances, a factor, masks), as the loops that these are."""

from __future__ import annotations

import numpy as np

from npbench.kernels import Kernel, normal


def azimint_hist(data, radius, count):
    """Means of ``data`` over rings of equal width; the last edge belongs to the last ring, as in ``np.histogram``."""
    least, most = radius[0], radius[0]
    for k in range(1, len(radius)):
        least = min(least, radius[k])
        most = max(most, radius[k])
    weights = np.zeros(count)
    members = np.zeros(count)
    for k in range(len(data)):
        ring = min(int(count * (radius[k] - least) / (most - least)), count - 1)
        weights[ring] += data[k]
        members[ring] += 1.0
    return weights / members


def cholesky2(A):
    """The factor in the lower triangle, what was there in the upper one."""
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            for k in range(j):
                A[i, j] -= A[i, k] * A[j, k]
            A[i, j] /= A[j, j]
        for k in range(i):
            A[i, i] -= A[i, k] * A[i, k]
        A[i, i] = np.sqrt(A[i, i])


def covariance2(data):
    """``np.cov`` of the columns."""
    n, m = data.shape
    mean = np.mean(data, axis=0)
    cov = np.zeros((m, m))
    for i in range(m):
        for j in range(m):
            for k in range(n):
                cov[i, j] += (data[k, i] - mean[i]) * (data[k, j] - mean[j])
            cov[i, j] /= n - 1.0
    return cov


def mandelbrot1(C, steps, horizon):
    """All steps of every point, under a mask of those that are within the horizon."""
    Z = np.zeros(C.shape, dtype=complex)
    N = np.zeros(C.shape, dtype=int)
    for n in range(steps):
        for i in range(C.shape[0]):
            for j in range(C.shape[1]):
                if abs(Z[i, j]) < horizon:
                    N[i, j] = n
                    Z[i, j] = Z[i, j] ** 2 + C[i, j]
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            if N[i, j] == steps - 1:
                N[i, j] = 0
    return Z, N


def mandelbrot2(C, steps, horizon):
    """Each point until it leaves the horizon; what leaves is written once, and 0 where nothing does."""
    Z = np.zeros(C.shape, dtype=complex)
    N = np.zeros(C.shape, dtype=int)
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            z = 0.0j
            for n in range(steps):
                z = z * z + C[i, j]
                if abs(z) > horizon:
                    Z[i, j] = z
                    N[i, j] = n + 1
                    break
    return Z, N


def spmv(ptr, columns, values, x, most):
    """A sparse matrix by rows of at most ``most`` entries, times a vector."""
    y = np.zeros(len(ptr) - 1)
    for i in range(len(ptr) - 1):
        for k in range(min(ptr[i + 1] - ptr[i], most)):
            y[i] += values[ptr[i] + k] * x[columns[ptr[i] + k]]
    return y


def _plane(rng):
    """Points of the plane around the set, none of them at the edge of the horizon."""
    return [rng.uniform(-2, 0.5, size=(3, 4)) + 1j * rng.uniform(-1, 1, size=(3, 4)), 5, 2.0]


def _definite(rng):
    root = rng.normal(size=(4, 4))
    return [root @ root.T + 4 * np.eye(4)]


def _sparse(rng):
    ptr, columns = np.array([0, 2, 2, 5, 6], "int32"), np.array([1, 3, 0, 2, 3, 1], "int32")
    return [ptr, columns, rng.normal(size=6), rng.normal(size=4), 3]


LIBRARIES = {
    "azimint_hist": Kernel(azimint_hist, lambda rng: [rng.normal(size=30), rng.uniform(size=30), 3]),
    "cholesky2": Kernel(cholesky2, _definite),
    "covariance2": Kernel(covariance2, normal((5, 3))),
    "mandelbrot1": Kernel(mandelbrot1, _plane),
    "mandelbrot2": Kernel(mandelbrot2, _plane),
    "spmv": Kernel(spmv, _sparse),
}
