"""Scopes: what each axis of a body stands for, over the dimensions of the arrays that are being made.

A dimension is an axis from 0. Where a body is evaluated for a part of an axis only, or for an axis in two digits, the
scope maps the axis to an expression of new dimensions; the body itself is never rewritten.

Two dimensions on one index that are not digits of one number, as in ``X[i + k]``, overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import Any, TypeVar

from jaxte.lang.dtypes import width
from jaxte.lang.expr import ZERO, Axis, Call, Expr, Read, as_expr
from jaxte.lang.graphs import among, identical, place_of
from jaxte.lang.limits import FEW_POSITIONS, LEVELS, LONGEST_UNROLLED, MOST_HELD, MOST_PARTS
from jaxte.lang.walk import free_axes, plain_indices, reads_of, substitute
from jaxte.lower.arrays.views import Index, Pad, Reshape, Tile
from jaxte.lower.code.spec import Refusal
from jaxte.lower.code.vocabulary import View
from jaxte.lower.views.mixed_radix import Digits, digits_of, digits_wanted, is_roundabout, together
from jaxte.lower.views.view import view
from jaxte.sets.affine import from_linear, linear, normal
from jaxte.sets.digits import are_digits
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import dims_of, index_stays_in, known, plus
from jaxte.sets.resolved import simplify

T = TypeVar("T")
Widths = tuple[tuple[int, int], ...]  # zeros before and after each dimension of a tensor


@dataclass(frozen=True, eq=False)
class Scope:
    """Attributes:
    order: the dimensions, in the order in which arrays have them.
    table: axes of the body in terms of dimensions; an axis that is missing stands for itself.
    depth: how many restrictions lie between this scope and the body's own.
    direct: whether reads are of the tensors themselves, also of those that have zeros around them elsewhere.
    hits: reads at positions that are data which only count where they are in range.
    """

    order: tuple[Axis, ...]
    table: Mapping[Axis, Expr] = field(default_factory=dict)
    depth: int = 0
    direct: bool = False
    hits: frozenset[Read] = frozenset()
    _derived: dict[object, Any] = field(default_factory=dict, repr=False)

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What ``make`` gives, asked once for each ``key``."""
        if key not in self._derived:
            self._derived[key] = make()
        return self._derived[key]  # type: ignore[no-any-return]

    def index(self, expr: Expr) -> Expr:
        """An index expression of the body in terms of dimensions, as simple as the box allows."""
        if expr not in self._derived:
            self._derived[expr] = simplify(expr, self.table)
        return self._derived[expr]

    def dims_under(self, expr: Expr) -> tuple[Axis, ...]:
        """The dimensions that ``expr`` depends on."""
        key = ("dims", expr)
        if key not in self._derived:
            found: dict[Axis, None] = {}
            for axis in free_axes(expr):
                found |= dict.fromkeys(dims_of(self.table[axis]) if axis in self.table else [axis])
            self._derived[key] = tuple([d for d in self.order if d in found])
        return self._derived[key]

    def indices(self, read: Read) -> tuple[Expr, ...]:
        """The indices of ``read`` that are no data, in terms of dimensions."""
        key = ("indices", read)
        if key not in self._derived:
            self._derived[key] = tuple([self.index(i) for i in plain_indices(read)])
        return self._derived[key]

    def _index_after(self, expr: Expr, before: Expr, digits: Digits) -> Expr:
        """The index ``expr``, which was ``before`` in the scope that this one is over the ``digits`` of: most have no such dimension."""
        if expr not in self._derived:
            asked = among(digits.whole, free_axes(before))
            self._derived[expr] = simplify(before, {digits.whole: digits.meaning}) if asked else before
        return self._derived[expr]

    def view(self, read: Read, widths: Widths = ()) -> View | Refusal:
        """An affine read as a view of its tensor, or of the tensor with zeros of ``widths`` around it.

        See :func:`jaxte.lower.views.view`.
        """
        key = (read, widths) if widths else read
        if key not in self._derived:
            shape = [as_expr(extent) for extent in read.tensor.shape]
            indices = [self.index(i) for i in read.indices]
            if widths:
                shape = [plus(e, low, high) for e, (low, high) in zip(shape, widths, strict=True)]
                indices = [plus(i, low) for i, (low, _) in zip(indices, widths, strict=True)]
            found = view(shape, indices, self.order)
            self._derived[key] = (
                self._in_digits(read, widths, indices, found) if is_roundabout(found) else found
            )
        return self._derived[key]

    def _in_digits(
        self, read: Read, widths: Widths, indices: Sequence[Expr], found: View | Refusal
    ) -> View | Refusal:
        """The view over the digits of some dimensions, put together again, if that is more direct than ``found``."""
        scope, splits, own = self, list[Digits](), [self.index(i) for i in read.indices]
        while (wanted := digits_wanted(indices)) is not None and len(splits) < LEVELS:
            dim, base = wanted
            if not among(dim, scope.order):
                return found  # an axis of a sum within an operand, which is none of the dimensions here
            splits.append(digits_of(dim, base))
            scope = scope.in_digits(splits[-1])
            own = indices = [
                scope._index_after(i, old, splits[-1]) for i, old in zip(read.indices, own, strict=True)
            ]
        if not splits:
            return found
        other = scope.view(read, widths)
        if isinstance(other, Refusal) or is_roundabout(other):
            return found
        return together(other, scope.order, splits)

    def replace(self, dim: Axis, meaning: Expr, new: Sequence[Axis], deeper: int = 1) -> Scope:
        """The scope in which ``dim`` stands for ``meaning``, over the dimensions ``new`` in its place."""
        key = (dim, meaning, tuple(new))
        if key not in self._derived:
            position = place_of(dim, self.order)
            order = (*self.order[:position], *new, *self.order[position + 1 :])
            table = {axis: normal(substitute(value, {dim: meaning})) for axis, value in self.table.items()}
            table[dim] = meaning
            self._derived[key] = Scope(order, table, self.depth + deeper, self.direct, self.hits)
        return self._derived[key]

    def in_digits(self, digits: Digits) -> Scope:
        """The scope over the digits of a dimension."""
        return self.replace(digits.whole, digits.meaning, [digits.high, digits.low], deeper=0)

    def restrict(self, dim: Axis, start: Expr, step: int, count: Expr) -> tuple[Scope, Axis]:
        """The scope in which ``dim`` takes only the values ``start + step * p``, p below ``count``."""
        key = (dim, start, step, count)
        if key not in self._derived:
            part = Axis(dim.name, 0, count)
            meaning = from_linear(linear(step * part) + linear(start))
            self._derived[key] = self.replace(dim, meaning, [part])
        scope = self._derived[key]
        return scope, scope.order[place_of(dim, self.order)]

    def extend(self, axes: Sequence[Axis]) -> tuple[Scope, tuple[Axis, ...]]:
        """The scope with the axes of a reduction, which become the last dimensions."""
        key = ("extend", *axes)
        own: list[Axis] = []
        if key not in self._derived:
            table = dict(self.table)
            for axis in axes:
                if axis.lo is ZERO:
                    own.append(axis)
                else:
                    own.append(Axis(axis.name, 0, normal(axis.extent)))
                    table[axis] = own[-1] + axis.lo
            self._derived[key] = Scope((*self.order, *own), table, self.depth, self.direct, self.hits)
        scope = self._derived[key]
        return scope, scope.order[len(self.order) :]

    def arranged(self, order: Sequence[Axis]) -> Scope:
        """The same scope with its dimensions in another order."""
        key = ("order", *order)
        if identical(tuple(order), self.order):
            return self
        if key not in self._derived:
            self._derived[key] = Scope(tuple(order), self.table, self.depth, self.direct, self.hits)
        return self._derived[key]

    def reading(self, direct: bool) -> Scope:
        """The same scope with reads of the tensors themselves, or as the body reads elsewhere."""
        return self if direct is self.direct else Scope(self.order, self.table, self.depth, direct, self.hits)

    def at_each(self, dim: Axis) -> list[Scope]:
        """The scopes without ``dim``, at each position of it."""
        return [self.replace(dim, as_expr(n), [], deeper=0) for n in range(known(dim.hi) or 0)]

    def hitting(self, reads: frozenset[Read]) -> Scope:
        """The same scope in which ``reads`` count only where they are in range."""
        return Scope(self.order, self.table, self.depth, self.direct, self.hits | reads) if reads else self


def is_inside(read: Read, scope: Scope) -> bool:
    """Whether ``read`` is in range at every point of ``scope``."""
    return all(
        is_index(index) and not reads_of(index) and index_stays_in(scope.index(index), as_expr(extent))
        for index, extent in zip(read.indices, read.tensor.shape, strict=True)
    )


def overlapping(exprs: Sequence[Expr], reduced: Sequence[Axis], scope: Scope, budget: int) -> Axis | None:
    """The shortest reduced dimension among those that overlap with another one in an index."""
    found = overlaps(exprs, reduced, scope, budget)
    return min(found, key=lambda d: found[d]) if found else None


def beside(exprs: Sequence[Expr], dim: Axis, scope: Scope) -> list[Axis]:
    """The dimensions that ``dim`` overlaps with; none where it is in an index with several."""
    forms = [form for e in exprs for read in reads_of(e) for form in scope.indices(read)]
    found = [
        [d for d in dims_of(f) if d is not dim] for f in forms if among(dim, dims_of(f)) and not _is_digits(f)
    ]
    return [own[0] for own in found] if all(len(own) == 1 for own in found) else []


def overlaps(exprs: Sequence[Expr], reduced: Sequence[Axis], scope: Scope, budget: int) -> dict[Axis, int]:
    """The reduced dimensions that overlap with another one in an index, each with its extent."""
    found: dict[Axis, int] = {}
    reads = [read for expr in exprs for read in reads_of(expr)]
    gathered = _gathered_askew(reads, scope)
    for read in reads:
        forms = [form for form in scope.indices(read) if not _is_digits(form)]
        view = _view(read, scope) if forms else None
        if view is not None and not (_is_askew(view) or _is_cut_askew(view, read, reduced, scope)):
            continue
        # of one array a loop of slices holds nothing
        askew = MOST_PARTS if len(exprs) == 1 else FEW_POSITIONS
        most = min(LONGEST_UNROLLED if view is None else askew, budget)
        for dim in [dim for form in forms for dim in dims_of(form)]:
            count = known(dim.hi)
            own = min(most, FEW_POSITIONS) if dim in gathered else most  # one gather has all of them
            if among(dim, reduced) and count is not None and 0 < count <= own:
                found[dim] = count
    return found


def _gathered_askew(reads: Sequence[Read], scope: Scope) -> set[Axis]:
    """The dimensions along which some of ``reads`` is gathered at data and overlaps with another one, ``k`` in ``x[w - k, i + k]`` where ``w`` is data."""
    found: set[Axis] = set()
    for read in reads:
        along: set[Axis] = set()
        for index in read.indices:
            if isinstance(index, (Call, Read)) and reads_of(index):
                along.update(scope.dims_under(index))
        if along:
            forms = [form for form in scope.indices(read) if not _is_digits(form)]
            found |= along.intersection(d for form in forms for d in dims_of(form))
    return found


def _view(read: Read, scope: Scope) -> View | None:
    """What the indices of a read, which together are digits as those of a reshape are, come to; None where they are not."""
    indices = scope.indices(read)
    if len(indices) < len(read.indices) or _is_laid_out(indices):
        return None
    found = scope.view(read)
    if not isinstance(found, View) or any(isinstance(step, Tile) for step in found.steps):
        return None
    return found


def _is_laid_out(indices: Sequence[Expr]) -> bool:
    """Whether plain sums of axes, each axis in one of them, overlap: only a copy of each row, shifted, has them all."""
    forms = [linear(index) for index in indices]
    terms = [atom for form in forms for atom in form.terms]
    plain = all(isinstance(atom, Axis) for atom in terms) and len(set(terms)) == len(terms)
    return plain and not all(map(_is_digits, indices))


def _is_askew(view: View) -> bool:
    """Whether rows are made longer so that they lie askew, which is a copy: a few slices that are added take one loop."""
    flat = _reshapes(view)
    return any(isinstance(step, Pad) for step in view.steps[min(flat, default=len(view.steps)) :])


def _reshapes(view: View) -> list[int]:
    return [n for n, step in enumerate(view.steps) if isinstance(step, Reshape)]


def _is_cut_askew(view: View, read: Read, reduced: Sequence[Axis], scope: Scope) -> bool:
    """The same where rows are long enough, and are cut elsewhere than where they end. Slices of a large array whose elements do not lie side by side would read all of it for each."""
    flat = _reshapes(view)
    cut = any(isinstance(step, Index) for step in view.steps[min(flat, default=0) : max(flat, default=0)])
    size = prod(known(e) or MOST_HELD for e in read.tensor.shape) * width(read.dtype)
    last = dims_of(scope.indices(read)[-1])
    return cut and (size <= MOST_HELD or not any(among(d, reduced) for d in last))


@lru_cache(maxsize=4096)
def _is_digits(index: Expr) -> bool:
    """Whether the dimensions of an index do not overlap."""
    form = linear(index)
    if any(dims_of(a) and not isinstance(a, Axis) for a in form.terms):
        return len(dims_of(index)) < 2
    return are_digits(form)
