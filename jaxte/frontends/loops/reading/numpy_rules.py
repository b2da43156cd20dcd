"""What NumPy makes of arrays beside their values: how they stand in memory, and of truths.

How many elements apart neighbours along each axis of a block stand decides what is a view.
``A.reshape(6)`` is a view of an array whose elements follow each other row by row, and a copy of ``A.T``; NumPy's functions of elements hand on the
order of the axes, so that ``v = A.T * 2`` stands column by column, and ``v.ravel()`` is a copy.

Some operators are refused for truths, ``-`` of two of them, and so is a part of an array that would be of another kind.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from jaxte.frontends.loops.reading.values import Block, broadcast, element_of, is_one
from jaxte.lang import dtypes, functions
from jaxte.lang.errors import DefinitionError
from jaxte.lang.expr import Const, Expr, Read, as_expr
from jaxte.lang.walk import reads_of
from jaxte.sets.affine import normal

Strides = tuple[Expr, ...]


def row_by_row(shape: Sequence[Expr]) -> Strides:
    """The strides of a new array."""
    found: list[Expr] = []
    step = as_expr(1)
    for extent in reversed(shape):
        found.append(step)
        step = normal(step * extent)
    return tuple(found[::-1])


def strides_of(block: Block) -> Strides | None:
    """Those of ``block``; None where they are not known."""
    if not block.is_laid_out:
        return None
    return row_by_row(block.shape) if block.strides is None else block.strides


def viewed(own: Block, shape: Sequence[Expr], places: Callable[[Sequence[Expr]], Sequence[Expr]]) -> Block:
    """The elements of ``own`` at ``places``, sums of multiples of positions: a view of whatever ``own`` is one of."""
    strides = strides_of(own)
    return Block(
        tuple(shape),
        lambda at: own.element([normal(i) for i in places(at)]),
        own.of,
        None if strides is None else _moved(strides, len(shape), places),
        strides is not None,
        is_read_only=own.is_read_only,
    )


def _moved(strides: Strides, rank: int, places: Callable[[Sequence[Expr]], Sequence[Expr]]) -> Strides:
    first = [as_expr(0)] * rank
    found = []
    for n in range(rank):
        next_one = [as_expr(int(k == n)) for k in range(rank)]
        moves = zip(strides, places(next_one), places(first), strict=True)
        found.append(_total(step * (to - start) for step, to, start in moves))
    return tuple(found)


def _total(parts: Iterable[Expr]) -> Expr:
    found = as_expr(0)
    for part in parts:
        found = normal(found + part)
    return found


def is_in_rows(block: Block) -> bool:
    """Whether the axes of ``block`` stand in the order of their strides, so that what is computed of its elements is laid out row by row."""
    if sum(not is_one(e) for e in block.shape) < 2:
        return True
    strides = strides_of(block)
    if strides is None:
        return False
    own = [(e, s) for e, s in zip(block.shape, strides, strict=True) if not is_one(e)]
    if all(isinstance(s, Const) for _, s in own):
        sizes = [abs(int(s.value)) for _, s in own]  # type: ignore[attr-defined]
        return sizes == sorted(sizes, reverse=True)
    return len(_runs(block.shape, strides)) == 1


def elementwise(function: Callable[..., Any], args: Sequence[Any]) -> Any:
    """``function`` of numbers, or of the elements of blocks."""
    blocks = [a for a in args if isinstance(a, Block)]
    if not blocks:
        return function(*args)
    return Block(
        broadcast(args),
        lambda at: as_expr(function(*(element_of(a, at) for a in args))),
        is_laid_out=all(map(is_in_rows, blocks)),
    )


def is_contiguous(block: Block) -> bool:
    """Whether the elements of ``block`` follow each other in memory."""
    strides = strides_of(block)
    runs = [] if strides is None else _runs(block.shape, strides)
    return strides is not None and (not runs or (len(runs) == 1 and _is_same(runs[0][1], as_expr(1))))


def reshaped_strides(strides: Strides, block: Sequence[Expr], shape: Sequence[Expr]) -> Strides | None:
    """The strides of ``block``, the extents of one, in another shape; None where no strides say where its elements stand, and NumPy copies them."""
    runs = _runs(block, strides)
    found: list[Expr] = []
    rest = list(shape)
    for extent, step in runs:
        taken: list[Expr] = []
        count = as_expr(1)
        while not _is_same(count, extent):
            if not rest:
                return None
            taken.append(rest.pop(0))
            count = normal(count * taken[-1])
            if isinstance(count, Const) and isinstance(extent, Const) and count.value > extent.value:  # type: ignore[operator]
                return None
        found += [normal(step * s) for s in row_by_row(taken)]
    return (*found, *(as_expr(0) for _ in rest))


def _runs(shape: Sequence[Expr], strides: Strides) -> list[tuple[Expr, Expr]]:
    """The extents and strides of axes, those that follow each other in memory as one."""
    found: list[tuple[Expr, Expr]] = []
    for extent, step in zip(shape, strides, strict=True):
        if is_one(extent):
            continue
        if found and _is_same(found[-1][1], normal(extent * step)):
            found[-1] = normal(found[-1][0] * extent), step
        else:
            found.append((extent, step))
    return found


def _is_same(a: Expr, b: Expr) -> bool:
    return normal(a - b) is as_expr(0)


_COUNT = "write int(...) or .astype(int) around each to count, or & and | to combine them"
_KINDS: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("truths", lambda d: d == "bool"),
    ("integers", dtypes.is_integer),
    ("floats", dtypes.is_float),
    ("complex numbers", dtypes.is_complex),
)


def first_of(value: Any) -> Expr:
    """One element of an operand, which says its dtype."""
    return as_expr(value.element([as_expr(0)] * len(value.shape)) if isinstance(value, Block) else value)


def computed(op: ast.operator | ast.unaryop, function: Callable[..., Any], args: Sequence[Any]) -> Any:
    """``function``, which ``op`` stands for, of ``args``: truths of positions are Python's, and numbers, those of data are NumPy's.

    Raises:
        DefinitionError: NumPy refuses it, or it says one thing of Python's truths and another of NumPy's.
    """
    if not any(isinstance(a, (Expr, Block)) for a in args):
        return function(*args)
    firsts = [first_of(a) if isinstance(a, (Expr, Block)) else None for a in args]
    of_data = [e is not None and e.dtype == "bool" and bool(reads_of(e)) for e in firsts]
    args = [
        functions.cast(e, "int32") if e is not None and e.dtype == "bool" and not own and a is e else a
        for a, e, own in zip(args, firsts, of_data, strict=True)
    ]
    if all(of_data):
        if isinstance(op, (ast.Sub, ast.USub)):
            raise DefinitionError(f"NumPy has no - of truths; {_COUNT}")
        if isinstance(op, ast.Add) and any(isinstance(a, Read) and not a.indices for a in args):
            raise DefinitionError(f"+ of two truths is 2 in Python, and True in NumPy; {_COUNT}")
        if isinstance(op, ast.Mult):
            function = functions.logical_and
    return elementwise(function, args)


def refuse_truths(name: str, args: Sequence[Any]) -> None:
    """That not all of ``args`` are truths, of which ``name`` makes others in NumPy, and counts here.

    Raises:
        DefinitionError: they are.
    """
    if args and all(first_of(a).dtype == "bool" for a in args):
        raise DefinitionError(f"{name} of truths is no count in NumPy; {_COUNT}")


def check_in_place(variable: str, dtype: str, found: Any) -> None:
    """That an array of ``dtype`` can take ``found``, which an operator makes of it in place.

    Raises:
        DefinitionError: it is of a higher kind, as a float is than an integer.
    """
    new, own = _rank(first_of(found).dtype), _rank(dtype)
    if new > own:
        raise DefinitionError(
            f"{variable} holds {_KINDS[own][0]}, and an operator in place cannot make them {_KINDS[new][0]}; write it as {variable} = ..., or begin with "
            ".astype(...)"
        )


def _rank(dtype: str) -> int:
    return next(n for n, (_, is_of) in enumerate(_KINDS) if is_of(dtype))
