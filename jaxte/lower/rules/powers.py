"""Powers whose exponent is a position, by repeated squaring: ``x[i] ** k`` for k below 32 is five products, each taken where k has that bit.

    p = where(k % 2 == 1, x, 1);  p = where(k // 2 % 2 == 1, p * x2, p) with x2 = x * x;  ...

XLA multiplies powers out where the exponent is a number, and calls a general power where it is an array: 2.1 ms for 20,000 x 32 powers,
0.2 so. What a bit leaves out is not multiplied, so that an overflow of a square passes nothing on. Negative exponents are quotients.
"""

from __future__ import annotations

from collections.abc import Generator

from jaxte.lang import dtypes
from jaxte.lang.expr import Call, Const, Expr, call
from jaxte.lang.operators import DIVIDE, EQUAL, FLOOR_DIVIDE, LESS, MAXIMUM, MOD, MULTIPLY, SELECT, Op
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.constants import numeral
from jaxte.lower.code.vocabulary import Value
from jaxte.lower.views.scope import Scope
from jaxte.sets.affine import linear
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import dims_of, reach

_MOST_BITS = (
    10  # of an exponent, each of which takes a product and a choice, and doubles how far the power is rounded
)


def whole_power(body: Body, node: Call, scope: Scope) -> Generator[tuple[Expr, Scope], Value, Value | None]:
    """The value of a power with a position for its exponent; None where it has none, or a large one."""
    base = node.args[0]
    exponent = _exponent(node, scope)
    if exponent is None:
        return None
    ends = reach(linear(scope.index(exponent)))
    bits = 0 if ends is None else max(map(abs, ends)).bit_length()
    if not 1 < bits <= _MOST_BITS or base.weak or base.dtype != node.dtype or not dtypes.is_float(node.dtype):
        return None
    assert ends is not None
    size = exponent if ends[0] >= 0 else call(MAXIMUM, exponent, -exponent)
    power = _squared(body, (yield base, scope), size, bits, scope)
    if ends[0] >= 0:
        return power
    below = body.condition(_test(LESS, exponent, 0), scope)
    inverse = body.combine(DIVIDE, [numeral(1.0, (node.dtype, True)), power], node.kind, scope)
    return body.combine(SELECT, [below, inverse, power], node.kind, scope)


def _squared(body: Body, base: Value, exponent: Expr, bits: int, scope: Scope) -> Value:
    """``base`` to the power ``exponent``, a position of so many bits."""
    kind = base.kind
    square, power = body.named(base), numeral(1.0, (base.dtype, True))
    for bit in range(bits):
        digit = call(MOD, call(FLOOR_DIVIDE, exponent, Const(2**bit)), Const(2))
        mask = body.condition(_test(EQUAL, digit, 1), scope)
        product = body.combine(MULTIPLY, [power, square], kind, scope) if bit else square
        power = body.named(body.combine(SELECT, [mask, product, power], kind, scope))
        if bit + 1 < bits:
            square = body.named(body.combine(MULTIPLY, [square, square], kind, scope))
    return power


def _exponent(node: Call, scope: Scope) -> Expr | None:
    """The exponent of ``node`` as a position that varies in ``scope``."""
    exponent = node.args[1]
    if isinstance(exponent, Call) and exponent.op.name == "cast":
        (exponent,) = exponent.args
    if not exponent.weak or dtypes.is_inexact(exponent.dtype) or not is_index(exponent):
        return None
    return exponent if dims_of(scope.index(exponent)) else None


def _test(op: Op, position: Expr, number: int) -> Call:
    test = call(op, position, Const(number))
    assert isinstance(test, Call)
    return test
