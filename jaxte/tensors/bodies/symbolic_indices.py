"""Indices divided by sizes that are symbols: ``x[(i + 1) % n]``, ``w[c // (n // 4)]``, and what no solver takes at all, ``x[i * n // 7]``.

No solver divides by a size that is not known. But where the numerator stays within a few multiples of the size, the read is a choice between
as many: ``(i + s) % n`` is ``i + s`` where that is below ``n``, else ``i + s - n``, as long as ``n`` is known to be at least ``s``. Any other
index becomes data: a tensor of positions that is read, ``x[at[i]]``, whose adjoint is a scatter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from math import prod

from jaxte.lang.divisions import Division, Remainder, division
from jaxte.lang.errors import IndexExpressionError
from jaxte.lang.expr import ONE, ZERO, Axis, Call, Const, Expr, Read, Var, as_expr, call, cast
from jaxte.lang.limits import CASES, FEW
from jaxte.lang.operators import AND, COMPARISONS, LESS, MULTIPLY, NOT, OR, SELECT
from jaxte.lang.walk import free_axes, postorder, reads_of, rewrite, substitute
from jaxte.sets.affine import from_linear, linear
from jaxte.sets.index_forms import linear_or_none
from jaxte.sets.intervals import constant, highest, lowest, nonnegative
from jaxte.sets.linear import Linear

Positions = Callable[[str, Sequence[Axis], Expr], Expr]


def without_divisions(name: str, body: Expr, positions: Positions) -> Expr:
    """``body`` with a choice of reads, or a read at positions that are data, for each index divided by a symbolic size.

    Args:
        name: of the tensor.
        positions: the element, for the given axes, of a tensor that is called so and holds an index for each of their positions.
    """

    divided = {
        d for read in reads_of(body) for i in read.indices for d in postorder(i) if _divides_by_size(d)
    }

    def rule(node: Expr) -> Expr:
        if isinstance(node, Read):
            return _read(name, node, positions)
        if divided and isinstance(node, Call) and node.op in COMPARISONS and not reads_of(node):
            return _compared(node, divided)
        return node

    return rewrite(body, rule)


def _compared(node: Expr, divided: Set[Expr]) -> Expr:
    """A comparison of what reads divide, as a choice between comparisons without division: it may say that one of the choices of a read is inside."""
    division = next((n for n in postorder(node) if n in divided and _choices(n) is not None), None)
    if division is None:
        return node
    result: Expr | None = None
    for test, value in reversed(_choices(division) or ()):
        own = _compared(substitute(node, {division: value}), divided)
        taken = call(AND, test, own)
        result = own if result is None else call(OR, taken, call(AND, call(NOT, test), result))
    assert result is not None
    return result


def _read(name: str, read: Read, positions: Positions) -> Expr:
    choice = next((n for index in read.indices for n in postorder(index) if _is_open_choice(n)), None)
    if choice is not None:
        test, *values = choice.children
        branches = (substitute(read, {choice: value}) for value in values)
        return call(
            SELECT, test, *(_read(name, b, positions) if isinstance(b, Read) else b for b in branches)
        )
    if not any(_is_open(n) for index in read.indices for n in postorder(index)):
        return read
    divisions = dict.fromkeys(d for index in read.indices for d in postorder(index) if _divides_by_size(d))
    division = next(iter(divisions), None)
    choices = None if division is None or _branches(divisions) > CASES else _choices(division)
    if division is None or choices is None:
        return Read(read.tensor, [_as_data(name, index, positions) for index in read.indices])
    result: Expr | None = None
    for test, value in reversed(choices):
        own = substitute(read, {division: value})
        taken = _read(name, own, positions) if isinstance(own, Read) else own
        result = taken if result is None else call(SELECT, test, taken, result)
    assert result is not None
    return result


def _branches(divisions: Iterable[Expr]) -> int:
    """How many reads a read with these divisions becomes."""
    return prod(len(_choices(division) or [division]) for division in divisions)


def _as_data(name: str, index: Expr, positions: Positions) -> Expr:
    """An index that has no quasi-affine form as an element of a tensor of positions."""
    if reads_of(index) or linear_or_none(index) is not None or not any(map(_is_open, postorder(index))):
        return index
    if any(isinstance(n, Call) and n.op is SELECT for n in postorder(index)):
        return index
    return positions(f"{name}_at", list(free_axes(index)), cast(index, "int32"))


def _is_open(node: Expr) -> bool:
    """Whether ``node`` divides by a size, or multiplies a position with one."""
    if not isinstance(node, Call) or node.dtype == "bool":
        return False
    if node.op is MULTIPLY:
        sizes = [a for a in node.args if not free_axes(a) and any(isinstance(n, Var) for n in postorder(a))]
        return len(sizes) == 1 and bool(free_axes(node)) and not reads_of(node)
    return _divides_by_size(node)


def _is_open_choice(node: Expr) -> bool:
    """Whether ``node`` chooses between positions of axes whose extents are symbols, which no table lists."""
    if not (isinstance(node, Call) and node.op is SELECT) or reads_of(node):
        return False
    return any(
        isinstance(n, Var) or (isinstance(n, Axis) and not isinstance(n.extent, Const))
        for n in postorder(node)
    )


def _divides_by_size(node: Expr) -> bool:
    divided = division(node)
    if divided is None or isinstance(divided.divisor, Const):
        return False
    return not free_axes(divided.divisor) and not reads_of(node)


def _choices(node: Expr) -> list[tuple[Expr, Expr]] | None:
    """What ``numerator // size`` or ``numerator % size`` is, each with the condition under which it is and none before it; None where that
    is not known to be one of a few.
    """
    divided = division(node)
    assert divided is not None
    neighbour = _neighbour(divided)
    if neighbour is not None:
        return neighbour
    try:
        form, unit = linear(divided.number), linear(divided.divisor)
    except IndexExpressionError:
        return None
    quotients, rest = _quotients(form, unit), isinstance(divided, Remainder)
    if quotients is None or (rest and _only_of_small_sizes(form, unit, quotients)):
        return None
    found: list[tuple[Expr, Expr]] = []
    for quotient in quotients:
        value = from_linear(form - unit * quotient) if rest else as_expr(quotient)
        found.append((call(LESS, from_linear(form), from_linear(unit * (quotient + 1))), value))
    return found


def _quotients(form: Linear, unit: Linear) -> range | None:
    """The values that ``form // unit`` may take; None where they are not known to be few."""
    low, high = lowest(form), highest(form)
    if low is None or high is None or not nonnegative(unit - constant(1)):
        return None
    every = range(-CASES, CASES + 1)
    first = max((q for q in every if nonnegative(low - unit * q)), default=None)
    last = min((q for q in every if nonnegative(unit * (q + 1) - high - constant(1))), default=None)
    if first is None or last is None or last - first >= CASES:
        return None
    return range(first, last + 1)


def _only_of_small_sizes(form: Linear, unit: Linear, quotients: range) -> bool:
    """Whether there are many quotients, some of which only small sizes have: five steps around the end of ``n`` elements, which may be one."""
    # Small sizes have more turns than large ones: each is a slice of the tensor.
    if len(quotients) <= FEW:
        return False
    low, high = lowest(form), highest(form)
    assert low is not None and high is not None
    reached = high - unit * quotients[-1], unit * (quotients[0] + 1) - low - constant(1)
    return not all(map(nonnegative, reached))


def _neighbour(divided: Division) -> list[tuple[Expr, Expr]] | None:
    """The choices of a step of one around the end of an axis, which leads to the other end and nowhere else, whatever the size."""
    moved, size = divided.number, divided.divisor
    axes = list(free_axes(moved))
    form = linear_or_none(moved)
    if not isinstance(divided, Remainder) or len(axes) != 1 or form is None:
        return None
    (axis,) = axes
    rest = form - linear(axis)
    if rest.terms or abs(rest.constant) != 1 or axis.lo is not ZERO or axis.hi is not size:
        return None
    inside = axis + rest.constant
    if rest.constant == 1:
        return [(call(LESS, inside, size), inside), (ONE, ZERO)]
    return [(call(LESS, ZERO, axis), inside), (ONE, size - 1)]
