"""Axes that are read from another position on: ``X[(i - 3) % 28 // 7, (i - 3) % 7]`` is over ``t = (i - 3) % 28`` nothing but ``X[t // 7, t % 7]``.

So the view is made over ``t``, and the result is rotated. An index need not say that it goes around: what it is at each position decides,
as ``(i - 3) // 7 - 4 * ((i - 3) // 28)`` is ``t // 7`` too.

Reads whose indices share axes, ``h[i + j, i]``: slices of the tensor laid out flat, where none is copied many times.

In row-major order ``h[i, i + j]`` is the element ``i * n + i + j == (n + 1) * i + j`` of the flat tensor: rows of ``n + 1``
elements, of which the first ones are taken. Where an index leaves the tensor, ``h[i, j - i]``, zeros are put around it first. Which dimensions come first decides on what is copied, so all orders are tried.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from jaxte.lang.divisions import divisions
from jaxte.lang.expr import ZERO, Axis, Expr, Var, as_expr
from jaxte.lang.graphs import among, place_of
from jaxte.lang.limits import FEW_ELEMENTS, MOST_LAID_OUT, MOST_TERMS, ORDERED, POSITIONS
from jaxte.lang.walk import postorder
from jaxte.lower.arrays.views import (
    ALL,
    Index,
    Pad,
    Range,
    Repeat,
    Reshape,
    Roll,
    Step,
    Tile,
    Transpose,
    shape_after,
)
from jaxte.lower.code.spec import Refusal
from jaxte.lower.code.vocabulary import View
from jaxte.lower.views.affine import affine_view
from jaxte.lower.views.one_axis import nearer_end
from jaxte.sets.affine import from_linear, linear
from jaxte.sets.intervals import constant, dims_of, known, reach
from jaxte.sets.linear import Linear
from jaxte.sets.resolved import simplify
from jaxte.sets.tabulate import values_at

ROTATIONS = "rotations"


@dataclass(frozen=True, slots=True)
class Rotation:
    """``dim == meaning`` where ``own`` is ``(sign * dim + shift) % extent``, as far as the indices tell positions apart."""

    dim: Axis
    own: Axis
    meaning: Expr
    sign: int
    shift: int

    def of(self, index: Expr) -> Expr:
        """``index`` over ``own``."""
        return simplify(index, {self.dim: self.meaning})

    def undone(self, dims: Sequence[Axis]) -> tuple[list[Step], tuple[Axis, ...]]:
        """The steps from an array over ``own`` to one over ``dim``, and its dimensions; none where it is the same everywhere along it."""
        if not among(self.own, dims):
            return [], tuple(dims)
        at = place_of(self.own, dims)
        before, after = at, len(dims) - at - 1
        size, steps = known(self.dim.hi) or 1, list[Step]()
        if self.sign < 0:
            steps.append(Index((ALL,) * before + (Range(None, None, -1),) + (ALL,) * after))
        shift = self.shift % size if self.sign > 0 else (-self.shift - 1) % size
        if shift:
            steps.append(Roll((0,) * before + (nearer_end(shift, size),) + (0,) * after))
        return steps, (*dims[:at], self.dim, *dims[at + 1 :])


def rotation_of(indices: Sequence[Expr]) -> Rotation | None:
    """A dimension that stands in quotients of ``shift + dim`` or ``shift - dim``, over which the indices are simpler; None if there is none."""
    for dim in dict.fromkeys(d for index in indices for d in dims_of(index)):
        size = known(dim.hi)
        if size is None or not 1 < size <= POSITIONS:
            continue
        own_shifts = [(i, s) for i in indices for s in _shifts(i, dim, size)]
        first = [s for _, s in own_shifts]
        for sign, shift in dict.fromkeys([*first, *(o for i, s in own_shifts for o in _others(*s, i, size))]):
            own = Axis(dim.name, 0, dim.hi)
            found = Rotation(dim, own, own - shift if sign > 0 else shift - own, sign, shift)
            if _is_rotation(indices, found, size):
                return found
    return None


def _shifts(index: Expr, dim: Axis, size: int) -> list[tuple[int, int]]:
    """The signs of ``dim`` and the numbers that are added to it before it is divided, but for ``dim`` itself."""
    found: list[tuple[int, int]] = []
    for divided in divisions(index):
        form = linear(divided.number)
        sign, shift = form.coefficient(dim), form.constant % size
        if abs(sign) == 1 == len(form.terms) and (sign, shift) != (1, 0):
            found.append((sign, shift))
    return found


def _others(sign: int, shift: int, index: Expr, size: int) -> list[tuple[int, int]]:
    """The same with multiples of what is divided by added: digits may be counted from any of these on."""
    divisors = [known(d.divisor) or size for d in divisions(index)]
    steps = [d for d in dict.fromkeys(divisors) if size % d == 0 and size // d <= MOST_TERMS]
    return [(sign, (shift + n * d) % size) for d in steps for n in range(size // d)]


def _is_rotation(indices: Sequence[Expr], found: Rotation, size: int) -> bool:
    """Whether every index is over ``own``, with the shift left out, what it is over ``dim``."""
    for index in indices:
        form = linear(index)
        parts = {a: c for a, c in form.terms.items() if among(found.dim, dims_of(a))}
        part = from_linear(Linear(parts))
        if not parts:
            continue
        if any(isinstance(node, Var) for node in postorder(part)):
            return False
        if len(dims_of(part)) != sum(1 for node in dims_of(part) if node is found.dim):
            return False
        new = found.of(part)
        if _shifts(new, found.own, size):
            return False
        at = np.arange(size)
        turned = (found.sign * at + found.shift) % size
        if np.any(values_at(part, {found.dim: at}) != values_at(new, {found.own: turned})):
            return False
    return True


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


def elements_copied(steps: Sequence[Step], shape: Sequence[Expr]) -> list[int]:
    """The elements of each array that ``steps`` copy on their way from one of ``shape``; 0 where sizes are symbolic."""
    copied: list[int] = []
    now = tuple(shape)
    for step in steps:
        now = shape_after(step, now)
        if isinstance(step, (Pad, Repeat, Roll, Tile, Transpose)):
            sizes = [known(e) for e in now]
            copied.append(0 if None in sizes else prod(s or 0 for s in sizes))
    return copied
