"""Values as they are written: elementwise operations, casts, and the statements in which values get names."""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.lang import dtypes
from jaxte.lang.expr import ONE, Axis
from jaxte.lang.identity import among, identical, place_of
from jaxte.lang.operators import COMPARISONS, SELECT, Op
from jaxte.lang.scalar_table import TABLE
from jaxte.lang.scalars import CALL, Function
from jaxte.lower.code.constants import converted, folded, without_zero
from jaxte.lower.code.identifiers import Names
from jaxte.lower.code.python_text import Sizes, apply_steps, broadcast, dtype_text, name, parenthesised
from jaxte.lower.code.vocabulary import Code, Statement, Step, Value
from jaxte.lower.views.intervals import simplify
from jaxte.lower.views.scope import Scope
from jaxte.lower.views.view import reorder

_LONGEST_LINE = 92
_WIDE = {"float32": "float64", "complex64": "complex128"}


class Statements:
    """The statements of one tensor so far, and what makes values of values."""

    def __init__(self, label: str, target: str, names: Names, sizes: Sizes) -> None:
        self.label = label
        self.target = target
        self.names = names
        self.sizes = sizes
        self.statements: list[Statement] = []
        self.written: dict[str, str] = {}  # names of code; the bodies of one function share them
        self.wide = False  # whether the tensor is of 64-bit floats, or reads such
        self._positions: dict[
            str, tuple[Axis, int, int]
        ] = {}  # which positions the code of an int32 arange has

    # --- names

    def named(self, value: Value) -> Value:
        """``value`` under a name of its own, in a statement if it has none."""
        if value.code.is_name or value.literal:
            return value
        if value.code.text not in self.written:
            self._define(self.names.numbered(self.target), value.code)
        return Value(name(self.written[value.code.text]), value.dims, value.kind)

    def named_as(self, wanted: str, value: Value) -> Value:
        """``value`` under a name like ``wanted``, unless it has one."""
        if not value.code.is_name and value.code.text not in self.written:
            self._define(self.names.new(wanted), value.code)
        return self.named(value)

    def _define(self, target: str, code: Code) -> None:
        self.assign(target, code)
        self.written[code.text] = target

    def assign(self, target: str, code: Code) -> None:
        self.statements.append(Statement(self.label, target, code.text))

    def with_steps(self, value: Value, steps: Sequence[Step], dims: Sequence[Axis]) -> Value:
        """``value`` after view steps, over the dimensions that it has then."""
        if value.literal:
            return value
        return Value(apply_steps(value.code, steps, self.sizes), tuple(dims), value.kind)

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
        if all(v.literal for v in operands) and (constant := folded(op, operands, kind)) is not None:
            return constant
        if (rest := without_zero(op, operands, kind)) is not None:
            return rest
        dims = tuple(d for d in scope.order if any(among(d, v.dims) for v in operands))
        values = self._agreeing(op, list(operands), kind)
        row = TABLE[op.name]
        while True:
            codes = [broadcast(v, dims) for v in values]
            text, strength = row.code.write(*((c.text, c.strength) for c in codes))
            unnamed = [n for n, v in enumerate(values) if not (v.code.is_name or v.literal)]
            longest = max(unnamed, key=lambda n: len(values[n].code.text), default=0)
            if len(text) <= _LONGEST_LINE or not unnamed or len(values[longest].code.text) <= 24:
                break
            values[longest] = self.named(values[longest])
        kept = _kept(row, values, dims)
        return Value(Code(text, strength, kept=kept), dims, self._kind(op, values, kind))

    def _widened(self, op: Op, operands: Sequence[Value], kind: dtypes.Kind) -> dtypes.Kind:
        """What numbers and positions make of themselves, in float64 where it meets float64: it has no dtype until then."""
        if not (self.wide and kind[1] and kind[0] in _WIDE):
            return kind
        wide = any(v.dtype == _WIDE[kind[0]] for v in operands)
        kept = op is SELECT or any(
            v.kind == kind and not v.literal for v in operands
        )  # JAX itself widens these
        return (_WIDE[kind[0]], False) if wide or not kept else kind

    def _agreeing(self, op: Op, values: list[Value], kind: dtypes.Kind) -> list[Value]:
        """Operands cast where JAX's own promotion would lead to another dtype."""
        if op in COMPARISONS:
            values = self._compared(values)
        if op.result == "bool" or op.result == "real":
            return [self._typed(v) for v in values] if all(v.literal for v in values) else values
        operands = values[1:] if op is SELECT else values
        if all(v.literal for v in operands):
            if kind[1] and op is SELECT:
                return values
            typed = [Value(typed_number_text(v, kind[0]), (), (kind[0], False)) for v in operands[:1]]
            return [*values[: len(values) - len(operands)], *typed, *operands[1:]]
        # A literal is written without its dtype, so it takes the one that it meets.
        promoted = dtypes.promote((v.dtype, v.kind[1] or v.literal) for v in operands)
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

    def _typed(self, value: Value) -> Value:
        return Value(typed_number_text(value, value.dtype), (), (value.dtype, False))

    def _kind(self, op: Op, values: Sequence[Value], kind: dtypes.Kind) -> dtypes.Kind:
        """The kind that JAX gives the result; weak where every operand is, or integers meet a weak float."""
        operands = values[1:] if op is SELECT else values
        if op.result == "promote" and kind[0] != "bool":
            return kind[0], dtypes.promote(v.kind for v in operands)[1]
        if op.result in ("inexact", "integer", "real") and kind[0] != "bool":
            return kind[0], all(v.kind[1] for v in operands)
        return kind[0], False

    def cast(self, value: Value, dtype: str, always: bool = False) -> Value:
        """``value`` as ``dtype``; nothing where it is that already."""
        if value.literal:
            return Value(typed_number_text(value, dtype), (), (dtype, False))
        if value.kind == (dtype, False) and not always:
            return value
        positions = self._positions.get(value.code.text)
        if positions is not None and dtype != "bool":  # made in the right dtype at once
            return Value(self.arange(*positions, dtype), value.dims, (dtype, False))
        code = Code(f"{parenthesised(value.code)}.astype({dtype_text(dtype)})")
        return Value(code, value.dims, (dtype, False))

    def typed(self, value: Value, dtype: str) -> Value:
        """``value`` as an array of ``dtype`` for good: no number of Python, nothing that takes the dtype of what it meets."""
        return self.cast(value, dtype, always=value.kind[1]) if value.kind != (dtype, False) else value

    def stack(self, values: Sequence[Value], dim: Axis, scope: Scope) -> Value:
        """Values for each position of ``dim`` as one array."""
        dims = tuple(d for d in scope.order if any(among(d, v.dims) for v in values))
        texts: list[str] = []
        for value in values:
            code = broadcast(value, dims)
            if not identical(value.dims, dims):
                code = Code(f"jnp.broadcast_to({code.text}, {self.sizes.shape([d.hi for d in dims])})")
            texts.append(code.text)
        order = tuple(d for d in scope.order if among(d, dims) or d is dim)
        written = f"jnp.stack([{', '.join(texts)}], axis={place_of(dim, order)})"
        return Value(Code(written), order, values[0].kind)

    def arange(self, dim: Axis, step: int, start: int, dtype: str | None) -> Code:
        """``step * dim + start`` at each position of ``dim``; without a dtype, in JAX's default integers."""
        stop = simplify(step * dim.hi + start, {})
        bounds = [self.sizes.text(stop)]
        if start or step != 1:
            bounds.insert(0, str(start))
        if step != 1:
            bounds.append(str(step))
        given = "" if dtype is None else f", dtype={dtype_text(dtype)}"
        code = Code(f"jnp.arange({', '.join(bounds)}{given})")
        if dtype == "int32":
            self._positions[code.text] = dim, step, start
        return code

    def full(self, value: Value, dims: Sequence[Axis]) -> Code:
        """``value`` as an array over all of ``dims``."""
        if value.literal:
            shape = self.sizes.shape([d.hi for d in dims])
            if not dims:
                return self.cast(value, value.dtype).code
            return Code(f"jnp.full({shape}, {value.code.text}, {dtype_text(value.dtype)})")
        code = broadcast(value, dims)
        if identical(value.dims, tuple(dims)) or (
            value.dims and all(among(d, value.dims) or d.hi is ONE for d in dims)
        ):
            return code
        return Code(f"jnp.broadcast_to({code.text}, {self.sizes.shape([d.hi for d in dims])})")


def typed_number_text(value: Value, dtype: str) -> Code:
    return Code(f"{dtype_text(dtype)}({value.code.text})", CALL)


def _kept(row: Function, values: Sequence[Value], dims: Sequence[Axis]) -> tuple[str, tuple[int, ...]]:
    """The operation ``row`` on operands with axes of length 1, where those that are arrays have them at the same places."""
    places = {v.code.kept[1] for v in values if v.dims}
    if len(places) != 1 or () in places or any(v.dims and not identical(v.dims, tuple(dims)) for v in values):
        return "", ()
    texts = [(v.code.kept[0] if v.dims else v.code.text, v.code.strength) for v in values]
    return row.code.write(*texts)[0], places.pop()
