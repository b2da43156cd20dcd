"""Values as they are written: elementwise operations, casts, and the statements in which values get names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from operator import attrgetter

from jaxte.lang import dtypes
from jaxte.lang.expr import ONE, Axis
from jaxte.lang.graphs import among, identical, ordered, place_of
from jaxte.lang.operators import COMPARISONS, NEGATIVE, SELECT, Op
from jaxte.lower.arrays.elementwise import Apply, Arange, Cast, Full, Name
from jaxte.lower.arrays.loops import Stacked, Sums
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.views import Broadcast, Step
from jaxte.lower.body.assignment import Assignment, Shared
from jaxte.lower.code.broadcasting import apply_steps, broadcast
from jaxte.lower.code.constants import converted, folded, negated, positions_as, typed_number, without_neutral
from jaxte.lower.code.joined_columns import columns_as_one
from jaxte.lower.code.joined_sums import number_within, sums_as_one
from jaxte.lower.code.vocabulary import AnyStatement, Statement, Value, name_of
from jaxte.lower.views.affine import reorder
from jaxte.lower.views.scope import Scope

LONGEST_LINE, SHORT = 92, 24  # characters of a statement whose parts get names, of a part that gets none
_is_literal, _dims, _kind = attrgetter("literal"), attrgetter("dims"), attrgetter("kind")
_WIDE = {"float32": "float64", "complex64": "complex128"}


class Statements:
    """The statements of one tensor so far, and what makes values of values."""

    def __init__(self, own: Assignment, shared: Shared) -> None:
        self.label = own.label
        self.target = own.target
        self.wide = own.wide
        self.names = shared.names
        self.printer = shared.printer
        self.written = shared.written
        self._sums_apart = shared.policy.facts.sums_apart
        self.statements: list[AnyStatement] = []

    # --- names

    def named(self, value: Value) -> Value:
        """``value`` under a name of its own, in a statement if it has none."""
        if isinstance(value.code, Name) or value.literal:
            return value
        if value.code not in self.written:
            self._define(self.names.numbered(self.target), value.code)
        return Value(name_of(self.written[value.code], value.dims, value.kind), value.dims, value.kind)

    def named_as(self, wanted: str, value: Value) -> Value:
        """``value`` under a name like ``wanted``, unless it has one."""
        if not isinstance(value.code, Name) and value.code not in self.written:
            self._define(self.names.new(wanted), value.code)
        return self.named(value)

    def shared(self, node: Node, wanted: str = "") -> Name:
        """The name of ``node``, which is computed once: one like ``wanted``, or that of the tensor."""
        if isinstance(node, Name):
            return node
        if node not in self.written:
            self._define(self.names.new(wanted) if wanted else self.names.numbered(self.target), node)
        return Name(self.written[node], node.shape, node.kind)

    def named_tuple(self, node: Node) -> Name:
        """The name of a tuple of arrays."""
        if node not in self.written:
            self._define(self.names.numbered(self.target), node)
        return Name(self.written[node])

    def _define(self, target: str, code: Node) -> None:
        self.assign(target, code)
        self.written[code] = target

    def add(self, statement: AnyStatement) -> None:
        self.statements.append(statement)

    def assign(self, target: str, code: Node) -> None:
        self.add(Statement(self.label, target, code))

    def finish(self, code: Node) -> None:
        """Assigns ``code`` to the target; where the last line makes it, that line does."""
        if self._sums_apart:
            code = self._with_sums_as_one(code)
            code = number_within(code) or code
        code = self._with_columns_as_one(code)
        last = self.statements[-1] if self.statements else None
        if isinstance(code, Name) and isinstance(last, Statement) and last.target == code.identifier:
            self.statements.pop()
            code = last.source
            if code in self.written:
                self.written[code] = self.target
        self.assign(self.target, code)

    def _with_sums_as_one(self, code: Node) -> Node:
        """``code`` with the sums that it adds as one, and without the statements that it read alone."""
        own = {s.target: s.source for s in self.statements if isinstance(s, Statement)}
        if len(own) < len(self.statements):
            return code
        read = _names_in([*own.values(), code])
        new: dict[str, Node] = {}

        def named(node: Node) -> Name:
            target = self.names.numbered(self.target)
            new[target] = node
            return Name(target, node.shape, node.kind)

        found = sums_as_one(code, {k: source for k, source in own.items() if read[k] == 1}, named)
        if found is None:
            return code
        self._drop_unread([found, *new.values()], read)
        self.statements += [Statement(self.label, target, source) for target, source in new.items()]
        return found

    def _with_columns_as_one(self, code: Node) -> Node:
        """``code`` with the last steps of sums by columns that it adds as one."""
        own = [s for s in self.statements if isinstance(s, Statement)]
        if len(own) < len(self.statements) or not any(Sums in s.source.kinds for s in own):
            return code
        times = Counter(s.target for s in own)
        last = {s.target: n for n, s in enumerate(own)}
        read = _names_in([*[s.source for s in own], code])
        found = columns_as_one(code, {s.target: s.source for s in own if read[s.target] == times[s.target]})
        if found is None:
            return code
        code, names = found
        dropped = {last[name] for name in names}  # what their passes give has the same names
        self.statements = [s for n, s in enumerate(own) if n not in dropped]
        self._drop_unread([code], read)
        return code

    def _drop_unread(self, sources: Sequence[Node], before: Counter[str]) -> None:
        """Drops the statements that were read ``before``, and that ``sources`` and the others do not read."""
        left = _names_in(sources)
        kept: list[AnyStatement] = []
        for statement in reversed(self.statements):
            if isinstance(statement, Statement) and before[statement.target] and not left[statement.target]:
                self.written.pop(statement.source, None)
                continue
            kept.append(statement)
            left += _names_in([statement.source]) if isinstance(statement, Statement) else Counter()
        self.statements = kept[::-1]

    def step(self, node: Node, target: str = "") -> Name:
        """The name of ``node``, in a statement of its own: ``target``, or a new one."""
        target = target or self.names.numbered(self.target)
        found = Name(target) if isinstance(node, Sums) else Name(target, node.shape, node.kind)
        self.assign(found.identifier, node)
        return found

    def text(self, value: Value) -> str:
        """The text of ``value``."""
        return self.printer.text(value.code)

    def with_steps(self, value: Value, steps: Sequence[Step], dims: Sequence[Axis]) -> Value:
        """``value`` after view steps, over the dimensions that it has then."""
        if value.literal:
            return value
        return Value(apply_steps(value.code, steps), tuple(dims), value.kind)

    def in_order(self, value: Value, scope: Scope) -> Value:
        """``value`` with its dimensions in the order of ``scope``."""
        dims = [d for d in scope.order if among(d, value.dims)]
        return self.with_steps(value, reorder(value.dims, dims), dims)

    # --- elementwise

    def combine(self, op: Op, operands: Sequence[Value], kind: dtypes.Kind, scope: Scope) -> Value:
        """The elementwise operation ``op`` on values, broadcast, in the dtype of ``kind``."""
        if op.name == "cast":
            return converted(operands[0], op.result) or self.cast(operands[0], op.result)
        kind = self._widened(op, operands, kind)
        if all(map(_is_literal, operands)) and (constant := folded(op, operands, kind)) is not None:
            return constant
        if (rest := without_neutral(op, operands, kind)) is not None:
            return rest
        if (rest := negated(op, operands, kind)) is not None:
            return self.combine(NEGATIVE, [rest], kind, scope)
        if op is NEGATIVE and isinstance(inner := operands[0].code, Apply) and inner.op is NEGATIVE:
            return replace(operands[0], code=inner.args[0])
        own = frozenset[Axis]().union(*map(_dims, operands))
        dims = tuple(filter(own.__contains__, scope.order))
        values = self._agreeing(op, list(operands), kind)
        while True:
            node = Apply(op, tuple([broadcast(v, dims) for v in values]))
            unnamed = [n for n, v in enumerate(values) if not (isinstance(v.code, Name) or v.literal)]
            if len(self.printer.text(node)) <= LONGEST_LINE or not unnamed:
                break
            longest = max(unnamed, key=lambda n: len(self.text(values[n])))
            if len(self.text(values[longest])) <= SHORT:
                break
            values[longest] = self.named(values[longest])
        return Value(node, dims, self._kind(op, values, kind))

    def _widened(self, op: Op, operands: Sequence[Value], kind: dtypes.Kind) -> dtypes.Kind:
        """What numbers and positions make of themselves, in float64 where it meets float64: it has no dtype until then."""
        if not (self.wide and kind[1] and kind[0] in _WIDE):
            return kind
        wide = any(v.dtype == _WIDE[kind[0]] for v in operands)
        # JAX itself widens these
        kept = op is SELECT or any(v.kind == kind and not v.literal for v in operands)
        return (_WIDE[kind[0]], False) if wide or not kept else kind

    def _agreeing(self, op: Op, values: list[Value], kind: dtypes.Kind) -> list[Value]:
        """Operands cast where JAX's own promotion would lead to another dtype."""
        if op in COMPARISONS:
            values = self._compared(values)
        if op.result == "bool" or op.result == "real":
            return [typed_number(v, v.dtype) for v in values] if all(map(_is_literal, values)) else values
        operands = values[1:] if op is SELECT else values
        if all(map(_is_literal, operands)):
            if kind[1] and op is SELECT:
                return values
            typed = [typed_number(v, kind[0]) for v in operands[:1]]
            return [*values[: len(values) - len(operands)], *typed, *operands[1:]]
        # A literal is written without its dtype, so it takes the one that it meets.
        promoted = dtypes.promote([(v.kind[0], v.kind[1] or v.literal) for v in operands])
        if promoted[0] == kind[0] and (op.result != "inexact" or dtypes.is_inexact(promoted[0])):
            if promoted[1] and not kind[1] and op.result == "promote":  # a number that has its dtype for good
                own = [self.cast(v, kind[0]) if v.literal and not v.kind[1] else v for v in operands]
                return [values[0], *own] if op is SELECT else own
            return values
        fixed = [v if v.literal or v.dtype == kind[0] else self.cast(v, kind[0]) for v in operands]
        return [values[0], *fixed] if op is SELECT else fixed

    def _compared(self, values: list[Value]) -> list[Value]:
        """Short integers as int32 beside a number that they may not hold, which would be wrapped."""

        def held(literal: Value, dtype: str) -> bool:
            low, high = dtypes.SHORT_INTEGERS[dtype]
            return literal.number is not None and low <= literal.number <= high

        literals = [v for v in values if v.literal and dtypes.is_integer(v.dtype)]
        short = [v for v in values if not v.literal and v.dtype in dtypes.SHORT_INTEGERS]
        if all(held(n, v.dtype) for v in short for n in literals):
            return values
        return [self.cast(v, "int32") if among(v, short) else v for v in values]

    def _kind(self, op: Op, values: Sequence[Value], kind: dtypes.Kind) -> dtypes.Kind:
        """The kind that JAX gives the result; weak where every operand is, or integers meet a weak float."""
        operands = values[1:] if op is SELECT else values
        if op.result == "promote" and kind[0] != "bool":
            return kind[0], dtypes.promote(map(_kind, operands))[1]
        if op.result in ("inexact", "integer", "real") and kind[0] != "bool":
            return kind[0], all(v.kind[1] for v in operands)
        return kind[0], False

    def cast(self, value: Value, dtype: str, always: bool = False) -> Value:
        """``value`` as ``dtype``; nothing where it is that already."""
        if value.literal:
            return typed_number(value, dtype)
        if value.kind == (dtype, False) and not always:
            return value
        own = value.code
        if isinstance(own, Arange) and own.own_dtype == "int32" and dtype != "bool":
            return Value(positions_as(own, dtype), value.dims, (dtype, False))
        return Value(Cast(own, dtype), value.dims, (dtype, False))

    def typed(self, value: Value, dtype: str) -> Value:
        """``value`` as an array of ``dtype`` for good: no number of Python, nothing that takes the dtype of what it meets."""
        return self.cast(value, dtype, always=value.kind[1]) if value.kind != (dtype, False) else value

    def stack(self, values: Sequence[Value], dim: Axis, scope: Scope) -> Value:
        """Values for each position of ``dim`` as one array."""
        dims = tuple(d for d in scope.order if any(among(d, v.dims) for v in values))
        parts: list[Node] = []
        for value in values:
            part = broadcast(value, dims)
            parts.append(part if identical(value.dims, dims) else Broadcast(part, tuple(d.hi for d in dims)))
        order = tuple(d for d in scope.order if among(d, dims) or d is dim)
        return Value(Stacked(tuple(parts), place_of(dim, order)), order, values[0].kind)

    def full(self, value: Value, dims: Sequence[Axis]) -> Node:
        """``value`` as an array over all of ``dims``."""
        if value.literal:
            if not dims:
                return self.cast(value, value.dtype).code
            return Full(tuple(d.hi for d in dims), value.code, value.dtype)
        code = broadcast(value, dims)
        if identical(value.dims, tuple(dims)) or (
            value.dims and all(among(d, value.dims) or d.hi is ONE for d in dims)
        ):
            return code
        return Broadcast(code, tuple(d.hi for d in dims))


def _names_in(sources: Collection[Node]) -> Counter[str]:
    """How often each name is read by nodes that ``sources`` are made of."""
    each = (ordered([source], lambda n: n.operands) for source in sources)
    found = Counter(o.identifier for nodes in each for n in nodes for o in n.operands if isinstance(o, Name))
    return found + Counter(source.identifier for source in sources if isinstance(source, Name))
