"""Index expressions and comparisons of them as arrays: what a body computes from where it stands."""

from __future__ import annotations

from jaxte.lang.expr import Axis, Call, Const, Expr
from jaxte.lang.operators import TURNED
from jaxte.lang.walk import free_axes
from jaxte.lower.arrays.elementwise import Arange, Cast, Number, Typed, size
from jaxte.lower.arrays.node import Node
from jaxte.lower.body.statements import Statements
from jaxte.lower.code.constants import SHORT_INTEGERS, converted, positions_as
from jaxte.lower.code.vocabulary import Value
from jaxte.lower.views.scope import Scope
from jaxte.sets.affine import linear
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import constant, decide, dims_of, known, stays_in
from jaxte.sets.resolved import simplify


class Positions(Statements):
    """Statements with values that positions decide."""

    def fits(self, node: Expr, dtype: str, scope: Scope) -> bool:
        """Whether ``node`` is a position that varies, its values among the short integers of ``dtype``."""
        if dtype not in SHORT_INTEGERS or not (node.weak and is_index(node)):
            return False
        form = linear(scope.index(node))
        return not form.is_constant and stays_in(form, constant(SHORT_INTEGERS[dtype] + 1))

    def index_value(self, index: Expr, scope: Scope, dtype: str | None) -> Value:
        """An index expression of dimensions as an array; without a dtype, in JAX's default integers."""
        dims = dims_of(index)
        kind = (dtype or "int32", False)
        if not dims:
            code = size(index)
            own = Value(code, (), ("int32", True), literal=True, number=known(index))
            if dtype in (None, "int32"):
                return own
            if (number := converted(own, kind[0])) is not None:
                return number
            # JAX refuses a number that they do not hold
            if kind[0] in SHORT_INTEGERS or kind[0].startswith("u"):
                return Value(Cast(Typed(code, "int32"), kind[0]), (), kind)
            return Value(Typed(code, kind[0]), (), kind)
        if dtype == "bool":  # which no range of positions has
            return self.cast(self.index_value(index, scope, None), dtype, True)
        form = linear(index)
        if len(dims) == 1 and len(form.terms) == 1 and dims[0] in form.terms:
            positions = dims[0], form.coefficient(dims[0]), form.constant
            return Value(self.arange(*positions, dtype), tuple(dims), kind)
        operands = [self.index_value(a, scope, None) for a in index.args]  # type: ignore[attr-defined]
        value = self.combine(index.op, operands, ("int32", True), scope)  # type: ignore[attr-defined]
        return (
            Value(value.code, value.dims, ("int32", True))
            if dtype is None
            else self.cast(value, kind[0], True)
        )

    def condition(self, node: Call, scope: Scope) -> Value:
        """A comparison of index expressions as a mask, or a literal where it is the same everywhere."""
        left, right = (scope.index(a) for a in node.args)
        decided = decide(node.op, left, right)
        if decided is not None:
            return Value(Number(decided), (), ("bool", False), literal=True)
        op = node.op
        # a symbolic size of jax.export takes an array for a number
        if not free_axes(left) and not isinstance(left, Const):
            left, right, op = right, left, TURNED[op]
        operands = [self.index_value(a, scope, None) for a in (left, right)]
        return self.combine(op, operands, ("bool", False), scope)

    def arange(self, dim: Axis, step: int, start: int, dtype: str | None) -> Node:
        """``step * dim + start`` at each position of ``dim``; without a dtype, in JAX's default integers."""
        positions = Arange(start, simplify(step * dim.hi + start, {}), step)
        return positions_as(positions, dtype) if dtype else positions
