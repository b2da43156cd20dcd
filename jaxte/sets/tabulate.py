"""Values of indices and of conditions at positions: at one point, or as arrays, for axes of known ranges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from jaxte.lang.divisions import divisions
from jaxte.lang.expr import Axis, Call, Const, Expr, Var
from jaxte.lang.graphs import among
from jaxte.lang.limits import LARGE_TABLE, POSITIONS, TABLE
from jaxte.lang.text import text
from jaxte.lang.walk import free_axes, postorder
from jaxte.sets.quasi_affine import index_of, quasi_affine

_FEW = 2**16  # positions, of which the values of many indices are kept

_WIDE = {"int32", "int64"}  # whose casts change no position
_OPS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "negative": np.negative,
    "multiply": np.multiply,
    "square": np.square,
    "power": lambda a, b: np.power(a, np.maximum(b, 0)),  # no integer has another power
    "floor_divide": lambda a, b: a >> _bits(b) if _is_power_of_two(a, b) else np.floor_divide(a, b),
    "mod": lambda a, b: a & (b - 1) if _is_power_of_two(a, b) else np.remainder(a, b),
    "minimum": np.minimum,
    "maximum": np.maximum,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_not": np.logical_not,
    "select": np.where,
    "abs": np.abs,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "left_shift": np.left_shift,
    "right_shift": np.right_shift,
}


def _is_power_of_two(a: Any, b: Any) -> bool:
    """Whether integers ``a`` are divided by one power of two, for which a division takes ten times as long as a shift."""
    return a.dtype.kind == "i" and b.ndim == 0 and b.dtype.kind == "i" and b > 0 and b & (b - 1) == 0


def _bits(b: Any) -> int:
    return int(b).bit_length() - 1


def evaluate_index(expr: Expr, point: Mapping[Expr, int]) -> int:
    """The value of an index expression at a point."""
    return int(values_at(expr, point))


def values_at(expr: Expr, at: Mapping[Expr, Any]) -> np.ndarray:
    """The values of an index expression where its axes and sizes take the values ``at``, broadcast."""
    found = tabulated(index_of(expr), at)
    assert found is not None, f"`{text(expr)}` is no index of {', '.join(map(text, at))}"
    return found


def tabulated(expr: Expr, at: Mapping[Expr, Any]) -> np.ndarray | None:
    """``expr`` where its axes take the values ``at``, broadcast; None where something else than positions decides.

    >>> i = te.reduce_axis((0, 4), "i")
    >>> tabulated(i // 2 < 1, {i: np.arange(4)}).tolist()
    [True, True, False, False]
    """
    memo: dict[Expr, Any] = {}
    for node in postorder(expr):
        match node:
            case Const(value):
                memo[node] = np.asarray(value)
            case Axis() | Var() if node in at:
                memo[node] = np.asarray(at[node])
            case Call(op, (a,)) if op.name == "cast" and {node.dtype, a.dtype} <= _WIDE:
                memo[node] = memo[a]
            case Call(op, args) if op.name in _OPS:
                memo[node] = _OPS[op.name](*(memo[a] for a in args))
            case _:
                return None
    return np.asarray(memo[expr])


def values_along(index: Expr, axis: Axis) -> np.ndarray | None:
    """``index`` at each position of ``axis``; None where something else decides, or there are many positions, or symbolic ones.

    >>> i = te.reduce_axis((0, 6), "i")
    >>> values_along(te.minimum(i // 2, 1), i).tolist()
    [0, 0, 1, 1, 1, 1]
    """
    if not (isinstance(axis.lo, Const) and isinstance(axis.hi, Const)):
        return None
    start, stop = int(axis.lo.value), int(axis.hi.value)  # type: ignore[arg-type]
    if stop - start > TABLE:
        return None
    return (_of_few if stop - start <= _FEW else _of_many)(index, axis, start, stop)


def _along(index: Expr, axis: Axis, start: int, stop: int) -> np.ndarray | None:
    found: list[np.ndarray] = []
    # The first cache holds so many positions of one axis.
    for first in range(start, stop, POSITIONS):
        at = np.arange(first, min(first + POSITIONS, stop))
        values = tabulated(index, {axis: at})
        if values is None:
            return None
        found.append(np.broadcast_to(values, at.shape).astype("int64"))
    whole = np.concatenate(found) if found else np.zeros(0, "int64")
    whole.setflags(write=False)
    return whole


# What an index is made of, its ends and its interior are asked one after the other, each of all reads of a body: 160 MB at most are kept.
_of_few, _of_many = lru_cache(maxsize=256)(_along), lru_cache(maxsize=4)(_along)


def quotients(conditions: Sequence[Expr]) -> int:
    """How many quotients and remainders there are in ``conditions``."""
    return len(divisions(*conditions))


class Open(Exception):
    """There are more points than are looked at one by one, or something else than positions decides."""


def first_of(variables: Sequence[Expr], conditions: Sequence[Expr]) -> dict[Expr, int] | None:
    """The first point of the axes ``variables`` at which all ``conditions`` hold; None where there is none.

    Axes that no condition ties to each other are looked at by themselves: so are those of each dimension of a window.

    Raises:
        Open: of more than eight million points, or where sizes are symbols.
    """
    axes = [a for a in variables if isinstance(a, Axis) and any(among(a, free_axes(c)) for c in conditions)]
    if len(variables) > sum(isinstance(v, Axis) for v in variables):
        raise Open
    if not all(isinstance(end, Const) for a in axes for end in (a.lo, a.hi)):
        raise Open
    found: dict[Expr, int] = {
        v: int(v.lo) for v in variables if isinstance(v, Axis) and isinstance(v.lo, Const)
    }
    tied = sorted(_tied(axes, conditions), key=lambda part: prod(int(a.hi) - int(a.lo) for a in part[0]))
    for own, held in tied:
        point = _first_point(own, held)
        if point is None:
            return None
        found |= point
    return found


def _tied(axes: Sequence[Axis], conditions: Sequence[Expr]) -> list[tuple[list[Axis], list[Expr]]]:
    """The axes that conditions tie to each other, with these conditions; those of no axis by themselves."""
    parts: list[tuple[list[Axis], list[Expr]]] = []
    for condition in conditions:
        over = free_axes(condition)
        met = [part for part in parts if any(among(a, part[0]) for a in over)]
        left = [part for part in parts if all(part is not own for own in met)]
        joined = [a for a in axes if among(a, over) or any(among(a, own) for own, _ in met)]
        parts = [*left, (joined, [c for _, held in met for c in held] + [condition])]
    return parts


def _first_point(axes: Sequence[Axis], conditions: Sequence[Expr]) -> dict[Expr, int] | None:
    """The first point of ``axes`` at which all ``conditions`` hold."""
    lows, lengths = [int(a.lo) for a in axes], [int(a.hi) - int(a.lo) for a in axes]
    if prod(lengths) > LARGE_TABLE:
        raise Open
    exact = [quasi_affine(c) for c in conditions]
    for start in range(0, prod(lengths), TABLE):
        numbers = np.arange(start, min(start + TABLE, prod(lengths)))
        places = np.unravel_index(numbers, lengths) if axes else ()
        at: dict[Expr, np.ndarray] = {a: p + lo for a, p, lo in zip(axes, places, lows, strict=True)}
        held = [h for c in exact if (h := tabulated(c, at)) is not None]
        if len(held) < len(exact):
            raise Open
        hits = np.flatnonzero(np.logical_and.reduce([np.broadcast_to(h, numbers.shape) for h in held]))
        if len(hits):
            return {a: int(at[a][hits[0]]) for a in axes}
    return None
