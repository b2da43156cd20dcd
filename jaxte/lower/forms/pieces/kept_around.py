"""The inside of an array computed anew, and the rest kept: ``select(1 <= i < n - 1, ..., B[i])``, where a step of a loop makes ``B`` of the ``B`` before it.

What is computed is written into the array that it keeps, which XLA does in place: the array that a loop carries has no other use. So each element of the inside is computed
by slices, and none of the others is touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from jaxte.lang.expr import Axis, Call, Expr, Read
from jaxte.lang.identity import identical
from jaxte.lang.operators import SELECT
from jaxte.lang.walk import reads_data, reads_of
from jaxte.lower.arrays.data import Updated
from jaxte.lower.body.assignment import Assignment
from jaxte.lower.body.evaluator import Body
from jaxte.lower.views.condition_box import Box, box_of, intersect, split_conditions
from jaxte.lower.views.scope import Scope, is_inside
from jaxte.sets.affine import from_linear
from jaxte.sets.intervals import known

KEPT = "written into what it keeps"
_LEAST_INSIDE = 0.5  # the share of the elements that is computed


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
    if prod(counts.values()) < _LEAST_INSIDE * every or not all(is_inside(r, inner) for r in reads_of(taken)):
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
