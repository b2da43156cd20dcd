"""Indices that are affine piece by piece, as in ``X[h, i + te.choose(h, (1, 2, 2)) * k]``.

An index has to be affine. One that is chosen among several by the position along one axis is affine on each of the parts
into which the choices cut that axis. So the body is taken apart there: a part is the body over fewer positions, in
which every such choice has been made, and nothing later needs to know of choices in indices.

Indices that are made of the bits of several positions, of their products and powers, of quotients by one, or of many choices, are elements of
tables of positions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from jaxte.lang.divisions import division
from jaxte.lang.dtypes import INTEGER_LIMITS, is_integer
from jaxte.lang.errors import IndexExpressionError
from jaxte.lang.expr import Axis, Call, Const, Expr, Read, Reduce, as_expr, call, cast, conjuncts
from jaxte.lang.graphs import among, identical, leaves
from jaxte.lang.limits import CASES, MOST_PARTS, TABLE
from jaxte.lang.operators import (
    AND,
    BIT_AND,
    BIT_OR,
    BIT_XOR,
    MAXIMUM,
    MINIMUM,
    MULTIPLY,
    NOT,
    OR,
    POWER,
    SELECT,
)
from jaxte.lang.text import text
from jaxte.lang.walk import all_of, free_axes, postorder, reads_of, reductions, substitute
from jaxte.sets.affine import linear
from jaxte.sets.index_forms import linear_or_none
from jaxte.sets.intervals import axis_bounds, known, reach
from jaxte.sets.quasi_affine import quasi_affine
from jaxte.sets.tabulate import tabulated
from jaxte.tensors.bodies.contexts import contexts
from jaxte.tensors.facts import within
from jaxte.tensors.inputs import assume
from jaxte.tensors.structure import Known


@dataclass(frozen=True, slots=True)
class Part:
    """What a body is at the positions ``run`` of an axis, over ``axis``, or for the one position that it is."""

    run: range
    axis: Axis | Const
    body: Expr


@dataclass(frozen=True, slots=True)
class Cut:
    """The parts of ``owner``, which reduces over ``axis``, in sequence; those of the body if ``axis`` is one of the output."""

    axis: Axis
    owner: Reduce | None
    parts: tuple[Part, ...]


def cut(axes: Sequence[Axis], body: Expr) -> Cut | None:
    """The parts of ``body`` along an axis that decides on choices in indices; None where there is none, or they are many."""
    tests = {test: free_axes(test) for test in _tests(body)}
    for axis in dict.fromkeys(axis for free in tests.values() for axis in free):
        own = [test for test, free in tests.items() if identical(list(free), [axis]) and not reads_of(test)]
        ends = axis_bounds([axis]).get(axis)
        owner = next((n for n in reductions(body) if among(axis, n.axes)), None)
        if not own or ends is None or (owner is None and not among(axis, axes)):
            continue
        runs = _runs(axis, range(ends[0], ends[1] + 1), own)
        if runs is not None:
            whole = body if owner is None else owner
            return Cut(axis, owner, tuple(_part(whole, axis, run, own, owner is None) for run in runs))
    return None


def has_choices(index: Expr) -> bool:
    """Whether an index is chosen among several by a condition."""
    return bool(_choices(index))


def _choices(index: Expr) -> list[Call]:
    return [node for node in all_of(Call, index) if node.op is SELECT]


def _tests(body: Expr) -> dict[Expr, None]:
    """The comparisons by which choices in indices are made."""

    def parts(node: Expr) -> Sequence[Expr]:
        return node.args if isinstance(node, Call) and node.op in (AND, OR, NOT) else ()

    found: dict[Expr, None] = {}
    for read in reads_of(body):
        tests = [choice.args[0] for index in read.indices for choice in _choices(index)]
        found |= dict.fromkeys(leaf for test in reversed(tests) for leaf in reversed(leaves(test, parts)))
    return found


def _runs(axis: Axis, positions: range, tests: Sequence[Expr]) -> list[range] | None:
    """The longest runs of positions in which each test always holds, or never; None if they are many, or data decides."""
    found: list[range] = []
    last: list[Expr] = []
    for position in positions:
        results = [substitute(test, {axis: Const(position)}) for test in tests]
        if not all(isinstance(result, Const) for result in results):
            return None
        if found and all(new is old for new, old in zip(results, last, strict=True)):
            found[-1] = range(found[-1].start, position + 1)
        else:
            found.append(range(position, position + 1))
        if len(found) > MOST_PARTS:
            return None
        last = results
    return found


def _part(body: Expr, axis: Axis, run: range, tests: Sequence[Expr], of_output: bool) -> Part:
    at = Const(run.start)
    decided = {test: substitute(test, {axis: at}) for test in tests}
    own = (
        at
        if of_output and len(run) == 1
        else Axis(axis.name, run.start, run.stop, axis.reduction, axis.condition)
    )
    return Part(run, own, substitute(substitute(body, decided), {axis: own}))


# of each read, the conditions of the places where it stands
Guards = Mapping[Expr, Sequence[tuple[Expr, ...]]]
_BITS = (BIT_AND, BIT_OR, BIT_XOR)


def guards_of_tables(axes: Sequence[Axis], body: Expr) -> Guards:
    """The reads at elements of tables, each with the conditions of every place where it stands."""
    targets = {read for read in reads_of(body) if any(map(_needs_table, read.indices))}
    found: dict[Expr, list[tuple[Expr, ...]]] = {}
    for read, _, conditions in contexts(axes, body, targets) if targets else ():
        found.setdefault(read, []).append(tuple(part for c in conditions for part in conjuncts(c)))
    return found


def at_tables(read: Read, places: Sequence[tuple[Expr, ...]]) -> Read:
    """``read`` with positions that no solver takes, or that are made of many choices, as elements of tables."""
    indices = list(read.indices)
    for n, index in enumerate(indices):
        if _needs_table(index):
            where = f"{text(read)}, axis {n} of {read.tensor.name}"
            found = _looked_up(index, as_expr(read.tensor.shape[n]), f"{read.tensor.name}_at", places, where)
            indices[n] = index if found is None else found
    return Read(read.tensor, indices)


def _needs_table(index: Expr) -> bool:
    return not reads_of(index) and (chooses_often(index) or mixes_positions(index))


def mixes_positions(index: Expr) -> bool:
    """Whether ``index`` is made of the bits of several positions, of their products or powers, or of a quotient by one: no solver takes these."""
    return any(map(_mixes, postorder(index)))


def _mixes(node: Expr) -> bool:
    if not isinstance(node, Call) or not is_integer(node.dtype):
        return False
    match node:
        case Call(op, (a, b)) if op in _BITS:
            return not isinstance(a, Const) and not isinstance(b, Const)
        case Call(op, (a, b)) if op is MULTIPLY:
            return bool(free_axes(a)) and bool(free_axes(b))
        case Call(op, (a, Const())) if op is POWER:
            return bool(free_axes(a))
        case Call(op, (a,)) if op.name == "square":
            return bool(free_axes(a))
    divided = division(node)
    if divided is None or not free_axes(divided.divisor):
        return False
    form = linear_or_none(divided.divisor)
    ends = None if form is None else reach(form)
    return ends is not None and ends[0] > 0


def chooses_often(index: Expr) -> bool:
    return sum(isinstance(n, Call) and n.op is SELECT for n in postorder(index)) > CASES


def _looked_up(
    index: Expr, extent: Expr, name: str, places: Sequence[tuple[Expr, ...]], where: str
) -> Expr | None:
    """``index`` as an element of a table of positions; None where that would be large, or where one of them is none.

    Over an axis without elements there are no positions, and any index stands for them.

    Where the conditions of all ``places`` leave out the points at which a position is none, the table has the nearest one there. No equation is solved for the bits of a number. But which
    positions a table holds is known, and adjoints read where each of them stands (``algebra/known_places.py``).
    """
    axes, size = list(free_axes(index)), known(extent)
    if any(known(a.extent) == 0 for a in axes):
        return Const(0)
    found = values_over(axes, index) if size is not None else None
    count = prod(known(a.extent) or 0 for a in axes)
    is_left = count > TABLE and mixes_positions(index)
    if size is not None and (is_left or (found is not None and not _fit(axes, index))):
        beyond = "numbers beyond int32, in which positions are computed"
        many = f"{count:,} positions, more than a table of {TABLE:,} holds"
        raise IndexExpressionError(
            f"{where}: `{text(index)}` is made of {many if is_left else beyond}; index with an integer tensor that holds them, as in X[I[i]]"
        )
    if found is None or size is None:
        return None
    outside = (found < 0) | (found >= size)
    if outside.any():
        if not size or not places or any((outside & _held(axes, c, found.shape)).any() for c in places):
            return None
        found, index = found.clip(0, size - 1), call(MINIMUM, call(MAXIMUM, index, 0), size - 1)
    own = [Axis(a.name, 0, a.extent) for a in axes]
    moved: dict[Expr, Expr] = {a: o + a.lo for a, o in zip(axes, own, strict=True)}
    table = Known(name, own, cast(substitute(index, moved), "int32"))
    assume(table, within(size))
    return Read(table, [a - a.lo for a in axes])


def _fit(axes: Sequence[Axis], index: Expr) -> bool:
    """Whether what ``index`` is made of are integers of 32 bits, in which a table is computed."""
    low, high = INTEGER_LIMITS["int32"]
    values = [values_over(axes, node) for node in postorder(index) if _mixes(node)]
    return all(v is not None and low <= v.min() and v.max() <= high for v in values)


def _held(axes: Sequence[Axis], conditions: Sequence[Expr], shape: tuple[int, ...]) -> np.ndarray:
    """Where over ``axes`` those of ``conditions`` hold that are of these alone."""
    held = np.ones(shape, bool)
    for condition in conditions:
        if all(among(a, axes) for a in free_axes(condition)):
            found = values_over(axes, quasi_affine(condition))
            held = held if found is None else held & found
    return held


def values_over(axes: Sequence[Axis], expr: Expr) -> np.ndarray | None:
    """The values of ``expr`` over the ranges of ``axes``, a dimension for each; None where these are not known, or large."""
    ranges = [reach(linear(a)) for a in axes]
    extents = [r[1] + 1 - r[0] for r in ranges if r is not None]
    if len(extents) < len(axes) or not 0 < prod(extents) <= TABLE:
        return None
    at: dict[Expr, np.ndarray] = {}
    for n, axis in enumerate(axes):
        values = np.arange(extents[n]) + (ranges[n] or (0,))[0]
        at[axis] = values.reshape([-1 if m == n else 1 for m in range(len(axes))])
    found = tabulated(expr, at)
    return None if found is None else np.broadcast_to(found, extents)
