"""Products before sums and choices, and sums before quotients: what has a value for each point of a whole sum is written as terms that are products of matrices.

    sum over d of q[h, i, d] * (k[h, j, d] + r[i - j + n - 1, d])

has a factor with a value for each point, which no product of matrices has. Multiplied out it is two sums with two small factors each. So are
``2 * (a[i, j] * u[j, k] + b[i, j] * v[i, k])`` and other sums within sums, as adjoints of what both operands have. Differences stay as they are:
``x - y`` is exact where both are close, and ``w * x - w * y`` is not.

    sum over k of h[i, k] * y[i, k]    with    y[i, k] = e[i, k] / s[i]    is    (sum over k of h[i, k] * e[i, k]) / s[i]

A softmax, weights of attention, a histogram that is divided by its total: what is divided is an array that waits for the sum below it, and a sum of it
waits for that array. Sums of what is divided wait for nothing: a compiler that makes one kernel of sums along rows and of what reads them (``rows`` in
:class:`jaxte.planning.asked.Intermediates`) makes one of both. Products of matrices keep the quotient, which they read as an array anyway.

    sum over f of (x[n, f] * v[f, k]) ** 2    is    sum over f of x[n, f] ** 2 * v[f, k] ** 2

where the power has a value for each point: factorisation machines, energies of outer products, and what flows back to either side of them. What leaves a sum is found
in the same way: ``(a[i] * b[i, k]) ** 2`` is ``a[i] ** 2`` times a sum of squares.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, prod

from jaxte.algebra.product import Factor, Product, may_be_infinite, multiplied, product_of
from jaxte.lang.expr import TRUE, Axis, Call, Const, Expr, Read, Reduce, as_expr, call, conjunction
from jaxte.lang.graphs import leaves
from jaxte.lang.limits import FAR_FEWER, FEW, FEW_POSITIONS, MOST_TERMS
from jaxte.lang.operators import ADD, DIVIDE, MULTIPLY, NEGATIVE, POWER
from jaxte.lang.walk import at_positions, depends_on, free_axes, postorder, reads_of, substitute
from jaxte.planning.asked import intermediates
from jaxte.planning.orders.contraction import EXACT
from jaxte.planning.terms import Split, coordinates, term_bounds
from jaxte.sets.intervals import at_most, extent
from jaxte.tensors.tensor import Compute

_MINUS = Const(-1)


def distributed(node: Reduce, axes: Sequence[Axis]) -> list[Reduce]:
    """The sums whose sum ``node`` is, at the points of ``axes``; ``node`` alone where multiplying out gains nothing.

    Args:
        node: a sum.
        axes: what else its terms may depend on.
    """
    if not node.is_sum or node.dtype not in EXACT:
        return [node]
    if node.exprs[0].reduces:
        return [node]
    flat = _flat_terms(node.exprs[0])
    if flat is not None and all(map(_is_contraction, flat)):
        return _alike([_over_own_axes(node, term, node.where) for term in flat], node)
    product = product_of(node.exprs[0], [node.where])
    sums = [f for f in product.factors if _terms(f) is not None]
    if len(sums) != 1 or any(f.guard for f in product.factors):
        return [node]
    (wide,) = sums
    terms = _terms(wide)
    if terms is None or not _gains(product, wide, terms, node, axes):
        return [node]
    return _alike([_with(node, product, wide, term) for term in terms], node)


def _alike(found: list[Reduce], node: Reduce) -> list[Reduce]:
    """``found``, or ``node`` alone where the dtypes of the terms differ."""
    return found if all(own.exprs[0].dtype == node.exprs[0].dtype for own in found) else [node]


def _flat_terms(expr: Expr) -> list[Expr] | None:
    """The terms of ``expr``, those of sums within it times their constants; None where no sum is within a product, or they are many."""
    found: list[Expr] = []
    stack: list[tuple[Expr, tuple[Const, ...]]] = [(expr, ())]
    nested = False
    # Terms, of sums within sums.
    while stack and len(found) + len(stack) <= MOST_TERMS:
        node, constants = stack.pop()
        match node:
            case Call(op, (a, b)) if op is ADD:
                nested = nested or bool(constants)
                stack += [(b, constants), (a, constants)]
            case Call(op, (a,)) if op is NEGATIVE:
                stack.append((a, (_MINUS, *constants)))
            case Call(op, (a, Const() as c)) if op is MULTIPLY and _is_finite(c):
                stack.append((a, (c, *constants)))
            case Call(op, (Const() as c, a)) if op is MULTIPLY and _is_finite(c):
                stack.append((a, (c, *constants)))
            case _:
                found.append(multiplied([Factor(e) for e in (*constants, node)]))
    return found if nested and not stack and len(found) > 1 else None


def _is_finite(factor: Const) -> bool:
    """Whether a constant is a factor of each term just as well: terms that cancel are not made infinite by it."""
    return isinstance(factor.value, (int, float)) and isfinite(factor.value)


def _is_contraction(term: Expr) -> bool:
    """Whether no factor of a product is over all of its axes, so that it need not be computed at all points."""
    product = product_of(term, whole=True)
    axes = [frozenset(free_axes(f.expr)) for f in product.factors]
    return not product.is_conditional and all(own != frozenset().union(*axes) for own in axes)


def _terms(factor: Factor) -> list[Expr] | None:
    """What is added up in ``factor``; None where it is no sum of a few terms."""
    if factor.inverse or not isinstance(factor.expr, Call) or factor.expr.op is not ADD:
        return None
    whole: Expr = factor.expr
    found = leaves(whole, lambda term: term.args if isinstance(term, Call) and term.op is ADD else ())
    # Each term is a product of matrices of its own.
    return found if len(found) <= FEW else None


def _gains(product: Product, wide: Factor, terms: Sequence[Expr], node: Reduce, axes: Sequence[Axis]) -> bool:
    others = [f for f in product.factors if f is not wide]
    if any(map(may_be_infinite, product.factors)) or prod(map(extent, node.axes)) < FEW_POSITIONS:
        return False
    box = free_axes(wide.expr)
    needed = {axis for f in product.factors for axis in free_axes(f.expr)}
    if needed - set(box) or not any(_matters(f, node) for f in others):
        return False
    whole = prod(map(extent, box))
    return all(_values(term, axes, node) * FAR_FEWER <= whole for term in terms)


def _matters(factor: Factor, node: Reduce) -> bool:
    """Whether a factor is an array over what is summed."""
    own = free_axes(factor.expr)
    return any(axis in own for axis in node.axes)


def _values(term: Expr, axes: Sequence[Axis], node: Reduce) -> int:
    """How many values ``term`` takes: one for each value of its indices."""
    split = Split((), [term])
    found = coordinates(split.terms, term_bounds(split.terms, ()), (*axes, *node.axes))
    return prod(map(extent, free_axes(term))) if found is None else found.points


def _with(node: Reduce, product: Product, wide: Factor, term: Expr) -> Reduce:
    """The part of ``node`` with ``term`` in place of the whole sum, over axes of its own."""
    body = multiplied([Factor(term) if f is wide else f for f in product.factors])
    return _over_own_axes(node, body, conjunction(product.guards))


def _over_own_axes(node: Reduce, body: Expr, where: Expr) -> Reduce:
    fresh = [Axis(a.name, a.lo, a.hi, reduction=True) for a in node.axes]
    table: dict[Expr, Expr] = dict(zip(node.axes, fresh, strict=True))
    return node.changed(exprs=(substitute(body, table),), axes=fresh, where=substitute(where, table))


def added(sums: Sequence[Expr]) -> Expr:
    total, *rest = sums
    for other in rest:
        total = call(ADD, total, other)
    return total


Quotient = tuple[Expr, Expr]


def without_divisors(node: Reduce) -> tuple[Reduce, tuple[Expr, ...]]:
    """A sum and what it is divided by: ``node`` and nothing where no factor is a quotient of which the sum may be taken without the divisor."""
    if not intermediates().rows or not node.is_sum or node.dtype not in EXACT:
        return node, ()
    # a sum of nothing is zero, whatever it is divided by
    if node.where is not TRUE or not all(at_most(as_expr(1), a.extent) for a in node.axes):
        return node, ()
    points = tuple(free_axes(node.exprs[0]))
    factors = product_of(node.exprs[0], whole=True).factors
    found = {f: own for f in factors if (own := _quotient(f, node.axes, points)) is not None}
    body = multiplied([Factor(found[f][0]) if f in found else f for f in factors])
    divided = {r.tensor for f in found for r in reads_of(f.expr)}
    if not found or body.dtype != node.dtype or body.weak:
        return node, ()
    if divided & {r.tensor for r in reads_of(body)}:
        return node, ()  # a quotient that is read all the same is there
    divisors = tuple(found[f][1] for f in factors if f in found)
    return node.changed(exprs=(body,), where=TRUE), divisors


def _quotient(factor: Factor, axes: Sequence[Axis], points: Sequence[Axis]) -> Quotient | None:
    """What is divided, and by what that is computed, in a factor of which each element is met once; None where it is no such quotient."""
    read = factor.expr
    if factor.inverse or not isinstance(read, Read) or type(read.tensor) is not Compute:
        return None
    tensor = read.tensor
    if tensor.override is not None or {*read.indices} != {*points} or len(read.indices) != len(points):
        return None
    match tensor.body:
        case Call(op, (above, below)) if op is DIVIDE and any(
            isinstance(r.tensor, Compute) for r in reads_of(below)
        ):
            at: dict[Expr, Expr] = dict(zip(tensor.axes, read.indices, strict=True))
            above, below = at_positions(above, at), at_positions(below, at)
            same = above.dtype == below.dtype == tensor.dtype and not depends_on(below, axes)
            return (above, below) if same else None
    return None


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
    return node.changed(exprs=(body,), where=where) if body.dtype == node.dtype else node


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
