"""What flows through ``e = exp(x)`` where ``y = e / s`` is known: ``(g / s) * e`` is ``g * y``.

The adjoint of what is normalised by a sum of itself has the sum below all of its terms,

    de[i, j] = H[i, j] / s[i] + ds[i],   ds[i] = -(sum over j of H[i, j] * y[i, j]) / s[i]

and multiplied by ``e[i, j]`` that is ``p[i, j] - y[i, j] * sum over j of p[i, j]`` with ``p = H * y``: the gradient of softmax as the books have it. It reads
``y`` alone, so that neither ``x`` nor the sums are kept for the backward pass, and no exponential is computed again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from jaxte.algebra.product import product_of
from jaxte.algebra.simplify import collect, negate, plus
from jaxte.algebra.sums import signed_terms
from jaxte.autodiff.rules.seeds import Adjoint
from jaxte.autodiff.sums.blocks import contributions_to, target_axes
from jaxte.autodiff.sums.cheap import typed
from jaxte.autodiff.terms.shared import Shared
from jaxte.autodiff.terms.zeros import summands
from jaxte.lang.expr import Axis, Call, Expr, Read, Reduce, call
from jaxte.lang.graphs import identical
from jaxte.lang.operators import ADD, DIVIDE, MULTIPLY, NEGATIVE, SUBTRACT
from jaxte.lang.walk import at_positions, reads_of, substitute
from jaxte.tensors.tensor import Compute, Tensor


def through_quotient(
    reader: Tensor, tensor: Tensor, head: Tensor, readers: Sequence[Tensor]
) -> Adjoint | None:
    """What ``reader`` passes on to ``tensor`` by way of a quotient of it that is known; None where there is none.

    Args:
        head: the adjoint of ``reader``.
        readers: the tensors that read ``reader``.
    """
    if not isinstance(reader, Compute) or not isinstance(head, Adjoint) or head.guarded:
        return None
    divisors = [(t, _divisor(t, reader)) for t in readers if isinstance(t, Compute)]
    quotients = [(t, below) for t, below in divisors if below is not None]
    if not quotients:
        return None
    found = contributions_to(reader, tensor, head, missing_ok=True)
    if found is None:
        return None
    prefix, parts = found
    element, own = Read(head, (*prefix, *reader.axes)), Read(reader, reader.axes)
    if not parts or any(not _is_product(part.value, element, own) for part in parts):
        return None
    for quotient, below in quotients:
        at = _table(quotient.axes, head.axes[len(prefix) :])
        flow = _above(head, substitute(below, at))
        if flow is None:
            continue
        value = _shared(flow, head, quotient, reader) if not prefix else None
        if value is None:
            above = Adjoint(head.name, head.axes, flow.whole, [head])
            value = call(MULTIPLY, Read(above, element.indices), Read(quotient, reader.axes))
        targets = target_axes(reader, tensor, prefix)
        terms = [term for part in parts for term in summands(replace(part, value=value), targets)]
        return Adjoint(f"d{tensor.name}", (*prefix, *targets), typed(collect(terms), tensor.dtype), [head])
    return None


def _divisor(quotient: Compute, tensor: Tensor) -> Read | None:
    """The element that ``quotient`` divides each element of ``tensor`` by; None if it is no such quotient."""
    if quotient.dtype != tensor.dtype:
        return None
    match quotient.body:
        case Call(op, (Read() as above, Read() as below)) if op is DIVIDE and above.tensor is tensor:
            return below if identical(above.indices, quotient.axes) else None
    return None


def _is_product(value: Expr, head: Read, own: Read) -> bool:
    return isinstance(value, Call) and value.op is MULTIPLY and identical(value.args, (head, own))


@dataclass(frozen=True)
class _Above:
    """What stands above the divisor of an adjoint: a sum of expressions over its axes, and of elements of other adjoints."""

    direct: tuple[Expr, ...]
    sums: tuple[Read, ...]

    @property
    def whole(self) -> Expr:
        return reduce(plus, (*self.sums, *self.direct))


def _above(adjoint: Compute, below: Expr) -> _Above | None:
    """The terms of ``adjoint`` with the division by ``below`` left out; None where one of them is not divided by it."""
    direct: list[Expr] = []
    sums: list[Read] = []
    for term, sign in signed_terms(adjoint.body, mixed=True, negated=True):
        match term:
            case Call(op, (above, divisor)) if op is DIVIDE and divisor is below:
                direct.append(negate(above) if sign < 0 else above)
            case Read(tensor, indices) if isinstance(tensor, Adjoint) and isinstance(tensor.body, Call):
                body, at = tensor.body, _table(tensor.axes, indices)
                if body.op is not DIVIDE or at_positions(body.args[1], at) is not below:
                    return None
                above = negate(body.args[0]) if sign < 0 else body.args[0]
                sums.append(Read(Adjoint(tensor.name, tensor.axes, above, [tensor]), indices))
            case _:
                return None
    return _Above(tuple(direct), tuple(sums))


def _shared(flow: _Above, head: Compute, quotient: Compute, reader: Compute) -> Expr | None:
    """``flow`` times the quotient where its sums are of that product itself, which is a tensor then; None where they are not."""
    if len(flow.direct) != 1 or not flow.sums:
        return None
    (direct,) = flow.direct
    own = tuple(Axis(a.name, 0, a.hi) for a in head.axes)
    element = substitute(direct, _table(head.axes, own))
    product = Shared(f"shared_{quotient.name}", own, call(MULTIPLY, element, Read(quotient, own)))
    total: Expr = Read(product, reader.axes)
    at = _table(head.axes, reader.axes)
    for read in flow.sums:
        found = _sum_of(read.tensor, product, quotient)
        if found is None:
            return None
        summed, negative = found
        indices = [substitute(i, at) for i in read.indices]
        share = call(MULTIPLY, Read(summed, indices), Read(quotient, reader.axes))
        # a sum that is subtracted: XLA moves the sign of a negated one into what is summed, and computes that once more
        total = call(SUBTRACT if negative else ADD, total, share)
    return total


def _sum_of(tensor: Tensor, product: Compute, quotient: Compute) -> tuple[Adjoint, bool] | None:
    """A sum of elements of ``product`` that reads it, and whether ``tensor`` is that negated; None where it is no such sum."""
    assert isinstance(tensor, Compute)
    body, negative = tensor.body, False
    while isinstance(body, Call) and body.op is NEGATIVE:
        body, negative = body.args[0], not negative
    if not isinstance(body, Reduce) or not body.is_sum:
        return None
    read = next((r for r in reads_of(body.exprs[0]) if r.tensor is quotient), None)
    if read is None:
        return None
    sign, factors = product_of(body.exprs[0], whole=True).signed()
    element = product.element(read.indices)
    own_sign, own = product_of(element, whole=True).signed()
    if Counter(factors) != Counter(own):
        return None
    summed = body.changed(exprs=(Read(product, read.indices),))
    name = f"sum_{product.name}"
    return Adjoint(name, tensor.axes, summed, [product]), negative != (sign != own_sign)


def _table(axes: Sequence[Axis], indices: Sequence[Expr]) -> dict[Expr, Expr]:
    return dict(zip(axes, indices, strict=True))
