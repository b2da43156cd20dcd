"""The states that an equation is in a recurrence: its elements over a clock, and all of them that were computed so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jaxte.frontends.loops.clocks import Clocks
from jaxte.frontends.loops.equations import Equation
from jaxte.lang.expr import Axis, Expr, Read, as_expr, call, cast, conjunction
from jaxte.lang.functions import select
from jaxte.lang.operators import EQUAL
from jaxte.lang.walk import substitute
from jaxte.sets.affine import linear, normal
from jaxte.tensors.compute import defined
from jaxte.tensors.recurrences.node import State
from jaxte.tensors.shapes import as_extent


class Timed:
    """An equation over its clock and its other axes, for some of which others are ``given``."""

    def __init__(
        self, equation: Equation, clocks: Clocks, length: Expr, given: Mapping[Axis, Axis] | None = None
    ) -> None:
        self.equation = equation
        self.time = clocks.times[equation]
        solved = clocks.solved(equation)
        assert solved is not None
        self.solved = solved
        self.clock = Axis(solved.name if self.time is solved else "t", 0, length)
        self.rest = tuple(a for a in equation.axes if a is not solved)
        known = {} if given is None else given
        others = tuple(known[a] if a in known else Axis(a.name, 0, a.extent) for a in self.rest)
        self.axes = (self.clock, *others)
        self.table: dict[Expr, Expr] = dict(zip(self.rest, others, strict=True))
        form = linear(self.time)
        value: Expr = self.clock - as_expr(form.constant)
        for axis, other in zip(self.rest, others, strict=True):
            value = value - form.coefficient(axis) * other
        self.value = self.table[solved] = normal(value)
        shape = tuple(as_extent(a.extent) for a in self.axes)
        self.state = State(equation.name, shape, equation.dtype)

    @property
    def domain(self) -> Expr:
        parts = []
        if self.time is not self.solved or self.solved.extent is not self.clock.extent:
            parts += [self.value >= 0, self.value < self.solved.extent]
        return conjunction([*parts, substitute(self.equation.domain, self.table)])

    def place(self, indices: Sequence[Expr]) -> list[Expr]:
        """Where the element at ``indices`` stands."""
        table = dict(zip(self.equation.axes, indices, strict=True))
        return [normal(substitute(self.time, table)), *(table[a] for a in self.rest)]

    def read(self, clock: Expr, indices: Sequence[Expr]) -> Expr:
        """The element at ``indices``, of which it is known when it is computed."""
        return Read(self.state, [normal(clock), *self.place(indices)[1:]])


class Kept:
    """All elements of an equation that were computed so far, at each step."""

    def __init__(self, equation: Equation, clocks: Clocks, length: Expr, timed: Timed | None) -> None:
        self.equation = equation
        self.timed = timed
        self.time = clocks.times[equation]
        self.clock = Axis("t", 0, length)
        self.axes = (self.clock, *equation.axes)
        shape = tuple(as_extent(a.extent) for a in self.axes)
        self.state = State(f"{equation.name}_kept", shape, equation.dtype)

    def read(self, clock: Expr, indices: Sequence[Expr], before: bool) -> Expr:
        """An element, of those before this step or of those with it."""
        if not before:
            return Read(self.state, [clock, *indices])
        nothing = as_expr(cast(0, self.equation.dtype))
        return select(clock >= 1, Read(self.state, [clock - 1, *indices]), nothing)

    def body(self, value: Expr) -> Expr:
        equation = self.equation
        if self.timed is not None:
            value = self.timed.read(self.clock, equation.axes)
            now = conjunction([call(EQUAL, self.time, self.clock), equation.domain])
        else:
            axes = tuple(Axis(a.name, 0, a.extent) for a in self.axes)
            table = dict(zip(self.axes, axes, strict=True))
            (turn,) = defined(["turn"], axes, [substitute(call(EQUAL, self.time, self.clock), table)])
            now = conjunction([Read(turn, self.axes), equation.domain])
        return select(now, value, self.read(self.clock, equation.axes, True))
