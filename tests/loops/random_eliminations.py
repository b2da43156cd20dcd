"""Random eliminations: loops over a matrix and a vector whose inner ranges shrink, which read the row, the column and the corner of the step, and sweeps in colours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.loops.random_programs import made_of

N = 5


def _updates(pick: Callable[[Any], Any]) -> list[str]:
    """Statements of one step ``k`` on what lies behind it."""
    lo = pick(("k", "k + 1"))
    factor = pick(("A[i, k] / (3.0 + A[k, k] ** 2)", "0.3 * A[k, i]", "A[i, k] * A[k, k]", "np.sin(A[i, k])"))
    row = pick(("A[k, j]", "A[k, j]", "A[j, k]"))
    kind = int(pick(range(4)))
    if kind == 0:  # a factor for each row
        lines = [
            "for i in range(k + 1, n):",
            f"    f = {factor}",
            f"    for j in range({lo}, n):",
            f"        A[i, j] -= f * {row}",
        ]
        return [*lines, *([f"    b[i] -= f * b[{pick(('k', 'i', 'k'))}]"] if pick((True, False)) else [])]
    if kind == 1:  # the factor is kept in the column
        return [
            "for i in range(k + 1, n):",
            f"    A[i, k] = {factor}",
            "    for j in range(k + 1, n):",
            f"        A[i, j] -= A[i, k] * {row}",
        ]
    if kind == 2:  # a reflection
        head = [
            "s = 1.0",
            "for i in range(k, n):",
            "    s += A[i, k] * A[i, k]",
            f"for j in range({lo}, n):",
            "    d = 0.0",
        ]
        return [
            *head,
            "    for i in range(k, n):",
            "        d += v[i] * A[i, j]",
            "    for i in range(k, n):",
            f"        A[i, j] -= d / s * {pick(('v[i]', 'A[i, k]' if lo != 'k' else 'v[i]'))}",
        ]
    return ["for i in range(k + 1, n):", f"    A[i, i] += {factor} * {pick(('b[k]', 'A[k, i]', 'b[i]'))}", f"    b[i] = np.cos(b[i]) + 0.2 * {pick(('A[k, i]', 'A[i, k]', 'A[i, i]'))}"]  # fmt: skip


def random_eliminations(seed: int) -> Callable[..., Any]:
    """A function of a matrix and two vectors, which it changes and returns."""
    rng = np.random.default_rng(seed)

    def pick(options: Any) -> Any:
        return options[int(rng.integers(len(options)))]

    lines = ["    n = len(b)"]
    for _ in range(int(rng.integers(1, 3))):
        if rng.integers(5) == 0:
            lines += [
                "    for t in range(2):",
                "        for c in range(2):",
                "            for i in range(1, n - 1):",
                f"                if (i + t) % {pick((2, 3))} == c:",
            ]
            lines += [
                f"                    b[i] = 0.4 * (b[i - 1] + b[i + 1]) + {pick(('0.1 * v[i]', 'A[i, i] * v[t]', 'b[i] ** 2'))}"
            ]
            continue
        lines += [
            f"    for k in range({pick(('n', 'n - 1', '1, n - 1', 'n - 2'))}):",
            *(f"        {line}" for line in _updates(pick)),
        ]
        if rng.integers(3) == 0:
            lines += [
                f"        {pick(('v[k] = A[k, k] * b[k]', 'b[k] *= 0.5', 'A[k, k] = np.cos(A[k, k])'))}"
            ]
    if rng.integers(3) == 0:
        ends = "n - 1, -1, -1" if rng.integers(2) else "n"
        inner = "i + 1, n" if "-1" in ends else "i"
        lines += [
            f"    for i in range({ends}):",
            "        s = b[i]",
            f"        for j in range({inner}):",
            "            s -= A[i, j] * v[j]",
            "        v[i] = s / (2.0 + A[i, i] ** 2)",
        ]
    text = "\n".join(["def program(A, b, v):", *lines, "    return A, b, v", ""])
    return made_of(text, f"<eliminations {seed}>")  # fmt: skip


def arguments(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [0.5 * rng.normal(size=(N, N)), rng.normal(size=N), rng.normal(size=N)]
