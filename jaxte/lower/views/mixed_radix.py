"""Axes in digits: ``i`` as ``base * q + r``, where an index has the quotient and the remainder apart.

The read of a pixel shuffle, ``X[n, 4*c + 2*(i % 2) + j % 2, i // 2, j // 2]``, is over the digits of ``i`` and ``j`` nothing but
``X[n, 4*c + 2*ri + rj, qi, qj]``: a reshape, a transposition, and a reshape that puts the digits together again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jaxte.lang.divisions import Division, divisions
from jaxte.lang.expr import Axis, Const, Expr
from jaxte.lang.identity import among, place_of
from jaxte.lower.arrays.steps import ALL, Index, Range, Repeat, Reshape, Step, Tile
from jaxte.lower.code.spec import Refusal
from jaxte.lower.code.vocabulary import View
from jaxte.lower.limits import FEW_POSITIONS
from jaxte.lower.views.affine import lift
from jaxte.lower.views.one_axis import join_digits
from jaxte.lower.views.view import reorder
from jaxte.sets.affine import from_linear, linear
from jaxte.sets.intervals import dims_of, known, plus
from jaxte.sets.resolved import simplify


@dataclass(frozen=True, slots=True)
class Digits:
    """``whole == extent of low * high + low``."""

    whole: Axis
    high: Axis
    low: Axis

    @property
    def exact(self) -> bool:
        """Whether every pair of digits is a position of the whole."""
        return simplify(self.high.hi * self.low.hi, {}) is simplify(self.whole.hi + 0, {})


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
        for dim, base in _divisions(index):
            found.setdefault(dim, set()).add(base)
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


def _divisions(index: Expr) -> Iterator[tuple[Axis, int]]:
    for found in divisions(index):
        match found:
            case Division(Axis() as dim, int() as base):
                yield dim, base


def digits_of(dim: Axis, base: int, shift: int = 0) -> tuple[Axis, Axis, Expr]:
    """Quotient and remainder of ``dim + shift`` as dimensions, and ``dim`` in terms of them."""
    count = from_linear(linear((plus(dim.hi, shift) + (base - 1)) // base))
    q, r = Axis(dim.name, 0, count), Axis(dim.name, 0, base)
    return q, r, base * q + r - shift


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
        own, dims = joined(dims, split.whole, (split.high, split.low))
        steps += own
    return View(tuple(steps), dims)


def _is_whole(digit: Axis, dims: Sequence[Axis], splits: Sequence[Digits]) -> bool:
    """Whether a digit is a dimension, or made of ones."""
    return among(digit, dims) or any(s.whole is digit for s in splits)


def joined(
    dims: Sequence[Axis], dim: Axis, digits: tuple[Axis, Axis], shift: int = 0
) -> tuple[list[Step], tuple[Axis, ...]]:
    """The steps from an array over the digits of ``dim`` to one over ``dim``, and its dimensions."""
    q, r = digits
    own = tuple(d for d in (q, r) if among(d, dims))
    if not own:
        return [], tuple(dims)
    position = min(place_of(d, dims) for d in own)
    before = tuple(d for d in dims[:position] if not among(d, own))
    after = tuple(d for d in dims[position:] if not among(d, own))
    steps: list[Step] = list(reorder(tuple(dims), (*before, *own, *after)))
    around = [d.hi for d in before], [d.hi for d in after]
    steps += [lift(step, len(before), len(after), *around) for step in join_digits(own, q, r)]
    stop = plus(dim.hi, shift)
    if shift or stop is not simplify(q.hi * r.hi, {}):
        entry = Range(Const(shift) if shift else None, stop)
        steps.append(Index((ALL,) * len(before) + (entry,) + (ALL,) * len(after)))
    return steps, (*before, dim, *after)
