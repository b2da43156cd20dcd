"""What a program consists of, while its text is read: the loops and conditions around a statement, and the statements so far."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from jaxte.frontends.loops.program import Counter, Marked, Statement, Target, Variable, counter_of, target_of
from jaxte.frontends.text.tree import Span
from jaxte.lang.expr import TRUE, Axis, Expr, Read, as_expr, call, cast
from jaxte.lang.functions import logical_and, logical_not, maximum, minimum, select
from jaxte.lang.operators import ADD, EQUAL, MULTIPLY
from jaxte.lang.walk import reads_of
from jaxte.sets.affine import normal
from jaxte.tensors.reducers import builtin_reducer
from jaxte.tensors.shapes import Shape
from jaxte.tensors.tensor import Tensor

FOLDS = {
    "sum": lambda a, b: call(ADD, a, b),
    "prod": lambda a, b: call(MULTIPLY, a, b),
    "max": maximum,
    "min": minimum,
}

Branch = tuple[tuple[int, bool], ...]


@dataclass(frozen=True)
class _Choice:
    """One branch of an ``if`` on data: what was tested is held in a variable."""

    guard: Expr
    held: Variable
    number: int
    branch: bool


@dataclass
class Recorder:
    """A program under way.

    Attributes:
        kinds: the dtypes of variables of which the last reading of the text found them.
        found: the dtypes of all that is written to a variable, in this reading.
        guards, spans: under which conditions the text evaluates a read, and where it stands.
        short: the counters of loops that may be written out, and the key by which a reading is told to.
    """

    kinds: dict[object, str]
    statements: list[Statement] = field(default_factory=list)
    variables: dict[object, Variable] = field(default_factory=dict)
    found: dict[Variable, list[Any]] = field(default_factory=dict)
    guards: dict[Read, list[tuple[Expr, ...]]] = field(default_factory=dict)
    spans: dict[Read, Span] = field(default_factory=dict)
    short: dict[Axis, object] = field(default_factory=dict)
    regions: list[Marked] = field(default_factory=list)
    within: list[Expr] = field(default_factory=list)  # conditions of choices in the expression that is read
    _counters: list[Counter] = field(default_factory=list)
    _places: list[int] = field(default_factory=lambda: [0])
    _conditions: list[Expr] = field(default_factory=list)
    _choices: list[_Choice] = field(default_factory=list)
    _finished: list[tuple[Branch, Statement]] = field(default_factory=list)
    _count: int = 0

    # --- what stands around

    @property
    def depth(self) -> int:
        """How many loops and choices are around."""
        return len(self._counters) + len(self._choices) + len(self._conditions)

    @property
    def loops(self) -> int:
        return len(self._counters)

    def may_be_written_out(self, axis: Axis, key: object) -> None:
        """The loop over ``axis`` is written out in a reading that is told so by ``key``."""
        self.short[axis] = key

    @property
    def axes(self) -> list[Axis]:
        """Of the loops around."""
        return [c.axis for c in self._counters]

    @contextmanager
    def loop(self, name: str, lo: Any, hi: Any, step: int = 1) -> Iterator[Counter]:
        """A loop around the statements that follow."""
        counter = counter_of(name, normal(as_expr(lo)), normal(as_expr(hi)), step, self.axes, self.conditions)
        self._counters.append(counter)
        self._places.append(0)
        yield counter
        self._counters.pop()
        self._places.pop()
        self._places[-1] += 1

    @property
    def conditions(self) -> tuple[Expr, ...]:
        return (*(c.condition for c in self._counters if c.condition is not TRUE), *self._conditions)

    @contextmanager
    def under(self, condition: Expr) -> Iterator[None]:
        """A condition on counters and sizes around the statements that follow."""
        self._conditions.append(condition)
        yield
        self._conditions.pop()

    @contextmanager
    def choice(self, held: Variable, number: int, branch: bool) -> Iterator[None]:
        """A condition on data around the statements that follow."""
        guard: Expr = Read(held.cell, ())
        self._choices.append(_Choice(guard if branch else logical_not(guard), held, number, branch))
        yield
        self._choices.pop()

    def complete(self, start: int, number: int) -> None:
        """Of the statements since ``start``, marks those of which both branches of a choice write the same element."""
        around, given = self._branch, self.conditions
        written: list[set[Target]] = []
        for taken in (True, False):
            inner = (*around, (number, taken))
            own = [s for s in self.statements[start:] if s.branch == inner and s.op is None]
            own += [s for branch, s in self._finished if branch == inner]
            written.append({target_of(s, self.loops, given) for s in own})
        both = written[0] & written[1]
        targets = {n: target_of(s, self.loops, given) for n, s in enumerate(self.statements) if n >= start}
        last = {target: n for n, target in targets.items()}
        for n, target in targets.items():
            if target in both:
                self.statements[n] = replace(self.statements[n], complete=True, finishes=last[target] == n)
        self._finished += [(around, self.statements[last[target]]) for target in both]

    @property
    def _branch(self) -> Branch:
        return tuple((c.number, c.branch) for c in self._choices)

    def new_number(self) -> int:
        self._count += 1
        return self._count

    def new_statement(self) -> None:
        """What was noted of the reads of the statement before is forgotten."""
        self.guards.clear()
        self.spans.clear()

    @contextmanager
    def inside(self, condition: Expr) -> Iterator[None]:
        """A condition around a part of the expression that is read."""
        self.within.append(condition)
        yield
        self.within.pop()

    # --- variables

    def variable(
        self, key: object, name: str, shape: Shape, dtype: str, initial: Tensor | None = None, home: int = 0
    ) -> Variable:
        own = self.variables.get(key)
        if own is None:
            kind = self.kinds.get(key, dtype)
            own = self.variables[key] = Variable(name, shape, kind, initial, home=home)
        return own

    @property
    def choices(self) -> int:
        """How many choices by data are around."""
        return len(self._choices)

    def read(self, variable: Variable, indices: Sequence[Expr], span: Span) -> Read:
        read = Read(variable.cell, indices)
        self.guards.setdefault(read, []).append(tuple(self.within))
        self.spans.setdefault(read, span)
        return read

    # --- statements

    def assign(self, variable: Variable, indices: Sequence[Expr], value: Any, span: Span) -> None:
        """``variable[indices] = value``."""
        self.meets(variable, as_expr(value))
        self._put(variable, indices, value, span, None)

    def add(self, op: str, variable: Variable, indices: Sequence[Expr], part: Any, span: Span) -> None:
        """``variable[indices] = op(variable[indices], part)``."""
        self.meets(variable, as_expr(part))
        self._put(variable, indices, part, span, op)

    def put(
        self, variable: Variable, indices: Sequence[Expr], value: Any, span: Span, op: str | None
    ) -> None:
        """The one or the other of an element of an array, which keeps its dtype whatever is written to it; of a number, which does not."""
        if not indices:
            self.meets(variable, as_expr(value))
        self._put(variable, indices, value, span, op)

    def _put(
        self, variable: Variable, indices: Sequence[Expr], value: Any, span: Span, op: str | None
    ) -> None:
        self._write(variable, *self._held(variable, indices, as_expr(value), span), op, span)

    def meets(self, variable: Variable, value: Expr) -> None:
        """``value`` is among what decides of which dtype ``variable`` is."""
        self.found.setdefault(variable, []).append((value.dtype, value.weak))

    def _held(
        self, variable: Variable, indices: Sequence[Expr], value: Expr, span: Span
    ) -> tuple[list[Expr], Expr]:
        """Indices that are data, and a value, which read ``variable`` itself, in numbers: each of its elements is written, and they are read before."""
        if not any(map(reads_of, indices)):
            return list(indices), value

        def held(expr: Expr) -> Expr:
            if not any(r.tensor is variable.cell for r in reads_of(expr)):
                return expr
            name = f"{variable.name}_new"
            key = ("held", len(self.statements), self.loops)
            own = self.variable(key, name, (), expr.dtype, home=len(self._choices))
            self._write(own, (), expr, None, span)
            return self.read(own, (), span)

        return [held(index) for index in indices], held(value)

    def _write(
        self, variable: Variable, indices: Sequence[Expr], value: Expr, op: str | None, span: Span
    ) -> None:
        plain, of_data, around = list(indices), [], []
        for n, index in enumerate(indices):
            if reads_of(index):
                axis = Axis(f"{variable.name}_{n}", 0, variable.shape[n])
                around.append(Counter(axis.name, axis, axis, TRUE))
                plain[n] = axis
                of_data.append(call(EQUAL, axis, index))
        if value.dtype != variable.dtype or value.weak:
            value = cast(value, variable.dtype)
        self._emit(variable, tuple(plain), value, op, span, of_data, around)

    def _emit(
        self,
        variable: Variable,
        indices: tuple[Expr, ...],
        value: Expr,
        op: str | None,
        span: Span,
        of_data: Sequence[Expr],
        around: Sequence[Counter],
    ) -> None:
        choices = self._choices[variable.home :]
        tests = [*(c.guard for c in choices), *of_data]
        own = Read(variable.cell, indices)
        read = [Read(c.held.cell, ()) for c in choices] + ([own] if op is not None or tests else [])
        for one in read:
            self._noted(one, span)
        whole, part, alone = _written(own, value, op, tests)
        self.statements.append(
            Statement(
                number=len(self.statements),
                counters=(*self._counters, *around),
                places=(*self._places, *(0 for _ in around)),
                conditions=self.conditions,
                variable=variable,
                indices=indices,
                whole=whole if whole.dtype == variable.dtype else as_expr(cast(whole, variable.dtype)),
                span=span,
                guards={r: tuple(g) for r, g in self.guards.items()},
                spans=dict(self.spans),
                op=op,
                part=part,
                keeps=None if alone is None else own,
                alone=alone,
                branch=self._branch,
            )
        )
        self._places[-1] += 1

    def _noted(self, read: Read, span: Span) -> None:
        self.guards.setdefault(read, []).append(())
        self.spans.setdefault(read, span)


def _written(
    own: Read, value: Expr, op: str | None, tests: Sequence[Expr]
) -> tuple[Expr, Expr | None, Expr | None]:
    """What ``own`` is afterwards where ``tests`` on data hold, what ``op`` adds to it, and what is written where it keeps nothing."""
    if op is not None:
        part = value
        for test in reversed(tests):
            part = select(test, part, identity(op, own.dtype))
        return as_expr(FOLDS[op](own, part)), part, None
    if not tests:
        return value, None, None
    test = reduce(logical_and, tests)
    return select(test, value, own), None, cast(select(test, value, cast(0, own.dtype)), own.dtype)


def identity(op: str, dtype: str) -> Expr:
    """What ``op`` leaves as it is."""
    return builtin_reducer(op, dtype).identity[0]
