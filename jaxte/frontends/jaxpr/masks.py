"""Products with arrays of zeros and ones that positions tell: one-hot rows, triangles. What they are summed with is chosen, not multiplied."""

from __future__ import annotations

from jaxte.lang import operators as ops
from jaxte.lang.expr import Call, Const, Expr, Read, Reduce
from jaxte.lang.walk import postorder


def unmasked(product: Expr) -> tuple[Expr, Expr] | None:
    """Where a product is not 0, and what it is there: of a factor that is 0 or 1 by a condition on positions, and another one."""
    if not (isinstance(product, Call) and product.op is ops.MULTIPLY):
        return None
    for factor, other in (product.args, product.args[::-1]):
        condition = _condition(factor)
        if condition is not None:
            return condition, other
    return None


def _condition(factor: Expr) -> Expr | None:
    """Where ``factor`` is 1, if it is 0 elsewhere."""
    found: Expr | None = None
    match factor:
        case Call(op, (Expr() as inner,)) if op.name.startswith("cast") and inner.dtype == "bool":
            found = inner
        case Call(op, (Expr() as inner, Const(1 | 1.0), Const(0 | 0.0))) if op is ops.SELECT:
            found = inner
    if found is None or any(isinstance(n, (Read, Reduce)) for n in postorder(found)):
        return None
    return found


def is_equality(condition: Expr) -> bool:
    return isinstance(condition, Call) and condition.op is ops.EQUAL
