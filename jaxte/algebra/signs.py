"""Expressions that are not negative, whatever finite numbers their inputs are: roots of these are finite, and quotients by what is above zero.

``sqrt(sum over k of x[i, k] ** 2 + 1e-6)`` is finite, and so is ``x[i, j]`` divided by it, or by ``1 + exp(x[i, j])``.
"""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache

from jaxte.lang.dtypes import is_complex, is_inexact
from jaxte.lang.expr import Call, Const, Expr, Read, Reduce, Reducer
from jaxte.lang.operators import ADD, DIVIDE, MULTIPLY, POWER, SELECT
from jaxte.lang.scalars.table import may_blow_up
from jaxte.lang.walk import fold, postorder
from jaxte.sets.intervals import surely_inside
from jaxte.tensors.tensor import Compute

_DEEPEST = 6  # tensors that read one another; what is read further away may have any sign
_NEVER_NEGATIVE = frozenset(
    ["square", "exp", "exp2", "relu", "relu6", "sigmoid", "softplus", "hypot", "cosh"]
)
_SAME = frozenset(["cast", "stop_gradient"])


class Sign(IntEnum):
    """What is known of a number that is not NaN."""

    ANY = 0
    NOT_NEGATIVE = 1
    POSITIVE = 2


def is_finite_by_signs(expr: Expr) -> bool:
    """Whether ``expr`` is finite wherever what it reads is, overflow aside, as far as the signs of roots' operands and of divisors tell."""
    risky = [n for n in postorder(expr) if isinstance(n, Call) and is_inexact(n.dtype) and may_blow_up(n)]
    return all(map(_is_in_range, risky))


def _is_in_range(node: Call) -> bool:
    """Whether the operands of a function that is not finite everywhere have a sign for which it is."""
    match node.op.name:
        case "divide":
            return sign(node.args[1]) is Sign.POSITIVE
        case "sqrt" | "log1p":
            return sign(node.args[0]) >= Sign.NOT_NEGATIVE
        case "rsqrt" | "log" | "log2" | "log10" | "reciprocal" | "power":
            return sign(node.args[0]) is Sign.POSITIVE
    return False


def sign(expr: Expr) -> Sign:
    """What is known of ``expr``, where results that are too small to be told from zero are zero."""
    return _sign(expr, _DEEPEST)


@lru_cache(maxsize=4096)
def _sign(expr: Expr, depth: int) -> Sign:
    def rule(node: Expr, below: list[Sign]) -> Sign:
        match node:
            case Const(number) if isinstance(number, (int, float)):
                return Sign.POSITIVE if number > 0 else Sign.NOT_NEGATIVE if number == 0 else Sign.ANY
            case Read(tensor) if isinstance(tensor, Compute) and depth:
                own = _sign(tensor.body, depth - 1)
                return (
                    own if surely_inside(node) else min(own, Sign.NOT_NEGATIVE)
                )  # there are zeros around it
            case Reduce(Reducer(name="sum")):
                return min(below[0], Sign.NOT_NEGATIVE)
            case Call() if is_inexact(node.dtype) and not is_complex(node.dtype):
                return _of_call(node, below)
        return Sign.ANY

    return fold(expr, rule)  # type: ignore[no-any-return]


def _of_call(node: Call, below: list[Sign]) -> Sign:
    name = node.op.name
    if node.op is ADD:
        return max(below) if min(below) else Sign.ANY
    if node.op is SELECT:
        return min(below[1:])
    if node.op is MULTIPLY or node.op is DIVIDE:
        if node.op is MULTIPLY and node.args[0] is node.args[1]:
            return Sign.NOT_NEGATIVE
        return min(
            *below, Sign.POSITIVE if any(isinstance(a, Const) for a in node.args) else Sign.NOT_NEGATIVE
        )
    if name == "maximum":
        return max(below)
    if name == "minimum":
        return min(below)
    if name in _SAME:
        return below[0]
    if name in ("sqrt", "abs"):
        return max(below[0], Sign.NOT_NEGATIVE)
    if node.op is POWER:
        exponent = node.args[1]
        even = (
            isinstance(exponent, Const)
            and isinstance(exponent.value, (int, float))
            and exponent.value % 2 == 0
        )
        return Sign.NOT_NEGATIVE if even or below[0] else Sign.ANY
    return Sign.NOT_NEGATIVE if name in _NEVER_NEGATIVE else Sign.ANY
