"""Random sweeps: time loops over two vectors that write insides, edges behind or before them, copies, additions, and loops within."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.loops.random_programs import made_of

N = 6
_SLICES = ("[1:-1]", "[:-2]", "[2:]")
_EDGES = (
    "{a}[0] = {a}[1]",
    "{a}[-1] = {a}[-2]",
    "{a}[0] = 0.0",
    "{a}[-1] = 0.5 * {b}[-1]",
    "{a}[0] = {a}[-2]",
    "{a}[-1] = 1.0",
    "{a}[0] += 0.1 * {b}[1]",
)


class _Writer:
    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.lines: list[str] = []

    def pick(self, options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def add(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def inside(self, a: str, read: str, b: str) -> str:
        s, t, u = (self.pick(_SLICES) for _ in range(3))
        return self.pick(
            (
                f"{a}[1:-1] = 0.5 * ({read}{s} + {read}{t})",
                f"{a}[1:-1] = {read}[1:-1] - 0.3 * {read}{s} * ({read}[1:-1] - {b}{t})",
                f"{a}[1:-1] = np.sin({read}{s}) + 0.2 * {b}{t} * {b}{u}",
                f"{a}[1:-1] += 0.1 * {b}{s} * {b}{t}",
                f"{a}[1:-1] = 0.4 * {read}{s} - 0.1 * {b}{t}",
            )
        )

    def sweep(self, depth: int, a: str, b: str) -> None:
        read = a
        edges = [self.pick(_EDGES).format(a=a, b=b) for _ in range(int(self.rng.integers(0, 4)))]
        before = int(self.rng.integers(0, 2)) if edges else 0
        if self.rng.integers(2):
            read = f"{a}n"
            self.add(depth, f"{read} = {a}.copy()")
        for edge in edges[:before]:
            self.add(depth, edge)
        self.add(depth, self.inside(a, read, b))
        if self.rng.integers(3) == 0:
            self.add(depth, f"for i in range({N}):")
            self.add(depth + 1, f"{a}[i] = 0.9 * {a}[i] + 0.05")
            self.add(depth + 1, f"{a}[i] += 0.1 * {b}[i]")
        for edge in edges[before:]:
            self.add(depth, edge)


def random_sweeps(seed: int) -> Callable[..., Any]:
    """A function of two vectors, which it changes and returns."""
    writer = _Writer(seed)
    writer.add(1, f"for t in range({writer.pick((2, 3, 4))}):")
    for _ in range(int(writer.rng.integers(1, 3))):
        a, b = writer.pick((("x", "y"), ("y", "x")))
        if writer.rng.integers(3) == 0:
            writer.add(2, f"for q in range({writer.pick((1, 2, 3))}):")
            writer.sweep(3, a, b)
        else:
            writer.sweep(2, a, b)
    text = "\n".join(["def program(x, y):", *writer.lines, "    return x, y", ""])
    return made_of(text, f"<sweeps {seed}>")


def arguments(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=N), rng.normal(size=N)]
