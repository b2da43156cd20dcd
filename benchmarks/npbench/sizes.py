"""The arguments that each kernel is measured with, about those of NPBench's smallest preset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from npbench.kernels import normal

Make = Callable[[np.random.Generator], list[Any]]


def definite(n: int, *more: tuple[int, ...]) -> Make:
    """A well conditioned symmetric matrix first."""

    def make(rng: np.random.Generator) -> list[Any]:
        root = rng.normal(size=(n, n)) / n**0.5
        return [root @ root.T + 2 * np.eye(n), *(rng.normal(size=s) for s in more)]

    return make


def positive(*shapes: Any) -> Make:
    return lambda rng: [s if isinstance(s, (int, float)) else rng.uniform(0.5, 1.5, size=s) for s in shapes]


def triangular(n: int) -> Make:
    return lambda rng: [rng.normal(size=(n, n)) / n + 2 * np.eye(n), rng.normal(size=n), rng.normal(size=n)]


SIZES: dict[str, Make] = {
    "trmm": normal(1.5, (65, 65), (65, 80)),
    "symm": normal(1.5, 1.2, (40, 50), (40, 40), (40, 50)),
    "syrk": normal(1.5, 1.2, (70, 70), (70, 50)),
    "syr2k": normal(1.5, 1.2, (40, 40), (40, 35), (40, 35)),
    "lu": definite(60),
    "cholesky": definite(60),
    "durbin": lambda rng: [rng.normal(size=200) * 0.02],
    "gramschmidt": normal((70, 60)),
    "seidel_2d": normal(8, (50, 50)),
    "jacobi_1d": normal(800, (3200,), (3200,)),
    "jacobi_2d": normal(50, (150, 150), (150, 150)),
    "heat_3d": normal(25, (25, 25, 25), (25, 25, 25)),
    "adi": normal(5, (40, 40)),
    "fdtd_2d": normal(20, (200, 220), (200, 220), (200, 220), (20,)),
    "correlation": normal((600, 200)),
    "covariance": normal((600, 200)),
    "doitgen": normal((60, 60, 128), (128, 128)),
    "deriche": normal(0.25, (400, 200)),
    "nussinov": lambda rng: [abs(rng.normal(size=(40, 40)))],
    "floyd_warshall": lambda rng: [rng.uniform(1, 9, size=(60, 60))],
    "trisolv": triangular(400),
    "ludcmp": lambda rng: [*definite(60)(rng), rng.normal(size=60)],
    "softmax": normal((16, 16, 128, 128)),
    "mlp": normal((8, 300), (300, 1000), (1000,), (1000, 100), (100,)),
    "conv2d": normal((4, 32, 32, 3), (5, 5, 3, 16), (16,)),
    "lenet": normal((32, 32), (5, 5, 6), (6,), (14, 14, 6, 10)),
    "arc_distance": positive(*[(100_000,)] * 4),
    "compute": normal((500, 500), (500, 500), 1.5, 0.7, 0.2),
    "azimint_naive": positive((40_000,), (40_000,), 100),
    "go_fast": normal((800, 800)),
    "nbody": positive((25,), (25, 3), (25, 3), 50, 0.05, 1.0, 0.3),
    "hdiff": normal((68, 68, 40), (64, 64, 40)),
    "vadv": positive((40, 40, 60), (41, 40, 60), (40, 40, 60), (40, 40, 60), 3.0),
    "cavity_flow": normal(10, 20, (61, 61), (61, 61), 0.0005, 0.05, 0.05, (61, 61), 1.0, 0.1),
    "channel_flow": normal(20, (61, 61), (61, 61), 0.0005, 0.05, 1.0),
}  # fmt: skip
