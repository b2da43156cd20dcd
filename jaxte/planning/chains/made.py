"""A chain as a recurrence: one definition of each role over all steps, which reads the steps before at the positions before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

import numpy as np

from jaxte.lang import operators as ops
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.errors import DefinitionError, DtypeError
from jaxte.lang.expr import Axis, Call, Const, Expr, Read, Reduce, as_expr, call, cast, conjunction
from jaxte.planning.asked import intermediates
from jaxte.planning.chains.extents import Apart, Extents, extents_of, line
from jaxte.planning.chains.found import Chain
from jaxte.planning.chains.kept import with_values
from jaxte.sets.affine import normal
from jaxte.sets.index_forms import is_index, linear_or_none
from jaxte.tensors.bodies.range_checks import reads_inside
from jaxte.tensors.elementwise import of_array
from jaxte.tensors.recurrences.node import Recurrence, Recurrent, State
from jaxte.tensors.recurrences.products import with_products
from jaxte.tensors.recurrences.starts import guarded_read
from jaxte.tensors.recurrences.steps import step_of
from jaxte.tensors.structure import Row
from jaxte.tensors.tensor import Compute, Tensor

# what may be done to numbers that differ from step to step
_PLAIN = (
    *(ops.ADD, ops.SUBTRACT, ops.MULTIPLY, ops.DIVIDE, ops.SELECT, ops.MINIMUM, ops.MAXIMUM),
    *(ops.LESS, ops.LESS_EQUAL, ops.GREATER, ops.GREATER_EQUAL),
)


def made_of(chain: Chain, read: set[int], table: Mapping[Tensor, Tensor]) -> Mapping[int, Recurrent] | None:
    """``chain`` as a recurrence: of each role that something else reads, the tensor of all positions; None where it is none.

    Args:
        read: the roles that something else reads.
        table: what stands for tensors outside.
    """
    try:
        return _Making(chain, read, table).made()
    except (Apart, DefinitionError, DtypeError):
        return None


@dataclass
class _Making:
    chain: Chain
    read: set[int]
    table: Mapping[Tensor, Tensor]
    _targets: dict[int, Tensor] = field(default_factory=dict)
    _before: dict[int, Tensor] = field(default_factory=dict)
    _extents: list[Extents] = field(default_factory=list)
    _constants: dict[tuple[str, tuple[object, ...]], Tensor] = field(default_factory=dict)

    def made(self) -> Mapping[int, Recurrent]:
        chain = self.chain
        count = len(chain.roles)
        self._extents = [extents_of(chain, n) for n in range(count)]
        carried = {own.role for own in chain.reads.values() if own.lag}
        states = {}
        for role in range(count):
            if role in self.read or role in carried:
                last = chain.roles[role][-1]
                shape = (chain.length, *_shape(self._extents[role]))
                states[role] = self._targets[role] = State(self._name(role), shape, last.dtype)
        for role in carried:
            self._before[role] = self._start(role)
        definitions = {}
        for role in range(count):
            made = self._definition(role)
            if role in states:
                definitions[role] = made
            else:
                self._targets[role] = made
        numbers = list(states)
        rows = tuple(definitions[n] for n in numbers)
        group = with_products(Recurrence(tuple(states.values()), rows, (0,) * len(numbers), False))
        group = with_values(group, intermediates())
        step_of(group)
        return {role: group.tensors[n] for n, role in enumerate(numbers)}

    def _name(self, role: int) -> str:
        """What the names of the tensors have in common, without what counts the steps."""
        names = [t.name for t in self.chain.roles[role]]
        if all(n == names[0] for n in names):
            return names[0]
        letters = takewhile(lambda own: len(set(own)) == 1, zip(*names, strict=False))
        return "".join(own[0] for own in letters).rstrip("0123456789").rstrip("_") or names[-1]

    def _clock(self, role: int) -> Axis:
        taken = {a.name for a in self.chain.roles[role][-1].axes}
        name = next(n for n in ("s", "t", "step", "at_step") if n not in taken)
        return Axis(name, 0, self.chain.length)

    def _start(self, role: int) -> Compute:
        """What stands for ``role`` before the first step, position by position."""
        extents, name = self._extents[role], f"{self._name(role)}_init"
        found = {depth: self._given(t) for (own, depth), t in self.chain.starts.items() if own == role}
        depth = max(found)
        last = self.chain.roles[role][-1]
        clock = Axis(self._clock(role).name, 0, depth)
        axes = [Axis(a.name, 0, e) for a, e in zip(last.axes, extents.largest, strict=True)]
        body: Expr | None = None
        for ago, tensor in sorted(found.items(), reverse=True):
            value: Expr = Read(tensor, axes)
            inside = [
                a < e
                for a, e, own in zip(axes, extents.largest, tensor.shape, strict=True)
                if as_expr(own) is not e
                for e in [as_expr(own)]
            ]
            if inside:
                value = call(ops.SELECT, conjunction(inside), value, _zero(tensor.dtype))
            body = value if body is None else call(ops.SELECT, clock < depth - ago, body, value)
        assert body is not None
        return Compute(name, (clock, *axes), body)

    def _given(self, tensor: Tensor) -> Tensor:
        return self.table.get(tensor, tensor)

    def _definition(self, role: int) -> Compute:
        last, extents = self.chain.roles[role][-1], self._extents[role]
        clock = self._clock(role)
        axes = [Axis(a.name, 0, e) for a, e in zip(last.axes, extents.largest, strict=True)]
        own = zip(*(t.axes for t in self.chain.roles[role]), strict=True)
        body = _Body(self, clock, dict(zip(own, axes, strict=True))).of(self.chain.rows[role])
        if body.dtype != last.dtype or body.weak != last.body.weak:
            raise Apart
        ends = [axes[n] < normal(first + grows * clock) for n, (first, grows) in extents.own.items()]
        if ends:
            body = call(ops.SELECT, conjunction(ends), body, _zero(body.dtype))
        if ends and not reads_inside((clock, *axes), body):
            raise Apart
        return Compute(self._name(role), (clock, *axes), body)

    def element(self, tensors: tuple[Tensor, ...], clock: Axis, indices: list[Expr]) -> Expr:
        """What ``tensors``, one of each step, are at ``indices``."""
        own = self.chain.reads.get(tensors)
        if own is None:
            return Read(self._given(tensors[-1]), indices)
        target = self._targets[own.role]
        if not own.lag:
            return Read(target, (clock, *indices))
        assert isinstance(target, State)
        read = Read(target, (normal(clock - own.lag), *indices))
        return guarded_read(target, 0, read, self._before[own.role], False)

    def constants(self, values: tuple[object, ...], dtype: str, name: str) -> Tensor:
        """A table of numbers, one for each step."""
        key = dtype, values
        if key not in self._constants:
            self._constants[key] = of_array(np.array(values), name, dtype)
        return self._constants[key]


@dataclass
class _Body:
    """The body of one role over all steps."""

    making: _Making
    clock: Axis
    axes: dict[Row, Axis]
    _made: dict[Row, Expr] = field(default_factory=dict)

    def of(self, rows: Sequence[Row]) -> Expr:
        for row in rows:
            self._made[row] = self._node(row)
        return self._made[rows[-1]]

    def _node(self, row: Row) -> Expr:
        node = row[-1]
        match node:
            case Axis():
                return self._axis(row)
            case Const(value):
                if all(n is node for n in row) or type(value) is float:
                    return node  # numbers that differ are given by what reads them
                return self._growing(row)
            case Call():
                below = list(zip(*(n.children for n in row), strict=True))
                if node.op not in _PLAIN and any(_is_number_that_differs(own) for own in below):
                    raise Apart
                made = call(node.op, *(self._operand(own, node) for own in below))
                if made.kind != node.kind:
                    raise Apart
                return made
            case Read():
                indices = [self._whole(own) for own in zip(*(n.children for n in row), strict=True)]
                if any(
                    _is_affine(old) and not _is_affine(new)
                    for old, new in zip(node.children, indices, strict=True)
                ):
                    raise Apart
                return self.making.element(
                    tuple(n.tensor for n in row if isinstance(n, Read)), self.clock, indices
                )
            case Reduce():
                values = [self._whole(own) for own in zip(*(n.children for n in row), strict=True)]
                own_axes = zip(*(n.axes for n in row if isinstance(n, Reduce)), strict=True)
                axes = [self._axis(own) for own in own_axes]
                return node.changed(exprs=values[:-1], axes=axes, where=values[-1])
        return node

    def _growing(self, row: Row) -> Expr:
        """Whole numbers that grow from step to step by the same."""
        numbers = [n.value for n in row if isinstance(n, Const) and isinstance(n.value, int) and n.weak]
        if len(numbers) < len(row):
            raise Apart
        first, grows = line(numbers)
        return normal(first + grows * self.clock)

    def _axis(self, row: tuple[Expr, ...]) -> Axis:
        last = row[-1]
        assert isinstance(last, Axis)
        if row not in self.axes:
            self.axes[row] = Axis(last.name, last.lo, last.hi, last.reduction)
        return self.axes[row]

    def _whole(self, row: Row) -> Expr:
        if _differs(row):
            raise Apart
        return self._made[row]

    def _operand(self, row: Row, node: Call) -> Expr:
        """An operand of ``node``: where it is a number that differs, an element of a table."""
        if not _differs(row):
            return self._made[row]
        last = row[-1]
        kinds = (
            {last.dtype}
            if not last.weak
            else {a.dtype for a in node.args if not a.weak and is_inexact(a.dtype)}
        )
        if len(kinds) != 1:
            raise Apart
        (dtype,) = kinds
        values = tuple(n.value for n in row if isinstance(n, Const))
        return Read(self.making.constants(values, dtype, "constants"), (self.clock,))


def _is_number_that_differs(row: Row) -> bool:
    return isinstance(row[-1], Const) and any(n is not row[-1] for n in row)


def _is_affine(index: Expr) -> bool:
    return is_index(index) and linear_or_none(index) is not None


def _differs(row: Row) -> bool:
    """Whether ``row`` are numbers that no line goes through."""
    last = row[-1]
    return isinstance(last, Const) and type(last.value) is float and any(n is not last for n in row)


def _shape(extents: Extents) -> tuple[int | Expr, ...]:
    return tuple(e.value if isinstance(e, Const) else e for e in extents.largest)  # type: ignore[misc]


def _zero(dtype: str) -> Expr:
    return cast(as_expr(False if dtype == "bool" else 0), dtype)
