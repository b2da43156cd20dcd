"""Powers with an exponent in quarters as square roots, which are several times as fast as a general power.

``a ** 0.75 == sqrt(a) * sqrt(sqrt(a))`` for every ``a`` that has such a power, and both are NaN where there is none. Whole
exponents stay as they are: XLA multiplies them out.
"""

from __future__ import annotations

from jaxte.lang import dtypes
from jaxte.lang.expr import Call, Const, Expr
from jaxte.lang.functions import rsqrt, sqrt
from jaxte.lang.operators import POWER

_LARGEST = 3  # beyond it, as many products are rounded as a power is worth


def root_power(node: Expr) -> Expr | None:
    """``node`` by square roots, if it is such a power of real numbers."""
    match node:
        case Call(op, (base, Const(float() as exponent))) if op is POWER and not base.weak:
            pass
        case _:
            return None
    quarters = exponent * 4
    if not dtypes.is_float(node.dtype) or base.dtype != node.dtype or abs(exponent) > _LARGEST:
        return None
    if quarters != int(quarters) or exponent == int(exponent):
        return None
    return _power(base, int(abs(quarters)), exponent < 0)


def _power(base: Expr, quarters: int, inverse: bool) -> Expr:
    """``base ** (quarters / 4)``, or one over it."""
    root = sqrt(base)
    factors = {1: rsqrt(root) if inverse else sqrt(root), 2: rsqrt(base) if inverse else root}
    found = [factors[part] for part in (1, 2) if quarters & part]
    whole = quarters // 4
    result = found[0] if len(found) == 1 else found[1] * found[0]
    for _ in range(whole):
        result = result / base if inverse else result * base
    return result
