"""Reads whose indices share axes, ``h[i + j, i]``: slices of the tensor laid out flat, where none is copied many times.

In row-major order ``h[i, i + j]`` is the element ``i * n + i + j == (n + 1) * i + j`` of the flat tensor: rows of ``n + 1``
elements, of which the first ones are taken. Which dimensions come first decides on what is copied, so all orders are tried.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import prod

from jaxte.lang.expr import Axis, Expr, as_expr
from jaxte.lower.arrays.steps import Reshape, Step, Transpose
from jaxte.lower.code.spec import Refusal
from jaxte.lower.code.vocabulary import View
from jaxte.lower.views.affine import affine_view
from jaxte.sets.affine import Linear, linear
from jaxte.sets.intervals import constant, dims_of, known, stays_in

_MOST_DIMENSIONS = 4  # all orders of which are tried
_MOST_COPIES = 8  # elements made for each one that is read or returned
_ALWAYS = 4096  # elements that are made whatever they are for


def shares_axes(indices: Sequence[Expr]) -> bool:
    """Whether an axis stands in more than one index."""
    dims = [d for index in indices for d in set(dims_of(index))]
    return len(set(dims)) < len(dims)


def flat_views(shape: Sequence[Expr], indices: Sequence[Expr]) -> list[View]:
    """Views of the flat tensor for affine ``indices`` in range, one for each order of its dimensions that has one."""
    extents = [known(e) for e in shape]
    forms = [linear(i) for i in indices]
    if None in extents or len(shape) > _MOST_DIMENSIONS or not all(map(_in_range, forms, shape)):
        return []
    found: list[View] = []
    for order in itertools.permutations(range(len(shape))):
        flat = constant(0)
        for n in order:
            flat = flat * (extents[n] or 0) + forms[n]
        whole = affine_view(as_expr(prod(e or 0 for e in extents)), flat)
        if not isinstance(whole, Refusal):
            turned: tuple[Step, ...] = () if list(order) == sorted(order) else (Transpose(order),)
            reshaped = Reshape((as_expr(prod(e or 0 for e in extents)),))
            found.append(View((*turned, reshaped, *whole.steps), whole.dims))
    return found


def _in_range(form: Linear, extent: Expr) -> bool:
    return all(isinstance(a, Axis) for a in form.terms) and stays_in(form, extent)


def is_worth_making(found: View, shape: Sequence[Expr], made: int) -> bool:
    """Whether the ``made`` elements of a view are not many times those that it reads and returns."""
    sizes = [known(e) for e in (*shape, *(d.hi for d in found.dims))]
    if None in sizes:
        return True
    read, returned = prod(s or 0 for s in sizes[: len(shape)]), prod(s or 0 for s in sizes[len(shape) :])
    return made <= max(_ALWAYS, _MOST_COPIES * max(read, returned))
