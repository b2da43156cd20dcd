"""Indices that follow one axis at a distance, and those that follow a form of several axes, but not straight.

``i + 2`` and ``(i + 2) % n`` are neighbours of ``i``. ``(2 * i + k) % n`` and ``minimum(maximum(i + k, 0), n - 1)`` are functions of one form,
``t == 2 * i + k`` in the first. Over the values that ``t`` takes such a function is a few straight pieces: the parts of a period, the two held ends
and what is between them, what is reflected and what is not. So it is tabulated: a piece is where it starts and by how much it grows, whatever
the nesting of ``%``, ``minimum`` and ``maximum`` that it is written with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from jaxte.lang.divisions import Quotient, Remainder, division
from jaxte.lang.expr import Axis, Call, Expr, call
from jaxte.lang.limits import CASES, LARGE_TABLE
from jaxte.lang.operators import AND, COMPARISONS, MAXIMUM, MINIMUM, MOD, NOT, OR, SELECT
from jaxte.lang.walk import depends_on, free_axes
from jaxte.sets.affine import from_linear, linear
from jaxte.sets.index_forms import difference, is_index, linear_or_none, term_of
from jaxte.sets.intervals import dims_of, reach
from jaxte.sets.linear import Linear
from jaxte.sets.tabulate import tabulated


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The position at a distance from ``axis``.

    Attributes:
        period: after how many positions it begins again, where it does.
    """

    axis: Axis
    distance: int
    period: int | None = None

    @property
    def opposite(self) -> Neighbour:
        """The one at the same distance on the other side."""
        distance = -self.distance if self.period is None else -self.distance % self.period
        return Neighbour(self.axis, distance, self.period)


def neighbour(index: Expr, extent: int | Expr) -> Neighbour | None:
    """``index`` into an axis of ``extent`` elements as a neighbour of an axis; None if it is something else.

    >>> i = te.reduce_axis((0, 8), "i")
    >>> found = neighbour((i - 2) % 8, 8)
    >>> found.distance, found.opposite.distance
    (6, 2)
    """
    period = None
    match division(index):
        case Remainder(inside, int() as value):
            if not isinstance(extent, int) or value != extent:
                return None
            index, period = inside, value
    form = linear_or_none(index)
    if form is None or len(form.terms) != 1:
        return None
    ((axis, factor),) = form.terms.items()
    if not isinstance(axis, Axis) or factor != 1:
        return None
    if period is None:
        return Neighbour(axis, form.constant)
    distance = form.constant % period
    ends = reach(linear(axis))
    own = not distance and ends is not None and 0 <= ends[0] and ends[1] < period
    return Neighbour(axis, distance, None if own else period)


def is_repeated(indices: Sequence[Expr]) -> bool:
    """Whether positions side by side are one element, which no other index tells apart."""
    atoms = [a for i in indices if is_index(i) for a in linear(i).terms]
    quotients = [a for a in atoms if isinstance(division(a), Quotient)]
    divided = {axis for a in quotients for axis in dims_of(a)}
    others = [a for a in atoms if not isinstance(division(a), Quotient)]
    return bool(divided) and not any(depends_on(a, divided) for a in others)


_PIECES = (MOD, MINIMUM, MAXIMUM)  # quotients are repeated elements, which views have


@dataclass(frozen=True, slots=True)
class Piece:
    """``first + step * (p - start)`` at the positions ``start <= p < stop``; None in place of ``first`` outside of the tensor."""

    start: int
    stop: int
    first: int | None
    step: int


@dataclass(frozen=True, slots=True)
class PiecewiseAffine:
    """An index as a function of a position.

    Attributes:
        position: affine in axes (and in quotients and remainders), from 0.
        extent: one more than the largest position.
        pieces: what the index is, in sequence.
    """

    position: Expr
    extent: int
    pieces: tuple[Piece, ...]

    @property
    def straight(self) -> bool:
        """Whether neighbours of neighbours are neighbours everywhere, but for jumps: no end is held, nothing is reflected."""
        return len({p.step for p in self.pieces if p.first is not None and p.stop - p.start > 1}) < 2


@lru_cache(maxsize=4096)
def piecewise_affine(index: Expr, size: int, fewest: int = 2) -> PiecewiseAffine | None:
    """``index`` into an axis of ``size`` elements as a piecewise affine function of a form of ``fewest`` axes or more; None if it is something else.

    >>> i, k = te.reduce_axis((0, 8), "i"), te.reduce_axis((0, 3), "k")
    >>> [(p.start, p.first) for p in piecewise_affine((i + k) % 8, 8).pieces]
    [(0, 0), (8, 0)]
    """
    form = _followed(index)
    if form is None or len(form.terms) < fewest:
        return None
    ends = reach(form)
    if ends is None or ends[1] - ends[0] >= LARGE_TABLE:
        return None
    at = Axis("t", ends[0], ends[1] + 1)
    own = of_number(index, form, at)
    values = None if own is None else tabulated(own, {at: np.arange(ends[0], ends[1] + 1)})
    if values is None:
        return None
    pieces = runs_of(np.where((values >= 0) & (values < size), values, -1))
    if pieces is None or len(pieces) < 2:
        return None
    return PiecewiseAffine(from_linear(form - Linear({}, ends[0])), len(values), pieces)


def _followed(index: Expr) -> Linear | None:
    """The form of axes that ``index`` follows, without its constant and with coprime coefficients."""
    if not is_index(index) or not _is_piecewise(linear(index)):
        return None
    found: Linear | None = None
    for form in _innermost(linear(index)):
        own = term_of(form)[0].form
        if found is None:
            found = own
        elif _ratio(own, found) is None:
            return None
    return found


def _is_piecewise(form: Linear) -> bool:
    """Whether the one term of ``form`` is a remainder or the lesser or larger of two forms."""
    return len(form.terms) == 1 and all(isinstance(a, Call) and a.op in _PIECES for a in form.terms)


def _innermost(form: Linear) -> Iterator[Linear]:
    """The forms that are no further piecewise affine functions of a single form."""
    if not _is_piecewise(form):
        if form.terms:
            yield form
        return
    (atom,) = form.terms
    assert isinstance(atom, Call)
    for operand in atom.args:
        yield from _innermost(linear(operand))


def _ratio(form: Linear, base: Linear) -> int | None:
    """``c`` where the terms of ``form`` are ``c`` times those of ``base``."""
    if form.terms and form.terms.keys() != base.terms.keys():
        return None
    ratios = {divmod(c, base.terms[a]) for a, c in form.terms.items()} or {(0, 0)}
    if len(ratios) > 1:
        return None
    ((ratio, rest),) = ratios
    return None if rest else ratio


def of_number(expr: Expr, base: Linear, at: Axis) -> Expr | None:
    """An index or a condition on positions as a function of the one number ``base``, which is ``at``; None where something else decides.

    >>> i, k, t = te.reduce_axis((0, 8), "i"), te.reduce_axis((0, 3), "k"), te.reduce_axis((0, 10), "t")
    >>> of_number(te.minimum((i + k) % 9, 5), linear(i + k), t)
    minimum(t % 9, 5)
    """
    form = linear_or_none(expr)
    if form is None:
        match expr:
            case Call(op) if op in COMPARISONS and (sides := difference(expr)) is not None:
                side = of_number(from_linear(sides), base, at)
                return None if side is None else call(op, side, 0)
            case Call(op) if op in (AND, OR, NOT, SELECT):
                return _rebuilt(expr, base, at)
        return None
    moving = {a for a in base.terms if free_axes(a)}
    ratio = _ratio(*(Linear({a: c for a, c in f.terms.items() if a in moving}) for f in (form, base)))
    if ratio is None:
        return None
    rest = form - base * ratio
    total: Expr = ratio * at + rest.constant
    for atom, factor in rest.terms.items():
        own = _rebuilt(atom, base, at) if isinstance(atom, Call) else atom
        if own is None or (isinstance(own, Axis) and own is not at):
            return None
        total = total + factor * own
    return total


def _rebuilt(node: Call, base: Linear, at: Axis) -> Expr | None:
    """``node`` of what its operands are as functions of ``base``."""
    operands = [of_number(operand, base, at) for operand in node.args]
    return None if any(o is None for o in operands) else call(node.op, *operands)  # type: ignore[arg-type]


def runs_of(values: np.ndarray) -> tuple[Piece, ...] | None:
    """The runs of ``values`` that are arithmetic progressions, -1 standing for no value; None if they are many."""
    steps = np.diff(values)
    jumps = np.flatnonzero((values[1:] < 0) != (values[:-1] < 0)) + 1
    usual = _usual_step(steps)
    found: list[Piece] = []
    start = 0
    while start < len(values):
        step = int(steps[start]) if start < len(steps) else 0
        if abs(step) > usual:
            stop, step = start + 1, 0
        else:
            changes = np.flatnonzero(steps[start:] != step)
            stop = start + 1 + (int(changes[0]) if len(changes) else len(values) - 1 - start)
        ahead = jumps[jumps > start]
        stop = min(stop, int(ahead[0])) if len(ahead) else stop
        first = int(values[start])
        found.append(Piece(start, stop, None if first < 0 else first, 0 if first < 0 else step))
        if len(found) > CASES:
            return None
        start = stop
    return _with_shared_ends(found)


def _with_shared_ends(pieces: list[Piece]) -> tuple[Piece, ...]:
    """``pieces`` with the value in which two of them meet in the one that moves, or the longer one: what is held or reflected at an end stands before
    all of the tensor, not before what is left of it."""
    for n in range(len(pieces) - 1):
        own, after = pieces[n], pieces[n + 1]
        if own.first is None or after.first is None or after.step == 0:
            continue
        length, last = own.stop - own.start, own.first + own.step * (own.stop - 1 - own.start)
        longer = own.step == 0 or after.stop - after.start > length
        if length > 1 and longer and last + after.step == after.first:
            step = own.step if length > 2 else 0
            pieces[n] = replace(own, stop=own.stop - 1, step=step)
            pieces[n + 1] = replace(after, start=after.start - 1, first=last)
    return tuple(pieces)


def _usual_step(steps: np.ndarray) -> int:
    """The size of the step that is taken most often, of those that are taken at all."""
    sizes = np.abs(steps[steps != 0])
    return int(np.bincount(sizes).argmax()) if len(sizes) else 0
