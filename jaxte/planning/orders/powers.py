"""Powers of products within sums: products of powers, of which each factor has axes of its own.

    sum over f of (x[n, f] * v[f, k]) ** 2    is    sum over f of x[n, f] ** 2 * v[f, k] ** 2

which is a product of two matrices, where the power has a value for each point: factorisation machines, energies of outer products, and what flows
back to either side of them. What leaves a sum is found in the same way: ``(a[i] * b[i, k]) ** 2`` is ``a[i] ** 2`` times a sum of squares.
"""

from __future__ import annotations

from jaxte.algebra.product import Factor, multiplied, product_of
from jaxte.lang.expr import Call, Const, Expr, Reduce, call, conjunction
from jaxte.lang.operators import POWER
from jaxte.lang.walk import free_axes, postorder
from jaxte.planning.orders.contraction import EXACT

# which powers of factors are in range: of float32 squares of 1e-19 to 1e19, as the gradient of a square has them, but no cube of 1e13
_SQUARE, _UP_TO_FOURTH = (2,), (2, 3, 4)
_POWERS = {"float64": _UP_TO_FOURTH, "complex128": _UP_TO_FOURTH}


def with_powers_of_factors(node: Reduce) -> Reduce:
    """``node``, a sum, with powers of products as products of powers, where a factor has not all axes of the product."""
    if not node.is_sum or node.dtype not in EXACT:
        return node
    if not any(isinstance(n, Call) and n.op is POWER for n in postorder(node.exprs[0])):
        return node
    product = product_of(node.exprs[0], [node.where], whole=True)
    factors = [own for f in product.factors for own in (_apart(f) or [f])]
    if len(factors) == len(product.factors):
        return node
    body = multiplied([f for f in factors if not f.guard])
    where = conjunction([*product.guards, *(f.expr for f in factors if f.guard)])
    return (
        Reduce(node.reducer, (body,), node.axes, where, node.position) if body.dtype == node.dtype else node
    )


def _apart(factor: Factor) -> list[Factor] | None:
    """The powers whose product ``factor`` is; None where it is no power of several, or none that has fewer axes."""
    match factor.expr:
        case Call(op, (base, Const(int() | float() as exponent))) if op is POWER:
            pass
        case _:
            return None
    if exponent not in _POWERS.get(base.dtype, _SQUARE):
        return None
    parts = product_of(base, whole=True)
    axes = [{*free_axes(f.expr)} for f in parts.factors]
    if factor.guard or parts.is_conditional or all(own == axes[0] for own in axes):
        return None
    return [Factor(_power(f.expr, exponent), f.inverse is not factor.inverse) for f in parts.factors]


def _power(base: Expr, exponent: int | float) -> Expr:
    return Const(base.value**exponent, base.dtype) if isinstance(base, Const) else call(POWER, base, exponent)
