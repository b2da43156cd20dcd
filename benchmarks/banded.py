"""Functions whose Jacobians or Hessians have a few diagonals: for ``sparse.py`` and for tests."""

from __future__ import annotations

import jaxte as te


def laplacian(u: te.Tensor) -> te.Tensor:
    """The 5-point Laplacian with zeros around, and an exponential."""
    n, m = u.shape

    def at(i, j, inside):
        return te.select(inside, u[i, j], 0.0)

    def body(i, j):
        sides = (
            at(i - 1, j, i >= 1) + at(i + 1, j, i < n - 1) + at(i, j - 1, j >= 1) + at(i, j + 1, j < m - 1)
        )
        return sides - 4 * u[i, j] + te.exp(u[i, j])

    return te.compute((n, m), body, "F")


def tridiagonal(x: te.Tensor) -> te.Tensor:
    """The residual of a tridiagonal system."""
    n = x.shape[0]

    def body(i):
        before, after = te.select(i >= 1, x[i - 1], 0.0), te.select(i < n - 1, x[i + 1], 0.0)
        return (3 - 2 * x[i]) * x[i] - before - 2 * after + 1

    return te.compute((n,), body, "r")


def rosenbrock(x: te.Tensor) -> te.Tensor:
    """A chain of Rosenbrock's functions, one number."""
    k = te.reduce_axis((0, x.shape[0] - 1), "k")
    return te.compute((), lambda: te.sum(100 * (x[k + 1] - x[k] ** 2) ** 2 + (1 - x[k]) ** 2, axis=k), "f")
