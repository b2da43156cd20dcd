"""Lines of an array that is changed as a whole in each step: the row, or the column, that lies a fixed number of places from the step.

    A[k, i, j] = A[k - 1, i, j] - f[k, i] * A[k - 1, k, j]          r[k, j] = A[k, k + 1, j]
                                                                    A[k, i, j] = A[k - 1, i, j] - f[k, i] * r[k - 1, j]

An elimination reads nothing else of what earlier steps have left, and neither does who reads the factors in the end. With an equation of its own for each line, the loop stacks lines, and hands
the array on; and what flows into lines is a line of the adjoint, which enters it in one place.

A step in place reads its own row and column, some elements before they are written and some behind (``d[i, j] = min(d[i, j], d[i, k] + d[k, j])``). With equations of their own for these, and for
the element where they meet, what else a step computes does not depend on each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from jaxte.frontends.loops.equations.edges import Clocks, Edge, Lag, Nest
from jaxte.frontends.loops.program import Equation, Stand
from jaxte.lang.expr import Axis, Call, Const, Expr, Read, call, conjunction, conjuncts
from jaxte.lang.graphs import among, identical
from jaxte.lang.limits import FEW
from jaxte.lang.operators import SELECT
from jaxte.lang.walk import free_axes, reads_of, rewrite, substitute, with_indices
from jaxte.sets.affine import linear, normal
from jaxte.sets.index_forms import is_index, nonnegative_forms
from jaxte.sets.resolved import decided

_Fixed = tuple[tuple[int, Expr], ...]
"""Places of an array, and where along each of them a step reads it."""


@dataclass(frozen=True)
class _Line:
    """The elements of ``equation`` whose index at ``place`` is its clock and ``distance``."""

    equation: Equation
    place: int
    distance: int

    @property
    def axes(self) -> list[Axis]:
        """The other axes."""
        return [a for n, a in enumerate(self.equation.axes) if n != self.place]


def with_lines(
    blocks: Sequence[Sequence[Equation]], clocks: Sequence[Clocks | Nest | None]
) -> tuple[list[list[Equation]], list[Clocks | Nest | None]]:
    """``blocks`` and their clocks with such equations; who reads lines reads these."""
    every = [e for block in blocks for e in block]
    found: list[list[Equation]] = []
    timed: list[Clocks | Nest | None] = []
    for block, own in zip(blocks, clocks, strict=True):
        more: dict[_Line, Equation] = {}
        if isinstance(own, Clocks) and own.is_fixed:
            more = {line: _equation(line, own) for e in block for line in _lines(e, own, every)}
        found.append([*block, *more.values()])
        timed.append(_reading(own, more, every) if more and isinstance(own, Clocks) else own)
    return found, timed


def own_lines(
    block: Sequence[Equation], searched: Callable[[Sequence[Equation]], Clocks | None]
) -> Clocks | None:
    """Clocks of ``block`` with equations for what its steps read of themselves, along lines; None where it has none with these either.

    Args:
        block: equations that read each other.
        searched: finds clocks by which each read is of a fixed number of steps ago.
    """
    outer = {e.statement.counters[:1] for e in block if e.statement is not None and e.statement.counters}
    if len(outer) != 1 or any(e.statement is None or len(e.axes) < 2 for e in block):
        return None
    before = {e: e.body for e in block}
    for equation in block:
        equation.says(_by_clock(equation.body, equation.axes[0]))
    lines: dict[tuple[Equation, _Fixed], Equation] = {}
    waiting = list(block)
    # Lines of one array.
    while waiting and len(lines) <= FEW * len(block):
        reader = waiting.pop()
        table: dict[Expr, Expr] = {}
        for target in block:
            for read in _reads(reader, target):
                fixed = _fixed_places(read, reader.axes[0], target.axes[0])
                if fixed and (target, fixed) not in lines:
                    own = _by_clock(before[target], target.axes[0])
                    lines[target, fixed] = _own_line(target, own, dict(fixed))
                    waiting.append(lines[target, fixed])
                if fixed:
                    rest = [i for n, i in enumerate(read.indices) if n not in dict(fixed)]
                    table[read] = Read(lines[target, fixed].stand, rest)
        reader.says(substitute(reader.body, table))
    clocks = searched([*block, *lines.values()]) if lines and not waiting else None
    if clocks is None:
        for equation, body in before.items():
            equation.says(body)
    return clocks


def _by_clock(body: Expr, clock: Axis) -> Expr:
    """``body`` with positions in terms of the ``clock`` where a condition says that an axis is a fixed number of places from it."""

    def rule(node: Expr) -> Expr:
        match node:
            case Call(op, (test, taken, other)) if op is SELECT:
                table: dict[Expr, Expr] = {}
                for axis in free_axes(test):
                    if axis is not clock and (at := _fixed_by(test, axis, clock)) is not None:
                        table[axis] = at
                moved = with_indices(taken, lambda i: normal(substitute(i, table)) if is_index(i) else i)
                return call(SELECT, test, moved, other) if table else node
        return node

    return rewrite(body, rule)


def _fixed_by(test: Expr, axis: Axis, clock: Axis) -> Expr | None:
    """What ``axis`` is where ``test`` holds, in terms of the ``clock``."""
    for condition in conjuncts(test):
        forms = nonnegative_forms(condition)
        for form in forms if len(forms) == 2 else ():
            rest = form - linear(axis - clock)
            if rest.is_constant:
                return normal(clock - int(rest.constant))
    return None


def _fixed_places(read: Read, clock: Axis, shown: Axis) -> _Fixed:
    """The places of ``read`` that the step says, of one of that step, and which they are in step ``shown``."""
    if read.indices[0] is not clock or not all(is_index(i) for i in read.indices):
        return ()
    at = [(n, i) for n, i in enumerate(read.indices) if n and identical([*free_axes(i)], [clock])]
    return tuple((n, normal(substitute(i, {clock: shown}))) for n, i in at)


def _own_line(equation: Equation, body: Expr, fixed: Mapping[int, Expr]) -> Equation:
    """The elements of ``equation`` with these places."""
    rest = [a for n, a in enumerate(equation.axes) if n not in fixed]
    axes = tuple(Axis(a.name, 0, a.extent) for a in rest)
    table: dict[Expr, Expr] = dict(zip(rest, axes, strict=True))
    inside = []
    for place, position in fixed.items():
        at = table[equation.axes[place]] = normal(substitute(position, {equation.axes[0]: axes[0]}))
        inside += [at >= 0, at < equation.axes[place].extent]
    domain = conjunction([*inside, substitute(equation.domain, table)])
    return Equation(
        equation.name, axes, decided(domain), equation.dtype, body=decided(substitute(body, table))
    )


def _lines(equation: Equation, clocks: Clocks, readers: Sequence[Equation]) -> list[_Line]:
    """Those of ``equation`` that something reads: the ones that most reads are of, each read at one of them."""
    time = clocks.times[equation]
    if clocks.solved(equation) is None or len(equation.axes) < 2:
        return []
    reads = [_lines_of(r, equation, time) for e in readers for r in _reads(e, equation)]
    found: list[_Line] = []
    while any(reads):
        counts = {line: sum(line in own for own in reads) for own in reads for line in own}
        found.append(max(counts, key=lambda line: counts[line]))
        reads = [own for own in reads if found[-1] not in own]
    return found if len(found) <= FEW else []


def _reads(reader: Equation, equation: Equation) -> list[Read]:
    return [r for r in dict.fromkeys(reads_of(reader.body)) if r.tensor is equation.stand]


def _lines_of(read: Read, equation: Equation, time: Expr) -> list[_Line]:
    """The lines of ``equation`` that all elements of ``read`` lie on."""
    if not all(is_index(i) for i in read.indices):
        return []
    at = substitute(time, dict(zip(equation.axes, read.indices, strict=True)))
    found = []
    for place, (axis, index) in enumerate(zip(equation.axes, read.indices, strict=True)):
        distance = normal(index - at)
        if isinstance(distance, Const) and not among(axis, free_axes(time)) and free_axes(at):
            found.append(_Line(equation, place, int(distance.value)))  # type: ignore[arg-type]
    return found


def _equation(line: _Line, clocks: Clocks) -> Equation:
    own = line.equation
    axes = tuple(Axis(a.name, 0, a.extent) for a in line.axes)
    table: dict[Expr, Expr] = dict(zip(line.axes, axes, strict=True))
    at = normal(substitute(clocks.times[own], table) + line.distance)
    table[own.axes[line.place]] = at
    inside = conjunction([at >= 0, at < own.axes[line.place].extent, substitute(own.domain, table)])
    body = Read(own.stand, [table[a] for a in own.axes])
    return Equation(own.name, axes, decided(inside), own.dtype, body=body)


def _reading(clocks: Clocks, lines: dict[_Line, Equation], readers: Sequence[Equation]) -> Clocks:
    """The clocks of a block with ``lines``, which all ``readers`` read from here on."""
    times, lags = dict(clocks.times), dict(clocks.lags)
    for line, own in lines.items():
        (read,) = reads_of(own.body)
        times[own] = substitute(clocks.times[line.equation], dict(zip(line.axes, own.axes, strict=True)))
        lags[Edge(own, line.equation, read, read.indices, own.axes, (own.domain,))] = Lag(0, True)
    arrays = dict.fromkeys(line.equation for line in lines)
    for reader in readers:
        table: dict[Expr, Expr] = {}
        for array, read in [(own, r) for own in arrays for r in _reads(reader, own)]:
            of_read = _lines_of(read, array, clocks.times[array])
            for found in [line for line in lines if line in of_read][:1]:
                rest = [i for n, i in enumerate(read.indices) if n != found.place]
                table[read] = Read(lines[found].stand, rest)
        reader.says(substitute(reader.body, table))
        for edge, lag in clocks.lags.items():
            if edge.source is reader and edge.read in table:
                new = table[edge.read]
                assert isinstance(new, Read) and isinstance(new.tensor, Stand)
                moved = Edge(reader, new.tensor.equation, new, new.indices, edge.axes, edge.conditions)
                lags[moved] = lag
    return Clocks(times, lags)
