"""Which values have the same bits in every loop that computes them, so that they may be compared in any.

XLA computes a producer again in each fusion that reads it. Additions, subtractions and products of 32 and 64 bits are rounded as IEEE 754 says,
everywhere; what differs from loop to loop is which of them are joined or taken in another order, and by which polynomials functions are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from jaxte.lang import dtypes
from jaxte.lang.expr import Call, Const, Expr, Reduce
from jaxte.lang.operators import ADD, MULTIPLY, POWER, SUBTRACT
from jaxte.lang.scalars.table import TABLE
from jaxte.lang.walk import fold, postorder

_WIDE = ("float32", "float64")  # what is narrower may be carried on by XLA without its rounding


class _Rounding(IntEnum):
    """How a value is rounded, the least first."""

    NOT = 0
    SUM = 1
    PRODUCT = 2
    OTHER = 3


def is_rounded(body: Expr) -> bool:
    """Whether ``body`` has more than reads, choices among them, and their signs."""
    return any(map(_rounds, postorder(body)))


def _rounds(node: Expr) -> bool:
    if not dtypes.is_inexact(node.dtype):
        return False
    if isinstance(node, Call):
        return not TABLE[node.op.name].exact
    return isinstance(node, Reduce) and node.reducer.name not in ("max", "min")


def has_same_bits(element: Expr) -> bool:
    """Whether every loop that computes ``element`` rounds it alike: one sum of what is read, or one product of what is read and such sums.

    There is nothing in it that a compiler could join into one instruction, or take in another order: that needs a product in a sum, or two
    sums or two products one after the other.
    """
    kind: _Rounding = fold(element, _rounding)
    return kind is not _Rounding.OTHER


def _rounding(node: Expr, below: Sequence[_Rounding]) -> _Rounding:
    """The rounding of ``node``, whose operands, indices and conditions have those ``below``."""
    most = max(below, default=_Rounding.NOT)
    if not _rounds(node):
        changed = isinstance(node, Call) and node.op.name == "cast"
        return (
            _Rounding.OTHER
            if most and dtypes.is_inexact(node.dtype) and (changed or node.dtype not in _WIDE)
            else most
        )
    if not isinstance(node, Call) or node.dtype not in _WIDE:
        return _Rounding.OTHER
    if node.op in (ADD, SUBTRACT) and most is _Rounding.NOT:
        return _Rounding.SUM
    is_scaled = most and any(isinstance(a, Const) for a in node.args)
    is_square = node.op is POWER and isinstance(exponent := node.args[1], Const) and exponent.value == 2
    if most <= _Rounding.SUM and (is_square or (node.op is MULTIPLY and not is_scaled)):
        return _Rounding.PRODUCT
    return _Rounding.OTHER
