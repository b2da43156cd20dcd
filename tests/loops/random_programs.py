"""Random programs: statements over two vectors and a matrix, nested, guarded, overwritten, accumulated."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np

N = 4
_LOOPS = (
    "range(1, 3)",
    "range(1, {o} + 1)",
    "range({o}, 3)",
    "range(2, 0, -1)",
    "reversed(range(1, 3))",
    "range(1, 4, 2)",
)
_SHIFTS = ("{i}", "{i}", "{i} - 1", "{i} + 1", "3 - {i}", "0")


class _Writer:
    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.lines: list[str] = []
        self.count = 0

    def pick(self, options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def index(self, counters: list[str], step: bool = True) -> str:
        if not counters:
            return str(self.rng.integers(N))
        counter = self.pick(counters)
        wide = counter.endswith("w")  # runs to 3, where + 1 would leave the arrays
        shift = self.pick(_SHIFTS)
        return "0" if wide and "+ 1" in shift else shift.format(i=counter)

    def element(self, counters: list[str]) -> str:
        array = self.pick(("x", "y", "A"))
        indices = [self.index(counters) for _ in range(2 if array == "A" else 1)]
        return f"{array}[{', '.join(indices)}]"

    def value(self, counters: list[str]) -> str:
        a, b = self.element(counters), self.element(counters)
        return self.pick(
            (f"0.5 * {a} + {b}", f"np.sin({a}) * {b}", f"{a} - 0.3 * {b} * s", f"0.7 * {a}", f"s + {a}")
        )

    def statement(self, counters: list[str], indent: str) -> None:
        target = self.pick((self.element(counters), self.element(counters), "s"))
        kind = self.rng.integers(6)
        value = self.value(counters)
        if kind < 3:
            self.lines.append(f"{indent}{target} = {value}")
        elif kind < 5:
            self.lines.append(f"{indent}{target} {self.pick(('+=', '-='))} {value}")
        else:
            self.lines.append(f"{indent}{target} = {self.pick(('max', 'min'))}({target}, {value})")

    def block(self, counters: list[str], depth: int, indent: str) -> None:
        for _ in range(int(self.rng.integers(1, 3))):
            kind = self.rng.integers(5)
            if depth and kind < 2:
                options = [o for o in _LOOPS if "{o}" not in o or any(not c.endswith("w") for c in counters)]
                own = self.pick(options)
                around = [c for c in counters if not c.endswith("w")]
                self.count += 1
                name = f"i{self.count}" + ("w" if "4" in own else "")
                self.lines.append(
                    f"{indent}for {name} in {own.format(o=self.pick(around) if around else 1)}:"
                )
                self.block([*counters, name], depth - 1, indent + "    ")
            elif counters and kind == 2:
                test = self.pick(
                    (
                        f"{self.pick(counters)} > 1",
                        f"{self.element(counters)} > 0.1",
                        f"{self.pick(counters)} == 2",
                    )
                )
                self.lines.append(f"{indent}if {test}:")
                self.statement(counters, indent + "    ")
                if self.rng.integers(2):
                    self.lines.append(f"{indent}else:")
                    self.statement(counters, indent + "    ")
            else:
                self.statement(counters, indent)


def random_program(seed: int) -> Callable[..., Any]:
    """A function of two vectors and a matrix, which returns them and a number."""
    writer = _Writer(seed)
    for _ in range(2):
        own = f"k{writer.count}"
        writer.count += 1
        writer.lines.append(f"    for {own} in range(1, 3):")
        writer.block([own], 2, "        ")
    body = "\n".join(writer.lines)
    text = f"def program(x, y, A):\n    s = 0.5\n{body}\n    return x, y, A, s\n"
    return made_of(text, f"<program {seed}>")


def made_of(text: str, name: str) -> Callable[..., Any]:
    """The function ``program`` of ``text``, whose lines are found under ``name``, as those of a file."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names: dict[str, Any] = {"np": np}
    exec(compile(text, name, "exec"), names)
    return names["program"]


def arguments(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=s) for s in ((N,), (N,), (N, N))]
