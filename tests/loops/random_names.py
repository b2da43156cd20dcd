"""Random programs about names: arrays that are made anew, handed on, exchanged, viewed and written, in loops that are written out or not.

What they compute is of no interest; what each name means at each time is. A program may be refused, since not every text is understood.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.loops.random_programs import made_of

N = 4
_LOOPS: tuple[tuple[tuple[str, ...], str, tuple[str, ...]], ...] = (
    (("h = 1",), "while h < 8:", ("h *= 2",)),
    (("lo = 0", "hi = 3"), "while lo < hi:", ("lo += 1", "hi -= 1")),
    (("m = 4",), "while m > 1:", ("m -= 1",)),
    (("i = 0", "n = 2"), "while i < n:", ("i += 1",)),
    (("i = 0", "n = 2"), "while i < n:", ("if n < 4:", "    n += 1", "i += 1")),
    ((), "for s in range(3):", ()),
    ((), "for s in range(3):", ("x[2**s % 4] += 0.5",)),
    ((), "for c in [0.5, 2.0, -1.0]:", ()),
)  # what stands before, the loop, and what ends its body
_VALUES = (
    "{b}[::-1] * 0.5", "{a} + np.roll({b}, 1)", "{b}.copy()", "{a} * {b}", "np.zeros(4)", "np.ones(4)", "np.sin({b})", "np.maximum({a}, {b})", "{b} + q",
    "np.concatenate([{a}[2:], {b}[:2]])",
)  # fmt: skip
_WRITES = (
    "{a}[{k}] = 0.5 * {b}[{l}]", "{a}[{k}], {b}[{l}] = {b}[{l}], {a}[{k}]", "{a}[:] = {b}", "{a}[1:3] = {b}[:2]", "{a} += 0.1 * {b}", "{a}[:2] += {b}[2:]",
    "q = q + {a}[{k}]", "q += {a}[{k}] * {b}[{l}]", "{a}[:2], {a}[2:] = {a}[2:], {a}[:2]", "{a}[{k}] = q",
)  # fmt: skip


class _Writer:
    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.lines: list[str] = []
        self.names = ["x", "y"]

    def pick(self, options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def add(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def statement(self, depth: int) -> None:
        a, b = self.pick(self.names), self.pick(self.names)
        k, l = self.pick((0, 1, 2, 3)), self.pick((0, 1, 2, 3))  # noqa: E741
        match int(self.rng.integers(8)):
            case 0:
                self.add(depth, f"{self.pick(('u', 'v', a))} = {b}" if depth == 1 else f"{a} = {b}.copy()")
            case 1 | 2:
                self.add(depth, f"{a} = {self.pick(_VALUES).format(a=a, b=b)}")
            case 3:
                self.add(depth, f"{a}, {b} = {b}, {a}" if a != b else f"{a} = {a} * 0.5")
            case 4:
                self.made_anew(depth, a, b)
            case 5:
                self.add(depth, f"part = {a}[1:3]")
                self.add(depth, f"{a}[{k}] = {b}[{l}] * 2.0")
                self.add(depth, "q += part[0] - part[1]")
            case _:
                self.add(depth, self.pick(_WRITES).format(a=a, b=b, k=k, l=l))

    def made_anew(self, depth: int, a: str, b: str) -> None:
        """An array that a loop fills, and that ``a`` means then."""
        self.add(depth, f"z = {self.pick(('np.zeros(4)', 'np.empty(4)', 'np.ones(4)'))}")
        self.add(depth, "for j in range(4):")
        self.add(depth + 1, f"z[j] = {a}[3 - j] * 0.5 + {b}[(j + {self.pick((0, 1, 2))}) % 4]")
        self.add(depth, f"{a} = z")


def random_names(seed: int) -> Callable[..., Any]:
    """A function of two vectors."""
    writer = _Writer(seed)
    for line in ("x, y = x.copy(), y.copy()", "q = 0.0"):
        writer.add(1, line)
    for _ in range(int(writer.rng.integers(0, 3))):
        writer.statement(1)
    for name in ("u", "v"):
        if any(line.strip().startswith(f"{name} = ") for line in writer.lines):
            writer.names.append(name)
    before, loop, after = writer.pick(_LOOPS)
    for line in (*before, loop):
        writer.add(1, line)
    for _ in range(int(writer.rng.integers(1, 4))):
        writer.statement(2)
    for line in after:
        writer.add(2, line)
    for _ in range(int(writer.rng.integers(0, 2))):
        writer.statement(1)
    text = "\n".join(["def program(x, y):", *writer.lines, "    return x, y, q", ""])
    return made_of(text, f"<names {seed}>")


def arguments(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=N), rng.normal(size=N)]
