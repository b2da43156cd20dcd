"""Sums of products of distances from a mean, whose slope in that mean is zero: variances, and what is made as they are."""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.algebra.polynomial import Expansion, TooLarge
from jaxte.algebra.product import multiplied, product_of
from jaxte.lang.dtypes import ROUNDED
from jaxte.lang.expr import Call, Const, Expr, Read, Reduce
from jaxte.lang.operators import POWER, SUBTRACT
from jaxte.lang.walk import depends_on, reads_of
from jaxte.tensors.tensor import Compute, Tensor


class _Means(Expansion):
    """Polynomials in which the sums are written out that tensors without the axes ``summed`` are made of."""

    def _expands(self, tensor: Compute) -> bool:
        body = tensor.body
        return (isinstance(body, Reduce) and body.is_sum) or _is_scaled_sum(body)


def _is_scaled_sum(body: Expr) -> bool:
    """Whether ``body`` is elements of sums, multiplied and divided by each other and by numbers."""
    factors = [f.expr for f in product_of(body).factors]
    return all(isinstance(f, (Const, Read)) or not reads_of(f) for f in factors)


def passes_nothing_on(reader: Tensor, tensor: Tensor) -> bool:
    """Whether the slope of the sum ``reader`` in ``tensor`` is zero, because that is the mean around which it sums."""
    body = getattr(reader, "body", None)
    if not isinstance(body, Reduce) or not body.is_sum or not isinstance(tensor, Compute):
        return False
    factors = _factors(body.exprs[0])
    around = [n for n, f in enumerate(factors) if any(r.tensor is tensor for r in reads_of(f))]
    if len(factors) < 2 or not around or any(r.tensor is tensor for r in reads_of(body.where)):
        return False
    return all(_is_around(factors[n], tensor, body) for n in around) and all(
        _is_zero_sum([*factors[:n], *factors[n + 1 :]], body) for n in around
    )


def _factors(expr: Expr) -> list[Expr]:
    """The factors of ``expr``, a square as two."""
    found: list[Expr] = []
    for factor in product_of(expr, whole=True).factors:
        match factor.expr:
            case Call(op, (base, Const(2))) if op is POWER and not factor.inverse:
                found += [base, base]
            case Call(op, (base,)) if op.name == "square" and not factor.inverse:
                found += [base, base]
            case own:
                found.append(multiplied([factor]) if factor.inverse else own)
    return found


def _is_around(factor: Expr, tensor: Tensor, node: Reduce) -> bool:
    """Whether ``factor`` is the distance of what is summed from an element of ``tensor``, the same for all that is summed."""
    match factor:
        case Call(op, (a, b)) if op is SUBTRACT:
            mean, other = (a, b) if isinstance(a, Read) and a.tensor is tensor else (b, a)
            return (
                isinstance(mean, Read)
                and mean.tensor is tensor
                and not depends_on(mean, node.axes)
                and not any(r.tensor is tensor for r in reads_of(other))
            )
    return False


def _is_zero_sum(factors: Sequence[Expr], node: Reduce) -> bool:
    """Whether the sum of the product of ``factors`` is zero, whatever is read."""
    product = factors[0]
    for factor in factors[1:]:
        product = product * factor
    try:
        left = _Means().polynomial(node.changed(exprs=(product,)))
    except TooLarge:
        return False
    return all(abs(c) < ROUNDED for c in left.values())
