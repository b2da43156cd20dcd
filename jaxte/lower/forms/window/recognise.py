"""Reductions over windows: pooling, box filters, stencils and their adjoints.

``out[..., t, ...] = reduce over z of body(..., x(t, z), ...)`` is a reduction over windows of one array, ``body`` evaluated
once on its own axes, if ``body`` depends on ``t`` and ``z`` only through one index ``x(t, z)``, and this index runs through
a window that moves with ``t`` (see ``window_relation``). Positions outside of the array are those that the conditions
exclude: they hold the identity of the reduction. Several windowed dimensions are reduced one after the other;
reduced axes that belong to no window are reduced first, on the array itself.

Where ``body`` depends on ``t`` and ``z`` in more ways than one (a comparison of ``X[s*t + z]`` with ``M[t]``), the window can
still be unrolled, as long as it is small: one shifted copy of ``body`` for each value of ``z``.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from jaxte.algebra.product import Factor, summand
from jaxte.lang.expr import (
    TRUE,
    ZERO,
    Axis,
    Call,
    Const,
    Expr,
    Reduce,
    Reducer,
    as_expr,
    call,
    conjunction,
    conjuncts,
)
from jaxte.lang.graphs import among
from jaxte.lang.limits import LONGEST_UNROLLED
from jaxte.lang.operators import SELECT
from jaxte.lang.walk import depends_on, free_axes
from jaxte.lower.code.spec import Array, Finish, Refusal, array, over_all
from jaxte.lower.match.affine_relation import Extents, is_implied
from jaxte.lower.match.index_terms import Form, forms_of, is_injective, rewrite_forms, tied_axes
from jaxte.lower.match.window_relation import WindowRelation, relate_window
from jaxte.sets.affine import linear, normal
from jaxte.sets.intervals import may_be_negative, nonnegative
from jaxte.sets.isl_text import is_decidable


@dataclass(frozen=True, slots=True)
class WindowDim:
    """The window in dimension ``axis`` of the array: ``size`` positions ``dilation`` apart, moved by ``stride``.

    ``spacing`` is how far apart the elements of the array are; ``padding`` how many identities stand before and
    behind it; ``length`` the extent of the result.
    """

    axis: int
    size: int
    stride: int
    dilation: int
    spacing: int
    padding: tuple[Expr, Expr]
    length: Expr


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """Windows of one array, reduced.

    Attributes:
        array: what is reduced.
        reducer: how, in one value.
        dims: the windowed dimensions.
        finish: what is done to the result in the end.
    """

    array: Array
    reducer: Reducer
    dims: tuple[WindowDim, ...]
    finish: Finish

    @property
    def operands(self) -> tuple[Array, ...]:
        return (self.array, *self.finish.operands)


@dataclass(frozen=True, slots=True)
class UnrollSpec:
    """A reduction over small axes to be written out: one copy of its body for each of ``taps``.

    ``axes`` are the reduction axes to replace, ``taps`` their values; other axes of the reduction remain in each copy.
    """

    axes: tuple[Axis, ...]
    taps: tuple[tuple[int, ...], ...]

    def tables(self) -> list[dict[Expr, Expr]]:
        """For each tap, what replaces the axes."""
        return [dict(zip(self.axes, map(as_expr, tap), strict=True)) for tap in self.taps]


def recognise_window(
    axes: Sequence[Axis], node: Reduce, most_taps: int = LONGEST_UNROLLED
) -> WindowSpec | UnrollSpec | Refusal:
    """The windows that ``node``, a reduction at each point of ``axes``, runs over."""
    if any(axis.extent is ZERO for axis in (*axes, *node.axes)):
        return Refusal("an axis without points")
    if node.reducer.arity > 1:
        return _unrolled(axes, node, most_taps, Refusal(f"{node.reducer.label} reduces several values"))
    found = _windows(tuple(axes), node)
    return _unrolled(axes, node, most_taps, found) if isinstance(found, Refusal) else found


def _unrolled(axes: Sequence[Axis], node: Reduce, most_taps: int, refusal: Refusal) -> UnrollSpec | Refusal:
    """The axes that shift reads against the output, if they are small."""
    mixed = [
        form
        for form in forms_of([*node.exprs, node.where])
        if any(among(a, axes) for a in form.axes) and any(among(a, node.axes) for a in form.axes)
    ]
    own = tuple(a for a in node.axes if any(among(a, form.axes) for form in mixed))
    if not own:
        return Refusal("no index mixes an output axis with a reduced one")
    extents = [normal(a.extent) for a in own]
    if not all(isinstance(e, Const) for e in extents) or not all(isinstance(a.lo, Const) for a in own):
        return refusal
    count = prod(map(int, extents))
    if count > most_taps:
        return Refusal(f"{refusal.reason}; {count} shifted copies are more than {most_taps}")
    ranges = [range(int(a.lo), int(a.hi)) for a in own]
    return UnrollSpec(own, tuple(itertools.product(*ranges)))


@dataclass(frozen=True, slots=True)
class _Windowed:
    """One windowed dimension: output axis, reduced axis, index, and how they are tied."""

    t: Axis
    z: Axis
    x: Form
    relation: WindowRelation


def _windows(axes: tuple[Axis, ...], node: Reduce) -> WindowSpec | Refusal:
    body, guards, outer = _parts(node)
    affine = [g for g in guards if is_decidable(g) and not is_implied(g)]
    windowed: list[_Windowed] = []
    inside = [g for g in guards if not is_decidable(g) or not free_axes(g)]
    forms = forms_of([body, *inside], numbers=True)
    groups: list[tuple[Axis, ...]] = [(a,) for a in (*axes, *node.axes)] + [f.axes for f in forms]
    groups += [tuple(free_axes(g)) for g in affine if free_axes(g)]
    for group in tied_axes(groups):
        own = [g for g in affine if depends_on(g, group)]
        found = _windowed(axes, node.axes, group, [f for f in forms if among(f.axes[0], group)], own)
        if isinstance(found, _Windowed):
            windowed.append(found)
            continue
        if len(group) > 1:
            mixed = [f for f in forms if len(f.axes) > 1 and among(f.axes[0], group)]
            ties = any(among(a, axes) for a in group) and any(among(a, node.axes) for a in group)
            if ties or not all(map(is_injective, mixed)):
                return found
        inside += own
    if not windowed:
        return Refusal("no index mixes an output axis with a reduced one")
    return _specification(axes, node, body, inside, outer, windowed)


def _parts(node: Reduce) -> tuple[Expr, list[Expr], list[Factor]]:
    """What is reduced, under which conditions, and the factors outside of a sum."""
    if node.is_sum:
        return summand(node)
    body, conditions = node.exprs[0], conjuncts(node.where)
    while isinstance(body, Call) and body.op is SELECT and _is_identity(body.args[2], node.reducer):
        conditions += conjuncts(body.args[0])
        body = body.args[1]
    return body, conditions, []


def _is_identity(expr: Expr, reducer: Reducer) -> bool:
    identity = reducer.identity[0]
    return isinstance(expr, Const) and isinstance(identity, Const) and bool(expr.value == identity.value)


def _windowed(
    axes: Sequence[Axis],
    reduced: Sequence[Axis],
    group: Sequence[Axis],
    forms: Sequence[Form],
    guards: Sequence[Expr],
) -> _Windowed | Refusal:
    free, own = [a for a in group if among(a, axes)], [a for a in group if among(a, reduced)]
    names = ", ".join(a.name for a in group)
    if len(free) != 1 or len(own) != 1 or len(forms) != 1:
        return Refusal(f"what mixes {names} is not one index of one windowed dimension")
    relation = relate_window(free[0], own[0], forms[0], guards)
    return relation if isinstance(relation, Refusal) else _Windowed(free[0], own[0], forms[0], relation)


def _specification(
    axes: tuple[Axis, ...],
    node: Reduce,
    body: Expr,
    inside: Sequence[Expr],
    outer: Sequence[Factor],
    windowed: Sequence[_Windowed],
) -> WindowSpec | Refusal:
    if inside:
        body = call(SELECT, conjunction(inside), body, node.reducer.identity[0])
    replaced: list[tuple[Form, Expr]] = []
    dims: list[WindowDim] = []
    own: list[Axis] = []
    by_output = {w.t: w for w in windowed}
    for axis in axes:
        w = by_output.get(axis)
        if w is None:
            if depends_on(body, (axis,)):
                own.append(axis)
            continue
        part, backwards = _part(w)
        if isinstance(part.size, Const) and int(part.size) <= 0:
            return Refusal(f"no window of {axis.name} reaches the array")
        if may_be_negative(part.size):
            return Refusal(f"it depends on the sizes whether windows of {axis.name} reach the array")
        position = Axis(axis.name, 0, part.size)
        value = part.hi - 1 - position if backwards else part.lo + position
        replaced.append((w.x, normal(value)))
        dim = _dimension(w, part, backwards, len(own))
        if not all(nonnegative(linear(p)) for p in dim.padding):
            return Refusal(f"the windows of {axis.name} leave out elements between those that they hold")
        dims.append(dim)
        own.append(position)
    used = [a for a in axes if a in by_output or among(a, own)]
    body = rewrite_forms(body, replaced, numbers=True)
    others = tuple(a for a in node.axes if all(a is not w.z for w in windowed))
    if others:
        body = node.changed(exprs=(body,), axes=others, where=TRUE)
    return WindowSpec(array(own, body), node.reducer, tuple(dims), over_all(axes, used, outer))


def _part(w: _Windowed) -> tuple[Extents, bool]:
    """The part of the array that windows reach, where that is known to be less than all of it, and its direction."""
    r = w.relation
    ends = [r.c, normal(r.c + r.gamma * (w.t.extent - 1))]
    low, high = min(ends, key=_number), normal(max(ends, key=_number) + r.d * (r.size - 1))
    size = r.x_range.size
    lo, hi = r.x_range.lo, r.x_range.hi
    if isinstance(low, Const) and int(low) > 0:
        lo = normal(lo + -(-int(low) // r.alpha))
    if isinstance(high, Const) and isinstance(size, Const) and int(high) < r.alpha * (int(size) - 1):
        hi = normal(r.x_range.lo + int(high) // r.alpha + 1)
    return Extents(lo, hi), r.gamma < 0


def _number(expr: Expr) -> float:
    return int(expr) if isinstance(expr, Const) else 0


def _dimension(w: _Windowed, part: Extents, backwards: bool, axis: int) -> WindowDim:
    r = w.relation
    c = normal(r.c - r.alpha * (part.lo - r.x_range.lo))
    last = r.alpha * (part.size - 1)
    if backwards:
        # alpha * (last - x) == -gamma * t - d * k + ..., with the window counted from its other end
        c = normal(last - c - r.d * (r.size - 1))
    gamma = abs(r.gamma)
    before = normal(-c)
    behind = normal(gamma * (w.t.extent - 1) + r.d * (r.size - 1) + 1 - before - (last + 1))
    return WindowDim(axis, r.size, gamma, r.d, r.alpha, (before, behind), w.t.extent)
