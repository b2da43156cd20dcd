"""Sums over the elements of a window that attain its extremum, by doubling: the adjoints of sliding maxima.

    y[i] = max over k of x[i + k]
    sum over k of g[i - k] where x[i] == y[i - k]

No ``y`` that ``x[i]`` is in is less than it, so the sum is over the places where these ``y`` are least, if they are ``x[i]`` there. The least value and the
sum of ``g`` where it is reached are known of a window of ``2 * n`` positions if they are of both halves. So windows of 1, 2, 4, ... positions are tensors, each
made of two elements of the one before, and what a window costs grows with the logarithm of its length. So are the ties of a maximum counted:
``sum over k of cast(x[i + k] == y[i])``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from jaxte.algebra.product import is_zero
from jaxte.algebra.simplify import simplify_reads
from jaxte.lang import dtypes
from jaxte.lang.expr import (
    TRUE,
    ZERO,
    Axis,
    Call,
    Const,
    Expr,
    Read,
    Reduce,
    as_expr,
    call,
    cast,
    conjunction,
    conjuncts,
)
from jaxte.lang.identity import among
from jaxte.lang.operators import ADD, EQUAL, GREATER, LESS, MAXIMUM, MINIMUM, NOT, SELECT
from jaxte.lang.walk import depends_on, free_axes, postorder, reads_of, rewrite, substitute
from jaxte.planning.orders.attained import attains
from jaxte.planning.orders.contraction import EXACT
from jaxte.sets.affine import Linear, from_linear, normal
from jaxte.sets.conditions import prune, tidy
from jaxte.sets.index_forms import linear_or_none
from jaxte.sets.intervals import axis_bounds, extent, interval, known
from jaxte.sets.isl_text import is_decidable
from jaxte.tensors.compute import reads_inside
from jaxte.tensors.parts import PartialSum
from jaxte.tensors.reductions import builtin_reducer

_LONGEST = 32  # positions up to which a window is slices: one loop that holds nothing


@dataclass(frozen=True)
class _Hits:
    """The terms of a sum that count where a window attains its extremum.

    Attributes:
        moving: what is compared, an element of the window.
        still: what it is compared with.
        value: what is added where both are equal.
        name: ``min`` or ``max``, which of them the window attains.
        spreads: whether a NaN among the elements makes the sum NaN, as where what is not behind counts.
        passes: whether a NaN among the elements leaves the others as they are.
        comparison: of ``moving`` and ``still``.
    """

    moving: Expr
    still: Expr
    value: Expr
    name: str
    spreads: bool
    passes: bool
    comparison: Call


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
    if node.reducer.name != "sum" or node.dtype not in EXACT or not _is_long(node):
        return node
    outside, body = _outside(node)
    hits = _hits(node, body, axes)
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
        total = call(SELECT, test, total, other * prod(map(extent, node.axes)))
    return total if total.dtype == node.dtype else cast(total, node.dtype)


def _is_long(node: Reduce) -> bool:
    sizes = [known(a.extent) for a in node.axes]
    return None not in sizes and prod(s for s in sizes if s is not None) > _LONGEST


def _outside(node: Reduce) -> tuple[tuple[Expr, Expr] | None, Expr]:
    """A choice around the term that is the same for all of them: its condition and what else each term is; and what is left."""
    match node.exprs[0]:
        case Call(op, (test, term, other)) if op is SELECT and node.where is TRUE:
            if not depends_on(test, node.axes) and not depends_on(other, node.axes):
                return (test, other), term
    return None, node.exprs[0]


def _hits(node: Reduce, body: Expr, axes: Sequence[Axis]) -> _Hits | None:
    """The comparison of ``node``, a sum of ``body``, that says which of its terms count."""
    found = [n for n in postorder(body, node.where) if isinstance(n, Call) and _compares(n, node.axes)]
    if len(found) != 1:
        return None
    (comparison,) = found
    hit = comparison if comparison.op is EQUAL else call(NOT, comparison)
    guards = [c for c in conjuncts(node.where) if c is not hit]
    if any(n is comparison for c in guards for n in postorder(c)):
        return None
    value, otherwise = body, as_expr(0)
    if len(guards) == len(conjuncts(node.where)):
        value, otherwise = (
            _decided(body, comparison, hit is comparison),
            _decided(body, comparison, hit is not comparison),
        )
    for read, element in (comparison.args[::-1], comparison.args):
        if comparison.op is not EQUAL and read is not comparison.args[1]:
            continue
        name = attains(read, element, (*axes, *node.axes), [c for c in guards if is_decidable(c)])
        if name is None or comparison.op is (GREATER if name == "max" else LESS):
            continue
        moves = depends_on(read, node.axes)
        moving, still = (read, element) if moves else (element, read)
        carries = _is_nan_or_zero(otherwise, moving)
        if depends_on(still, node.axes) or not (carries or is_zero(otherwise)):
            continue
        own = ("max" if name == "min" else "min") if moves else name
        spreads = carries or comparison.op is not EQUAL
        return _Hits(moving, still, value, own, spreads, moves and not spreads, comparison)
    return None


def _compares(node: Call, axes: Sequence[Axis]) -> bool:
    """Whether ``node`` compares two different numbers, one of them over ``axes``."""
    if node.op not in (EQUAL, LESS, GREATER):
        return False
    return node.args[0] is not node.args[1] and dtypes.is_float(node.args[0].dtype) and depends_on(node, axes)


def _decided(body: Expr, comparison: Expr, truth: bool) -> Expr:
    """``body`` where ``comparison`` is known."""
    value = TRUE if truth else call(NOT, TRUE)

    def rule(node: Expr) -> Expr:
        match node:
            case Call() if node is comparison:
                return value
            case Call(op, (test, a, b)) if op is SELECT and isinstance(test, Const):
                return a if test.value else b
            case Call(op, (test,)) if op is NOT and isinstance(test, Const):
                return Const(not test.value)
            case Call(op, (test,)) if op.name == "cast" and isinstance(test, Const) and test.dtype == "bool":
                return Const(float(bool(test.value)), node.dtype)
        return node

    return rewrite(body, rule)


def _is_nan_or_zero(expr: Expr, element: Expr) -> bool:
    """Whether ``expr`` is zero, or ``element`` where that is NaN."""
    match expr:
        case Call(op, (Call(inner, (a, b)), zero, other)) if op is SELECT and inner is EQUAL:
            return a is element and b is element and other is element and is_zero(zero)
    return False


def _windows(node: Reduce, hits: _Hits, axes: Sequence[Axis]) -> list[_Window] | None:
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
    node: Reduce, hits: _Hits, windows: Sequence[_Window], order: Sequence[Axis], name: str
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


def _found(hits: _Hits, level: _Level) -> Expr:
    """The sum: what the window comes to where its extremum is what the elements are compared with."""
    if hits.comparison.op is not EQUAL:
        behind = call(hits.comparison.op, hits.still, level.best)
        return call(SELECT, behind, ZERO, level.total)
    total = call(SELECT, call(EQUAL, hits.still, level.best), level.total, ZERO)
    return call(SELECT, call(EQUAL, level.best, level.best), total, level.best) if hits.spreads else total
