"""Prefix and suffix reductions.

``out[..., i, ...] = reduce over j of body(..., j, ...) where j <= i + c`` needs one pass over ``j`` if ``body`` does
not depend on ``i``: with the body extended by the reduction's identity to the positions ``c, ..., c + n - 1`` of ``j``,
it is the cumulative reduction at position ``i + c``. ``j >= i + c`` is the same from the other end, and
``j <= c - i`` the same with the output reversed. Several such pairs of axes are scanned one after the other. For sums
the factors that depend on ``i`` but on no reduced axis leave the sum.

A condition from both sides is a band: the difference of two cumulative sums cancels digits, so that is a window and
not a scan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxte.algebra.product import Factor, summand
from jaxte.lang.expr import TRUE, ZERO, Axis, Const, Expr, Reduce, Reducer, call, cast, conjunction, conjuncts
from jaxte.lang.graphs import among, identical
from jaxte.lang.operators import MAXIMUM, MINIMUM, SELECT
from jaxte.lang.text import text
from jaxte.lang.walk import depends_on, free_axes, substitute
from jaxte.lower.code.spec import Array, Finish, Refusal, array, over_all
from jaxte.sets.affine import from_linear, normal
from jaxte.sets.conditions import positive
from jaxte.sets.index_forms import nonnegative_forms
from jaxte.sets.intervals import may_be_negative
from jaxte.sets.isl_text import is_decidable
from jaxte.tensors.reducers import builtin_reducer, wide_dtype, wide_recurrence


@dataclass(frozen=True, slots=True)
class Pair:
    """``j <= sign * i + c`` (or ``>=``, for a suffix)."""

    i: Axis
    j: Axis
    sign: int
    c: Expr
    suffix: bool


@dataclass(frozen=True, slots=True)
class Scan:
    """One cumulative reduction along dimension ``axis``.

    Attributes:
        pad: how many identities stand before and behind the operand.
        start, length: the part of the cumulative values that is the result; start None for all of them.
        reverse: from the end to the front.
        flip: whether the result is then reversed.
    """

    axis: int
    pad: tuple[Expr, Expr]
    start: Expr | None
    length: Expr
    reverse: bool
    flip: bool


@dataclass(frozen=True, slots=True)
class ScanSpec:
    """Cumulative reductions of arrays (one for each value of the reducer), one axis after the other.

    Attributes:
        arrays: what is reduced.
        reducer: how; ``position`` is the value that is asked for.
        scans: the axes, in order.
        finish: what is done to the result then.
        guard: where the result holds; elsewhere it is the identity.
        dtype: of the result; ``arrays`` may be wider.
    """

    arrays: tuple[Array, ...]
    reducer: Reducer
    position: int
    scans: tuple[Scan, ...]
    finish: Finish
    guard: Array | None
    dtype: str

    @property
    def operands(self) -> tuple[Array, ...]:
        return (*self.arrays, *self.finish.operands, *([] if self.guard is None else [self.guard]))


def recognise_scan(axes: Sequence[Axis], node: Reduce) -> ScanSpec | Refusal:
    """The cumulative reductions that ``node``, a reduction at each point of ``axes``, is."""
    if any(axis.extent is ZERO for axis in (*axes, *node.axes)):
        return Refusal("an axis without points")
    exprs, conditions, outer = _parts(node)
    moving = [c for c in conditions if depends_on(c, axes) and depends_on(c, node.axes)]
    pairs = _pairs(axes, node.axes, [c for c in moving if is_decidable(c)])
    if isinstance(pairs, Refusal):
        return pairs
    if len(pairs) > 1 and node.reducer.arity > 1:
        return Refusal(f"{node.reducer.label} of several values over more than one axis")
    bound = [c for c in moving if not (is_decidable(c) and depends_on(c, [p.i for p in pairs]))]
    inside = bound + [c for c in conditions if depends_on(c, node.axes) and not among(c, moving)]
    outside = [c for c in conditions if not depends_on(c, node.axes)]
    scanned = [p.i for p in pairs]
    for expr in (*exprs, *inside):
        if depends_on(expr, scanned):
            return Refusal(f"{text(expr)} depends on {', '.join(p.i.name for p in pairs)} itself")
    return _specification(tuple(axes), node, pairs, exprs, inside, outside, outer)


def _parts(node: Reduce) -> tuple[tuple[Expr, ...], list[Expr], list[Factor]]:
    """What is reduced, under which conditions, and the factors outside of a sum."""
    if not node.is_sum:
        return node.exprs, conjuncts(node.where), []
    value, conditions, outer = summand(node)
    return (value,), conditions, outer


def _pairs(axes: Sequence[Axis], reduced: Sequence[Axis], conditions: Sequence[Expr]) -> list[Pair] | Refusal:
    """The pairs of an output and a reduced axis that ``conditions`` tie, each by one inequality."""
    found: dict[Axis, Pair] = {}
    for condition in conditions:
        pair = _pair(condition, axes, reduced)
        if isinstance(pair, Refusal):
            return pair
        known = found.get(pair.j)
        tighter = pair if known is None else _tighter(known, pair)
        if tighter is None:
            return Refusal(f"{pair.j.name} is bounded from both sides by {pair.i.name}: a band, not a prefix")
        found[pair.j] = tighter
    pairs = list(found.values())
    if not pairs:
        return Refusal("no reduced axis is bounded by an output axis")
    if len({p.i for p in pairs}) < len(pairs):
        return Refusal("two reduced axes are bounded by one output axis")
    return pairs


def _pair(condition: Expr, axes: Sequence[Axis], reduced: Sequence[Axis]) -> Pair | Refusal:
    """``condition`` solved for its reduced axis."""
    refusal = Refusal(f"the condition {text(condition)} is no bound j <= i + c")
    forms = nonnegative_forms(positive(condition))
    if len(forms) != 1:
        return refusal
    difference = forms[0] * -1  # at most 0
    js, i_s = [a for a in reduced if a in difference.terms], [a for a in axes if a in difference.terms]
    if len(js) != 1 or len(i_s) != 1:
        return refusal
    (j,), (i,) = js, i_s
    of_j, of_i = difference.coefficient(j), difference.coefficient(i)
    rest = from_linear(difference.without(j).without(i))
    if abs(of_j) != abs(of_i) or free_axes(rest):
        return refusal
    sign = -1 if of_j * of_i > 0 else 1
    if of_j > 0:  # j <= sign * i - rest / of_j
        return Pair(i, j, sign, normal((-rest) // of_j), suffix=False)
    return Pair(i, j, sign, normal(-((-rest) // -of_j)), suffix=True)


def _tighter(a: Pair, b: Pair) -> Pair | None:
    if not identical((a.i, a.sign, a.suffix), (b.i, b.sign, b.suffix)):
        return None
    if not (isinstance(a.c, Const) and isinstance(b.c, Const)):
        return a if a.c is b.c else None
    return a if (int(a.c) <= int(b.c)) != a.suffix else b


def _specification(
    axes: tuple[Axis, ...],
    node: Reduce,
    pairs: Sequence[Pair],
    exprs: Sequence[Expr],
    inside: Sequence[Expr],
    outside: Sequence[Expr],
    outer: Sequence[Factor],
) -> ScanSpec | Refusal:
    by_output = {p.i: p for p in pairs}
    used = [a for a in axes if a in by_output or any(depends_on(e, (a,)) for e in (*exprs, *inside))]
    scans: list[Scan] = []
    own: list[Axis] = []
    moved: dict[Axis, Expr] = {}
    for axis in used:
        pair = by_output.get(axis)
        if pair is None:
            own.append(axis)
            continue
        placed = _place(pair, len(own))
        if placed is None:
            return Refusal(f"the range of {pair.j.name} against {pair.i.name} depends on sizes")
        scan, part = placed
        scans.append(scan)
        own.append(part)
        moved[pair.j] = part
    wide = wide_dtype(node)
    reducer = (
        wide_recurrence(node.reducer) if wide == node.dtype else builtin_reducer(node.reducer.name, wide)
    )
    values = [cast(e, s.dtype) for e, s in zip(exprs, reducer.identity, strict=True)]
    if inside:
        test = conjunction(inside)
        values = [call(SELECT, test, e, s) for e, s in zip(values, reducer.identity, strict=True)]
    others = tuple(a for a in node.axes if a not in moved)
    if others:
        values = [Reduce(reducer, values, others, TRUE, n) for n in range(reducer.arity)]
    return ScanSpec(
        tuple(array(own, substitute(value, moved)) for value in values),
        reducer,
        node.position,
        tuple(scans),
        over_all(axes, used, outer),
        array(axes, conjunction(outside)) if outside else None,
        node.dtype,
    )


def _place(pair: Pair, position: int) -> tuple[Scan, Axis] | None:
    """The scan of ``pair`` along dimension ``position`` and the part of ``j`` that it runs over.

    The output at ``i`` is the cumulative value at ``i + c`` of positions counted from the start of ``j``.
    """
    i, j = pair.i, pair.j
    length = i.extent
    c = normal(pair.c - j.lo if pair.sign > 0 else pair.c - j.lo - (length - 1))
    size = normal(j.extent)
    first = _least(c, ZERO) if not pair.suffix else c
    end = normal(c + length) if not pair.suffix else _most(size, normal(c + length))
    if first is None or end is None:
        return None
    lo, hi = _most(first, ZERO), _least(end, size)
    if lo is None or hi is None or (isinstance(empty := normal(hi - lo), Const) and int(empty) <= 0):
        return None
    before, behind = normal(lo - first), normal(end - hi)
    # a bound that is further away than there are positions: all are outside
    if may_be_negative(normal(hi - lo)):
        least = call(MINIMUM, lo, hi)
        if pair.suffix:
            lo, behind = least, behind + least - lo
        else:
            hi, before = call(MAXIMUM, lo, hi), least - first
    part = Axis(i.name, normal(j.lo + lo), normal(j.lo + hi), reduction=True)
    start = normal(c - first)
    whole = start is ZERO and normal(end - first) is normal(length)
    scan = Scan(position, (before, behind), None if whole else start, length, pair.suffix, pair.sign < 0)
    return scan, part


def _least(a: Expr, b: Expr) -> Expr | None:
    """The smaller of two extents, where their difference is known now."""
    difference = normal(a - b)
    return None if not isinstance(difference, Const) else (a if int(difference) <= 0 else b)


def _most(a: Expr, b: Expr) -> Expr | None:
    least = _least(a, b)
    return None if least is None else (b if least is a else a)
