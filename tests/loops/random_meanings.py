"""Random programs about what NumPy means: matrices and their views, functions that are called, choices, lists, and numbers of several kinds.

All axes have three positions, so that most programs run; where NumPy raises an error, te.loops has to refuse the program, too. As in :mod:`random_names`, what they
compute is of no interest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.loops.meaning_forms import COPIES, FUNCTIONS, NEW, NUMBERS, PARTS, F, M, N, Shape, V
from tests.loops.random_programs import made_of


class _Writer:
    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.lines: list[str] = []
        self.shapes: dict[str, Shape] = {"x": V, "y": V, "A": M, "B": M, "f": F}
        self.lists: dict[str, list[Shape]] = {}
        self.counters: list[str] = []
        self.used: list[str] = []

    def pick(self, options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def add(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def name(self, shape: Shape) -> str:
        return self.pick([n for n, s in self.shapes.items() if s == shape])

    def filled(self, form: str) -> str:
        names = [self.name(s) for s in (V, M, F)]
        i, j = (self.pick([*self.counters, *self.counters, "0", "1", "2"]) for _ in range(2))
        return form.format(*names, i=i, j=j, q=self.pick(("q", "q", "1.5", "0.5")))

    def part(self, shape: Shape) -> str:
        """A view, or what NumPy makes a copy."""
        if self.lists and self.rng.integers(6) == 0:
            name = self.pick(list(self.lists))
            fits = [k for k, s in enumerate(self.lists[name]) if s == shape]
            if fits:
                return f"{name}[{self.pick(fits)}]"
        source = self.pick([s for s in (V, M, F) if (s, shape) in PARTS])
        own = self.name(source)
        return self.filled(self.pick(PARTS[source, shape]).replace("{a}", own))

    def array(self, shape: Shape) -> str:
        return self.part(shape) if self.rng.integers(3) == 0 else self.filled(self.pick(NEW[shape]))

    def fitting(self, shape: Shape) -> str:
        """Something that is broadcast to ``shape``."""
        kind = int(self.rng.integers(6))
        if kind == 0:
            return self.filled(self.pick(NUMBERS))
        if kind == 1 and shape == M:
            return self.pick((self.array(V), f"{self.name(V)}[:, None]"))
        return self.array(shape)

    def statement(self, depth: int) -> None:
        shape = self.pick((V, V, M, M, F))
        match int(self.rng.integers(14)):
            case 0 | 1:
                self.bound(depth, shape, self.part(shape))
            case 2 | 3:
                self.bound(depth, shape, self.array(shape))
            case 4 | 5:
                self.written(depth, shape)
            case 6:
                self.add(depth, f"{self.name(shape)} {self.pick(('+=', '*=', '-='))} {self.fitting(shape)}")
            case 7:
                self.exchanged(depth, shape)
            case 8:
                self.called(depth, shape)
            case 9:
                self.listed(depth)
            case 10:
                self.add(depth, f"q {self.pick(('=', '=', '+='))} {self.filled(self.pick(NUMBERS))}")
            case 11:
                self.add(
                    depth,
                    self.filled(
                        self.pick(
                            (
                                "k = (k + 1) % 3",
                                "k = m[k]",
                                "k = {i}",
                                "n[{i}] = n[{j}] // 2 + k",
                                "n[{i}] = 2.7 * {q}",
                                "n //= 2",
                                "m[{i}], m[{j}] = m[{j}], m[{i}]",
                                "n += m",
                                "n += 0.5",
                            )
                        )
                    ),
                )
            case 12 if depth < 3:
                self.choice(depth)
            case _ if depth < 3:
                self.loop(depth)
            case _:
                self.written(depth, shape)

    def bound(self, depth: int, shape: Shape, value: str) -> None:
        fresh = [n for n in ("u", "v", "w") if n not in self.shapes]
        if self.rng.integers(20) == 0:
            value = f"{value} if {self.pick(('k == 0', 'q > 0', self.filled('{0}[{i}]') + ' > 0'))} else {self.array(shape)}"
        if depth == 1 and fresh and self.rng.integers(2):
            self.add(depth, f"{fresh[0]} = {value}")
            self.shapes[fresh[0]] = shape
        else:
            self.add(depth, f"{self.name(shape)} = {value}")

    def written(self, depth: int, shape: Shape) -> None:
        target = self.part(shape)
        while any(word in target for word in COPIES) and self.rng.integers(8):
            target = self.part(shape)
        fitting = self.fitting(shape)
        if shape == V:
            fitting = (
                f"1.0 * {fitting}"  # what NumPy makes of a row that is given its column is not even defined
            )
        match int(self.rng.integers(5)):
            case 0 if target.endswith("]"):
                self.add(depth, f"{target} = {fitting}")
            case 1:
                self.add(depth, f"{target}[:] = {fitting}")
            case 2:
                self.add(depth, f"{target}[::2] {self.pick(('=', '+='))} {self.filled(self.pick(NUMBERS))}")
            case 3:
                own = self.name(shape)
                self.add(depth, f"{own}[{own} > 0.1] {self.pick(('=', '*='))} {self.filled('{q}')}")
            case _:
                index = {V: "[{i}]", M: "[{i}, {j}]", F: "[{i} + 3]"}[shape]
                self.add(
                    depth,
                    f"{self.filled(target + index)} {self.pick(('=', '+='))} {self.filled(self.pick(NUMBERS))}",
                )

    def exchanged(self, depth: int, shape: Shape) -> None:
        a, b = self.name(shape), self.name(shape)
        form = self.pick(("{0}[{i}]", "{0}[:, {i}]"))
        (own, i), (_, j) = ((self.name(M), self.pick("012")) for _ in range(2))
        s, t = (
            form.format(own, i=i),
            form.format(own, i=j),
        )  # of rows and columns that meet NumPy defines nothing
        lines = (
            [f"{a}, {b} = {b}, {a}", f"{a}, q = {self.array(shape)}, {b}.sum()"]
            if a != b
            else [f"{a} = {a}.copy()"]
        )
        lines += [f"{s}, {t} = {t}, {s}", f"{s}, {t} = {t}.copy(), {s}.copy()"]
        self.add(depth, self.pick(lines))

    def called(self, depth: int, shape: Shape) -> None:
        name = self.pick(list(FUNCTIONS))
        if name not in self.used:
            self.used.append(name)
        given = self.part(shape) if self.rng.integers(3) else self.array(shape)
        more = {"halve": self.pick(("", ", 2.0", ", c=q")), "chosen": ", q"}.get(name, "")
        call = f"{name}({given}{more})"
        if FUNCTIONS[name][2] == "pair":
            first, target = self.pick(("q", "t")), self.name(shape)
            if first == "q" and shape == V:
                self.add(depth, f"q, {target} = {call}")
            else:
                self.add(depth, f"p = {call}")
                self.add(depth, f"{self.name(shape)}[:] = p[1]")
        elif FUNCTIONS[name][2] is None or self.rng.integers(5) == 0:
            self.add(depth, call)
        elif self.rng.integers(3) == 0:
            self.add(depth, f"{self.name(shape)}[:] = {self.pick(('', '0.5 * '))}{call}")
        else:
            self.bound(depth, shape, call)

    def listed(self, depth: int) -> None:
        if depth > 1 or not self.rng.integers(3):
            shape = self.pick((V, M))
            values = ", ".join(self.part(shape) for _ in range(2))
            self.add(depth, f"for e in [{values}]:")
            self.add(
                depth + 1,
                self.pick(("e *= 0.5", "e[0] = 0.1", "q += e.sum()", "e = e + 1.0", "x[0] = e.sum()")),
            )
            return
        shapes = [self.pick((V, M)) for _ in range(2)]
        values = ", ".join(self.pick((self.part, self.array))(s) for s in shapes)
        name = self.pick(("s", "t"))
        self.add(depth, f"{name} = {self.pick(('[{}]', '({})')).format(values)}")
        self.lists[name] = shapes

    def choice(self, depth: int) -> None:
        tests = (
            "q > 0.1",
            "{0}[{i}] > 0",
            "k == 1",
            "n[{i}] % 2 == 0",
            "{0}[0] > 0 and q < 1",
            *(("{i} > 0", "{i} == 1") if self.counters else ()),
        )
        self.add(depth, f"if {self.filled(self.pick(tests))}:")
        self.block(depth + 1, 2)
        if self.rng.integers(2):
            self.add(depth, "else:")
            self.block(depth + 1, 2)

    def loop(self, depth: int) -> None:
        own = f"i{len(self.lines)}"
        a, b = self.name(M), self.name(M)
        match int(self.rng.integers(10)):
            case 7:
                self.add(depth, f"{own} = {self.pick('012')}")
                self.add(
                    depth,
                    f"while {own} < {self.pick(('3', '2'))}{self.pick(('', f' and {self.filled(self.pick(NUMBERS))} < 2'))}:",
                )
                self.counters.append(own)
                self.block(depth + 1, 2)
                self.counters.pop()
                self.add(depth + 1, f"{own} += 1")
            case 8:
                self.add(
                    depth,
                    f"for {own} in {self.pick(('[0, 2, 1]', 'range(2, -1, -1)', 'reversed(range(3))'))}:",
                )
                self.counters.append(own)
                self.block(depth + 1, 2)
                self.counters.pop()
            case 9:
                self.add(depth, f"for {own} in range(3):")
                self.add(depth + 1, f"if {self.filled('{0}[') + own}] > {self.pick(('0', 'q'))}:")
                self.add(depth + 2, self.pick(("continue", "break")))
                self.counters.append(own)
                self.block(depth + 1, 2)
                self.counters.pop()
            case 0:
                self.add(depth, f"for r in {a}:")
                self.add(
                    depth + 1,
                    self.pick(
                        (
                            "r *= 0.5",
                            "r[0] = q",
                            "q += r[1]",
                            "r[:] = r[::-1]",
                            "r = 0.5 * r",
                            f"{a}[0] = 0.5 * r",
                        )
                    ),
                )
            case 1:
                self.add(depth, f"for {own}, r in enumerate({a}):")
                self.add(depth + 1, f"r[{own}] = {b}[{own}, 0]")
            case 2:
                self.add(depth, f"for r, e in zip({a}, {b}):")
                self.add(depth + 1, self.pick(("r += 0.1 * e", "e[0], r[0] = r[0], e[0]")))
            case _:
                self.add(
                    depth,
                    f"for {own} in {self.pick(('range(3)', 'range(2, -1, -1)', 'range(1, 3)', 'range(0)', 'range(0, 3, 2)'))}:",
                )
                self.counters.append(own)
                self.block(depth + 1, 3)
                self.counters.pop()

    def block(self, depth: int, most: int) -> None:
        for _ in range(int(self.rng.integers(1, most + 1))):
            self.statement(depth)


def random_meanings(seed: int) -> Callable[..., Any]:
    """A function of two vectors, two matrices, a vector of their size, integers and positions."""
    writer = _Writer(seed)
    if seed % 2:
        writer.add(1, "x, y, A, B, f = x.copy(), y.copy(), A.copy(), B.copy(), f.copy()")
    writer.add(1, "q = 0.5")
    writer.add(1, "k = 0")
    for _ in range(int(writer.rng.integers(2, 10))):
        writer.statement(1)
    functions = []
    for name in writer.used:
        head, body, _ = FUNCTIONS[name]
        functions += ["    " + head, *("        " + line for line in body)]
    begun = 2 + seed % 2
    names = ", ".join([*writer.shapes, "q", "k", "n", "m"])
    lines = [*writer.lines[:begun], *functions, *writer.lines[begun:], f"    return {names}", ""]
    return made_of("\n".join(["def program(x, y, A, B, f, n, m):", *lines]), f"<meanings {seed}>")


def arguments(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    floats = [rng.normal(size=s) for s in (V, V, M, M, F)]
    return [*floats, rng.integers(-5, 6, size=N), rng.permutation(N)]
