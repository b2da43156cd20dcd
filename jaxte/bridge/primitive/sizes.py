"""Symbolic dimensions of ``jax.export`` as sizes, and what their scope states: the least value of a size, what divides it, how sizes are related.

``jax.export.symbolic_shape("n, m", constraints=["n >= 4", "mod(n, 4) == 0", "n <= m"])`` makes a scope. A size that a number divides is so many
times a size of its own, ``4 * (n // 4)``, so that every quotient of it is affine; bounds from above and relations are given with the size, and
hold in every set that it is in. The text of a scope, and of a dimension, is what ``symbolic_shape`` reads, and so is read here.

A dimension that arrays of the call tell is an expression of sizes, ``2 * n + 1`` beside ``n``; any other is a size of its own.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from math import lcm
from typing import Any

import jax

from jaxte.lang.errors import IndexExpressionError
from jaxte.lang.expr import Call, Const, Expr, Var, as_expr, call
from jaxte.lang.graphs import among
from jaxte.lang.limits import TABLE
from jaxte.lang.operators import EQUAL, FLOOR_DIVIDE, GREATER_EQUAL, LESS_EQUAL, MAXIMUM, MINIMUM, MOD, Op
from jaxte.lang.walk import all_of, fold
from jaxte.meaning.feeds import told_sizes
from jaxte.sets.affine import from_linear, linear, normal
from jaxte.sets.index_forms import written_size
from jaxte.tensors.shapes import Extent, Shape, as_extent

_CALLS: dict[str, Op] = {"floordiv": FLOOR_DIVIDE, "mod": MOD, "max": MAXIMUM, "min": MINIMUM}
_DIVISIONS = (FLOOR_DIVIDE, MOD)
_ARITHMETIC: dict[type[ast.operator], Callable[[Expr, Expr], Expr]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
}
_RELATIONS: dict[type[ast.cmpop], Op] = {ast.GtE: GREATER_EQUAL, ast.LtE: LESS_EQUAL, ast.Eq: EQUAL}


def written(extent: Any) -> Expr | None:
    """A dimension as an expression of sizes; None where it is no quasi-affine one."""
    scope = extent.scope
    stated = list(_stated(scope))
    found = _read(_parsed(str(extent)), lambda name: _size(name, scope, stated))
    try:
        return None if found is None else normal(found)
    except IndexExpressionError:
        return None


def least(dimension: Any) -> int:
    """The greatest number that a dimension is known to be not below, by the constraints of its scope."""
    low, high = 0, 1
    while high < TABLE and _is_at_least(dimension, high):
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


def _parsed(written: str) -> ast.expr:
    return ast.parse(written.strip().replace("^", "**"), mode="eval").body


def _stated(scope: Any) -> Iterator[ast.Compare]:
    """The constraints of a scope."""
    for line in str(scope).partition(" with constraints:\n")[2].splitlines():
        try:
            tree = _parsed(line)
        except SyntaxError:  # of a later release of JAX
            continue
        if isinstance(tree, ast.Compare) and len(tree.ops) == 1 and type(tree.ops[0]) in _RELATIONS:
            yield tree


def _size(name: str, scope: Any, stated: list[ast.Compare]) -> Expr:
    """The dimension variable ``name`` as a size, or as a multiple of one."""
    (dimension,) = jax.export.symbolic_shape(name, scope=scope)
    divisor = _divisor(name, stated)
    lowest = -(-least(dimension) // divisor)
    return divisor * Var(_called(name, divisor), lowest, _given(name, stated))


def _called(name: str, divisor: int) -> str:
    return name if divisor == 1 else f"{name} // {divisor}"


def _divisor(name: str, stated: list[ast.Compare]) -> int:
    """The greatest number that is stated to divide a dimension variable."""
    found = [1]
    for relation in stated:
        match relation:
            case ast.Compare(
                ast.Call(ast.Name("mod"), [ast.Name(own), ast.Constant(int() as divisor)]),
                [ast.Eq()],
                [ast.Constant(0)],
            ) if own == name and divisor > 0:
                found.append(divisor)
    return reduce(lcm, found)


def _given(name: str, stated: list[ast.Compare]) -> tuple[Expr, ...]:
    """What is stated of a dimension variable and of those related to it, but for what their least values say."""

    def bare(other: str) -> Expr:
        divisor = _divisor(other, stated)
        return divisor * Var(_called(other, divisor))

    relations = [condition for relation in stated if (condition := _condition(relation, bare)) is not None]
    reached = _sizes_of_scope(bare(name))
    connected: list[Expr] = []
    while True:
        new = [r for r in relations if not among(r, connected) and _sizes_of_scope(r) & reached]
        if not new:
            return tuple(r for r in relations if among(r, connected))
        connected += new
        reached.update(size for condition in new for size in _sizes_of_scope(condition))


def _sizes_of_scope(expr: Expr) -> set[Expr]:
    return set(all_of(Var, expr))


def _condition(relation: ast.Compare, size: Callable[[str], Expr]) -> Expr | None:
    """A constraint as a condition; None where it is none that a set knows, holds anyway, or gives a size its least value."""
    left, right = _read(relation.left, size), _read(relation.comparators[0], size)
    if left is None or right is None:
        return None
    op = _RELATIONS[type(relation.ops[0])]
    try:
        difference = linear(left - right if op is not LESS_EQUAL else right - left)
    except IndexExpressionError:
        return None
    terms = list(difference.terms.items())
    if not terms or (
        op is not EQUAL and len(terms) == 1 and isinstance(terms[0][0], Var) and terms[0][1] > 0
    ):
        return None
    found = call(op, normal(left), normal(right))
    return found if isinstance(found, Call) else None


def _read(node: ast.expr, size: Callable[[str], Expr]) -> Expr | None:
    """A dimension's text as an expression of sizes; None where it is no sum of sizes, of their products and of their quotients by numbers."""
    match node:
        case ast.Constant(int() as value):
            return as_expr(value)
        case ast.Name(name):
            return size(name)
        case ast.UnaryOp(ast.USub(), operand):
            read = _read(operand, size)
            return None if read is None else -read
        case ast.BinOp(base, ast.Pow(), ast.Constant(int() as power)) if power > 0:
            read = _read(base, size)
            return None if read is None else reduce(lambda a, b: a * b, [read] * power)
        case ast.BinOp(left, op, right) if type(op) in _ARITHMETIC:
            a, b = _read(left, size), _read(right, size)
            return None if a is None or b is None else _ARITHMETIC[type(op)](a, b)
        case ast.Call(ast.Name(name), [left, right]) if name in _CALLS:
            a, b = _read(left, size), _read(right, size)
            if a is None or b is None or (_CALLS[name] in _DIVISIONS and not isinstance(right, ast.Constant)):
                return None
            return call(_CALLS[name], a, b)
    return None


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


def shapes_of(shapes: Sequence[Sequence[Any]]) -> list[Shape]:
    """The shapes of the arrays of a call, whose dimensions may be symbolic."""
    if all(isinstance(extent, int) for shape in shapes for extent in shape):
        return [tuple(shape) for shape in shapes]
    known = {e: written(e) for shape in shapes for e in shape if not isinstance(e, int)}
    told = _told([expr for expr in known.values() if expr is not None])
    return [tuple(_extent(e, known, told) for e in shape) for shape in shapes]


def extents_of(
    inputs: Sequence[Shape], arrays: Sequence[Any], results: Sequence[Shape]
) -> list[tuple[Any, ...]]:
    """The dimensions of ``results`` where those of ``inputs`` are the dimensions of ``arrays``."""
    sizes = _sizes(inputs, arrays)
    extents = [as_expr(e) for shape in inputs for e in shape]
    known = dict(zip(extents, (d for a in arrays for d in a.shape), strict=True))
    return [
        tuple(known[e] if e in known else _dimension(e, sizes) for e in map(as_expr, shape))
        for shape in results
    ]


def _sizes(inputs: Sequence[Shape], arrays: Sequence[Any]) -> dict[Expr, Any]:
    sizes: dict[Expr, Any] = {}
    for told in told_sizes(inputs):
        rest = _dimension(from_linear(told.rest), sizes)
        sizes[told.size] = (arrays[told.array].shape[told.axis] - rest) // told.factor
    return sizes


def is_symbolic(arrays: Sequence[Any]) -> bool:
    return any(not isinstance(extent, int) for array in arrays for extent in array.shape)


def in_one_form(
    emitted: Callable[..., list[Any]], inputs: Sequence[Shape], results: Sequence[Shape]
) -> Callable[..., list[Any]]:
    """``emitted`` on arrays whose dimensions are written in another form than the one of ``sets.written_sizes``."""

    def call(*arrays: Any) -> list[Any]:
        sizes = _sizes(inputs, arrays)
        forms = [[_dimension(written_size(as_expr(e)), sizes) for e in shape] for shape in inputs]
        found = emitted(*map(_as, arrays, forms))
        return list(map(_as, found, extents_of(inputs, arrays, results)))

    return call


def _as(array: Any, shape: Sequence[Any]) -> Any:
    """``array``, whose dimensions are those of ``shape`` in forms that JAX may not know to be equal; nothing is added where they are."""
    more = [0 if str(d) == str(own) else d - own for d, own in zip(shape, array.shape, strict=True)]
    if not any(not isinstance(m, int) or m for m in more):
        return array
    return jax.lax.pad(array, jax.numpy.zeros((), array.dtype), [(0, m, 0) for m in more])


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
    """A dimension that no array tells, as a size of its own; what the scope states of a dimension variable holds."""
    if isinstance(extent, int):
        return extent
    expr = written(extent)
    return expr if isinstance(expr, Var) else Var(str(extent), least(extent))


def _extent(extent: Any, known: dict[Any, Expr | None], told: set[Expr]) -> Extent:
    expr = None if isinstance(extent, int) else known[extent]
    if expr is None or not all(n in told for n in all_of(Var, expr)):
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
