"""Kernels on complex arrays, and a block of a residual network, as ordinary loops over NumPy arrays."""

from __future__ import annotations

import numpy as np

import jaxte as te
from npbench.kernels import Kernel, normal


def stockham_fft(radix, digits, x):
    """A transform of ``radix**digits`` elements, one digit of the position in each stage."""
    n = radix**digits
    y = x.copy()
    z = np.zeros(n, dtype=x.dtype)
    for i in range(digits):
        for a in range(radix):
            for b in range(radix**i):
                for c in range(radix ** (digits - i - 1)):
                    turn = np.exp(-2j * np.pi * a * b / radix ** (i + 1))
                    z[(a * radix**i + b) * radix ** (digits - i - 1) + c] = (
                        y[(b * radix + a) * radix ** (digits - i - 1) + c] * turn
                    )
        y[:] = 0.0
        for a in range(radix):
            for b in range(radix):
                for c in range(radix ** (digits - 1)):
                    y[a * radix ** (digits - 1) + c] += (
                        np.exp(-2j * np.pi * a * b / radix) * z[b * radix ** (digits - 1) + c]
                    )
    return y


def contour_integral(blocks, hamiltonian, points, y):
    """Sums over ``points`` of a plane of the solution of a linear system each, by elimination without pivots."""
    n, m = y.shape
    p0 = np.zeros((n, m), dtype=y.dtype)
    p1 = np.zeros((n, m), dtype=y.dtype)
    for p in range(len(points)):
        a = np.zeros((n, n), dtype=y.dtype)
        for k in range(blocks + 1):
            a += points[p] ** (blocks / 2 - k) * hamiltonian[k]
        x = y.copy()
        for k in range(n):
            for i in range(k + 1, n):
                factor = a[i, k] / a[k, k]
                for j in range(k + 1, n):
                    a[i, j] -= factor * a[k, j]
                for j in range(m):
                    x[i, j] -= factor * x[k, j]
        for i in range(n - 1, -1, -1):
            for j in range(m):
                for k in range(i + 1, n):
                    x[i, j] -= a[i, k] * x[k, j]
                x[i, j] /= a[i, i]
        sign = -1.0 if p >= len(points) // 2 else 1.0
        p0 += sign * x
        p1 += sign * points[p] * x
    return p0, p1


def scattering_self_energies(neighbours, dH, G, D, Sigma):
    for k in range(G.shape[0]):
        for E in range(G.shape[1]):
            for q in range(D.shape[0]):
                for w in range(D.shape[1]):
                    for i in range(D.shape[4]):
                        for j in range(D.shape[5]):
                            for a in range(neighbours.shape[0]):
                                for b in range(neighbours.shape[1]):
                                    if E - w >= 0:
                                        left = G[k, E - w, neighbours[a, b]] @ dH[a, b, i]
                                        right = dH[a, b, j] * D[q, w, a, b, i, j]
                                        Sigma[k, E, a] += left @ right


def resnet(image, first, second, third):
    """A bottleneck: convolutions of 1 x 1, 3 x 3 and 1 x 1, each normed over the batch, around an identity."""
    batch, rows, columns, wide = image.shape
    narrow = first.shape[1]
    x = np.zeros((batch, rows + 2, columns + 2, narrow))
    for i in range(rows):
        for j in range(columns):
            x[:, i + 1, j + 1, :] = image[:, i, j, :] @ first
    x = np.maximum((x - np.mean(x, axis=0, keepdims=True)) / np.sqrt(_variance(x) + 1e-5), 0.0)
    y = np.zeros((batch, rows, columns, narrow))
    for n in range(batch):
        for i in range(rows):
            for j in range(columns):
                for o in range(narrow):
                    for di in range(3):
                        for dj in range(3):
                            for c in range(narrow):
                                y[n, i, j, o] += x[n, i + di, j + dj, c] * second[di, dj, c, o]
    y = np.maximum((y - np.mean(y, axis=0, keepdims=True)) / np.sqrt(_variance(y) + 1e-5), 0.0)
    z = np.zeros((batch, rows, columns, wide))
    for i in range(rows):
        for j in range(columns):
            z[:, i, j, :] = y[:, i, j, :] @ third
    z = (z - np.mean(z, axis=0, keepdims=True)) / np.sqrt(_variance(z) + 1e-5)
    return np.maximum(z + image, 0.0)


@te.loops
def _variance(x):
    mean = np.mean(x, axis=0, keepdims=True)
    return np.mean((x - mean) ** 2, axis=0, keepdims=True)


def _complex(*shapes):
    def make(rng):
        return [s if isinstance(s, int) else rng.normal(size=s) + 1j * rng.normal(size=s) for s in shapes]

    return make


def _contour(rng):
    hamiltonian = 0.2 * (rng.normal(size=(3, 3, 3)) + 1j * rng.normal(size=(3, 3, 3)))
    hamiltonian[1] += 3 * np.eye(3)
    return [2, hamiltonian, np.exp(1j * np.array([0.3, 1.2, 2.1, 2.9])), rng.normal(size=(3, 2)) + 0j]


def _scattering(rng):
    shapes = (2, 2, 3, 2, 2), (2, 2, 3, 2, 2), (1, 1, 2, 2, 3, 3), (2, 2, 2, 2, 2)
    return [rng.integers(0, 3, size=(2, 2)).astype("int32"), *_complex(*shapes)(rng)]


TRANSFORMS = {
    "stockham_fft": Kernel(stockham_fft, _complex(2, 3, (8,))),
    "contour_integral": Kernel(contour_integral, _contour),
    "scattering_self_energies": Kernel(scattering_self_energies, _scattering),
    "resnet": Kernel(resnet, normal((3, 3, 3, 2), (2, 3), (3, 3, 3, 3), (3, 2))),
}
