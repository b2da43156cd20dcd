"""Axes in digits: ``i`` as ``base * q + r``, where an index has the quotient and the remainder apart.

The read of a pixel shuffle, ``X[n, 4*c + 2*(i % 2) + j % 2, i // 2, j // 2]``, is over the digits of ``i`` and ``j`` nothing but
``X[n, 4*c + 2*ri + rj, qi, qj]``: a reshape, a transposition, and a reshape that puts the digits together again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from jaxte.lang.divisions import Division, divisions
from jaxte.lang.expr import Axis, Expr
from jaxte.lang.graphs import among, place_of
from jaxte.lang.limits import FEW_POSITIONS
from jaxte.lower.arrays.views import Repeat, Reshape, Step, Tile, Transpose
from jaxte.lower.code.spec import Refusal
from jaxte.lower.code.vocabulary import View
from jaxte.lower.views.affine import lift, reorder, slice_steps
from jaxte.sets.affine import from_linear, linear
from jaxte.sets.intervals import constant, dims_of, known, plus, times
from jaxte.sets.resolved import simplify


@dataclass(frozen=True, slots=True)
class Digits:
    """``whole + shift == base * high + low``, where ``low`` takes as many values as the base has."""

    whole: Axis
    high: Axis
    low: Axis
    shift: int = 0

    @property
    def meaning(self) -> Expr:
        """The whole in terms of its digits."""
        return self.low.hi * self.high + self.low - self.shift

    @property
    def count(self) -> Expr:
        """How many numbers have these two digits."""
        found = times(self.high.hi, self.low.hi)
        assert found is not None  # the base is a number
        return found

    @property
    def exact(self) -> bool:
        """Whether every pair of digits is a position of the whole."""
        return simplify(self.count, {}) is simplify(self.whole.hi + 0, {})

    def among(self, dims: Sequence[Axis]) -> tuple[Axis, ...]:
        """Those of the two that are in ``dims``, in the order in which they stand there."""
        return tuple(d for d in dims if d is self.high or d is self.low)

    def joined(self, dims: Sequence[Axis]) -> tuple[list[Step], tuple[Axis, ...]]:
        """The steps from an array over the digits to one over the whole, and its dimensions."""
        own = self.among(dims)
        if not own:
            return [], tuple(dims)
        position = min(place_of(d, dims) for d in own)
        before = tuple(d for d in dims[:position] if not among(d, own))
        after = tuple(d for d in dims[position:] if not among(d, own))
        around = [d.hi for d in before], [d.hi for d in after]
        stop = linear(plus(self.whole.hi, self.shift)) - constant(1)
        steps = (*self._as_one(own), *slice_steps(self.count, constant(self.shift), stop, 1))
        lifted = (lift(step, len(before), len(after), *around) for step in steps)
        return [*reorder(tuple(dims), (*before, *own, *after)), *lifted], (*before, self.whole, *after)

    def _as_one(self, own: tuple[Axis, ...]) -> tuple[Step, ...]:
        """The steps from an array over ``own``, one or both of the digits, to one over the numbers that have them."""
        match own:
            case (first, _):
                swap = (Transpose((1, 0)),) if first is self.low else ()
                return (*swap, Reshape((self.count,)))
            case (only,) if only is self.high:
                return (Repeat(0, self.low.hi),)
            case _:
                return (Tile(0, self.high.hi),)


def digits_of(dim: Axis, base: int, shift: int = 0) -> Digits:
    """Quotient and remainder of ``dim + shift`` as dimensions."""
    count = from_linear(linear((plus(dim.hi, shift) + (base - 1)) // base))
    return Digits(dim, Axis(dim.name, 0, count), Axis(dim.name, 0, base), shift)


def is_roundabout(found: View | Refusal) -> bool:
    """Whether there is no view, or one that copies elements before it picks among the copies."""
    return isinstance(found, Refusal) or any(isinstance(step, (Tile, Repeat)) for step in found.steps)


def digits_wanted(indices: Sequence[Expr]) -> tuple[Axis, int] | None:
    """A dimension that stands divided beside other dimensions, or in two indices, and the base of its digits."""
    found: dict[Axis, set[int]] = {}
    places: dict[Axis, int] = {}
    for index in indices:
        dims = dims_of(index)
        for dim in dims:
            places[dim] = places.get(dim, 0) + max(1, len(dims) - 1)
        for own, _ in _divided(index):
            if not own.shift:
                found.setdefault(own.dim, set()).add(own.base)
    for dim, bases in found.items():
        base = max(bases)
        if places[dim] > 1 and all(base % other == 0 for other in bases):
            return dim, base
    return None


def frames_wanted(indices: Sequence[Expr]) -> tuple[Axis, int] | None:
    """A dimension of frames that overlap, ``k`` in ``X[16 * f + k]``, and how far apart they begin, which divides it into a few parts.

    Over its digits the read is ``X[16 * (f + q) + r]``: for each ``q`` a reshape.
    """
    for index in indices:
        form = linear(index)
        if len(form.terms) != 2 or not all(isinstance(t, Axis) for t in form.terms):
            continue
        (inner, one), (_, apart) = sorted(form.terms.items(), key=lambda t: t[1])
        assert isinstance(inner, Axis)
        size = known(inner.hi)
        if one == 1 < apart and size is not None and size % apart == 0 and 1 < size // apart <= FEW_POSITIONS:
            return inner, apart
    return None


@dataclass(frozen=True, slots=True)
class Divided:
    """A dimension that stands divided: ``(dim + shift) // base`` or ``% base``."""

    dim: Axis
    base: int
    shift: int


@lru_cache(maxsize=4096)  # most indices have no division, and are asked again at each step of a sum
def _divided(index: Expr) -> tuple[tuple[Divided, type[Division]], ...]:
    """What is divided in an index, and whether its quotient or its remainder stands there."""
    parts: list[tuple[Divided, type[Division]]] = []
    for found in divisions(index):
        number = linear(found.number)
        if found.base is not None and len(number.terms) == 1:
            ((dim, coefficient),) = number.terms.items()
            if isinstance(dim, Axis) and coefficient == 1:
                parts.append((Divided(dim, found.base, number.constant % found.base), type(found)))
    return tuple(parts)


def product_digits(
    operands: Sequence[Sequence[Expr]],
    by_data: Sequence[bool],
    reduced: Sequence[Axis],
    order: Sequence[Axis],
) -> Divided | None:
    """A dimension of the result of a product that stands divided in an index of an operand together with another dimension.

    Or of which one operand reads the quotient (or the remainder) alone and another the other digit or both: over the
    digits none of them is repeated.

    Args:
        operands: the indices of each that are no data.
        by_data: whether data choose what it reads, so that it is not taken apart.
        reduced: the dimensions that are summed over.
        order: all dimensions; an axis of a sum within an operand is none of them.
    """
    if not any(_divided(index) for indices in operands for index in indices):
        return None
    pairs = zip(operands, by_data, strict=True)
    alone = [{} if chosen else _read_alone(indices, reduced) for indices, chosen in pairs]
    for n, own in enumerate(alone):
        others = [m for m in range(len(operands)) if m != n]
        for found, digit in own.items():
            if any(alone[m].get(found) not in (None, digit) for m in others):
                return found
            if reduced and any(found.dim in linear(i).terms for m in others for i in operands[m]):
                return found
    mixed = (index for indices in operands for index in indices if len(dims_of(index)) > 1)
    divided = (found for index in mixed for found, _ in _divided(index) if _shrinks(found, reduced))
    return next((found for found in divided if among(found.dim, order)), None)


def _read_alone(indices: Sequence[Expr], reduced: Sequence[Axis]) -> dict[Divided, type[Division]]:
    """What an operand reads divided of which it reads nothing else: neither the other digit nor the whole dimension."""
    found: dict[Divided, set[type[Division]]] = {}
    whole: set[Expr] = set()
    for index in indices:
        for divided, kind in _divided(index):
            if _shrinks(divided, reduced):
                found.setdefault(divided, set()).add(kind)
        whole |= linear(index).terms.keys()
    return {d: next(iter(kinds)) for d, kinds in found.items() if len(kinds) == 1 and d.dim not in whole}


def _shrinks(found: Divided, reduced: Sequence[Axis]) -> bool:
    """Whether a dimension of the result is longer than its digits: taking others apart, once shifted, would never end."""
    extent = known(found.dim.hi)
    return not among(found.dim, reduced) and (extent is None or found.base < extent)


def together(found: View, order: Sequence[Axis], splits: Sequence[Digits]) -> View:
    """``found``, over the digits in ``splits``, as a view over the whole dimensions."""
    dims = tuple(d for d in order if among(d, found.dims))
    steps: list[Step] = [*found.steps, *reorder(found.dims, dims)]
    if all(s.exact and among(s.low, dims) and _is_whole(s.high, dims, splits) for s in splits):
        for split in reversed(splits):  # one reshape for all of them
            position = place_of(split.high, dims)
            dims = (*dims[:position], split.whole, *dims[position + 2 :])
        return View((*steps, Reshape(tuple(d.hi for d in dims))), dims)
    for split in reversed(splits):
        own, dims = split.joined(dims)
        steps += own
    return View(tuple(steps), dims)


def _is_whole(digit: Axis, dims: Sequence[Axis], splits: Sequence[Digits]) -> bool:
    """Whether a digit is a dimension, or made of ones."""
    return among(digit, dims) or any(s.whole is digit for s in splits)
