"""Indices that are affine piece by piece, as in ``X[h, i + te.choose(h, (1, 2, 2)) * k]``.

An index has to be affine. One that is chosen among several by the position along one axis is affine on each of the parts
into which the choices cut that axis. So the body is taken apart there: a part is the body over fewer positions, in
which every such choice has been made, and nothing later needs to know of choices in indices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxte.lang.expr import Axis, Call, Const, Expr, Reduce
from jaxte.lang.graphs import leaves
from jaxte.lang.identity import among, identical
from jaxte.lang.operators import AND, NOT, OR, SELECT
from jaxte.lang.walk import free_axes, postorder, reads_of, substitute
from jaxte.sets.intervals import axis_bounds

MOST_PARTS = 64  # each has conditions of its own


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
        owner = _owner(axis, body)
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
    return [node for node in postorder(index) if isinstance(node, Call) and node.op is SELECT]


def _tests(body: Expr) -> dict[Expr, None]:
    """The comparisons by which choices in indices are made."""

    def parts(node: Expr) -> Sequence[Expr]:
        return node.args if isinstance(node, Call) and node.op in (AND, OR, NOT) else ()

    found: dict[Expr, None] = {}
    for read in reads_of(body):
        tests = [choice.args[0] for index in read.indices for choice in _choices(index)]
        found |= dict.fromkeys(leaf for test in reversed(tests) for leaf in reversed(leaves(test, parts)))
    return found


def _owner(axis: Axis, body: Expr) -> Reduce | None:
    """The innermost reduction over ``axis``."""
    return next((n for n in postorder(body) if isinstance(n, Reduce) and among(axis, n.axes)), None)


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
