"""Integer operations as what they are to index arithmetic: sums, multiples, ``//``, ``%``, minima and maxima.

``abs(e)`` is ``maximum(e, -e)``, ``e >> 2`` is ``e // 4``, ``e & 12`` is ``e // 4 % 4 * 4``, and a condition cast to an integer is 0 or
1: ``cast(i > 3)`` is ``minimum(maximum(i - 3, 0), 1)``. Arithmetic of short integers that leaves their range wraps around, which is a ``%``.
What is said of data stays as it is: an index that holds data is not solved for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, reduce
from operator import attrgetter

from jaxte.lang.dtypes import INTEGER_LIMITS, INTEGERS, SHORT_INTEGERS, is_integer
from jaxte.lang.errors import IndexExpressionError
from jaxte.lang.expr import ONE, ZERO, Axis, Call, Const, Expr, Read, Reduce, Symbol, as_expr, call
from jaxte.lang.operators import COMPARISONS, FLOOR_DIVIDE, MAXIMUM, MINIMUM, MOD, MULTIPLY, NEGATIVE
from jaxte.lang.text import text
from jaxte.lang.walk import OfNodes, postorder

Rule = Callable[..., Expr | None]
_dtype = attrgetter("dtype")


@lru_cache(maxsize=4096)
def quasi_affine(expr: Expr) -> Expr:
    """``expr`` with the integer operations in its indices and conditions spelled so; the same values.

    Values are left as they are: ``abs(i - 4) * X[i]`` is no index.
    """
    if _is_spelled(expr):
        return expr
    memo: dict[Expr, Expr] = {}
    for node in postorder(expr):
        match node:
            case Read(tensor, indices):
                memo[node] = Read(tensor, [_spelled(memo[i]) for i in indices])
            case Call(op, args) if op in COMPARISONS and all(is_integer(a.dtype) for a in args):
                memo[node] = call(op, *(_spelled(memo[a]) for a in args))
            case _:
                memo[node] = node.rebuild([memo[child] for child in node.children]) if node.children else node
    return memo[expr]


@lru_cache(maxsize=4096)
def index_of(expr: Expr) -> Expr:
    """:func:`quasi_affine` of an expression that is an index itself."""
    if not expr.children:
        return expr
    return _spelled(quasi_affine(expr))


def _is_spelled(expr: Expr) -> bool:
    """Whether no operation on integers in ``expr`` has another spelling."""
    return not expr.children or _spellings.of(expr)


def _spelled_above(node: Expr, below: Mapping[Expr, bool]) -> bool:
    """Whether ``node`` and what it is made of are spelled so."""
    if not all(map(below.__getitem__, node.children)):
        return False
    if not isinstance(node, Call) or node.dtype not in INTEGERS:
        return True
    return node.weak and node.op.name not in _RULES and "bool" not in map(_dtype, node.args)


_spellings = OfNodes(_spelled_above)


@lru_cache(maxsize=4096)
def _spelled(index: Expr) -> Expr:
    """An integer expression without the operations that are no index arithmetic; as it is where it holds data."""
    if _is_spelled(index) or any(isinstance(n, (Read, Reduce, Symbol)) for n in postorder(index)):
        return index
    memo: dict[Expr, Expr] = {}
    for node in postorder(index):
        children = [memo[child] for child in node.children]
        spelled = None
        if isinstance(node, Call) and is_integer(node.dtype):
            children = [_number(child) for child in children] if node.op.result == "promote" else children
            rule = _RULES.get(node.op.name)
            spelled = node.rebuild(children) if rule is None else rule(*children)
            if spelled is not None:
                spelled = _wrapped(spelled, node)
        memo[node] = (node.rebuild(children) if children else node) if spelled is None else spelled
    return memo[index]


def _wrapped(value: Expr, node: Call) -> Expr:
    """``value`` as the dtype of ``node`` holds it: around from its greatest number to its least."""
    if node.weak or node.op.name not in _CAN_LEAVE:
        return value
    low, high = INTEGER_LIMITS[node.dtype]
    ends = _ends(value)
    if ends is not None and low <= ends[0] and ends[1] <= high:
        return value
    if node.dtype in SHORT_INTEGERS:
        return (value - low) % (high - low + 1) + low
    if ends is None:
        return value  # extents are int32
    raise IndexExpressionError(
        f"an index of dtype {node.dtype} takes values from {ends[0]} to {ends[1]}, and {node.dtype} holds {low} to {high}: they wrap "
        "around; leave out the cast, an index is exact as it is"
    )


_CAN_LEAVE = ("add", "subtract", "multiply", "negative", "left_shift", "cast", "abs", "bitwise_not")


def _ends(root: Expr) -> tuple[int, int] | None:
    """The least and the greatest value over the ranges of the axes, where interval arithmetic tells."""
    memo: dict[Expr, tuple[int, int] | None] = {}
    for node in postorder(root):
        memo[node] = _node_ends(node, [memo[child] for child in node.children])
    return memo[root]


def _node_ends(node: Expr, ends: Sequence[tuple[int, int] | None]) -> tuple[int, int] | None:
    match node:
        case Const(int() as value):
            return int(value), int(value)
        case Axis(_, Const(int() as lo), Const(int() as hi)):
            return int(lo), max(int(lo), int(hi) - 1)
    if not isinstance(node, Call) or any(e is None for e in ends):
        return None
    known = [e for e in ends if e is not None]
    match node.op.name, known:
        case "add", [(a, b), (c, d)]:
            return a + c, b + d
        case "subtract", [(a, b), (c, d)]:
            return a - d, b - c
        case "negative", [(a, b)]:
            return -b, -a
        case "multiply", [(a, b), (c, d)]:
            corners = (a * c, a * d, b * c, b * d)
            return min(corners), max(corners)
        case "floor_divide", [(a, b), (c, d)] if c == d > 0:
            return a // c, b // c
        case "mod", [_, (c, d)] if c == d > 0:
            return 0, c - 1
        case "minimum", [(a, b), (c, d)]:
            return min(a, c), min(b, d)
        case "maximum", [(a, b), (c, d)]:
            return max(a, c), max(b, d)
    return None


# --- products of sizes, of which no set knows more


def is_of_sizes(expr: Expr) -> bool:
    """Whether ``expr`` has neither axes nor data in it."""
    return not any(isinstance(node, (Axis, Read)) for node in postorder(expr))


def product_of(a: Expr, b: Expr) -> Expr:
    """The product of two sizes that are no sums."""
    return reduce(lambda x, y: call(MULTIPLY, x, y), sorted((*_factors(a), *_factors(b)), key=text))


def _factors(size: Expr) -> tuple[Expr, ...]:
    if isinstance(size, Call) and size.op is MULTIPLY:
        return (*_factors(size.args[0]), *_factors(size.args[1]))
    return (size,)


# --- the operations


def _number(operand: Expr) -> Expr:
    """A condition among numbers counts as 0 or 1."""
    found = indicator(operand) if operand.dtype == "bool" else operand
    return operand if found is None else found


def _minimum(a: Expr, b: Expr) -> Expr:
    return call(MINIMUM, a, b)


def _maximum(a: Expr, b: Expr) -> Expr:
    return call(MAXIMUM, a, b)


def _abs(e: Expr) -> Expr:
    return _maximum(e, call(NEGATIVE, e))


def _power_of_two(shift: Expr) -> int | None:
    if isinstance(shift, Const) and isinstance(shift.value, int) and 0 <= shift.value < 63:
        return int(2**shift.value)
    return None


def _right_shift(e: Expr, shift: Expr) -> Expr | None:
    factor = _power_of_two(shift)
    return None if factor is None else call(FLOOR_DIVIDE, e, factor)


def _left_shift(e: Expr, shift: Expr) -> Expr | None:
    factor = _power_of_two(shift)
    return None if factor is None else call(MULTIPLY, e, factor)


def _bits(e: Expr, mask: int) -> Expr:
    """``e & mask``: each run of bits is a digit of ``e``."""
    if mask < 0:
        return e - _bits(e, ~mask)
    total: Expr = ZERO
    low = 0
    while mask >> low:
        if not mask >> low & 1:
            low += 1
            continue
        length = 1
        while mask >> (low + length) & 1:
            length += 1
        digit = call(MOD, call(FLOOR_DIVIDE, e, 2**low), 2**length)
        total = total + digit * 2**low
        low += length
    return total


def _with_mask(combine: Callable[[Expr, Expr, int], Expr]) -> Rule:
    def rule(a: Expr, b: Expr) -> Expr | None:
        for e, mask in ((a, b), (b, a)):
            if isinstance(mask, Const) and isinstance(mask.value, int):
                return combine(e, _bits(e, int(mask.value)), int(mask.value))
        return None

    return rule


def _cast(e: Expr) -> Expr | None:
    return indicator(e) if e.dtype == "bool" else e if is_integer(e.dtype) else None


def indicator(condition: Expr) -> Expr | None:
    """1 where ``condition`` holds, else 0."""
    match condition:
        case Const(value):
            return ONE if value else ZERO
        case Call(op, args):
            pass
        case _:
            return None
    if op in COMPARISONS:
        if not all(is_integer(a.dtype) for a in args):
            return None
        a, b = args
        return _COMPARED[op.name](a, b)
    parts = [indicator(a) for a in args]
    if any(p is None for p in parts):
        return None
    known = [p for p in parts if p is not None]
    match op.name:
        case "logical_and":
            return _minimum(*known)
        case "logical_or":
            return _maximum(*known)
        case "logical_not":
            return 1 - as_expr(known[0])  # type: ignore[no-any-return]
    return None


def _at_least_one(e: Expr) -> Expr:
    """1 where ``e >= 1``, else 0."""
    return _minimum(_maximum(e, ZERO), ONE)


_COMPARED: dict[str, Callable[[Expr, Expr], Expr]] = {
    "less": lambda a, b: _at_least_one(b - a),
    "less_equal": lambda a, b: _at_least_one(b - a + 1),
    "greater": lambda a, b: _at_least_one(a - b),
    "greater_equal": lambda a, b: _at_least_one(a - b + 1),
    "not_equal": lambda a, b: _minimum(_abs(a - b), ONE),
    "equal": lambda a, b: 1 - _minimum(_abs(a - b), ONE),
}

_RULES: dict[str, Rule] = {
    "abs": _abs,
    "sign": lambda e: _minimum(_maximum(e, as_expr(-1)), ONE),
    "relu": lambda e: _maximum(e, ZERO),
    "right_shift": _right_shift,
    "left_shift": _left_shift,
    "bitwise_and": _with_mask(lambda e, both, mask: both),
    "bitwise_or": _with_mask(lambda e, both, mask: e + mask - both),
    "bitwise_xor": _with_mask(lambda e, both, mask: e + mask - 2 * both),
    "bitwise_not": lambda e: call(NEGATIVE, e) - 1,
    "cast": _cast,
}
