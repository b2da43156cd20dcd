"""The states that an equation is in a recurrence: its elements over a clock, and all of them that were computed so far.

What the states of a recurrence begin with: arrays that are read in place of them in the first step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jaxte.frontends.loops.equations.edges import Clocks
from jaxte.frontends.loops.program import Equation, Stand
from jaxte.lang.expr import Axis, Call, Const, Expr, Read, as_expr, call, cast, conjunction
from jaxte.lang.functions import select
from jaxte.lang.graphs import among
from jaxte.lang.operators import EQUAL, GREATER_EQUAL, SELECT
from jaxte.lang.walk import free_axes, postorder, reads_of, rewrite, substitute, with_indices
from jaxte.sets.affine import from_linear, linear, normal
from jaxte.sets.index_forms import difference, is_index, linear_or_none
from jaxte.sets.intervals import at_most, highest, index_stays_in, lowest, nonnegative, surely_inside
from jaxte.tensors.compute import defined
from jaxte.tensors.recurrences.node import State
from jaxte.tensors.recurrences.starts import guarded_read
from jaxte.tensors.shapes import Extent, as_extent
from jaxte.tensors.tensor import Compute


def extents(block: Sequence[Equation]) -> dict[Axis, Expr]:
    """Axes of equations that shrink step by step, with an extent by which they hold all that is read at the same places before the first step."""
    found: dict[Axis, Expr] = {}
    for read in dict.fromkeys(r for e in block for r in reads_of(e.body)):
        if not isinstance(read.tensor, Stand) or read.tensor.equation.statement is None:
            continue
        own = read.tensor.equation.statement
        most = dict(zip(own.indices, own.variable.shape, strict=True))
        for axis, index in zip(own.axes, read.indices, strict=True):
            form = None if axis not in most or reads_of(index) else linear(normal(index))
            low, high = (None, None) if form is None else (lowest(form), highest(form))
            if low is None or high is None or not nonnegative(low):
                continue
            size = normal(from_linear(high) + 1)
            if not at_most(size, found.get(axis, axis.extent)) and at_most(size, as_expr(most[axis])):
                found[axis] = size
    return found


class Timed:
    """An equation over its clock and its other axes: others are ``given`` for some of them, and ``wide`` has longer extents."""

    def __init__(
        self,
        equation: Equation,
        clocks: Clocks,
        length: Expr,
        given: Mapping[Axis, Axis] | None = None,
        wide: Mapping[Axis, Expr] | None = None,
    ) -> None:
        self.equation = equation
        self.time = clocks.times[equation]
        solved = clocks.solved(equation)
        assert solved is not None
        self.solved = solved
        self.clock = Axis(solved.name if self.time is solved else "t", 0, length)
        self.rest = tuple(a for a in equation.axes if a is not solved)
        placed, longer = given or {}, wide or {}
        others = tuple(
            placed[a] if a in placed else Axis(a.name, 0, longer.get(a, a.extent)) for a in self.rest
        )
        self.axes = (self.clock, *others)
        self.table: dict[Expr, Expr] = dict(zip(self.rest, others, strict=True))
        self._longer = [own < a.extent for a, own in zip(self.rest, others, strict=True) if a in longer]
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
        return conjunction([*parts, *self._longer, substitute(self.equation.domain, self.table)])

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


def with_starts(bodies: Sequence[Expr], states: Sequence[State]) -> list[Expr]:
    """``bodies`` with each choice between a state one step ago and what it begins with as one between the state and a tensor of that."""
    choices = {}
    for node in dict.fromkeys(n for body in bodies for n in postorder(body)):
        read = _of_first(node, states)
        if read is not None:
            assert isinstance(node, Call)
            choices[node] = next(s for s in states if s is read.tensor), read, node.args[2]
    starts: dict[State, Compute] = {}
    for state, read, other in choices.values():
        start = None if state in starts else _start(state, read, other)
        if start is not None:
            starts[state] = start
    table: dict[Expr, Expr] = {}
    for node, (state, read, other) in choices.items():
        start = starts.get(state)
        if start is not None:
            place: dict[Expr, Expr] = dict(zip(start.axes[1:], read.indices[1:], strict=True))
            if _moved(start.body, place) is _moved(other, {}):
                table[node] = guarded_read(state, 0, read, start, False)
    return [rewrite(body, lambda node: table.get(node, node)) for body in bodies] if table else list(bodies)


def _of_first(node: Expr, states: Sequence[State]) -> Read | None:
    """The read of a state one step ago, where ``node`` chooses between it and another value by whether there is such a step."""
    if not isinstance(node, Call) or node.op is not SELECT:
        return None
    test, taken, other = node.args
    if not isinstance(taken, Read) or not among(taken.tensor, states):
        return None
    places = zip(taken.indices[1:], taken.tensor.shape[1:], strict=True)
    if not all(
        isinstance(i, Axis) or (is_index(i) and (index_stays_in(i, as_expr(e)) or _is_place_of(other, i, e)))
        for i, e in places
    ):
        return None
    if not isinstance(test, Call) or test.op is not GREATER_EQUAL:
        return None
    own, found = linear_or_none(taken.indices[0]), difference(test)
    if own is None or found is None or own.constant != -1:
        return None
    rest = found - own
    return taken if rest.is_constant and not rest.constant else None


def _is_place_of(other: Expr, index: Expr, extent: Extent) -> bool:
    """Whether ``other`` is read at ``index``, of as many positions: it is in range where that is evaluated."""
    while isinstance(other, Call) and other.op.name == "cast":
        (other,) = other.args
    return isinstance(other, Read) and any(
        normal(i) is normal(index) and as_expr(e) is as_expr(extent)
        for i, e in zip(other.indices, other.tensor.shape, strict=True)
        if is_index(i)
    )


def _moved(body: Expr, table: Mapping[Expr, Expr]) -> Expr:
    """``body`` with other expressions for some of its axes, and positions in one form."""
    return with_indices(substitute(body, table), lambda i: normal(i) if is_index(i) else i)


def _start(state: State, read: Read, other: Expr) -> Compute | None:
    """A tensor of what ``other`` is at each element of the state, where that is read a fixed number of places behind each of its axes."""
    forms = [None if reads_of(i) else linear_or_none(i) for i in read.indices[1:]]
    single = [f for f in forms if f is not None and len(f.terms) == 1]
    axes = [a for f in single for a in f.terms if isinstance(a, Axis) and f.coefficient(a) == 1]
    if len(axes) < len(read.indices) - 1 or len(set(axes)) < len(axes):
        return None
    if any(isinstance(r.tensor, State) for r in reads_of(other)) or set(free_axes(other)) - set(axes):
        return None
    if isinstance(other, Const) or not reads_of(other):
        return None
    first = Axis("t", 0, as_expr(1))
    own = tuple(Axis(a.name, 0, as_expr(e)) for a, e in zip(axes, state.shape[1:], strict=True))
    shifts = {n: f.constant for n, f in enumerate(forms) if f is not None and f.constant}
    body = _moved(other, {a: own[n] - shifts.get(n, 0) for n, a in enumerate(axes)})
    if shifts and not all(map(surely_inside, reads_of(body))):
        return None
    (made,) = defined([f"{state.name}_init"], (first, *own), [body])
    return made
