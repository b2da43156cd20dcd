"""Scatter-adds and their like as nodes."""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.lang.expr import Const
from jaxte.lang.operators import MULTIPLY, SELECT
from jaxte.lower.arrays.data import OneHot, Scatter, Sorting, Take
from jaxte.lower.arrays.elementwise import Apply
from jaxte.lower.arrays.leaves import Arange, Full, Number, number
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.products import Einsum
from jaxte.lower.arrays.steps import ALL, NEW, Index, Transpose
from jaxte.lower.code.broadcasting import apply_steps
from jaxte.lower.forms.data.recognise import Position, ScatterSpec


def scatter_source(spec: ScatterSpec, operands: Sequence[Node]) -> Node:
    """``spec`` on the nodes of ``spec.operands``."""
    return _finished(spec, accumulated(spec, operands, spec.flags), operands)


def sorted_scatter_source(spec: ScatterSpec, operands: Sequence[Node]) -> Node:
    """The same with the rows of the values in the order of their positions."""
    values, index, *others = operands
    moved = Take(values, Sorting("argsort", index), spec.target)
    flags = dict.fromkeys([*spec.flags, "indices_are_sorted"])
    result = accumulated(spec, [moved, Sorting("sort", index), *others], tuple(flags))
    return _finished(spec, result, operands)


def one_hot_source(spec: ScatterSpec, operands: Sequence[Node]) -> Node:
    """The product of the values with the matrix that has a one where a position is a row of the output."""
    letters = "abcdefghijklmnopqrstuvwxyz"[: len(spec.shape)]
    row = letters[spec.target]
    held = letters.replace(row, "z")
    hot = OneHot(operands[1], spec.shape[spec.target], spec.dtype)
    product = Einsum(f"z{row},{held}->{letters}", (hot, operands[0]), exact=True)
    return _finished(spec, product, operands)


def accumulated(
    spec: ScatterSpec, operands: Sequence[Node], flags: Sequence[str], onto: Node | None = None
) -> Node:
    """The values at their positions in the array ``onto``, by default one of identities.

    Where no position occurs twice identities need not be read: values take their places.
    """
    start = onto or Full(spec.shape, Number(0) if spec.method == "add" else _identity(spec), spec.dtype)
    positions = tuple(_position(position, spec.block, operands) for position in spec.positions)
    method = "set" if "unique_indices" in flags and onto is None else spec.method
    return Scatter(start, positions, method, operands[0], flags=tuple(flags))


def _finished(spec: ScatterSpec, result: Node, operands: Sequence[Node]) -> Node:
    remaining = list(operands[1 + len(spec.indices) :])
    result = in_order(spec, result)
    if spec.scale is not None:
        result = Apply(MULTIPLY, (remaining.pop(0), result))
    return result if spec.guard is None else Apply(SELECT, (remaining.pop(0), result, _identity(spec)))


def in_order(spec: ScatterSpec, result: Node) -> Node:
    """``result``, whose dimensions are in the order in which values are accumulated, in the order of the output's."""
    return result if spec.order is None else apply_steps(result, [Transpose(tuple(spec.order))])


def _identity(spec: ScatterSpec) -> Node:
    assert isinstance(spec.identity, Const)
    return number(spec.identity.value, spec.identity.dtype)


def _position(position: Position, block: int, operands: Sequence[Node]) -> Node | None:
    """The positions in one dimension over the whole block; None for all of it."""
    if position.whole:
        return None
    if position.count is not None:
        found: Node = Arange(0, position.count)
    else:
        assert position.operand is not None
        found = operands[position.operand]
    first = min(position.dims, default=block)
    entries = tuple(ALL if d in position.dims else NEW for d in range(first, block))
    return apply_steps(found, [Index(entries)])
