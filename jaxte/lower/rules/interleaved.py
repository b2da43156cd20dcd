"""Choices by remainders: ``select(i % 2 == 0, A[i // 2], B[i // 2])`` is A and B side by side, stacked and reshaped.

Each branch is evaluated at the quotients of its own remainder only, so that nothing is computed for a branch that is not taken,
and no element asks for its remainder. Several dimensions are taken apart at once and put together by one reshape: XLA divides
the position of an element at each reshape, and two of them in a row take twice the time.

The inside of an array computed anew, and the rest kept: ``select(1 <= i < n - 1, ..., B[i])``, where a step of a loop makes ``B`` of the ``B`` before it.

What is computed is written into the array that it keeps, which XLA does in place: the array that a loop carries has no other use. So each element of the inside is computed
by slices, and none of the others is touched.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from jaxte.lang.divisions import Quotient, divisions
from jaxte.lang.expr import Axis, Call, Const, Expr, Read
from jaxte.lang.graphs import among, identical
from jaxte.lang.limits import HALVED, MOST_TERMS
from jaxte.lang.operators import SELECT
from jaxte.lang.walk import all_of, reads_data, reads_of
from jaxte.lower.arrays.data import Updated
from jaxte.lower.arrays.views import ALL, Index, Range, Reshape, Step
from jaxte.lower.body.assignment import Assignment
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.vocabulary import Value
from jaxte.lower.views.condition_box import Box, box_of, intersect, residue_of, split_conditions
from jaxte.lower.views.mixed_radix import Digits, digits_of
from jaxte.lower.views.scope import Scope, is_inside
from jaxte.sets.affine import from_linear
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import known

INTERLEAVED = "interleaved"
_Remainder = tuple[Axis, int]  # a dimension, and what it is divided by


def interleaved_value(
    body: Body, node: Call, scope: Scope
) -> Generator[tuple[Expr, Scope], Value, Value | None]:
    """The value of a choice among all remainders of dimensions; None where ``node`` is none."""
    splits: list[Digits] = []
    inner = scope
    for dim, base in _remainders(node, scope):
        splits.append(digits_of(dim, base))
        inner = inner.in_digits(splits[-1])
    if not splits:
        return None
    # Behind their guards reads may be in range that are padded elsewhere; nothing is copied for them.
    value = yield node, inner.reading(direct=all(is_inside(read, inner) for read in reads_of(node)))
    if value.literal or any(not among(d, value.dims) for s in splits for d in (s.high, s.low)):
        return None
    body.report.note(INTERLEAVED)
    return _joined(body, value, splits)


def is_interleaved(root: Expr, scope: Scope) -> bool:
    """Whether some part of ``root`` is a choice among all remainders of dimensions."""
    choices = (n for n in all_of(Call, root) if n.op is SELECT)
    return any(True for node in choices for _ in _remainders(node, scope))


def _joined(body: Body, value: Value, splits: Sequence[Digits]) -> Value:
    """An array over digits as one over the whole dimensions."""
    by_high = {s.high: s for s in splits}
    kept = [d for d in value.dims if all(d is not s.low for s in splits)]
    dims = [by_high[d].whole if d in by_high else d for d in kept]
    shape = [by_high[d].count if d in by_high else d.hi for d in kept]
    steps: list[Step] = [Reshape(tuple(shape))]
    if not all(s.exact for s in splits):
        inexact = {s.whole for s in splits if not s.exact}
        steps.append(Index(tuple(Range(None, d.hi) if d in inexact else ALL for d in dims)))
    return body.with_steps(value, steps, dims)


def _remainders(node: Expr, scope: Scope) -> Iterator[_Remainder]:
    """The dimensions among whose remainders ``node`` chooses, then those that what it chooses first chooses among."""
    taken: set[Axis] = set()
    while (found := _chain(node, scope)) is not None and found[0][0] not in taken:
        (dim, base), branches = found
        if any(isinstance(branch, Const) for branch in branches) or not any(
            is_index(index) and _divided(index, dim, base, scope)
            for branch in branches
            for index in _indices(branch)
        ):
            return
        taken.add(dim)
        yield dim, base
        node = branches[0]


def _chain(node: Expr, scope: Scope) -> tuple[_Remainder, list[Expr]] | None:
    """A choice of one branch for each remainder of a dimension, in any order; the last one may be for all others."""
    own: _Remainder | None = None
    branches: dict[int, Expr] = {}
    while isinstance(node, Call) and node.op is SELECT:
        parts = split_conditions(node.args[0], scope)
        found = residue_of(parts[0], scope) if parts is not None and len(parts) == 1 else None
        if found is None or (own is not None and not identical(found[:2], own)):
            break
        own, position = found[:2], found[2]
        branches.setdefault(position, node.args[1])
        node = node.args[2]
    if own is None or not 1 < own[1] <= MOST_TERMS or len(branches) < own[1] - 1:
        return None
    return own, [*branches.values(), node]


def _indices(branch: Expr) -> Iterator[Expr]:
    for read in reads_of(branch):
        yield from read.indices


def _divided(index: Expr, dim: Axis, base: int, scope: Scope) -> bool:
    """Whether ``index`` has the quotient of ``dim``, without which a mask on whole arrays is as good."""
    found = divisions(scope.index(index))
    return any(isinstance(d, Quotient) and d.number is dim and d.base == base for d in found)


KEPT = "written into what it keeps"


@dataclass(frozen=True)
class KeptAround:
    """What is computed over ``scope``, from ``start`` on in each dimension, and ``around``, which it is written into."""

    taken: Expr
    around: Read
    scope: Scope
    start: tuple[int, ...]


def kept_around(root: Expr, own: Assignment, dtype: str, scope: Scope) -> KeptAround | None:
    """How ``root``, a body over ``scope``, is written into an array that it keeps; None where it keeps none, or more than it computes."""
    if not own.in_tiles or not isinstance(root, Call) or root.op is not SELECT:
        return None
    condition, taken, around = root.args
    if not isinstance(around, Read) or not _is_whole(around, own.axes, dtype):
        return None
    if taken.reduces or reads_data(taken):
        return None
    boxes = _boxes(split_conditions(condition, scope) or (), scope)
    if not boxes:
        return None
    inner = scope
    counts = {axis: known(axis.hi) or 0 for axis in own.axes}
    every = prod(counts.values())
    for dim, box in boxes.items():
        counts[dim] = known(box.count) or 0
        inner, _ = inner.restrict(dim, from_linear(box.start), 1, box.count)
    # The share of the elements that is computed.
    if HALVED * prod(counts.values()) < every or not all(is_inside(r, inner) for r in reads_of(taken)):
        return None
    start = tuple(boxes[a].start.constant if a in boxes else 0 for a in own.axes)
    return KeptAround(taken, around, inner, start)


def _is_whole(read: Read, axes: Sequence[Axis], dtype: str) -> bool:
    """Whether ``read`` is of the element that is computed, of an array of the same shape and dtype."""
    shape = [known(a.hi) for a in axes]
    return (
        bool(axes)
        and None not in shape
        and identical(tuple(read.indices), tuple(axes))
        and list(read.tensor.shape) == shape
        and read.dtype == dtype
    )


def _boxes(parts: Sequence[Expr], scope: Scope) -> dict[Axis, Box] | None:
    """The slice of each dimension that conditions leave; None where one of them says anything else."""
    found: dict[Axis, Box] = {}
    for part in parts:
        box = box_of(part, scope)
        met = box if box is None or box.dim not in found else intersect(found[box.dim], box)
        if met is None or met.step != 1 or not known(met.count) or not met.start.is_constant:
            return None
        found[met.dim] = met
    return found


def write_into(body: Body, found: KeptAround, dtype: str) -> None:
    """Assigns the tensor of ``dtype``."""
    body.report.note(KEPT)
    value = body.typed(body.evaluate(found.taken, found.scope), dtype)
    part = body.full(value, found.scope.order)
    body.assign(body.target, Updated(body.tensor(found.around.tensor), part, found.start))
