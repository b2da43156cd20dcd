"""Axes of sums that are digits of one number, and numbers of which digits are read, as what the terms are read at.

    sum over u, r of x[16 * i + 16 * u + r] * C[16 * u + r]     is   sum over t of x[16 * i + t] * C[t]
    sum over f of x[i + f // 8, f % 8] * w[f // 8, f % 8]       is   sum over k, c of x[i + k, c] * w[k, c]
    y[f] = sum over c of x[f // 96, f // 8 % 12, c] * w[c, f % 8]   is   y[f] = z[f // 96, f // 8 % 12, f % 8]
    with                                                                 z[i, j, o] = sum over c of x[i, j, c] * w[c, o]

Both sides are the same points; as what they are read at, sums are recognised as convolutions, windows and products of matrices. A definition over flat
indices, as programs with loops have them, is a reshape of one over the digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import permutations

from jaxte.lang.divisions import Division, division, divisions
from jaxte.lang.errors import IndexExpressionError
from jaxte.lang.expr import ZERO, Axis, Const, Expr, Read, Reduce, call, conjunction, conjuncts
from jaxte.lang.limits import CASES, ORDERED
from jaxte.lang.operators import AND, FLOOR_DIVIDE, MOD
from jaxte.lang.walk import depends_on, free_axes, postorder, reads_of, rewrite, substitute
from jaxte.planning.terms import term_bounds
from jaxte.sets.affine import from_linear, linear, normal
from jaxte.sets.digits import at_digits, is_by_blocks, number_of, shifting, straightened
from jaxte.sets.index_forms import is_index, linear_or_none, nonnegative_forms, term_of
from jaxte.sets.intervals import axis_bounds, interval, known, same
from jaxte.sets.linear import Linear
from jaxte.tensors.tensor import Compute


def with_whole_axes(node: Reduce) -> Reduce:
    """``node`` over axes of which no two are digits of what is read, and of none of which digits are read."""
    if not node.reducer.ignores_order or any(isinstance(n, Reduce) for n in _nodes(node)):
        return node
    whole = _repeated(_repeated(node, _at_positions), _joined)
    apart = _repeated(_repeated(whole, _from_zero), _apart)
    if apart is whole:
        return whole
    apart = _repeated(apart, _joined)  # (2 * h + l) // 6 and % 6 are h // 3 and 2 * (h % 3) + l
    return apart if len(apart.axes) <= ORDERED else whole


@lru_cache(maxsize=64)  # each attempt asks all of them
def _nodes(node: Reduce) -> tuple[Expr, ...]:
    """What stands below ``node``."""
    return tuple(postorder(*node.exprs, node.where))


@lru_cache(maxsize=64)
def _read_at(node: Reduce) -> tuple[Expr, ...]:
    """The indices of what ``node`` reads."""
    return tuple(dict.fromkeys(i for read in reads_of(*node.exprs) for i in read.indices))


def _repeated(node: Reduce, attempts: Callable[[Reduce], Iterator[Reduce | None]]) -> Reduce:
    """``node`` by the first of ``attempts`` that succeeds, as long as one does."""
    found: Reduce | None = node
    while found is not None:
        grown, found = len(found.axes) > max(CASES, len(node.axes)), found
        node, found = found, None if grown else next((m for m in attempts(found) if m is not None), None)
    return node


def _at_positions(node: Reduce) -> Iterator[Reduce | None]:
    """An axis that is only read at one distance from others, ``x[i - k]`` where ``k <= i``, as the position ``i - k``.

    Where that takes as many values as the axis: a running sum from its end is the running sum, and a window stays one.
    """
    indices = {i: free_axes(i) for r in reads_of(*node.exprs) for i in r.indices}
    for axis in node.axes:
        read = [i for i, free in indices.items() if axis in free]
        forms = [linear(read[0])] if len(read) == 1 and is_index(read[0]) else []
        if not forms or forms[0].coefficient(axis) not in (1, -1):
            continue
        (form,) = forms[:1]
        if len(form.terms) < 2 or any(axis in free_axes(a) for a in form.terms if a is not axis):
            continue
        term, factor = term_of(form)
        ends = term_bounds([term], conjuncts(node.where))[term]
        extent = known(axis.extent)
        if ends is None or extent is None or abs(factor) != 1 or not 0 < ends[1] - ends[0] + 1 <= extent:
            continue
        low, high = sorted((factor * ends[0] + form.constant, factor * ends[1] + form.constant))
        position = Axis(axis.name, low, high + 1, reduction=True)
        sign = form.coefficient(axis)
        meaning = normal(sign * position - sign * from_linear(form - Linear({axis: sign})))
        inside = call(AND, call(AND, meaning >= axis.lo, meaning < axis.hi), node.where)
        whole = node.changed(where=inside)
        made = _over(whole, {axis: meaning}, {axis: (position,)})
        yield None if made is None else _without_implied(made)


def _without_implied(node: Reduce) -> Reduce:
    """``node`` without conditions that hold at all points of the axes."""

    def holds(condition: Expr) -> bool:
        ends = [interval(form, axis_bounds(free_axes(condition))) for form in nonnegative_forms(condition)]
        return bool(ends) and all(end is not None and end[0] >= 0 for end in ends)

    left = [c for c in conjuncts(node.where) if reads_of(c) or not holds(c)]
    return node.changed(where=conjunction(left))


def _joined(node: Reduce) -> Iterator[Reduce | None]:
    """Two axes as one: ``t`` for ``n * high + low``, if nothing else depends on them."""
    for high, low in permutations(node.axes, 2):
        n = known(low.extent)
        if n is None or known(high.extent) is None or n < 2 or not _stand_together(node, high, low, n):
            continue
        start = n * high.lo + low.lo
        whole = Axis(low.name, normal(start), normal(n * (high.hi - 1) + low.hi), reduction=True)
        made = _over(node, {low: whole - n * high}, {high: (), low: (whole,)})
        yield None if made is None or any(depends_on(e, (high,)) for e in (*made.exprs, made.where)) else made


def _stand_together(node: Reduce, high: Axis, low: Axis, n: int) -> bool:
    """Whether no index of sums of axes has one of them without the other, or other multiples than ``n * high + low``, which would remain."""
    for index in _read_at(node):
        free = free_axes(index)
        if high in free and low in free:
            form = linear_or_none(index)
            if form is None or any(
                high in free_axes(a) or low in free_axes(a) for a in form.terms if a.children
            ):
                continue
            if form.coefficient(high) != n * form.coefficient(low):
                return False
            continue
        if (high in free) == (low in free):
            continue
        if not divisions(index):
            return False
    return True


def _from_zero(node: Reduce) -> Iterator[Reduce | None]:
    """An axis of which ``7 - axis`` or ``axis - 3`` is divided as that, where it begins at 0."""
    for axis in node.axes:
        forms = [linear(d.number) for d in _divisions(node, axis)]
        form = forms[0] if forms else linear(axis)
        if len(form.terms) != 1 or abs(form.coefficient(axis)) != 1 or not all(same(f, form) for f in forms):
            continue
        ends = interval(form, axis_bounds([axis]))
        if ends is None or ends[0] != 0 or same(form, axis):
            continue
        own = Axis(axis.name, 0, ends[1] + 1, reduction=True)
        sign = form.coefficient(axis)
        yield _over(node, {axis: normal(sign * own - sign * form.constant)}, {axis: (own,)})


def _apart(node: Reduce) -> Iterator[Reduce | None]:
    """An axis as two digits, where its quotients and remainders by a number are what is read."""
    for axis in node.axes:
        whole = known(axis.extent)
        for n in _divisors(node, axis) if whole is not None and axis.lo is ZERO else ():
            if whole is None or whole % n or not 1 < n < whole:
                continue
            high = Axis(f"{axis.name}_high", 0, whole // n, reduction=True)
            low = Axis(f"{axis.name}_low", 0, n, reduction=True)
            table: dict[Expr, Expr] = {axis: n * high + low}
            table |= {call(FLOOR_DIVIDE, axis, Const(n)): high, call(MOD, axis, Const(n)): low}
            if _stays_divided(node, table, (high, low)):
                continue
            made = _over(node, table, {axis: (high, low)})
            yield None if made is None or any(_divisors(made, a) for a in (high, low)) else made


def _stays_divided(node: Reduce, table: dict[Expr, Expr], axes: tuple[Axis, ...]) -> bool:
    """Whether one of ``axes`` is divided in an index of what ``node`` reads by ``table``; the first such index says so, before the others are made."""
    for index in _read_at(node):
        new = substitute(index, table)
        if new is index or reads_of(index):
            continue
        try:
            found = divisions(normal(new))
        except IndexExpressionError:
            return True
        if any(d.base is not None and depends_on(d.number, axes) for d in found):
            return True
    return False


def _divisions(node: Reduce, axis: Axis) -> Iterator[Division]:
    """The quotients and remainders of indices of ``axis`` by numbers."""
    for found in _every_division(node):
        if found.base is not None and axis in free_axes(found.number):
            if not reads_of(found.node) and linear_or_none(found.number) is not None:
                yield found


@lru_cache(maxsize=1024)  # asked of each axis in turn
def _every_division(node: Reduce) -> tuple[Division, ...]:
    return tuple(filter(None, map(division, _nodes(node))))


def _divisors(node: Reduce, axis: Axis) -> list[int]:
    """The numbers by which indices of ``axis`` are divided."""
    return sorted({d.base for d in _divisions(node, axis) if d.base is not None})


def _over(node: Reduce, table: dict[Expr, Expr], instead: dict[Axis, tuple[Axis, ...]]) -> Reduce | None:
    """``node`` with axes replaced; None where an index has no normal form."""
    try:
        expr, where = (straightened(substitute(e, table)) for e in (node.exprs[0], node.where))
    except IndexExpressionError:
        return None
    axes = [a for own in node.axes for a in instead.get(own, (own,))]
    return node.changed(exprs=(expr,), axes=axes, where=where)


class Digits(Compute):
    """A tensor over the digits of an axis of another one."""

    __slots__ = ()


def over_digits(tensor: Compute) -> tuple[Digits, Read] | None:
    """A tensor over the digits of the axes of ``tensor``, and its element that an element of ``tensor`` is; None where few digits are read, but for products by blocks and windows, or no sum is."""
    if tensor.override is not None or isinstance(tensor, Digits):
        return None
    if not tensor.body.reduces:
        return None
    numbers = [number_of(axis, [tensor.body]) for axis in tensor.axes]
    if not any(n.is_taken_apart for n in numbers) and is_by_blocks(tensor.body, tensor.axes):
        numbers = [number_of(axis, [tensor.body], many=2) for axis in tensor.axes]
    apart = shifting(tensor.body, tensor.axes)
    numbers = [number_of(n.axis, [tensor.body], many=2) if n.axis in apart else n for n in numbers]
    table: dict[Expr, Expr] = {n.axis: n.whole for n in numbers if n.is_taken_apart}
    if not table:
        return None
    axes = [digit for number in numbers for digit in number.digits]
    indices = [index for number in numbers for index in number.indices]
    part = Digits(f"{tensor.name}_digits", axes, at_digits(tensor.body, table))
    return part, Read(part, indices)


def with_digit_axes(body: Expr) -> Expr:
    """``body`` with its sums over digits of the axes that they read more than two digits of."""

    def rule(node: Expr) -> Expr:
        if not isinstance(node, Reduce) or not node.reducer.ignores_order:
            return node
        numbers = [number_of(axis, [*node.exprs, node.where]) for axis in node.axes]
        table: dict[Expr, Expr] = {n.axis: n.whole for n in numbers if n.is_taken_apart}
        if not table:
            return node
        axes = [digit for number in numbers for digit in number.digits]
        exprs = [at_digits(e, table) for e in node.exprs]
        return node.changed(exprs=exprs, axes=axes, where=at_digits(node.where, table))

    return rewrite(body, rule)
