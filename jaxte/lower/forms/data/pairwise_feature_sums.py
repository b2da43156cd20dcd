"""Sums over the features of rows that are gathered, ``s[e] = sum over f of Q[I[e], f] * K[J[e], f]``, one half of the features added to the other.

``jnp.sum`` is an operation by itself on the CPU, and XLA writes each of the gathered arrays to memory for it. Halves that are added are
elementwise code, as gathers are, so that both are one loop and only a few columns are written.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence

from jaxte.lang.expr import TRUE, Axis, Read, Reduce, as_expr
from jaxte.lang.operators import ADD
from jaxte.lang.walk import postorder
from jaxte.lower.arrays.elementwise import Apply
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.steps import ALL, Entry, Index, Range
from jaxte.lower.body.candidates import Candidate, Search
from jaxte.lower.body.evaluator import Body
from jaxte.lower.body.wanted import Wanted
from jaxte.lower.body.write_form import operands_of
from jaxte.lower.code.broadcasting import apply_steps
from jaxte.lower.code.spec import Refusal, array
from jaxte.lower.code.vocabulary import Value
from jaxte.lower.cost.default_work import gathered_rows
from jaxte.lower.cost.work import Work, points
from jaxte.lower.match.gathered_rows import rows_of
from jaxte.sets.intervals import known

HALVES = "halves"
_FEWEST, _MOST = 4, 512  # features
_FEW = 7  # columns that are added as they stand; a column that is left over in between would need all of an array in memory
_ROUNDED = ("float16", "bfloat16")  # sums of these are kept in float32


def halves_candidates(body: Body, gathers: Sequence[Read], wanted: Wanted) -> Iterator[Candidate]:
    """The sum by halves, where it is of rows that two gathers read and nothing else does."""
    axes, node = wanted.axes, wanted.node
    if any(rows_of(read) in body.gathered_twice for read in gathers):
        return  # they are in memory, which the sum need not keep them from
    (features,) = node.axes
    rows = array((*axes, features), node.exprs[0])

    def write() -> Search:
        body.report.note(HALVES)
        body.survey(rows.body)
        (summed,) = yield from operands_of(body, [rows], wanted.scope)
        count = known(features.hi) or 0
        return Value(_added(summed, count, len(axes), body.step), axes, (node.dtype, False))

    yield Candidate(HALVES, Work(tap=points(axes) * points(node.axes), kernel=2), write)


def gathered_pairs(axes: Sequence[Axis], node: Reduce) -> list[Read] | Refusal:
    """The rows that ``node`` sums, if it is a sum over one axis of products of them."""
    found = _gathers(axes, node)
    return found if len(found) > 1 else Refusal("")


def _gathers(axes: Sequence[Axis], node: Reduce) -> list[Read]:
    """The rows that ``node`` sums, if it is a sum over one axis of them."""
    if node.reducer.name != "sum" or node.where is not TRUE or node.dtype in _ROUNDED or len(node.axes) != 1:
        return []
    (features,) = node.axes
    count = known(features.hi) or 0
    if known(features.lo) != 0 or not _FEWEST <= count <= _MOST or _odd_part(count) > _FEW:
        return []
    if any(isinstance(n, Reduce) for n in postorder(node.exprs[0])):
        return []
    return gathered_rows(axes, node)


def _odd_part(count: int) -> int:
    """What is left of ``count`` divided by 2 as often as that goes."""
    return count // (count & -count)


def _added(rows: Node, count: int, at: int, step: Callable[[Node], Node]) -> Node:
    """The ``count`` columns of ``rows``, which are its dimension ``at``, added in statements."""
    while count % 2 == 0 and count > 2:
        count //= 2
        first, second = (_part(rows, at, r) for r in (Range(None, as_expr(count)), Range(as_expr(count))))
        rows = step(Apply(ADD, (first, second)))
    columns = [_part(rows, at, as_expr(n)) for n in range(count)]
    return step(functools.reduce(lambda a, b: Apply(ADD, (a, b)), columns))


def _part(rows: Node, at: int, entry: Entry) -> Node:
    return apply_steps(rows, [Index((*(ALL,) * at, entry))])
