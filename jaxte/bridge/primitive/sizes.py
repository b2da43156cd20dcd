"""Symbolic dimensions of ``jax.export`` as sizes.

A dimension that arrays of the call tell is an expression of sizes, ``2 * n + 1`` beside ``n``; any other is a size of its own.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from jaxte.bridge.primitive.scopes import least, written
from jaxte.lang.expr import Call, Const, Expr, Var, as_expr
from jaxte.lang.walk import fold, postorder
from jaxte.meaning.feeds import told_sizes
from jaxte.sets.affine import from_linear, linear
from jaxte.sets.index_forms import written_size
from jaxte.tensors.shapes import Extent, Shape, as_extent

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
