"""Random definitions over sizes that are symbols, beside the same definitions over the numbers that the sizes turn out to be.

One function builds both, so that the reference never sees a symbol: what is emitted for symbols, evaluated by its nodes, has the value and the adjoints
that the interpreter gives for numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

import jaxte as te
from jaxte.lang.expr import Expr
from jaxte.lower.program.plan import lower
from jaxte.tensors.tensor import Tensor
from tests.agreement import assert_close, inputs_of
from tests.choices import Seeded
from tests.lower.evaluation.program import evaluate_program

LEAST = 3  # of each size: positions 0, 1 and n - 1 are in range, shifts by up to 2 are inside of a period
SIZES = ((3, 4), (4, 3), (5, 8), (9, 7))
Size = Any  # a number, or a symbol


@dataclass(frozen=True)
class RandomSymbols:
    """A chain of one or two tensors over arrays of ``n``, ``m`` and ``n x m`` elements; the same in every process."""

    seed: int

    def build(self, n: Size, m: Size) -> tuple[list[Tensor], Tensor]:
        """The inputs and the output for these sizes."""
        own = Seeded(f"symbols {self.seed}")
        x, y = te.placeholder((n,), "float64", "x"), te.placeholder((n, m), "float64", "y")
        sources: list[tuple[Tensor, tuple[str, ...]]] = [(x, ("n",)), (y, ("n", "m"))]
        last: Tensor = x
        for stage in range(own.number(1, 2)):
            last, extents = _Stage(own, {"n": n, "m": m}, sources, f"t{stage}").tensor()
            sources = [*sources, (last, extents), (last, extents)]
        return [x, y], last


class _Stage:
    """One tensor: a body over axes of the sizes, with reads at affine, wrapped, held, reversed and halved positions."""

    def __init__(
        self,
        own: Seeded,
        sizes: dict[str, Size],
        sources: Sequence[tuple[Tensor, tuple[str, ...]]],
        name: str,
    ) -> None:
        self.own, self.sizes, self.sources, self.name = own, sizes, sources, name

    def tensor(self) -> tuple[Tensor, tuple[str, ...]]:
        extents = self.own.among((("n",), ("m",), ("n", "m"), ("m", "n"), ()))

        def body(*axes: Any) -> Expr:
            return self._value(list(zip(axes, extents, strict=True)), self.own.number(1, 2))

        return te.compute(tuple(self.sizes[e] for e in extents), body, self.name), extents

    def _value(self, axes: list[tuple[Any, str]], depth: int) -> Expr:
        own = self.own
        if not depth:
            return self._read(axes)
        match own.among(("sum", "sum", "product", "max", "choice", "plain", "wave")):
            case "sum":
                return self._reduced(te.sum, axes, depth)
            case "max":
                return self._reduced(te.max, axes, depth)
            case "product":
                return self._value(axes, depth - 1) * self._read(axes)
            case "choice" if axes:
                i, size = own.among(axes)
                test = own.among((i < 1, i + 1 < self.sizes[size], i % 2 == 0, i > 0))
                return te.select(test, self._value(axes, depth - 1), 0.5 * self._read(axes))
            case "wave":
                return te.sin(self._value(axes, depth - 1)) + self._read(axes)
            case _:
                return self._read(axes) + 2.0 * self._read(axes)

    def _reduced(self, reducer: Any, axes: list[tuple[Any, str]], depth: int) -> Expr:
        size = self.own.among(("n", "m", "window", "window"))
        if size == "window":
            k = te.reduce_axis((0, self.own.number(2, 3)), "k")
            return reducer(self._windowed(axes, k) * self.own.among((1.0, 0.5)), axis=k)
        k = te.reduce_axis((0, self.sizes[size]), "k")
        inner = [*axes, (k, size)]
        where = self.own.among((None, None, k > 0, k <= axes[0][0] if axes else k >= 0))
        return reducer(self._value(inner, depth - 1), axis=k, where=where)

    def _windowed(self, axes: list[tuple[Any, str]], k: Any) -> Expr:
        """A read that a window moves along one axis, wrapped, held at the end, or with zeros around."""
        tensor, extents = self.own.among(self.sources)
        moved = self.own.number(0, max(0, len(extents) - 1))
        indices, inside = [], []
        for place, size in enumerate(extents):
            index = self._index(axes, size)
            if place == moved:
                match self.own.among(("wrapped", "held", "padded")):
                    case "wrapped":
                        index = (index + k) % self.sizes[size]
                    case "held":
                        index = te.minimum(index + k, self.sizes[size] - 1)
                    case _:
                        index = index + k - 1
                        inside += [index >= 0, index < self.sizes[size]]
            indices.append(index)
        read = tensor[tuple(indices)] if indices else tensor[()]
        return te.select(te.logical_and(*inside), read, 0.0) if inside else read

    def _read(self, axes: list[tuple[Any, str]]) -> Expr:
        tensor, extents = self.own.among(self.sources)
        return tensor[tuple(self._index(axes, size) for size in extents)]

    def _index(self, axes: list[tuple[Any, str]], size: str) -> Any:
        """A position below ``size``."""
        end = self.sizes[size] - 1
        fitting = [i for i, extent in axes if extent == size]
        if not fitting:
            return self.own.among((0, 1, end, 0))
        i = self.own.among(fitting)
        match self.own.among(("plain", "plain", "reversed", "shifted", "held", "halved", "turned")):
            case "reversed":
                return end - i
            case "shifted":
                return (i + self.own.among((1, 2, end))) % self.sizes[size]
            case "held":
                return te.minimum(i + self.own.number(1, 2), end)
            case "halved":
                return i // 2
            case "turned":
                return te.maximum(i - 1, 0)
            case _:
                return i


class Sized(Protocol):
    """A graph that one function makes for sizes of both kinds."""

    seed: int

    def build(self, n: Size, m: Size, /) -> tuple[list[Tensor], Tensor]: ...


def check_symbols(f: Sized) -> dict[str, Any]:
    """Value and adjoints of what is emitted for symbols, at several sizes, beside the interpreter's for numbers.

    Raises:
        AssertionError: they differ.
    """
    given, symbolic = _with_adjoints(*f.build(*(te.var(name, at_least=LEAST) for name in "nm")))
    lowered = lower("both", given, symbolic)
    for sizes in SIZES:
        inputs, tensors = _with_adjoints(*f.build(*sizes))
        rng = np.random.default_rng([f.seed, *sizes])
        feeds = {t: rng.standard_normal(t.shape) for t in inputs}
        by_name = {t.name: array for t, array in feeds.items()}
        found = evaluate_program(lowered, [by_name[t.name] for _, t in lowered.params])
        read = set(inputs_of(tensors))
        meant = te.interpret(tensors, {t: array for t, array in feeds.items() if t in read})
        for own, code, expected in zip(tensors, found, meant, strict=True):
            assert_close(code, np.asarray(expected), f"{own.name} at n, m = {sizes}")
    return {}


def _with_adjoints(inputs: list[Tensor], output: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """All inputs, the head among them, and the output with its adjoints."""
    head = te.placeholder(output.shape, "float64", "H")
    return [*inputs, head], [output, *te.differentiate(output, inputs, head)]
