"""Axes that are read from another position on: ``X[(i - 3) % 28 // 7, (i - 3) % 7]`` is over ``t = (i - 3) % 28`` nothing but ``X[t // 7, t % 7]``.

So the view is made over ``t``, and the result is rotated. An index need not say that it goes around: what it is at each position decides,
as ``(i - 3) // 7 - 4 * ((i - 3) // 28)`` is ``t // 7`` too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaxte.lang.divisions import divisions
from jaxte.lang.expr import Axis, Expr, Var
from jaxte.lang.graphs import among, place_of
from jaxte.lang.limits import MOST_TERMS, POSITIONS
from jaxte.lang.walk import postorder
from jaxte.lower.arrays.views import ALL, Index, Range, Roll, Step
from jaxte.lower.views.one_axis import nearer_end
from jaxte.sets.affine import Linear, from_linear, linear
from jaxte.sets.intervals import dims_of, known
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
