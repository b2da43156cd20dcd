"""Whether a definition may leave elements of what it reads out: by a condition, or since it has no point that reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxte.lang import dtypes
from jaxte.lang.expr import TRUE, ZERO, Axis, Call, Expr, Read, Reduce, as_expr, call
from jaxte.lang.operators import EQUAL, SELECT
from jaxte.lang.walk import postorder, reads_of, reductions
from jaxte.sets.affine import Linear
from jaxte.sets.domain import IntegerSet
from jaxte.sets.index_forms import is_index, linear_or_none
from jaxte.sets.intervals import known
from jaxte.sets.isl_text import is_decidable
from jaxte.tensors.shapes import Extent, as_extent, same_extent
from jaxte.tensors.tensor import Compute


def leaves_out(reader: Compute) -> bool:
    """Whether ``reader`` may leave elements of a tensor that it reads out: by a condition of any kind, or since it has no point that reads them."""
    body = reader.body
    if any(condition is not TRUE for condition in conditions_in(body)):
        return True
    axes = (*reader.axes, *(a for node in reductions(body) for a in node.axes))
    return not all(_reads_whole(read, axes) for read in reads_of(body) if dtypes.is_inexact(read.dtype))


def conditions_in(body: Expr) -> Iterator[Expr]:
    """What choices in ``body`` are made by, and what decides on the points of its reductions."""
    for node in postorder(body):
        if isinstance(node, Reduce):
            yield node.where
        elif isinstance(node, Call) and node.op is SELECT:
            yield node.args[0]


def _reads_whole(read: Read, axes: Sequence[Axis]) -> bool:
    dims = [*zip(read.indices, read.tensor.shape, strict=True)]
    if len({*read.indices}) == len(dims) and all(_is_along(index, extent) for index, extent in dims):
        return True
    if _goes_step_by_step(read):
        return True
    places = [Axis(f"at{n}", 0, extent) for n, extent in enumerate(read.tensor.shape)]
    at = [call(EQUAL, place, index) for place, index in zip(places, read.indices, strict=True)]
    return all(map(is_decidable, at)) and IntegerSet((*places, *axes), at).covers(places)


def _is_along(index: Expr, extent: Extent) -> bool:
    return isinstance(index, Axis) and index.lo is ZERO and same_extent(as_extent(index.hi), extent)


def _goes_step_by_step(read: Read) -> bool:
    """Whether ``read`` meets every position of each dimension as a sum of axes of its own, as windows and convolutions do: nothing has to be solved."""
    forms = [linear_or_none(index) if is_index(index) else None for index in read.indices]
    terms = [atom for form in forms if form is not None for atom in form.terms]
    if len({*terms}) != len(terms):
        return False
    extents = (known(as_expr(extent)) for extent in read.tensor.shape)
    return all(
        form is not None and extent is not None and _meets_all(form, extent)
        for form, extent in zip(forms, extents, strict=True)
    )


def _meets_all(form: Linear, extent: int) -> bool:
    """Whether ``form`` takes all values from 0 to the last position: each coefficient is at most one more than what those below it reach."""
    low, width = form.constant, 0
    for axis, coefficient in sorted(form.terms.items(), key=lambda term: abs(term[1])):
        if not isinstance(axis, Axis) or axis.given is not TRUE or axis.ends != (None, None):
            return False
        first, end = known(axis.lo), known(axis.hi)
        if first is None or end is None or first >= end or abs(coefficient) > width + 1:
            return False
        low += min(coefficient * first, coefficient * (end - 1))
        width += abs(coefficient) * (end - 1 - first)
    return low <= 0 and low + width >= extent - 1
