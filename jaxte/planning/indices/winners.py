"""Sums over the elements of a window that attain its extremum, by doubling: the adjoints of sliding maxima.

    y[i] = max over k of x[i + k]
    sum over k of g[i - k] where x[i] == y[i - k]

No ``y`` that ``x[i]`` is in is less than it, so the sum is over the places where these ``y`` are least, if they are ``x[i]`` there. The least value and the
sum of ``g`` where it is reached are known of a window of ``2 * n`` positions if they are of both halves. So windows of 1, 2, 4, ... positions are tensors, each
made of two elements of the one before, and what a window costs grows with the logarithm of its length. So are the ties of a maximum counted:
``sum over k of cast(x[i + k] == y[i])``.

Extrema over windows of several dimensions, one dimension after the other: windows of windows.

    y[i, j] = max over p, q of x[i + p, j + q]   is   max over p of r[i + p, j]   with   r[m, j] = max over q of x[m, j + q]

As definitions, and not only as a form, since the adjoints follow: which of ``a * b`` elements is the first that a window attains is found by ``a + b``
comparisons for each element, and what flows back is the sum of as many choices. The first of equal elements, in the order of the axes, is in the first row
that attains the extremum and is the first one there, so that ties are those of the whole; ties that share evenly are not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from jaxte.algebra.simplify import simplify_reads
from jaxte.lang.expr import ZERO, Axis, Expr, Read, Reduce, call, cast, conjunction, conjuncts
from jaxte.lang.graphs import among
from jaxte.lang.limits import LONGEST_UNROLLED, MARGIN, SEVERAL
from jaxte.lang.operators import ADD, EQUAL, GREATER, LESS, MAXIMUM, MINIMUM, NOT, SELECT
from jaxte.lang.walk import depends_on, free_axes, reads_of, substitute
from jaxte.planning.asked import intermediates
from jaxte.planning.indices.fewer_elements import at_terms
from jaxte.planning.orders.contraction import EXACT
from jaxte.planning.orders.hits import Hits, choice_around, hits_of
from jaxte.sets.affine import from_linear, normal
from jaxte.sets.conditions import prune, tidy
from jaxte.sets.index_forms import linear_or_none
from jaxte.sets.intervals import axis_bounds, extent, interval, known
from jaxte.sets.linear import Linear
from jaxte.tensors.bodies.range_checks import reads_inside
from jaxte.tensors.reducers import builtin_reducer
from jaxte.tensors.structure import PartialSum


@dataclass(frozen=True)
class _Window:
    """The positions ``form``, from ``first`` on, of ``reduced`` at ``outer``: ``place`` is where they stand on an axis of their own."""

    outer: Axis
    reduced: Axis
    form: Linear
    first: int
    place: Axis

    @property
    def step(self) -> int:
        return abs(self.form.coefficient(self.reduced))

    @property
    def start(self) -> Expr:
        """The least position of the window on the new axis."""
        tap = self.reduced.lo if self.form.coefficient(self.reduced) > 0 else self.reduced.hi - 1
        return normal(substitute(from_linear(self.form), {self.reduced: tap}) - self.first)

    def solved(self) -> tuple[Axis, Expr] | None:
        """The axis that ``place`` and the other one determine, and what it is."""
        for axis in (self.reduced, self.outer):
            factor = self.form.coefficient(axis)
            if abs(factor) == 1:
                return axis, normal(factor * (self.place + self.first - from_linear(self.form.without(axis))))
        return None


@dataclass(frozen=True)
class _Level:
    """The extremum of each window of some length, and the sum of what counts where it is attained."""

    best: Expr
    total: Expr

    def at(self, table: Mapping[Expr, Expr]) -> _Level:
        return _Level(*(simplify_reads(substitute(e, table)) for e in (self.best, self.total)))

    def joined(self, other: _Level, name: str) -> _Level:
        """The same of both windows together."""
        before, behind = (LESS, GREATER) if name == "min" else (GREATER, LESS)
        either = call(
            SELECT, call(behind, self.best, other.best), other.total, call(ADD, self.total, other.total)
        )
        total = call(SELECT, call(before, self.best, other.best), self.total, either)
        return _Level(call(MINIMUM if name == "min" else MAXIMUM, self.best, other.best), total)


def by_doubling(node: Reduce, axes: Sequence[Axis], name: str) -> Expr:
    """``node``, or the same from windows of 1, 2, 4, ... positions, which are tensors of their own.

    Args:
        node: a sum over the points of ``axes``.
        name: what the tensors are called after.
    """
    if not node.is_sum or node.dtype not in EXACT or not _is_long(node):
        return node
    outside, body = choice_around(node, axes)
    hits = hits_of(node, body, axes)
    windows = None if hits is None else _windows(node, hits, axes)
    if hits is None or windows is None:
        return node
    places = {w.outer: w.place for w in windows}
    order = [places.get(a, a) for a in axes]
    level = _base(node, hits, windows, order, f"{name}_of_1")
    for window in windows:
        level = None if level is None else _doubled(level, window, order, hits.name, name)
        order = [window.outer if a is window.place else a for a in order]
    if level is None:
        return node
    total = _found(hits, level)
    if outside is not None:
        test, other = outside
        total = call(SELECT, test, total, other)
    return total if total.dtype == node.dtype else cast(total, node.dtype)


def _is_long(node: Reduce) -> bool:
    sizes = [known(a.extent) for a in node.axes]
    return None not in sizes and prod(s for s in sizes if s is not None) > LONGEST_UNROLLED


def _windows(node: Reduce, hits: Hits, axes: Sequence[Axis]) -> list[_Window] | None:
    """A window for each axis of ``node``; None where one of them moves with no other axis, or with several."""
    found: list[_Window] = []
    for axis in node.axes:
        indices = [i for read in reads_of(hits.moving) for i in read.indices if depends_on(i, (axis,))]
        form = linear_or_none(indices[0]) if indices else None
        own = [a for a in axes if form is not None and form.coefficient(a)]
        if form is None or len(own) != 1 or set(form.terms) != {axis, own[0]}:
            return None
        ends = interval(form, axis_bounds((axis, own[0])))
        if ends is None or any(w.outer is own[0] for w in found):
            return None
        place = Axis(own[0].name, 0, ends[1] - ends[0] + 1)
        found.append(_Window(own[0], axis, form, ends[0], place))
    return found


def _base(
    node: Reduce, hits: Hits, windows: Sequence[_Window], order: Sequence[Axis], name: str
) -> _Level | None:
    """Windows of one position: each element over the axes of its places; None where something depends on more than these."""
    table: dict[Expr, Expr] = {}
    for window in windows:
        solved = window.solved()
        if solved is None:
            return None
        table[solved[0]] = solved[1]
    others = [hits.comparison, call(NOT, hits.comparison)]
    guards = [tidy(substitute(c, table)) for c in conjuncts(node.where) if not among(c, others)]
    moving, value = (simplify_reads(substitute(e, table)) for e in (hits.moving, hits.value))
    taken = {a for e in (moving, value, *guards) for a in free_axes(e)}
    if taken & {a for w in windows for a in (w.reduced, w.outer)}:
        return None
    guards = prune(guards, [*taken])
    if hits.passes:
        guards.append(call(EQUAL, moving, moving))
    identity = builtin_reducer(hits.name, moving.dtype).identity[0]
    level = _Level(moving, value)
    if guards:
        holds = conjunction(guards)
        level = _Level(call(SELECT, holds, moving, identity), call(SELECT, holds, value, ZERO))
    return _kept(level, order, name) if guards or reads_of(value) or not isinstance(moving, Read) else level


def _kept(level: _Level, order: Sequence[Axis], name: str) -> _Level | None:
    """``level`` as two tensors; None where that would read what only the sum keeps in range."""
    made: list[Expr] = []
    for expr, kind in ((level.best, "best"), (level.total, "total")):
        axes = tuple(a for a in order if a in free_axes(expr))
        fresh = [Axis(a.name, 0, a.hi) for a in axes]
        body = substitute(expr, dict(zip(axes, fresh, strict=True)))
        if not reads_inside(fresh, body):
            return None
        made.append(Read(PartialSum(f"{name}_{kind}", fresh, body), axes) if axes else expr)
    return _Level(*made)


def _doubled(level: _Level, window: _Window, order: Sequence[Axis], kind: str, name: str) -> _Level | None:
    """The windows of all positions of ``window``, at its outer axis."""
    place, step, size = window.place, window.step, extent(window.reduced)
    made, length = {1: level}, 1
    current: _Level | None = level
    while 2 * length <= size and current is not None:
        shorter = Axis(place.name, 0, extent(place) - step * (2 * length - 1))
        halves = [current.at({place: normal(shorter + step * at)}) for at in (0, length)]
        length *= 2
        own = [shorter if a is place else a for a in order]
        current = _kept(halves[0].joined(halves[1], kind), own, f"{name}_of_{length}")
        if current is not None:
            made[length] = current = current.at({shorter: place})
    if current is None:
        return None
    whole, at = None, 0
    for part in sorted(made, reverse=True):
        if size & part:
            piece = made[part].at({place: normal(window.start + step * at)})
            whole, at = piece if whole is None else whole.joined(piece, kind), at + part
    return whole


def _found(hits: Hits, level: _Level) -> Expr:
    """The sum: what the window comes to where its extremum is what the elements are compared with."""
    if hits.comparison.op is not EQUAL:
        behind = call(hits.comparison.op, hits.still, level.best)
        return call(SELECT, behind, ZERO, level.total)
    total = call(SELECT, call(EQUAL, hits.still, level.best), level.total, ZERO)
    return call(SELECT, call(EQUAL, level.best, level.best), total, level.best) if hits.spreads else total


def one_axis_apart(node: Reduce, axes: Sequence[Axis], name: str) -> Reduce:
    """``node``, or the same over its first axes, of a tensor of extrema over its last one.

    Args:
        node: a reduction at the points of ``axes``.
        name: what the tensor is called after.
    """
    costs = intermediates()
    if not costs.extrema or not node.is_extremum or node.reducer.ties not in ("first", "last"):
        return node
    sizes = [known(a.extent) for a in node.axes]
    # Positions along each axis.
    if len(sizes) < 2 or not isinstance(node.exprs[0], Read) or any(s is None or s < SEVERAL for s in sizes):
        return node
    *others, last = [s for s in sizes if s is not None]
    if prod(others) * last < MARGIN * (sum(others) + last + costs.element):
        return node
    *before, inner = node.axes
    conditions = conjuncts(node.where)
    along = [c for c in conditions if depends_on(c, (inner,))]
    if any(depends_on(c, before) for c in along):
        return node
    apart = [c for c in conditions if not among(c, along)]
    row = node.changed(axes=(inner,), where=conjunction(along))
    found = at_terms(row, (*axes, *before), apart, name)
    if found is row:
        return node  # each window has elements of its own
    return one_axis_apart(node.changed(exprs=(found,), axes=before, where=conjunction(apart)), axes, name)
