"""Random definitions: what was emitted agrees with the interpreter, forward and for the adjoints."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import jaxte as te
from jaxte.lang.expr import as_expr
from jaxte.meaning.interpret import interpret
from jaxte.sets.tabulate import evaluate_index
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.structure import topological_order
from tests.lowered import arrays_for, program_of, run

Axes = Sequence[te.Axis]


class Draw:
    """Draws a definition: affine and quasi-affine reads, guards, several reads, reductions inside expressions."""

    def __init__(self, choices: random.Random) -> None:
        self.r = choices

    def definition(self) -> te.Tensor:
        extents = tuple(self.r.choice([1, 2, 3, 4, 5, 6, 8]) for _ in range(self.r.randint(1, 3)))
        bodies = {
            1: lambda a: self.body([a]),
            2: lambda a, b: self.body([a, b]),
            3: lambda a, b, c: self.body([a, b, c]),
        }
        return te.compute(extents, bodies[len(extents)], "Y")

    def body(self, axes: Axes) -> te.Expr:
        if self.r.random() < 0.35:
            return self.expr(axes, 2)
        lows = [self.r.choice([0, 0, 0, 1]) for _ in range(self.r.choice([1, 1, 2]))]
        reduced = [
            te.reduce_axis((lo, lo + self.r.randint(1, 4)), n) for lo, n in zip(lows, "kz", strict=False)
        ]
        reduction = self.r.choice([te.sum, te.sum, te.sum, te.max, te.prod, te.min])
        where = self.condition([*axes, *reduced]) if self.r.random() < 0.35 else None
        value = reduction(self.expr([*axes, *reduced], self.r.randint(0, 2)), axis=reduced, where=where)
        if self.r.random() < 0.3:
            value = value * self.expr(axes, 1)
        return te.select(self.r.choice(axes) < 2, value, 0.0) if self.r.random() < 0.2 else value

    def expr(self, axes: Axes, depth: int) -> te.Expr:
        kind = self.r.choice(["read", "read", "add", "mul", "exp", "select", "neg", "axis", "div", "max"])
        if depth == 0 or kind == "read":
            return self.read(axes)
        first = self.expr(axes, depth - 1)
        match kind:
            case "add":
                return first + self.expr(axes, depth - 1)
            case "mul":
                return first * self.expr(axes, depth - 1)
            case "exp":
                return te.exp(te.minimum(first, 1.0))
            case "select":
                return te.select(
                    self.condition(axes), first, self.r.choice([0.0, self.expr(axes, depth - 1)])
                )
            case "neg":
                return -first
            case "axis":
                return te.cast(self.index(axes), "float32") * first
            case "div":
                return first / 2.0
        return te.maximum(first, self.expr(axes, depth - 1))

    def condition(self, axes: Axes) -> te.Expr:
        a, b, n = self.r.choice(axes), self.r.choice(axes), self.r.randint(0, 4)
        return self.r.choice(
            [a < n, a >= n, te.mod(a, 2) == n % 2, a == n, a <= b, ~(a < n), (a > 1) & (b < 4), a + b < n]
        )

    def read(self, axes: Axes) -> te.Expr:
        indices, shape, guards = [], [], []
        for _ in range(self.r.randint(1, 3)):
            index = as_expr(self.index(axes))
            low, high = bounds(index, axes)
            if low < 0:
                index, high = index - low, high - low
            if high >= 1 and self.r.random() < 0.25:
                index = index - self.r.randint(-1, 2)
                extent = max(1, high - self.r.randint(0, 2))
                guards += [index >= 0, index < extent]
            else:
                extent = high + 1 + self.r.choice([0, 0, 0, 1, 2])
            indices.append(index)
            shape.append(extent)
        assume(np.prod(shape) <= 3000)
        value = te.placeholder(tuple(shape), name=self.r.choice("ABCD"))[tuple(indices)]
        for guard in guards:
            value = te.select(guard, value, 0.0)
        return value

    def index(self, axes: Axes) -> te.Expr:
        a, b, r = self.r.choice(axes), self.r.choice(axes), self.r
        match r.choice(
            ["axis", "axis", "axis", "affine", "affine", "div", "mod", "two", "two", "number", "min"]
        ):
            case "axis":
                return a + 0
            case "affine":
                return r.choice([1, 2, 3, -1]) * a + r.randint(-2, 3)
            case "div":
                return (a + r.randint(0, 3)) // r.randint(2, 4)
            case "mod":
                return (r.randint(1, 2) * a + r.randint(0, 3)) % r.randint(2, 4)
            case "two":
                return r.choice([1, 1, 2, 3, -1]) * a + r.choice([1, 1, 2, 4]) * b + r.randint(-2, 1)
            case "number":
                return as_expr(r.randint(0, 3))
        return te.minimum(a + b, r.randint(2, 5))


def bounds(index: te.Expr, axes: Axes) -> tuple[int, int]:
    ranges = [range(int(a.lo), int(a.hi)) for a in axes]
    values = [evaluate_index(index, dict(zip(axes, p, strict=True))) for p in itertools.product(*ranges)]
    return min(values), max(values)


def draw(choices: random.Random) -> te.Tensor:
    try:
        return Draw(choices).definition()
    except te.DefinitionError:
        assume(False)
        raise


def compare(outputs: Sequence[te.Tensor], tolerance: float) -> None:
    program = program_of(*outputs)
    arrays = arrays_for(program)
    feeds = {t: a for (_, t), a in zip(program.params, arrays, strict=True)}
    expected = interpret(list(outputs), feeds)
    # the maximum of nothing is -inf: what becomes of infinities depends on the order of the arithmetic
    assume(all(np.isfinite(e).all() for e in expected))
    for output, found, wanted in zip(outputs, run(program, arrays), expected, strict=True):
        assert found.shape == wanted.shape and found.dtype == wanted.dtype, output
        scale = max(1.0, float(np.abs(wanted).max(initial=0)))
        np.testing.assert_allclose(
            found, wanted, rtol=tolerance, atol=tolerance * scale, err_msg=repr(output)
        )


@settings(max_examples=max(80, settings.default.max_examples))
@given(st.randoms(use_true_random=False))
def test_definitions(choices: random.Random) -> None:
    compare([draw(choices)], 1e-4)


@given(st.randoms(use_true_random=False))
def test_adjoints(choices: random.Random) -> None:
    Y = draw(choices)
    inputs = [t for t in topological_order([Y]) if isinstance(t, Placeholder)]
    assume(inputs)
    head = te.placeholder(Y.shape, name="H")
    compare(te.gradient(Y, inputs, head), 1e-3)
