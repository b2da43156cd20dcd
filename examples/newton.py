"""Newton's method for a nonlinear partial differential equation, with Jacobians whose pattern is known from the definition.

    python examples/newton.py

The Bratu problem on the unit square, ``Laplacian u + c exp(u) = 0`` with ``u = 0`` on the boundary, by the 5-point stencil. Each step solves
``J d = -F`` with ``scipy.sparse.linalg``; J comes from ``fn.sparse_jacobian``, which forms no dense matrix, probes nothing and colours nothing.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

import jaxte as te


@te.function
def residual(u: te.Tensor, c: te.Tensor) -> te.Tensor:
    """``(n + 1)^2`` times the equation at the inner points of a grid."""
    n, m = u.shape
    h2 = 1 / (n + 1) ** 2

    def at(i, j, inside):
        return te.select(inside, u[i, j], 0.0)

    def body(i, j):
        sides = (
            at(i - 1, j, i >= 1) + at(i + 1, j, i < n - 1) + at(i, j - 1, j >= 1) + at(i, j + 1, j < m - 1)
        )
        return sides - 4 * u[i, j] + h2 * c[()] * te.exp(u[i, j])

    return te.compute((n, m), body, "F")


def newton(points: int, c: float, tolerance: float = 1e-5) -> tuple[np.ndarray, list[float]]:
    """The solution, and the norm of the residual before each step."""
    u = np.zeros((points, points), np.float32)
    c = np.float32(c)
    norms: list[float] = []
    for _ in range(20):
        f = np.asarray(residual(u, c))
        norms.append(float(np.abs(f).max()) * (points + 1) ** 2 / max(1.0, float(c)))
        if (len(norms) > 1 and norms[-1] > 0.5 * norms[-2]) or norms[-1] < tolerance:
            break  # rounding of single precision is reached
        j = residual.sparse_jacobian(u, c, flat=True)
        matrix = scipy.sparse.csr_matrix(
            (np.asarray(j.data, np.float64), tuple(np.asarray(j.indices).T)), shape=j.shape
        )
        u = u - scipy.sparse.linalg.spsolve(matrix, f.ravel().astype(np.float64)).reshape(u.shape).astype("f")
    return u, norms


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=64, help="inner points in each direction")
    parser.add_argument("--c", type=float, default=5.0)
    args = parser.parse_args()
    start = time.perf_counter()
    u, norms = newton(args.points, args.c)
    for step, norm in enumerate(norms):
        print(f"step {step}: residual {norm:.2e}")
    j = residual.sparse_jacobian(u, np.float32(args.c), flat=True)
    print(f"{j.shape[0]:,} unknowns, {j.nse:,} elements of the Jacobian, {time.perf_counter() - start:.1f} s")
    print(f"u at the middle: {u[args.points // 2, args.points // 2]:.4f}")


if __name__ == "__main__":
    main()
