"""Bounds of index expressions over boxes, by interval arithmetic on linear forms: the one place that knows what ``//`` and ``%`` reach.

Axes run over their own ranges, and sizes are symbols of at least 1: bounds come out as linear forms in sizes, and isl is
asked only where sizes stand with both signs. Or else all that moves has bounds that are numbers, and so has the form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, lru_cache

from jaxte.lang.divisions import Quotient, Remainder, division
from jaxte.lang.expr import ZERO, Axis, Call, Const, Expr, Read, Var, as_expr, call
from jaxte.lang.operators import EQUAL, MAXIMUM, MINIMUM, MULTIPLY, Op
from jaxte.lang.walk import all_of, postorder, reads_of
from jaxte.sets.affine import floor_divide, from_linear, linear, mod, normal
from jaxte.sets.domain import IntegerSet
from jaxte.sets.index_forms import written_size
from jaxte.sets.isl_text import is_decidable
from jaxte.sets.linear import Linear, combined
from jaxte.sets.quasi_affine import is_of_sizes

Bounds = Mapping[Expr, tuple[int, int]]
_NUMBERS = frozenset([int, Const])
_UNKNOWN_EXTENT = 1024  # what a symbolic extent counts as


def known(expr: Expr) -> int | None:
    """The value of a size, where it is known now."""
    return int(expr.value) if isinstance(expr, Const) else None  # type: ignore[arg-type]


@lru_cache(maxsize=4096)  # costs ask for the same extents over and over
def extent_of(extent: Expr | int) -> int:
    """A number for an extent: its own, or a guess where it is symbolic."""
    if isinstance(extent, int):
        return max(0, extent)
    value = extent if isinstance(extent, Const) else normal(extent)
    return max(0, int(value.value)) if isinstance(value, Const) else _UNKNOWN_EXTENT  # type: ignore[arg-type]


def extent(axis: Axis) -> int:
    """How many values ``axis`` takes, a guess where it is symbolic."""
    return extent_of(axis.extent)


@lru_cache(maxsize=256)
def constant(value: int) -> Linear:
    return Linear({}, value)


def lowest(form: Linear) -> Linear | None:
    """The least value over the box; None where it cannot be told."""
    return _end(form, False, None)


def highest(form: Linear) -> Linear | None:
    """The greatest value over the box; None where it cannot be told."""
    return _end(form, True, None)


class _Box(dict[Expr, tuple[int, int]]):
    """Bounds, and the ends within them that are found so far: a remainder asks twice for both of its number's, which may be remainders again."""

    def __init__(self, bounds: Bounds) -> None:
        super().__init__(bounds)
        self._ends: dict[tuple[Expr, bool], Linear | None] = {}

    def end(self, atom: Expr, largest: bool) -> Linear | None:
        if atom in self:
            return constant(self[atom][largest])
        key = (atom, largest)
        if key not in self._ends:
            self._ends[key] = _end_of(atom, largest, self)
        return self._ends[key]


def interval(form: Linear, bounds: Bounds) -> tuple[int, int] | None:
    """Least and greatest value given inclusive bounds of all atoms that are no divisions; None if one is unknown."""
    box = _Box(bounds)
    low, high = _end(form, False, box), _end(form, True, box)
    return None if low is None or high is None else (low.constant, high.constant)


def reach(form: Linear) -> tuple[int, int] | None:
    """Least and greatest value over the ranges of the axes; None where they are no numbers."""
    return interval(form, axis_bounds(n for n in all_of(Axis, *form.terms)))


def _end(form: Linear, largest: bool, bounds: _Box | None) -> Linear | None:
    ends = []
    for atom, coefficient in form.terms.items():
        above = (coefficient > 0) == largest
        end = _own_end(atom, above) if bounds is None else bounds.end(atom, above)
        if end is None:
            return None
        if coefficient == 1 and len(form.terms) == 1 and not form.constant:  # most are an axis
            return end
        ends.append((coefficient, end))
    return combined(ends, form.constant) if ends else form


@lru_cache(maxsize=8192)  # each question about a box asks for the same quotients
def _own_end(atom: Expr, largest: bool) -> Linear | None:
    return _end_of(atom, largest, None)


def _end_of(atom: Expr, largest: bool, bounds: _Box | None) -> Linear | None:
    match division(atom):
        case Quotient(numerator, int() as divisor):
            end = _end(linear(numerator), largest, bounds)
            return None if end is None else floor_divide(end, divisor)
        case Remainder(numerator, int() as divisor):
            return _mod_end(linear(numerator), divisor, largest, bounds)
    match atom:
        case Axis() if bounds is None:
            return linear(atom.hi) - constant(1) if largest else linear(atom.lo)
        case Var() if bounds is None:
            return Linear({atom: 1})
        case Call(op, _) if op is MULTIPLY and bounds is None:  # of sizes
            return Linear({atom: 1})
        case Call(op, (a, b)) if op in (MINIMUM, MAXIMUM):
            first, second = _end(linear(a), largest, bounds), _end(linear(b), largest, bounds)
            if first is None or second is None:
                return None
            if nonnegative(first - second):
                return first if op is MAXIMUM else second
            return (second if op is MAXIMUM else first) if nonnegative(second - first) else None
    return None


def _mod_end(numerator: Linear, divisor: int, largest: bool, bounds: _Box | None) -> Linear:
    quotient = single_quotient(numerator, divisor, bounds)
    if quotient is not None:
        end = _end(numerator, largest, bounds)
        if end is not None:
            return end - quotient * divisor
    if bounds is None and not any(isinstance(n, Axis) for atom in numerator.terms for n in postorder(atom)):
        return mod(numerator, divisor)
    return constant(divisor - 1 if largest else 0)


def single_quotient(numerator: Linear, divisor: int, bounds: _Box | None = None) -> Linear | None:
    """``numerator // divisor`` where it is the same over the whole box."""
    low, high = _end(numerator, False, bounds), _end(numerator, True, bounds)
    if low is None or high is None:
        return None
    first, last = floor_divide(low, divisor), floor_divide(high, divisor)
    return first if from_linear(first - last) is ZERO else None


def nonnegative(form: Linear) -> bool:
    """Whether a form in sizes, each at least its least value, is at least 0 whatever the sizes are."""
    least, exact = form.constant, True
    for atom, coefficient in form.terms.items():
        low = least_size(atom) if coefficient > 0 else None
        if low is None:
            return _asked(from_linear(form))
        least += coefficient * low
        exact = exact and isinstance(atom, Var) and not atom.given
    return least >= 0 or (not exact and _asked(from_linear(form)))


def may_be_negative(size: Expr) -> bool:
    """Whether what is made of sizes alone is below 0 for some of them."""
    return not isinstance(size, Const) and is_of_sizes(size) and not nonnegative(linear(size))


def least_size(size: Expr) -> int | None:
    """A number that a size is not below, whatever the sizes in it are; None where none is found."""
    match division(size):
        case Quotient(numerator, int() as divisor) if divisor > 0:
            form = linear(numerator)
            lows = {a: least_size(a) if c > 0 else None for a, c in form.terms.items()}
            if any(low is None for low in lows.values()):
                return 0 if nonnegative(form) else None
            least = form.constant + sum(c * (lows[a] or 0) for a, c in form.terms.items())
            return least // divisor
        case Remainder(_, int() as divisor) if divisor > 0:
            return 0
    match size:
        case Var():
            return size.least
        case Call(op, (a, b)) if op is MULTIPLY:
            first, second = least_size(a), least_size(b)
            return None if first is None or second is None else first * second
    return None


@cache
def _asked(size: Expr) -> bool:
    """Whether isl finds ``size`` to be at least 0."""
    return _holds(size >= ZERO)


def _holds(condition: Expr) -> bool:
    """isl's answer; the sizes are the variables of the set."""
    if not is_decidable(condition):
        return False
    sizes = list(dict.fromkeys(n for n in all_of(Var, condition)))
    return IntegerSet(sizes, [s >= s.least for s in sizes], {}).implies(condition)


def at_most(a: Expr | Linear, b: Expr | Linear) -> bool:
    """Whether ``a <= b`` for all sizes."""
    lesser = a if isinstance(a, Linear) else linear(a)
    return nonnegative((b if isinstance(b, Linear) else linear(b)).plus(lesser, -1))


def same(a: Expr | Linear, b: Expr | Linear) -> bool:
    """Whether ``a == b`` for all sizes, in whatever way their quotients are spelled."""
    if a is b:
        return True
    difference = from_linear(_form(a) - _form(b))
    return difference is ZERO or _cancels(difference)


@lru_cache(maxsize=4096)
def _cancels(difference: Expr) -> bool:
    """Whether the quotients of sizes in ``difference`` add up to 0: as they are written, ``n // 2 + (n + 1) // 2 - n``, or as isl knows."""
    if not is_of_sizes(difference) or all(isinstance(atom, Var) for atom in linear(difference).terms):
        return False  # sums of sizes have one form
    return written_size(difference) is ZERO or _holds(call(EQUAL, difference, ZERO))


def _form(value: Expr | Linear) -> Linear:
    return value if isinstance(value, Linear) else linear(value)


def plus(*values: Expr | int) -> Expr:
    """The sum of sizes."""
    if _NUMBERS.issuperset(map(type, values)):  # most are
        return as_expr(sum([v if isinstance(v, int) else int(v.value) for v in values]))  # type: ignore[attr-defined, misc]
    return from_linear(combined([(1, constant(v) if isinstance(v, int) else linear(v)) for v in values]))


def times(a: Expr, b: Expr) -> Expr | None:
    """The product of two sizes, where one is a number."""
    factor, other = (known(a), b) if known(a) is not None else (known(b), a)
    return None if factor is None else from_linear(linear(other) * factor)


def dims_of(expr: Expr) -> list[Axis]:
    """The dimensions in an index expression, in order of appearance."""
    return [expr] if isinstance(expr, Axis) else list(_dims_below(expr)) if expr.children else []


@lru_cache(maxsize=4096)
def _dims_below(expr: Expr) -> tuple[Axis, ...]:
    return tuple(all_of(Axis, expr))


def decide(op: Op, left: Expr, right: Expr) -> bool | None:
    """Whether a comparison of index expressions holds at every point of the box, or at none."""
    form = linear(left) - linear(right)
    low, high = lowest(form), lowest(form * -1)
    at_least_zero = low is not None and nonnegative(low)
    at_most_zero = high is not None and nonnegative(high)
    above_zero = low is not None and nonnegative(low + constant(-1))
    below_zero = high is not None and nonnegative(high + constant(-1))
    always, never = {
        "greater_equal": (at_least_zero, below_zero),
        "greater": (above_zero, at_most_zero),
        "less_equal": (at_most_zero, above_zero),
        "less": (below_zero, at_least_zero),
        "equal": (at_least_zero and at_most_zero, above_zero or below_zero),
        "not_equal": (above_zero or below_zero, at_least_zero and at_most_zero),
    }[op.name]
    return True if always else False if never else None


def stays_in(form: Linear, extent: Expr | Linear) -> bool:
    """Whether ``form`` is in ``[0, extent)`` at every point of the box."""
    low, room = lowest(form), lowest(_form(extent) - form)
    return low is not None and room is not None and nonnegative(low) and nonnegative(room - constant(1))


@lru_cache(maxsize=4096)  # steps of planning and of lowering ask of the same reads in turn
def index_stays_in(index: Expr, extent: Expr) -> bool:
    """:func:`stays_in` of the form of an index."""
    return stays_in(linear(index), extent)


def surely_inside(read: Read) -> bool:
    """Whether the axes' own ranges keep every affine index of the read in range."""
    return all(
        index_stays_in(index, as_expr(extent))
        for index, extent in zip(read.indices, read.tensor.shape, strict=True)
        if not reads_of(index)
    )


def axis_bounds(axes: Iterable[Axis]) -> dict[Expr, tuple[int, int]]:
    """Inclusive bounds of the axes whose range is known now and not empty."""
    found: dict[Expr, tuple[int, int]] = {}
    for axis in axes:
        match axis.lo, axis.hi:
            case Const(int() as lo), Const(int() as hi) if hi > lo:
                found[axis] = (int(lo), int(hi) - 1)
    return found
