"""Bounds of index expressions over a box of dimensions, by interval arithmetic on linear forms.

A dimension is an axis from 0; sizes are symbols of at least 1. Bounds come out as linear forms in sizes. isl is
asked only where sizes stand with both signs.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from jaxte.lang.expr import ZERO, Axis, Call, Const, Expr, Read, Var, as_expr
from jaxte.lang.operators import Op
from jaxte.lang.walk import postorder, reads_of, substitute
from jaxte.lower.limits import FEW_POSITIONS
from jaxte.sets.affine import Linear, floor_divide, from_linear, linear, mod, normal
from jaxte.sets.domain import IntegerSet, evaluate_index, is_decidable


def known(expr: Expr) -> int | None:
    """The value of a size, where it is known now."""
    return int(expr.value) if isinstance(expr, Const) else None  # type: ignore[arg-type]


def constant(value: int) -> Linear:
    return Linear({}, value)


def lowest(form: Linear) -> Linear | None:
    """The least value over the box; None where it cannot be told."""
    return _end(form, largest=False)


def highest(form: Linear) -> Linear | None:
    """The greatest value over the box; None where it cannot be told."""
    return _end(form, largest=True)


def _end(form: Linear, largest: bool) -> Linear | None:
    result = constant(form.constant)
    for atom, coefficient in form.terms.items():
        end = _atom_end(atom, (coefficient > 0) == largest)
        if end is None:
            return None
        result = result + end * coefficient
    return result


def _atom_end(atom: Expr, largest: bool) -> Linear | None:
    match atom:
        case Axis():
            return linear(atom.hi) - constant(1) if largest else linear(atom.lo)
        case Var():
            return Linear({atom: 1})
        case Call(op, (numerator, Const(int() as divisor))) if op.name == "floor_divide":
            end = _end(linear(numerator), largest)
            return None if end is None else floor_divide(end, divisor)
        case Call(op, (numerator, Const(int() as divisor))) if op.name == "mod":
            return _mod_end(linear(numerator), divisor, largest)
        case Call(op, (a, b)) if op.name in ("minimum", "maximum"):
            first, second = _end(linear(a), largest), _end(linear(b), largest)
            if first is None or second is None:
                return None
            if nonnegative(first - second):
                return first if op.name == "maximum" else second
            return (second if op.name == "maximum" else first) if nonnegative(second - first) else None
    return None


def _mod_end(numerator: Linear, divisor: int, largest: bool) -> Linear:
    quotient = single_quotient(numerator, divisor)
    if quotient is not None:
        end = _end(numerator, largest)
        if end is not None:
            return end - quotient * divisor
    if not any(isinstance(n, Axis) for atom in numerator.terms for n in postorder(atom)):
        return mod(numerator, divisor)
    return constant(divisor - 1 if largest else 0)


def single_quotient(numerator: Linear, divisor: int) -> Linear | None:
    """``numerator // divisor`` where it is the same over the whole box."""
    low, high = lowest(numerator), highest(numerator)
    if low is None or high is None:
        return None
    first, last = floor_divide(low, divisor), floor_divide(high, divisor)
    return first if from_linear(first - last) is ZERO else None


def nonnegative(form: Linear) -> bool:
    """Whether a form in sizes, each at least 1, is at least 0 whatever the sizes are."""
    least = form.constant
    simple = True
    for atom, coefficient in form.terms.items():
        low = 1 if isinstance(atom, Var) else 0
        simple = simple and coefficient > 0 and (isinstance(atom, Var) or _size_is_natural(atom))
        least += coefficient * low
    if simple:
        return least >= 0
    return _asked(from_linear(form))


def _size_is_natural(atom: Expr) -> bool:
    match atom:
        case Call(op, (numerator, _)) if op.name == "floor_divide":
            return nonnegative(linear(numerator))
        case Call(op, _):
            return op.name == "mod"
    return False


@cache
def _asked(size: Expr) -> bool:
    """isl's answer; the sizes are the variables of the set."""
    if not is_decidable(size >= ZERO):
        return False
    sizes = list(dict.fromkeys(n for n in postorder(size) if isinstance(n, Var)))
    return IntegerSet(sizes, [s >= 1 for s in sizes], {}).implies(size >= ZERO)


def at_most(a: Expr | Linear, b: Expr | Linear) -> bool:
    """Whether ``a <= b`` for all sizes."""
    return nonnegative(_form(b) - _form(a))


def same(a: Expr | Linear, b: Expr | Linear) -> bool:
    """Whether ``a == b`` for all sizes."""
    return from_linear(_form(a) - _form(b)) is ZERO


def _form(value: Expr | Linear) -> Linear:
    return value if isinstance(value, Linear) else linear(value)


def plus(*values: Expr | int) -> Expr:
    """The sum of sizes."""
    total = constant(0)
    for value in values:
        total = total + linear(as_expr(value))
    return from_linear(total)


def times(a: Expr, b: Expr) -> Expr | None:
    """The product of two sizes, where one is a number."""
    factor, other = (known(a), b) if known(a) is not None else (known(b), a)
    return None if factor is None else from_linear(linear(other) * factor)


def simplify(index: Expr, table: Mapping[Axis, Expr]) -> Expr:
    """``index`` with ``table`` put in, and divisions resolved that are the same over the whole box."""
    current = normal(substitute(index, dict(table)))
    while True:
        found: dict[Expr, Expr] = {}
        for node in postorder(current):
            replacement = _resolved(node)
            if replacement is not None:
                found[node] = replacement
                break
        if not found:
            return current
        current = normal(substitute(current, found))


def _resolved(node: Expr) -> Expr | None:
    match node:
        case Call(op, (numerator, Const(int() as divisor))) if op.name in ("floor_divide", "mod"):
            if divisor <= 0:
                return None
            progression = _progression(node)
            if progression is not None:
                return progression
            quotient = single_quotient(linear(numerator), divisor)
            if quotient is None or (op.name == "floor_divide" and from_linear(quotient) is node):
                return None
            if op.name == "floor_divide":
                return from_linear(quotient)
            rest = from_linear(linear(numerator) - quotient * divisor)
            return None if rest is node or _mentions(rest, node) else rest
        case Call(op, (a, b)) if op.name in ("minimum", "maximum"):
            low = lowest(linear(a) - linear(b))
            high = highest(linear(a) - linear(b))
            if low is not None and nonnegative(low):
                return b if op.name == "minimum" else a
            if high is not None and nonnegative(high * -1):
                return a if op.name == "minimum" else b
    return None


def _progression(node: Expr) -> Expr | None:
    """A division of one dimension of few points, where its values are evenly spaced."""
    dims = dims_of(node)
    if len(dims) != 1 or any(isinstance(n, (Var, Read)) for n in postorder(node)):
        return None
    count = known(dims[0].hi)
    if count is None or not 2 <= count <= FEW_POSITIONS:
        return None
    values = [evaluate_index(node, {dims[0]: p}) for p in range(count)]
    step = values[1] - values[0]
    if any(values[p + 1] - values[p] != step for p in range(count - 1)):
        return None
    return from_linear(Linear({dims[0]: step} if step else {}, values[0]))


def _mentions(expr: Expr, part: Expr) -> bool:
    return any(node is part for node in postorder(expr))


def dims_of(expr: Expr) -> list[Axis]:
    """The dimensions in an index expression, in order of appearance."""
    return [node for node in postorder(expr) if isinstance(node, Axis)]


def decide(op: Op, left: Expr, right: Expr) -> bool | None:
    """Whether a comparison of index expressions holds at every point of the box, or at none."""
    difference = linear(left) - linear(right)
    low, high = lowest(difference), lowest(difference * -1)
    at_least_zero = low is not None and nonnegative(low)
    at_most_zero = high is not None and nonnegative(high)
    above_zero = low is not None and nonnegative(low + constant(-1))
    below_zero = high is not None and nonnegative(high + constant(-1))
    match op.name:
        case "greater_equal":
            return True if at_least_zero else False if below_zero else None
        case "greater":
            return True if above_zero else False if at_most_zero else None
        case "less_equal":
            return True if at_most_zero else False if above_zero else None
        case "less":
            return True if below_zero else False if at_least_zero else None
        case "equal":
            return True if at_least_zero and at_most_zero else False if above_zero or below_zero else None
        case "not_equal":
            return False if at_least_zero and at_most_zero else True if above_zero or below_zero else None
    return None


def surely_inside(node: Read) -> bool:
    """Whether the axes' own ranges keep every affine index of the read in range."""
    for index, extent in zip(node.indices, node.tensor.shape, strict=True):
        if reads_of(index):
            continue
        form = linear(index)
        low, room = lowest(form), lowest(linear(as_expr(extent)) - form)
        if low is None or room is None or not nonnegative(low) or not nonnegative(room + constant(-1)):
            return False
    return True
