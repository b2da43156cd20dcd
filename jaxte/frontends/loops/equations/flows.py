"""The reads and writes of a program as accesses, and the dataflow of each array, which readings of the program share.

What reads of an array see depends on the writes to that array alone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import reduce
from typing import Any

from jaxte.frontends.loops.program import Cell, Program, Statement, Variable
from jaxte.frontends.loops.reading.choices import overwritten
from jaxte.lang.budget import Exhausted
from jaxte.lang.errors import DefinitionError
from jaxte.lang.expr import TRUE, Axis, Expr, Read, as_expr, conjunction
from jaxte.lang.functions import logical_or
from jaxte.lang.walk import free_axes, reads_of
from jaxte.sets.accesses import Access
from jaxte.sets.flow import Flow

_LAST = 10**6  # the time of what is returned


class Flows:
    """What readings of one program have found; accesses that they have in common are the same object."""

    def __init__(self) -> None:
        self._accesses: dict[tuple[Any, ...], Access] = {}
        self._axes: dict[tuple[Any, ...], Axis] = {}
        self._known: dict[tuple[Any, ...], Flow] = {}

    def axis(self, number: int, read: Read, place: int, name: str, extent: Any) -> Axis:
        """The axis that stands for a position that is data, of a read in the statement of this ``number``."""
        return self._axes.setdefault((number, read, place), Axis(name, 0, extent))

    def access(
        self,
        label: str,
        axes: Sequence[Axis],
        conditions: Sequence[Expr],
        array: str,
        indices: Sequence[Expr],
        time: Sequence[Expr],
    ) -> Access:
        parts = label, tuple(axes), tuple(conditions), array, tuple(indices), tuple(time)
        return self._accesses.setdefault(parts, Access(*parts))

    def by_array(
        self, reads: Sequence[Access], writes: Sequence[Access], additions: Sequence[Access]
    ) -> dict[str, Flow]:
        """The flow of each array.

        Raises:
            Exhausted: isl takes more operations than one array may.
        """
        found = {}
        for array in dict.fromkeys(a.array for a in (*reads, *writes, *additions)):
            key = tuple(tuple(a for a in own if a.array == array) for own in (reads, writes, additions))
            if key not in self._known:
                self._known[key] = Flow(*key)
            found[array] = self._known[key]
        return found


class Reads:
    """The accesses of ``program``.

    Args:
        plain: numbers of statements of which additions are taken for what they are written as, a new value.
        flows: what other readings of the program have found.

    Attributes:
        adds: the statements that are additions, and their operations.
        reads, writes, outputs: the accesses of reads, of what is written, and of what is returned.
        positions: of reads at positions that are data, these, by the axes that stand for them.
        keeps: the reads by which a branch keeps what the other writes.
        unkept: statements whose element need not be kept.
    """

    def __init__(self, program: Program, plain: Collection[int], flows: Flows) -> None:
        self.flows = flows
        self.program = program
        self._depth = max((len(s.counters) for s in program.statements), default=0)
        self.adds = self._additions(plain)
        self.reads: dict[tuple[Statement, Read], Access] = {}
        self.positions: dict[Access, dict[Axis, Expr]] = {}
        self.writes: dict[Access, Statement | Variable] = {}
        for statement in program.statements:
            for n, read in enumerate(self.cells(statement)):
                self.reads[statement, read] = self._read_access(statement, read, n)
        self.outputs = {v: self._whole(f"O{n}", v, _LAST) for n, v in enumerate(program.results)}
        self.by_array = self._asked()
        self.keeps = {a for (s, read), a in self.reads.items() if s.complete and s.only_keeps(read)}
        self.unkept = self._overwritten()

    def _additions(self, plain: Collection[int]) -> dict[Statement, str]:
        """Those of one operation for each variable, the one that adds most often to an element; others write what they say."""
        every = [s for s in self.program.statements if s.op is not None and s.number not in plain]
        most: dict[Variable, Statement] = {}
        for own in every:
            if own.variable not in most or _repeats(own) > _repeats(most[own.variable]):
                most[own.variable] = own
        return {own: own.op for own in every if own.op is not None and own.op == most[own.variable].op}

    def value_of(self, statement: Statement) -> Expr:
        own = statement.part if statement in self.adds else statement.whole
        assert own is not None
        return own

    def cells(self, statement: Statement) -> list[Read]:
        """The reads of variables in a statement."""
        return [r for r in dict.fromkeys(reads_of(self.value_of(statement))) if isinstance(r.tensor, Cell)]

    def _read_access(self, statement: Statement, read: Read, n: int) -> Access:
        variable = self.variable_of(read)
        axes, indices, table = list(statement.axes), list(read.indices), {}
        for place, index in enumerate(indices):
            if reads_of(index):
                axis = self.flows.axis(
                    statement.number, read, place, f"{variable.name}_{place}", variable.shape[place]
                )
                axes.append(axis)
                table[axis] = index
                indices[place] = axis
        given = statement.guards.get(read, ((),))
        either = reduce(logical_or, (conjunction(g) for g in given))
        conditions = (*statement.conditions, *([] if either is TRUE else [either]))
        access = self.flows.access(
            f"R{statement.number}_{n}",
            tuple(axes),
            conditions,
            self.array_of(variable),
            tuple(indices),
            statement.time(self._depth, 0),
        )
        self.positions[access] = table
        return access

    def _asked(self) -> dict[str, Flow]:
        writes: list[Access] = []
        additions: list[Access] = []
        for statement in self.program.statements:
            own = self.flows.access(
                f"W{statement.number}",
                statement.axes,
                statement.conditions,
                self.array_of(statement.variable),
                statement.indices,
                statement.time(self._depth, 1),
            )
            self.writes[own] = statement
            (additions if statement in self.adds else writes).append(own)
        for n, variable in enumerate(self.program.variables):
            if variable.initial is not None:
                own = self._whole(f"I{n}", variable, -1)
                self.writes[own] = variable
                writes.append(own)
        try:
            return self.flows.by_array([*self.reads.values(), *self.outputs.values()], writes, additions)
        except Exhausted:
            raise DefinitionError(
                f"{self.program.name}: which write each of its {len(self.reads)} reads sees takes too long to find; make several functions of it, "
                "each with @te.loops, and call one after the other in JAX"
            ) from None

    def flow(self, access: Access) -> Flow:
        """The flow of the array that ``access`` is to."""
        return self.by_array[access.array]

    def _overwritten(self) -> set[Statement]:
        """Statements whose element another branch of a choice by data writes, too, so that it need not be kept."""
        if not any(s.keeps is not None for s in self.program.statements):
            return set()
        own = {
            access.label: source for access, source in self.writes.items() if isinstance(source, Statement)
        }
        seen = {
            key: [own[n] for n in self.flow(access).labels(access) if n in own]
            for key, access in self.reads.items()
        }
        return overwritten(self.program.statements, seen)

    def _whole(self, label: str, variable: Variable, time: int) -> Access:
        axes = tuple(
            self.flows.axis(time, Read(variable.cell, [as_expr(0)] * len(variable.shape)), n, f"i{n}", extent)
            for n, extent in enumerate(variable.shape)
        )
        times = (as_expr(time), *(as_expr(0) for _ in range(2 * self._depth + 1)))
        return self.flows.access(label, axes, (), self.array_of(variable), axes, times)

    def array_of(self, variable: Variable) -> str:
        return f"A{self.program.variables.index(variable)}"

    def variable_of(self, read: Read) -> Variable:
        return next(v for v in self.program.variables if v.cell is read.tensor)


def _repeats(statement: Statement) -> int:
    """How many of the loops around a statement run over one element that it writes."""
    counted = {a for index in statement.indices for a in free_axes(index)}
    return sum(axis not in counted for axis in statement.axes)
