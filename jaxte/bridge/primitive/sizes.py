"""Symbolic dimensions of ``jax.export`` as sizes: what is written of them, and what their scope states of them.

A dimension that arrays of the call tell is an expression of sizes, ``2 * n + 1`` beside ``n``; any other is a size of its own. The text of a
dimension is what ``jax.export.symbolic_shape`` reads, and so is read here.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from jaxte.lang.errors import IndexExpressionError
from jaxte.lang.expr import Call, Const, Expr, Var, as_expr, call
from jaxte.lang.operators import FLOOR_DIVIDE, MOD, Op
from jaxte.lang.walk import fold, postorder
from jaxte.meaning.told import told_sizes
from jaxte.sets.affine import from_linear, linear, normal
from jaxte.tensors.shapes import Extent, Shape, as_extent

_MOST = 1 << 20  # up to which the least value of a dimension is asked for
_OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "negative": operator.neg,
    "floor_divide": operator.floordiv,
    "mod": operator.mod,
    "maximum": jax.core.max_dim,
    "minimum": jax.core.min_dim,
}
_DIVISIONS: dict[str, Op] = {"floordiv": FLOOR_DIVIDE, "mod": MOD}


def shapes_of(shapes: Sequence[Sequence[Any]]) -> list[Shape]:
    """The shapes of the arrays of a call, whose dimensions may be symbolic."""
    if all(isinstance(extent, int) for shape in shapes for extent in shape):
        return [tuple(shape) for shape in shapes]
    written = {e: _written(e) for shape in shapes for e in shape if not isinstance(e, int)}
    told = _told([expr for expr in written.values() if expr is not None])
    return [tuple(_extent(e, written, told) for e in shape) for shape in shapes]


def extents_of(
    inputs: Sequence[Shape], arrays: Sequence[Any], results: Sequence[Shape]
) -> list[tuple[Any, ...]]:
    """The dimensions of ``results`` where those of ``inputs`` are the dimensions of ``arrays``."""
    sizes: dict[Expr, Any] = {}
    for told in told_sizes(inputs):
        rest = _dimension(from_linear(told.rest), sizes)
        sizes[told.size] = (arrays[told.array].shape[told.axis] - rest) // told.factor
    return [tuple(_dimension(as_expr(extent), sizes) for extent in shape) for shape in results]


def _dimension(size: Expr, sizes: Mapping[Expr, Any]) -> Any:
    """A size as a dimension."""

    def rule(node: Expr, below: list[Any]) -> Any:
        match node:
            case Const(int() as value):
                return int(value)
            case Call(op, _):
                return _OPERATIONS[op.name](*below)
        return sizes[node]

    return fold(size, rule)


def own_size(extent: Any) -> Extent:
    """A dimension as a size of its own."""
    return extent if isinstance(extent, int) else Var(str(extent), _least(extent))


def _extent(extent: Any, written: dict[Any, Expr | None], told: set[Expr]) -> Extent:
    expr = None if isinstance(extent, int) else written[extent]
    if expr is None or not all(n in told for n in postorder(expr) if isinstance(n, Var)):
        return own_size(extent)
    return as_extent(expr)


def _told(exprs: Sequence[Expr]) -> set[Expr]:
    """The sizes that some of the extents ``exprs`` tell: those that stand alone, and one that is left in a linear form."""
    told: set[Expr] = {e for e in exprs if isinstance(e, Var)}
    while True:
        unknown = [[a for a in linear(e).terms if a not in told] for e in exprs]
        found = {atoms[0] for atoms in unknown if len(atoms) == 1 and isinstance(atoms[0], Var)}
        if not found:
            return told
        told |= found


def _written(extent: Any) -> Expr | None:
    """A dimension as an expression of sizes; None where it is no quasi-affine one."""
    try:
        read = _read(ast.parse(str(extent).replace("^", "**"), mode="eval").body, extent.scope)
        return None if read is None else normal(read)
    except (SyntaxError, IndexExpressionError):
        return None


def _read(node: ast.expr, scope: Any) -> Expr | None:
    match node:
        case ast.Constant(int() as value):
            return Const(value)
        case ast.Name(name):
            (dimension,) = jax.export.symbolic_shape(name, scope=scope)
            return Var(name, _least(dimension))
        case ast.UnaryOp(ast.USub(), operand):
            read = _read(operand, scope)
            return None if read is None else -read
        case ast.BinOp(left, ast.Add() | ast.Sub() | ast.Mult() as op, right):
            a, b = _read(left, scope), _read(right, scope)
            if a is None or b is None:
                return None
            return a * b if isinstance(op, ast.Mult) else a + b if isinstance(op, ast.Add) else a - b
        case ast.Call(ast.Name(name), [numerator, ast.Constant(int() as divisor)]) if name in _DIVISIONS:
            read = _read(numerator, scope)
            return None if read is None else call(_DIVISIONS[name], read, as_expr(divisor))
    return None


def _least(dimension: Any) -> int:
    """The greatest number that a dimension is known to be not below, by the constraints of its scope."""
    low, high = 0, 1
    while high < _MOST and _is_at_least(dimension, high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _is_at_least(dimension, middle) else (low, middle)
    return low


def _is_at_least(dimension: Any, number: int) -> bool:
    try:
        return bool(dimension >= number)
    except jax.errors.InconclusiveDimensionOperation:
        return False
