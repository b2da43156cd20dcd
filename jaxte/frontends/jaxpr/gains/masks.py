"""Products with arrays of zeros and ones that positions tell: one-hot rows, triangles. What they are summed with is chosen, not multiplied."""

from __future__ import annotations

from jaxte.lang import operators as ops
from jaxte.lang.expr import Call, Const, Expr, Read, Reduce, call
from jaxte.lang.walk import postorder


def unmasked(product: Expr) -> tuple[Expr, Expr] | None:
    """Where a product is not 0, and what it is there: of a factor that is 0 or 1 by a condition on positions, and another one."""
    if not (isinstance(product, Call) and product.op is ops.MULTIPLY):
        return None
    for factor, other in (product.args, product.args[::-1]):
        match factor:
            case Call(op, (condition, Expr() as chosen, Const(0 | 0.0))) if op is ops.SELECT and not _reads(
                condition
            ):
                one = isinstance(chosen, Const) and chosen.value == 1
                return condition, other if one else call(ops.MULTIPLY, chosen, other)
            case Call(op, (condition,)) if (
                op.name == "cast" and condition.dtype == "bool" and not _reads(condition)
            ):
                return condition, other
    return None


def _reads(condition: Expr) -> bool:
    return any(isinstance(n, (Read, Reduce)) for n in postorder(condition))


def is_equality(condition: Expr) -> bool:
    return isinstance(condition, Call) and condition.op is ops.EQUAL
