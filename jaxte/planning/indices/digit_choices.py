"""Tensors that are chosen by a digit of a position, as what they are at each value of the digit, side by side.

    y[i] = select(i // 4 % 2 == 0, x[i] + x[i ^ 4], x[i ^ 4] - x[i])   is   y[i] = z[i // 8, i // 4 % 2, i % 4]
    with   z[g, d, l] = select(d == 0, x[8 * g + l] + x[8 * g + l + 4], x[8 * g + l] - x[8 * g + l + 4])

Each branch is computed where it counts, of slices, and nothing is reversed pair by pair. The adjoint of a butterfly is one of the same kind. A choice by a remainder
alone is written side by side as it stands (``rules/interleaved.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, permutations
from math import prod

from jaxte.lang.divisions import Quotient, division, divisions
from jaxte.lang.expr import ZERO, Axis, Call, Const, Expr, Read, Reduce, call
from jaxte.lang.graphs import place_of
from jaxte.lang.limits import FEW
from jaxte.lang.operators import COMPARISONS, EQUAL, SELECT
from jaxte.lang.walk import all_of, depends_on, free_axes, reads_of, reductions
from jaxte.planning.indices.digits import Digits
from jaxte.sets.digits import Number, at_digits, whole
from jaxte.sets.index_forms import linear_or_none, nonnegative_forms
from jaxte.sets.intervals import known
from jaxte.sets.resolved import decided
from jaxte.tensors.tensor import Compute


def by_digit_values(tensor: Compute) -> tuple[Digits, Read] | None:
    """A tensor over the digits of an axis of ``tensor``, a choice by one of them, and its element that an element of ``tensor`` is; None where it is no such choice,
    or reads no element at another value of the digit."""
    if tensor.override is not None or isinstance(tensor, Digits) or isinstance(tensor.body, Reduce):
        return None
    sums = [prod(known(a.extent) or FEW + 1 for a in n.axes) for n in reductions(tensor.body)]
    if any(points > FEW for points in sums):  # each branch would have its own
        return None
    tests = [n.args[0] for n in all_of(Call, tensor.body) if n.op is SELECT]
    tests = [t for t in tests if divisions(t)]
    for axis in tensor.axes if tests else ():
        for number in _numbers(axis, tests):
            if _decides(number, tests):
                bodies = [
                    _at_value(tensor.body, number, n) for n in range(known(number.digits[-2].extent) or 0)
                ]
                if all(b is not None for b in bodies):
                    return _side_by_side(tensor, number, bodies)  # type: ignore[arg-type]
    return None


def _numbers(axis: Axis, tests: Sequence[Expr]) -> Iterator[Number]:
    """``axis`` as numbers of which the last digit but one may be what ``tests`` ask for."""
    extent = known(axis.extent)
    if extent is None or axis.lo is not ZERO:
        return
    weights = sorted({w for w in _candidates(axis, tests) if 1 < w < extent and extent % w == 0})
    for low, high in permutations((*weights, extent), 2):
        if high % low == 0 and 1 < high // low <= FEW:
            used = (high, low, 1) if high < extent else (low, 1)
            ends = pairwise([extent, *used])
            digits = tuple(
                Axis(f"{axis.name}_{n}", 0, above // below) for n, (above, below) in enumerate(ends)
            )
            yield Number(axis, digits, used)


def _candidates(axis: Axis, tests: Sequence[Expr]) -> Iterator[int]:
    """What one of a digit may count for: what positions are divided by, what remainders are compared with, and what they are moved by."""
    for divided in divisions(*tests):
        form = linear_or_none(divided.number)
        if divided.base is None or form is None or axis not in free_axes(divided.number):
            continue
        yield abs(form.constant)
        yield abs(form.constant + 1)
        for atom in form.terms:
            inner = division(atom)
            own = inner.base if isinstance(inner, Quotient) and inner.base is not None else 1
            yield from (own, own * divided.base)
    for test in tests:
        for node in all_of(Call, test):
            if node.op in COMPARISONS and axis in free_axes(node):
                for form in nonnegative_forms(node):
                    yield abs(form.constant)
                    yield abs(form.constant + 1)


def _decides(number: Number, tests: Sequence[Expr]) -> bool:
    """Whether one of ``tests`` is on nothing but the last digit but one of ``number``, at each of its values."""
    values = [_with(number, n) for n in range(known(number.digits[-2].extent) or 0)]
    return any(
        number.axis in free_axes(test)
        and not reads_of(test)
        and all(not free_axes(decided(at_digits(test, {number.axis: value}))) for value in values)
        for test in tests
    )


def _with(number: Number, value: int) -> Expr:
    """The positions at which the last digit but one has a ``value``."""
    return whole([*number.digits[:-2], Const(value), number.digits[-1]], number.weights)


def _at_value(body: Expr, number: Number, value: int) -> Expr | None:
    """``body`` where the last digit but one has a ``value``; None where nothing is read at another value."""
    at = _with(number, value)
    found = decided(at_digits(body, {number.axis: at}))
    own = [i for r in reads_of(found) for i in r.indices if depends_on(i, number.digits)]
    return None if all(i is at for i in own) else found


def _side_by_side(tensor: Compute, number: Number, bodies: Sequence[Expr]) -> tuple[Digits, Read]:
    *first, chosen = bodies
    digit = number.digits[-2]
    for value, own in reversed([*enumerate(first)]):
        chosen = call(SELECT, call(EQUAL, digit, value), own, chosen)
    at = place_of(number.axis, tensor.axes)
    before, behind = tensor.axes[:at], tensor.axes[at + 1 :]
    part = Digits(f"{tensor.name}_digits", [*before, *number.digits, *behind], chosen)
    return part, Read(part, [*before, *number.indices, *behind])
