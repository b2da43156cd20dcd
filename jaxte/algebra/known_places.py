"""Equations with elements of a table that is known: where each value stands is another table.

    dp[m] = sum over i, j of H[i, j] where j <= i and at[i, j] == m,   at[i, j] = i * (i + 1) // 2 + j
    dp[m] = H[i_of[m], j_of[m]]

The adjoint of a packed triangle is a gather, as those of permutations, of blocks along a diagonal and of any other positions that numbers decide are. Where a
value stands several times, as in a symmetric matrix of which one half is kept, its places are a short axis, of which all that are there count. Whether that
is few enough beside the points of the table is counted; of positions that are data nothing is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from jaxte.lang.dtypes import is_integer
from jaxte.lang.expr import TRUE, Axis, Expr, Read, call
from jaxte.lang.limits import MARGIN, MOST_LARGER, TABLE
from jaxte.lang.operators import GREATER
from jaxte.lang.walk import depends_on, free_axes, reads_of
from jaxte.sets.index_forms import linear_or_none
from jaxte.sets.intervals import reach
from jaxte.sets.quasi_affine import quasi_affine
from jaxte.tensors.bodies.piecewise_indices import values_over
from jaxte.tensors.elementwise import held_values, of_array
from jaxte.tensors.facts import within
from jaxte.tensors.inputs import assume
from jaxte.tensors.tensor import Compute, Tensor


@dataclass(frozen=True, slots=True)
class Places:
    """Where the points are at which a table has a value.

    Attributes:
        at: what each variable is there, and what other tables have there.
        stated: the conditions that hold there.
        counts: where there is such a point; None where there always is.
        axis: of the points; None where there is one at most.
    """

    at: dict[Expr, Read]
    stated: tuple[Expr, ...]
    counts: Expr | None
    axis: Axis | None


def places_of(
    read: Read, value: Expr, axes: Sequence[Expr], conditions: Sequence[Expr], summed: Expr
) -> Places | None:
    """The points of ``axes`` at which ``read``, an element of a table that is known, is ``value``, and those of ``conditions`` hold that are of the same axes alone.

    What other tables have at these, of which ``summed`` or a condition has an element, is a table, too. None where the table is not known, or where there would be many more places than there are points.
    """
    if not _is_known(read.tensor):
        return None
    variables = [a for a in axes if isinstance(a, Axis) and depends_on(read, (a,))]
    size = _stop(value)
    if not variables or size is None or depends_on(value, variables):
        return None
    leading = [n for n, index in enumerate(read.indices) if not depends_on(index, variables)]
    moving = [index for n, index in enumerate(read.indices) if n not in leading]
    stated = tuple(
        c for c in conditions if not reads_of(c) and 0 < len(free_axes(c)) and {*free_axes(c)} <= {*variables}
    )
    held = _held(variables, stated)
    at = [values_over(variables, index) for index in moving]
    table = _values(read.tensor)
    if held is None or table is None or any(a is None for a in at) or reads_of(*moving):
        return None
    table = np.moveaxis(table, leading, range(len(leading)))
    rows = table[(*(slice(None),) * len(leading), *[a[held] for a in at if a is not None])]
    met = _met(rows.reshape(prod(rows.shape[: len(leading)]), -1), size)
    if met is None:
        return None
    name, indices = read.tensor.name, [*(read.indices[n] for n in leading), value]
    axis = Axis("q", 0, met.shape[-1], reduction=True) if met.shape[-1] > 1 else None
    shape = (*table.shape[: len(leading)], size, *met.shape[2:][: axis is not None])
    indices += [axis] if axis is not None else []
    found: dict[Expr, Read] = {}
    known: list[Axis | Read] = [*variables, *_other_tables(read, variables, [summed, *conditions])]
    for own in known:
        numbers = values_over(variables, own) if isinstance(own, Axis) else _at(own, variables)
        if numbers is not None:
            label = own.name if isinstance(own, Axis) else own.tensor.name
            values = np.append(numbers[held], numbers.dtype.type(0))[met].reshape(shape)
            found[own] = Read(_table(values, f"{name}_{label}", own.dtype), indices)
    missing = met == rows.shape[-1]
    counts = None
    if missing.any():
        is_there = of_array((~missing).reshape(shape).astype("int32"), f"{name}_counts", "int32")
        counts = call(GREATER, Read(is_there, indices), 0)
    return Places(found, stated, counts, axis)


def _table(values: np.ndarray, name: str, dtype: str) -> Tensor:
    """``values`` as a tensor, of which it is known in which range they are."""
    own = of_array(values, name, dtype)
    positive = is_integer(dtype) and values.size and values.min() >= 0
    return assume(own, within(int(values.max()) + 1)) if positive else own


def _other_tables(read: Read, variables: Sequence[Axis], exprs: Sequence[Expr]) -> list[Read]:
    """The elements of tables at positions of ``variables`` that stand in ``exprs``, beside ``read``."""
    others = [r for r in reads_of(*exprs) if r is not read and not reads_of(*r.indices)]
    return [r for r in others if free_axes(r) and {*free_axes(r)} <= {*variables}]


def _at(read: Read, variables: Sequence[Axis]) -> np.ndarray | None:
    """The elements of a table that is known over ``variables``; None of another."""
    table = _values(read.tensor)
    at = [values_over(variables, index) for index in read.indices]
    if table is None or any(a is None for a in at):
        return None
    return table[tuple(a.clip(0, n - 1) for a, n in zip(at, table.shape, strict=True) if a is not None)]


def _stop(value: Expr) -> int | None:
    """One more than the largest that ``value``, a position, is; None where it may be below zero, or is data."""
    form = linear_or_none(value)
    ends = None if form is None or reads_of(value) else reach(form)
    return None if ends is None or ends[0] < 0 else ends[1] + 1


def _held(variables: Sequence[Axis], conditions: Sequence[Expr]) -> np.ndarray | None:
    """Where ``conditions`` hold over ``variables``; None where one of them is not understood, or there are many points."""
    held = values_over(variables, TRUE)
    for condition in conditions:
        own = values_over(variables, quasi_affine(condition))
        if own is None or held is None:
            return None
        held = held & own
    return held


def _is_known(tensor: Tensor) -> bool:
    """Whether numbers and positions alone decide the elements of ``tensor``."""
    if isinstance(tensor, Compute):
        return bool(tensor.axes) and not tensor.inputs
    return held_values(tensor) is not None


def _values(tensor: Tensor) -> np.ndarray | None:
    """The elements of a tensor that is known; None of others, and of large ones."""
    if not _is_known(tensor):
        return None
    values = held_values(tensor)
    if values is None and isinstance(tensor, Compute):
        return values_over(tensor.axes, tensor.body)
    return values if values is not None and values.size <= TABLE else None


def _met(rows: np.ndarray, size: int) -> np.ndarray | None:
    """For each row, value and turn, the number of the point that has this value, one more than the last where there is none; None where these are many more than points."""
    count, points = rows.shape
    inside = (rows >= 0) & (rows < size)
    flat = (rows + size * np.arange(count)[:, None])[inside]
    order = np.argsort(flat, kind="stable")
    ordered = flat[order]
    first = np.searchsorted(ordered, ordered)  # where the first of the same value stands
    turns = np.arange(len(flat)) - first
    most = int(turns.max()) + 1 if len(flat) else 1
    # a value that is there seldom takes as many places as the one that is there most often
    if count * size * most > min(TABLE, (MOST_LARGER if most == 1 else MARGIN) * rows.size):
        return None
    met = np.full((count * size, most), points)
    met[ordered, turns] = np.nonzero(inside)[1][order]
    return met.reshape(count, size, most)
