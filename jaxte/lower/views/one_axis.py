"""One index expression on one dimension of a tensor as slices, pads and reshapes.

``axis_view(extent, index)`` gives steps on a one-dimensional array of ``extent`` elements that bring about the
array ``V[dims] = T[index]``. Positions outside of the tensor hold zeros. The forms, in order:

- one dimension, ``o + s * i``: a slice, with a stride or reversed, padded where it leaves the tensor;
- several dimensions that count like digits, ``12 * i + 4 * j + k``: a slice and a reshape;
- several dimensions that overlap, ``i + k``: the slice laid out once for each ``k`` and sheared by a reshape of rows that
  are one element longer than the slice;
- ``//`` and ``%`` of one dimension: that dimension in two digits, put together again by repeat, tile or reshape;
- ``//``, ``%``, ``minimum``, ``maximum`` of several dimensions: the same over their affine combination, then the forms above.

Indices that add up the digits of a dimension, some of them turned or in another order, are a reshape, reversals and a transposition:

    x[i ^ 4]              is    x.reshape(-1, 2, 4)[:, ::-1].reshape(n)
    x[i ^ (n - 1)]        is    x[::-1]
    x[8 * (i % 4) + i // 4]    is    x.reshape(4, 8).T.reshape(32)

However such an index is spelled, by operations on bits, remainders or quotients of negatives, its values say what it is: in a number system of
several bases each digit counts for the same everywhere. Which system that is follows from the first positions, and all others are compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import gcd

import numpy as np

from jaxte.lang.divisions import Division, division, divisions
from jaxte.lang.expr import ONE, Axis, Call, Const, Expr, Var, as_expr
from jaxte.lang.graphs import among, identical, place_of
from jaxte.lang.limits import LEVELS, MOST_LAID_OUT, NESTED
from jaxte.lang.text import text
from jaxte.lang.walk import all_of, free_axes, postorder
from jaxte.lower.arrays.views import Pad, Repeat, Reshape, Roll, Step, Tile, Transpose
from jaxte.lower.code.spec import Refusal
from jaxte.lower.code.vocabulary import View
from jaxte.lower.views.affine import affine_view, fetch, lift, reorder, slice_steps
from jaxte.lower.views.mixed_radix import Digits, digits_of
from jaxte.sets.affine import from_linear, linear
from jaxte.sets.index_forms import term_of
from jaxte.sets.intervals import constant, dims_of, highest, known, lowest, same
from jaxte.sets.linear import Linear
from jaxte.sets.piecewise_affine import of_number
from jaxte.sets.resolved import simplify
from jaxte.sets.tabulate import values_along


@dataclass(frozen=True, slots=True)
class Digit:
    """How many values a digit has, and what one of it counts for in the index."""

    extent: int
    step: int


def turned_view(extent: Expr, index: Expr, dim: Axis) -> View | None:
    """The array ``T[index]`` over ``dim``, for a ``T`` with ``extent`` elements; None where the index is no sum of digits, each counted otherwise, or needs zeros or copies."""
    digits = digits_of_values(index, dim)
    if digits is None or known(extent) is None:
        return None
    first, found = digits
    half = (known(dim.hi) or 0) // 2
    if (first, *found) == (half, Digit(half, 1), Digit(2, -half)) and same(extent, dim.hi):
        return View((Roll((half,)),), (dim,))  # halves change places
    if not 1 < len(found) <= LEVELS or any(d.step == 0 for d in found):
        return None
    dims = [Axis(dim.name, 0, d.extent) for d in reversed(found)]
    form = Linear({a: d.step for a, d in zip(dims, reversed(found), strict=True)}, first)
    view = affine_view(extent, form)
    if isinstance(view, Refusal) or any(isinstance(step, (Pad, Tile)) for step in view.steps):
        return None
    order = tuple(place_of(d, view.dims) for d in dims)
    turned = () if order == tuple(range(len(order))) else (Transpose(order),)
    return View((*view.steps, *turned, Reshape((dim.hi,))), (dim,))


@lru_cache(maxsize=1024)
def ends_of_values(index: Expr) -> tuple[int, int] | None:
    """The least and the greatest value of an index with divisions of one axis; None for any other."""
    axes = list(free_axes(index))
    values = values_along(index, axes[0]) if len(axes) == 1 and divisions(index) else None
    return None if values is None or not len(values) else (int(values.min()), int(values.max()))


@lru_cache(maxsize=1024)
def digits_of_values(index: Expr, dim: Axis) -> tuple[int, tuple[Digit, ...]] | None:
    """The value of ``index`` at 0 and the digits of ``dim`` that it adds up, the least first; None where it is no such sum."""
    values = values_along(index, dim)
    if values is None or not len(values):
        return None
    first, digits = int(values[0]), []
    while len(values) > 1:
        step = int(values[1] - values[0])
        breaks = np.flatnonzero(np.diff(values) != step)
        run = int(breaks[0]) + 1 if len(breaks) else len(values)
        rows = values.reshape(-1, run) if len(values) % run == 0 else None
        if rows is None or np.any(rows != rows[:, :1] + step * np.arange(run)):
            return None
        digits.append(Digit(run, step))
        values = rows[:, 0]
    return first, tuple(digits)


@lru_cache(maxsize=4096)  # the taps of a window share the views of its rows and columns
def axis_view(extent: Expr, index: Expr, depth: int = 0, order: tuple[Axis, ...] = ()) -> View | Refusal:
    """The array ``T[index]`` over the dimensions in ``index``, for a ``T`` with ``extent`` elements; ``order`` as in ``view``."""
    form = linear(index)
    atoms = [a for a in form.terms if isinstance(a, Call) and dims_of(a)]
    if not atoms:
        rows = {d: form.terms[d] for d in reversed(order) if d in form.terms}
        rest = {a: c for a, c in form.terms.items() if a not in rows}
        return affine_view(extent, Linear(rest | rows, form.constant))
    if depth >= NESTED:
        return Refusal(f"`{text(index)}` divides too often")
    turned = turned_view(extent, index, dims_of(index)[0]) if len(dims_of(index)) == 1 else None
    if turned is not None:
        return turned
    divided = _single_division(index)
    if divided is not None:
        return _in_digits(extent, index, divided, depth)
    dims = dims_of(index)
    if len(dims) == 1 and any(_is_extremum(n) for n in postorder(index)):
        return _clamped(extent, index, dims[0])
    return _through_combination(extent, index, atoms[0], depth)


# --- quasi-affine


def _in_digits(extent: Expr, index: Expr, divided: Division, depth: int) -> View | Refusal:
    """An index with a division of one dimension: ``dim + shift == base * q + r``."""
    numerator = linear(divided.number)
    divisor = divided.base or 1
    (dim,) = dims_of(from_linear(numerator))
    base = divisor // gcd(divisor, numerator.coefficient(dim))
    factor = numerator.coefficient(dim) * base // divisor
    shift = 0
    if base == divisor and factor in (1, -1):  # so that r, or base - 1 - r, is the remainder
        shift = (numerator.constant if factor == 1 else -1 - numerator.constant) % base
    digits = digits_of(dim, base, shift)
    inner = axis_view(extent, simplify(index, {dim: digits.meaning}), depth + 1)
    if isinstance(inner, Refusal) or not digits.among(inner.dims):
        return inner
    others = tuple(d for d in inner.dims if not among(d, (digits.high, digits.low)))
    order = (*others, *digits.among(inner.dims))
    whole = (*others, dim)
    rotated = _rotation(digits.among(inner.dims), digits)
    joined = [lift(step, len(others), 0) for step in rotated] or digits.joined(order)[0]
    return View((*inner.steps, *reorder(inner.dims, order), *joined), whole)


def _rotation(own: tuple[Axis, ...], digits: Digits) -> tuple[Step, ...]:
    """``(dim + shift) % n`` over ``n`` elements; nothing where it is no rotation."""
    dim, shift = digits.whole, digits.shift
    size = known(dim.hi)
    if not identical(own, (digits.low,)) or digits.low.hi is not dim.hi or size is None:
        return ()
    return (Roll((nearer_end(shift, size),)),) if 0 < shift < size else ()


def nearer_end(shift: int, size: int) -> int:
    """The start of a rotation, counted from the end of the dimension where that is nearer."""
    return shift if 2 * shift <= size else shift - size


def _single_division(index: Expr) -> Division | None:
    """The first division in an index whose numerator is one dimension, with a coefficient and a number."""
    for found in divisions(index):
        terms = list(linear(found.number).terms)
        if len(terms) == 1 and isinstance(terms[0], Axis):
            return found
    return None


def _clamped(extent: Expr, index: Expr, dim: Axis) -> View | Refusal:
    """An index of one dimension that is held at its ends: a slice with these repeated, whatever minima and maxima it is written with."""
    values = values_along(index, dim)
    if values is None or known(extent) is None or not len(values):
        return Refusal(f"`{text(index)}` is held at the ends of a dimension of symbolic size, or of none")
    ends, count = (int(values[0]), int(values[-1])), len(values)
    steps = np.diff(values)
    kinds, often = np.unique(steps[steps != 0], return_counts=True)
    if not len(kinds):
        taken = fetch(extent, constant(ends[0]), 1, ONE)
        return taken if isinstance(taken, Refusal) else View((*taken, Repeat(0, dim.hi)), (dim,))
    stride = int(kinds[often.argmax()])
    somewhere = int((steps == stride).argmax())
    start = int(values[somewhere]) - stride * somewhere
    low, high = min(ends), max(ends)
    if np.any(values != np.clip(start + stride * np.arange(count), low, high)):
        return Refusal(f"`{text(index)}` is not one slice with its ends repeated")
    before, after = (int(np.count_nonzero(values == end)) - 1 for end in ends)
    if ends[1] - ends[0] != stride * (count - 1 - before - after):
        return _of_continued(extent, index, dim, Linear({dim: stride}, start), (low, high))
    held = fetch(extent, constant(ends[0]), stride, as_expr(count - before - after))
    if isinstance(held, Refusal):
        return held
    return View((*held, Pad(((as_expr(before), as_expr(after)),), "edge")), (dim,))


def _of_continued(
    extent: Expr, index: Expr, dim: Axis, form: Linear, ends: tuple[int, int]
) -> View | Refusal:
    """``form`` of ``dim``, held at ``ends`` that its steps do not meet: every ``stride``-th element of a slice whose ends are repeated first."""
    (low, high), stride, start = ends, form.coefficient(dim), form.constant
    # Elements that are copied for each that is read, at most.
    if not 1 < abs(stride) <= MOST_LAID_OUT or not 0 <= low <= high < (known(extent) or 0):
        return Refusal(
            f"`{text(index)}` is not one slice with its ends repeated, and copies {abs(stride)} elements for each of its"
        )
    last = start + stride * ((known(dim.hi) or 0) - 1)
    before, after = max(0, low - min(start, last)), max(0, max(start, last) - high)
    width = before + (high + 1 - low) + after
    begin = start - low + before
    return View(
        (
            *slice_steps(extent, constant(low), constant(high), 1),
            Pad(((as_expr(before), as_expr(after)),), "edge"),
            *slice_steps(as_expr(width), constant(begin), constant(begin + last - start), stride),
        ),
        (dim,),
    )


def _through_combination(extent: Expr, index: Expr, atom: Expr, depth: int) -> View | Refusal:
    """An index that depends on its dimensions through one affine combination: first a view over its values."""
    mixed = Refusal(f"`{text(index)}` mixes dimensions in a way that no view has")
    combination = _combination(atom)
    if combination is None:
        return mixed
    low, high = lowest(combination), highest(combination)
    if low is None or high is None:
        return Refusal(f"`{text(index)}` has no bounds")
    count = from_linear(high - low + constant(1))
    outer = of_number(index, combination - low, Axis("m", 0, count))
    if outer is None:
        return mixed
    first = axis_view(extent, simplify(outer, {}), depth + 1)
    second = affine_view(count, combination - low)
    if isinstance(first, Refusal) or isinstance(second, Refusal):
        return first if isinstance(first, Refusal) else second
    if not first.dims:  # (m % 2 + 1) // 2 - m % 2 is 0 for every m
        return first
    return View((*first.steps, *second.steps), second.dims)


def _combination(atom: Expr) -> Linear | None:
    """The innermost affine combination of several dimensions that a quasi-affine atom is made of."""
    for node in all_of(Call, atom):
        if division(node) is not None or _is_extremum(node):
            form = linear(node.args[0])
            if any(isinstance(a, Call) for a in form.terms):
                continue
            if isinstance(node.args[1], Const) or not _is_extremum(node):
                inner = form
            else:
                inner = form - linear(node.args[1])
            dims: dict[Expr, int] = {a: c for a, c in inner.terms.items() if isinstance(a, Axis)}
            if len(dims) > 1 and all(isinstance(a, (Axis, Var)) for a in inner.terms):
                return term_of(Linear(dims))[0].form
    return None


def _is_extremum(node: Expr) -> bool:
    return isinstance(node, Call) and node.op.name in ("minimum", "maximum")
