"""What flows into a reduction whose results are repeated: the head is summed over the copies first (see :mod:`jaxte.autodiff.terms.repeated`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from jaxte.algebra.data import Points
from jaxte.autodiff.rules.reductions import reduction_contributions
from jaxte.autodiff.rules.seeds import HeadSum, seed_of
from jaxte.autodiff.terms.repeated import own_axes
from jaxte.autodiff.terms.scalar import Contribution
from jaxte.autodiff.terms.zeros import eliminate, lift_guards
from jaxte.lang.expr import ZERO, Axis, Const, Expr, cast, conjuncts
from jaxte.lang.identity import among
from jaxte.lang.walk import substitute
from jaxte.tensors.tensor import Compute, Tensor


def contributions_of_reduction(
    output: Compute, head: Tensor, prefix: Sequence[Axis], wanted: Callable[[Expr], bool]
) -> list[Contribution]:
    """What each ``wanted`` read in the body of ``output``, a reduction, receives of ``head``, the axes ``prefix`` in front of its own."""
    own = own_axes(output)
    if len(own) == len(output.axes):
        return reduction_contributions(output, seed_of(head, (*prefix, *output.axes), output), wanted)
    flow = _summed(head, prefix, output, own)
    parts = reduction_contributions(output, seed_of(flow, (*prefix, *own), output), wanted)
    first: dict[Expr, Expr] = {a: ZERO for a in output.axes if not among(a, own)}
    return [_at(part, first) for part in parts]


def _summed(head: Tensor, prefix: Sequence[Axis], output: Compute, own: Sequence[Axis]) -> HeadSum:
    """``head`` summed over the axes of ``output`` that are not its ``own``."""
    rest = tuple(a for a in output.axes if not among(a, own))
    value, guards = lift_guards(seed_of(head, (*prefix, *output.axes), output))
    name = f"d{output.name}_once"
    points = Points(rest, tuple(c for guard in guards for c in conjuncts(guard)), value)
    total = eliminate(points, (*prefix, *own), name)
    axes = tuple(Axis(a.name, 0, a.hi) for a in (*prefix, *own))
    body = Const(0.0) if total is None else substitute(total, dict(zip((*prefix, *own), axes, strict=True)))
    return HeadSum(name, axes, cast(body, output.dtype), [head])


def _at(part: Contribution, values: dict[Expr, Expr]) -> Contribution:
    """``part`` where some of its axes have ``values``."""
    read, where, value = (substitute(e, values) for e in (part.read, part.where, part.value))
    return replace(
        part, read=read, axes=tuple(a for a in part.axes if a not in values), where=where, value=value
    )
