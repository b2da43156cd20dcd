"""Reads whose indices share axes, ``h[i + j, i]``: slices of the tensor laid out flat, where none is copied many times.

In row-major order ``h[i, i + j]`` is the element ``i * n + i + j == (n + 1) * i + j`` of the flat tensor: rows of ``n + 1``
elements, of which the first ones are taken. Where an index leaves the tensor, ``h[i, j - i]``, zeros are put around it first. Which dimensions come first decides on what is copied, so all orders are tried.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import prod

from jaxte.lang.expr import ZERO, Axis, Expr, as_expr
from jaxte.lang.limits import FEW_ELEMENTS, MOST_LAID_OUT, ORDERED
from jaxte.lower.arrays.views import Pad, Repeat, Reshape, Roll, Step, Tile, Transpose, shape_after
from jaxte.lower.code.spec import Refusal
from jaxte.lower.code.vocabulary import View
from jaxte.lower.views.affine import affine_view
from jaxte.sets.affine import Linear, linear
from jaxte.sets.intervals import constant, dims_of, known, reach


def shares_axes(indices: Sequence[Expr]) -> bool:
    """Whether an axis stands in more than one index."""
    dims = [d for index in indices for d in set(dims_of(index))]
    return len(set(dims)) < len(dims)


def flat_views(shape: Sequence[Expr], indices: Sequence[Expr]) -> list[View]:
    """Views of the flat tensor for affine ``indices``, one for each order of its dimensions that has one; zeros out of range."""
    forms = [linear(i) for i in indices]
    inside = _inside(shape, forms)
    if inside is None or len(shape) > ORDERED:
        return []
    padded, extents, forms = inside
    found: list[View] = []
    for order in itertools.permutations(range(len(shape))):
        flat = constant(0)
        for n in order:
            flat = flat * extents[n] + forms[n]
        whole = affine_view(as_expr(prod(extents)), flat)
        if not isinstance(whole, Refusal):
            turned: tuple[Step, ...] = () if list(order) == sorted(order) else (Transpose(order),)
            found.append(
                View((*padded, *turned, Reshape((as_expr(prod(extents)),)), *whole.steps), whole.dims)
            )
    return found


def _inside(
    shape: Sequence[Expr], forms: Sequence[Linear]
) -> tuple[tuple[Step, ...], list[int], list[Linear]] | None:
    """Zeros around the tensor so that no index leaves it, the extents that it has then, and the indices in it."""
    widths, extents, moved = [], [], []
    for extent, form in zip(map(known, shape), forms, strict=True):
        ends = reach(form) if all(isinstance(a, Axis) for a in form.terms) else None
        if extent is None or ends is None:
            return None
        before, after = max(0, -ends[0]), max(0, ends[1] + 1 - extent)
        widths.append((as_expr(before), as_expr(after)))
        extents.append(before + extent + after)
        moved.append(form + constant(before))
    around = any(w is not ZERO for pair in widths for w in pair)
    return ((Pad(tuple(widths)),) if around else ()), extents, moved


def is_worth_making(found: View, shape: Sequence[Expr], made: int) -> bool:
    """Whether the ``made`` elements of a view are not many times those that it reads and returns."""
    sizes = [known(e) for e in (*shape, *(d.hi for d in found.dims))]
    if None in sizes:
        return True
    read, returned = prod(s or 0 for s in sizes[: len(shape)]), prod(s or 0 for s in sizes[len(shape) :])
    return made <= max(FEW_ELEMENTS, MOST_LAID_OUT * max(read, returned))


def elements_made(steps: Sequence[Step], shape: Sequence[Expr]) -> int:
    """The elements of the largest array that ``steps`` copy on their way from one of ``shape``; 0 where sizes are symbolic."""
    most, now = 0, tuple(shape)
    for step in steps:
        now = shape_after(step, now)
        if isinstance(step, (Pad, Repeat, Roll, Tile, Transpose)):
            sizes = [known(e) for e in now]
            most = max(most, 0 if None in sizes else prod(s or 0 for s in sizes))
    return most
