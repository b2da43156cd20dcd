"""Functions of NumPy that reduce whole arrays, each by loops before the statement: sums of products, variances, running sums, the positions of extrema."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import mul
from typing import Any

from jaxte.frontends.loops.reading.arrays import MADE, Arrays, block_of, diagonal, reshaped
from jaxte.frontends.loops.reading.numpy_rules import refuse_truths, viewed
from jaxte.frontends.loops.reading.values import Block, element_of, place_of, product
from jaxte.lang import dtypes, functions
from jaxte.lang.errors import DefinitionError
from jaxte.lang.expr import Expr, as_expr
from jaxte.sets.affine import normal


def _trace(reader: Arrays, node: Any, a: Any) -> Any:
    return reader.summed("sum", diagonal(reader, node, a), 1, node)


def _square(value: Expr) -> Expr:
    return functions.abs(value) ** 2 if dtypes.is_complex(value.dtype) else value**2


def _norm(reader: Arrays, node: Any, x: Any) -> Any:
    own = block_of(x, "linalg.norm")
    squares = Block(own.shape, lambda at: _square(own.element(at)))
    return functions.sqrt(reader.summed("sum", squares, len(own.shape), node))


def _variance(reader: Arrays, node: Any, a: Any, ddof: int = 0) -> Any:
    own = block_of(a, "var")
    size, rank = functions.cast(product(own.shape), reader.default), len(own.shape)
    mean = reader.summed("sum", own, rank, node) / size
    squares = Block(own.shape, lambda at: _square(own.element(at) - mean))
    return reader.summed("sum", squares, rank, node) / (size - ddof)


def _deviation(reader: Arrays, node: Any, a: Any, ddof: int = 0) -> Any:
    return functions.sqrt(_variance(reader, node, a, ddof))


def _cumulative(op: str) -> Callable[..., Block]:
    def made(reader: Arrays, node: Any, a: Any, axis: int | None = None) -> Block:
        own = block_of(a, "cumsum", 1 if axis is None else None)
        return reader.prefixes(op, own, 0 if axis is None else place_of(axis, len(own.shape)), node)

    return made


def _einsum(reader: Arrays, node: Any, subscripts: Any, *operands: Any) -> Any:
    if not isinstance(subscripts, str) or "." in subscripts:
        raise DefinitionError("np.einsum of letters, as 'ij,jk->ik', is known here; write the loops")
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    parts = left.split(",")
    letters = [*dict.fromkeys(left.replace(",", ""))]
    if not arrow:
        right = "".join(sorted(c for c in letters if left.count(c) == 1))
    if len(parts) != len(operands) or len(set(right)) < len(right) or not set(right) <= set(letters):
        raise DefinitionError(f"np.einsum of {len(operands)} arrays, and {subscripts!r} says something else")
    if len(operands) > 1:
        refuse_truths("np.einsum", operands)
    extents: dict[str, Expr] = {}
    for part, own in zip(parts, operands, strict=True):
        shape = own.shape if isinstance(own, Block) else ()
        if len(shape) != len(part):
            raise DefinitionError(f"np.einsum: {part!r} of an array of {len(shape)} axes")
        for letter, extent in zip(part, shape, strict=True):
            if normal(extents.setdefault(letter, extent) - extent) is not as_expr(0):
                raise DefinitionError(f"np.einsum: the axes of {letter!r} are of different lengths")
    order = [*right, *(c for c in letters if c not in right)]

    def places(part: str, at: Sequence[Expr]) -> list[Expr]:
        return [at[order.index(letter)] for letter in part]

    if len(order) == len(right) and len(parts) == 1:  # a view, as NumPy's
        return viewed(
            block_of(operands[0], "einsum"), [extents[c] for c in order], lambda at: places(left, at)
        )
    terms = Block(
        tuple(extents[c] for c in order),
        lambda at: reduce(mul, [element_of(x, places(p, at)) for p, x in zip(parts, operands, strict=True)]),
    )
    count = len(order) - len(right)
    return reader.summed("sum", terms, count, node) if count else terms


def _position_of(op: str) -> Callable[..., Any]:
    """``np.argmax`` or ``np.argmin``: the first position of the greatest or least element, or of one that is no number."""

    def made(reader: Arrays, node: Any, a: Any, axis: int | None = None) -> Any:
        own = block_of(a, f"arg{op}")
        own = reshaped(reader, node, own, -1) if axis is None else own
        place = 0 if axis is None else place_of(axis, len(own.shape))
        shape = (*own.shape[:place], *own.shape[place + 1 :], own.shape[place])

        def element(at: Sequence[Expr]) -> Expr:
            return own.element([*at[:place], at[-1], *at[place:-1]])

        best = reader.summed(op, Block(shape, element), 1, node)

        def position(at: Sequence[Expr]) -> Expr:
            value = element(at)
            found = functions.equal(value, element_of(best, at[:-1]))
            if dtypes.is_inexact(value.dtype):
                found = functions.logical_or(found, functions.not_equal(value, value))
            return functions.select(found, at[-1], shape[-1] - 1)

        return reader.summed("min", Block(shape, position), 1, node)

    return made


WHOLE: dict[str, Callable[..., Any]] = {
    **MADE,
    "trace": _trace, "norm": _norm, "var": _variance, "std": _deviation, "cumsum": _cumulative("sum"), "cumprod": _cumulative("prod"),
    "einsum": _einsum, "argmax": _position_of("max"), "argmin": _position_of("min"),
}  # fmt: skip
