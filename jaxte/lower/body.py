"""Evaluation of one body: every node becomes the code of an array over named dimensions.

The evaluator is a loop over generators, one for each node under way: a generator yields the (node, scope) whose
value it needs next and returns its own value. Thus depth needs no recursion. Nodes that are used more than once, and parts
of long lines, get a statement of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

from jaxte import dtypes
from jaxte.affine import is_index, linear
from jaxte.expr import Axis, Call, Const, Expr, Read, Reduce, as_expr
from jaxte.lower.bounds import (
    at_most,
    constant,
    decide,
    dims_of,
    highest,
    known,
    lowest,
    nonnegative,
    simplify,
    surely_inside,
)
from jaxte.lower.guarded_reads import guarded_reads
from jaxte.lower.names import Names
from jaxte.lower.numbers import SHORT_INTEGERS, converted, folded, numeral, without_zero
from jaxte.lower.ops import Code, Estimate, Pad, Statement, Step, Value, View
from jaxte.lower.overlaps import overlapping
from jaxte.lower.policy import Policy
from jaxte.lower.roots import root_power
from jaxte.lower.scopes import Scope, Widths
from jaxte.lower.specs import Refusal
from jaxte.lower.views import reorder
from jaxte.lower.writing import (
    Sizes,
    apply_steps,
    broadcast,
    dtype_text,
    name,
    number,
    parenthesised,
)
from jaxte.operators import ADD, COMPARISONS, SELECT, SUBTRACT, Op
from jaxte.scalar_table import TABLE
from jaxte.scalars import CALL, Function
from jaxte.tensor import Tensor
from jaxte.walk import postorder, reads_of

Task = Generator[tuple[Expr, Scope], Value, Value]
_LONGEST_LINE = 92
_MOST_STACKED = 8
_WIDE = {"float32": "float64", "complex64": "complex128"}


class Body:
    """The state of lowering one tensor: statements so far, values of nodes, and the rules for compound nodes."""

    def __init__(
        self,
        label: str,
        target: str,
        names: Names,
        sizes: Sizes,
        tensors: Mapping[Tensor, str],
        rules: Mapping[str, Callable[..., Any]],
        policy: Policy,
        tensor_name: str,
    ) -> None:
        self.label = label
        self.target = target
        self.names = names
        self.sizes = sizes
        self.tensors = tensors
        self.rules = rules
        self.policy = policy
        self.tensor_name = tensor_name
        self.statements: list[Statement] = []
        self.forms: list[str] = []
        self.refused: list[tuple[str, str]] = []
        self.estimates: list[Estimate] = []
        self.reason = ""
        self.padded: Mapping[Tensor, Widths] = {}  # the tensors that are read with zeros around them
        self.wide = False  # whether the tensor is of 64-bit floats, or reads such
        self.direct = False  # whether reads are of the tensors themselves nevertheless
        self.sliced: tuple[Tensor, ...] = ()  # the tensors that are read as slices without zeros around them
        self._padded_names: dict[Tensor, str] = {}
        self.in_tiles = False  # whether this is a row that is computed together with others
        self.guarded: frozenset[Read] = frozenset()  # reads at data whose guards keep them in range
        self.root: Expr | None = None  # what is evaluated
        self.returned: Expr | None = (
            None  # what is computed, where it is a result of the function: no loop reads it
        )
        self.written: dict[str, str] = {}  # names of code; the bodies of one function share them
        self._positions: dict[
            str, tuple[Axis, int, int]
        ] = {}  # which positions the code of an int32 arange has
        self._values: dict[tuple[Expr, Scope, frozenset[Read]], Value] = {}
        self._uses: dict[Expr, int] = {}
        self._leaks: set[Expr] = set()

    def evaluate(self, root: Expr, scope: Scope) -> Value:
        """The value of ``root``, a body over the dimensions of ``scope``."""
        self.guarded = guarded_reads(root)
        self.root = root
        self.survey(root)
        stack = [self._task(root, scope)]
        answer: Value | None = None
        while stack:
            try:
                request = stack[-1].send(answer)  # type: ignore[arg-type]
            except StopIteration as finished:
                stack.pop()
                answer = finished.value
                continue
            answer = self._values.get((*request, self.guarded))
            if answer is None:
                stack.append(self._task(*request))
        assert answer is not None
        return answer

    def leaks(self, node: Expr) -> bool:
        """Whether a read below ``node`` can leave its tensor where no guard holds it."""
        if node not in self._uses:
            self.survey(node)
        return node in self._leaks

    def survey(self, root: Expr) -> None:
        """Counts the uses of each node and finds the reads that need a guard."""
        for node in postorder(root):
            if node in self._uses:
                continue
            self._uses[node] = 0
            for child in node.children:
                self._uses[child] = self._uses.get(child, 0) + 1
            if any(child in self._leaks for child in node.children) or (
                isinstance(node, Read) and not surely_inside(node)
            ):
                self._leaks.add(node)

    # --- nodes

    def _task(self, node: Expr, scope: Scope) -> Task:
        value = yield from self._evaluate(node, scope)
        if self._uses.get(node, 0) > 1 and not isinstance(node, Read) and not node.weak:
            value = self.named(value)
        self._values[node, scope, self.guarded] = value
        return value

    def _evaluate(self, node: Expr, scope: Scope) -> Task:
        match node:
            case Const(value):
                if type(value) in (int, float):
                    return numeral(value, node.kind)  # type: ignore[arg-type]
                return Value(number(value), (), node.kind, literal=True)
            case Read():
                return (yield from self._read(node, scope))
            case Reduce():
                return (yield from self.rules["reduce"](self, node, scope))
            case Call(op) if op is SELECT:
                return (yield from self.rules["select"](self, node, scope))
            case Call(op, (a, b)) if op in COMPARISONS and a.weak and b.weak and is_index(a) and is_index(b):
                return self.condition(node, scope)
            case Call(op, (Expr() as a, Read() as b)) if op in COMPARISONS and self._fits(a, b.dtype, scope):
                position = self.index_value(scope.index(a), scope, b.dtype)
                return self.combine(op, [position, (yield b, scope)], node.kind, scope)
            case Call(op, (operand,)) if op.name == "cast" and operand.weak and is_index(operand):
                return self.index_value(scope.index(operand), scope, op.result)
            case _ if node.weak and node.dtype == "int32" and is_index(node):
                return self.index_value(scope.index(node), scope, "int32")
        assert isinstance(node, Call), node
        roots = root_power(node)
        if roots is not None:
            self.survey(roots)
            return (yield roots, scope)
        if node is self.root and node.op in (ADD, SUBTRACT):
            total = yield from self.rules["sum"](self, node, scope)
            if total is not None:
                return total
        operands = []
        for arg in node.args:
            operands.append((yield arg, scope))
        return self.combine(node.op, operands, node.kind, scope)

    def _read(self, node: Read, scope: Scope) -> Task:
        if any(reads_of(index) for index in node.indices):
            return (yield from self.rules["gather"](self, node, scope))
        found = self.view_of(node, scope)
        if isinstance(found, Refusal):
            self.refuse("view", found.reason)
            return (yield from self.rules["gather"](self, node, scope))
        return found

    def view_of(self, node: Read, scope: Scope) -> Value | Refusal:
        """An affine read as a view of its tensor, or as a stack of views where two indices overlap a little."""
        dim = overlapping([node], scope.order, scope, _MOST_STACKED)
        if dim is not None:
            parts = [
                self._view(node, scope.replace(dim, as_expr(n), [], deeper=0))
                for n in range(known(dim.hi) or 0)
            ]
            values = [part for part in parts if isinstance(part, Value)]
            if len(values) == len(parts):
                return self.stack(values, dim, scope)
        return self._view(node, scope)

    def _view(self, node: Read, scope: Scope) -> Value | Refusal:
        found: View | Refusal = Refusal("")
        if not self.direct and node.tensor in self.padded:
            found = scope.view(node, self.padded[node.tensor])
        source = "" if isinstance(found, Refusal) else self._padded_name(node.tensor)
        if isinstance(found, Refusal):
            found, source = scope.view(node), self.tensors[node.tensor]
        if isinstance(found, Refusal):
            return found
        here = frozenset(found.dims)
        dims = [d for d in scope.order if d in here]
        steps = (*found.steps, *reorder(found.dims, dims))
        return Value(apply_steps(name(source), steps, self.sizes), tuple(dims), (node.dtype, False))

    def _padded_name(self, tensor: Tensor) -> str:
        """What ``tensor`` with zeros around it is called."""
        if tensor not in self._padded_names:
            own = self.names.new(f"{self.tensors[tensor]}_padded")
            widths = tuple((as_expr(low), as_expr(high)) for low, high in self.padded[tensor])
            code = apply_steps(name(self.tensors[tensor]), [Pad(widths)], self.sizes)
            self.assign(own, Code(f"lax.optimization_barrier({code.text})"))
            self._padded_names[tensor] = own
        return self._padded_names[tensor]

    # --- index expressions as values

    def _fits(self, node: Expr, dtype: str, scope: Scope) -> bool:
        """Whether ``node`` is a position that varies, its values among the short integers of ``dtype``."""
        if dtype not in SHORT_INTEGERS or not (node.weak and is_index(node)):
            return False
        form, last = linear(scope.index(node)), constant(SHORT_INTEGERS[dtype])
        low, high = lowest(form), highest(form)
        if form.is_constant or low is None or high is None:
            return False
        return nonnegative(low) and at_most(high, last)

    def index_value(self, index: Expr, scope: Scope, dtype: str | None) -> Value:
        """An index expression of dimensions as an array; without a dtype, in JAX's default integers."""
        dims = dims_of(index)
        kind = (dtype or "int32", False)
        if not dims:
            code = self.sizes.code(index)
            own = Value(code, (), ("int32", True), literal=True, number=known(index))
            if dtype in (None, "int32"):
                return own
            if (number := converted(own, kind[0])) is not None:
                return number
            if kind[0] in SHORT_INTEGERS or kind[0].startswith(
                "u"
            ):  # JAX refuses a number that they do not hold
                return Value(Code(f"jnp.int32({code.text}).astype({dtype_text(kind[0])})"), (), kind)
            return Value(Code(f"{dtype_text(kind[0])}({code.text})"), (), kind)
        if dtype == "bool":  # which no range of positions has
            return self.cast(self.index_value(index, scope, None), dtype, True)
        form = linear(index)
        if len(dims) == 1 and len(form.terms) == 1 and dims[0] in form.terms:
            positions = dims[0], form.coefficient(dims[0]), form.constant
            code = self._arange(*positions, dtype)
            if dtype == "int32":
                self._positions[code.text] = positions
            return Value(code, tuple(dims), kind)
        operands = [self.index_value(a, scope, None) for a in index.args]  # type: ignore[attr-defined]
        value = self.combine(index.op, operands, ("int32", True), scope)  # type: ignore[attr-defined]
        return (
            Value(value.code, value.dims, ("int32", True))
            if dtype is None
            else self.cast(value, kind[0], True)
        )

    def _arange(self, dim: Axis, step: int, start: int, dtype: str | None) -> Code:
        stop = simplify(step * dim.hi + start, {})
        bounds = [self.sizes.text(stop)]
        if start or step != 1:
            bounds.insert(0, str(start))
        if step != 1:
            bounds.append(str(step))
        given = "" if dtype is None else f", dtype={dtype_text(dtype)}"
        return Code(f"jnp.arange({', '.join(bounds)}{given})")

    def condition(self, node: Call, scope: Scope) -> Value:
        """A comparison of index expressions as a mask, or a literal where it is the same everywhere."""
        left, right = (scope.index(a) for a in node.args)
        decided = decide(node.op, left, right)
        if decided is not None:
            return Value(Code(str(decided)), (), ("bool", False), literal=True)
        operands = [self.index_value(a, scope, None) for a in (left, right)]
        return self.combine(node.op, operands, ("bool", False), scope)

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
        dims = tuple(d for d in scope.order if any(d in v.dims for v in operands))
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
        return [self.cast(v, "int32") if v in short else v for v in values]

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
            return Value(self._arange(*positions, dtype), value.dims, (dtype, False))
        code = Code(f"{parenthesised(value.code)}.astype({dtype_text(dtype)})")
        return Value(code, value.dims, (dtype, False))

    def typed(self, value: Value, dtype: str) -> Value:
        """``value`` as an array of ``dtype`` for good: no number of Python, nothing that takes the dtype of what it meets."""
        return self.cast(value, dtype, always=value.kind[1]) if value.kind != (dtype, False) else value

    def stack(self, values: Sequence[Value], dim: Axis, scope: Scope) -> Value:
        """Values for each position of ``dim`` as one array."""
        dims = tuple(d for d in scope.order if any(d in v.dims for v in values))
        texts: list[str] = []
        for value in values:
            code = broadcast(value, dims)
            if value.dims != dims:
                code = Code(f"jnp.broadcast_to({code.text}, {self.sizes.shape([d.hi for d in dims])})")
            texts.append(code.text)
        order = tuple(d for d in scope.order if d in dims or d is dim)
        written = f"jnp.stack([{', '.join(texts)}], axis={order.index(dim)})"
        return Value(Code(written), order, values[0].kind)

    # --- statements

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
        dims = [d for d in scope.order if d in value.dims]
        return self.with_steps(value, reorder(value.dims, dims), dims)

    def refuse(self, form: str, reason: str) -> None:
        if (form, reason) not in self.refused:
            self.refused.append((form, reason))

    def note(self, form: str) -> None:
        if form not in self.forms:
            self.forms.append(form)


def typed_number_text(value: Value, dtype: str) -> Code:
    return Code(f"{dtype_text(dtype)}({value.code.text})", CALL)


def _kept(row: Function, values: Sequence[Value], dims: Sequence[Axis]) -> tuple[str, tuple[int, ...]]:
    """The operation ``row`` on operands with axes of length 1, where those that are arrays have them at the same places."""
    places = {v.code.kept[1] for v in values if v.dims}
    if len(places) != 1 or () in places or any(v.dims and v.dims != tuple(dims) for v in values):
        return "", ()
    texts = [(v.code.kept[0] if v.dims else v.code.text, v.code.strength) for v in values]
    return row.code.write(*texts)[0], places.pop()
