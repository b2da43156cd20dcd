"""Sums that count only where positions are multiples: a tensor of their own over these positions.

What stands behind ``i % 2 == 0`` is the same as ``S[i // 2]`` there, where ``S[m]`` is the sum at ``i == 2 * m``: half of the points.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.affine import normal
from jaxte.autodiff.scalar import guard
from jaxte.conditions import tidy
from jaxte.domain import is_decidable
from jaxte.expr import ZERO, Axis, Call, Const, Expr, Read, Reduce, cast, conjunction
from jaxte.identity import among
from jaxte.operators import EQUAL, MOD, SELECT
from jaxte.simplify import simplify_reads
from jaxte.tensor import Compute
from jaxte.walk import free_axes, postorder, substitute


class LatticeSum(Compute):
    """A sum within an adjoint, over the positions at which it counts."""

    __slots__ = ()


def guarded(conditions: Sequence[Expr], value: Expr, targets: Sequence[Axis], name: str) -> Expr:
    """``value`` where all of ``conditions`` hold, else zero; a sum that they ask for at multiples only is the tensor ``name``.

    Its axes are in the order of ``targets``, after those of the prefix of a head.
    """
    remainders = dict(found for c in conditions if (found := _remainder(c)) is not None)
    if remainders:
        value = simplify_reads(substitute(value, remainders))
    found_axes = free_axes(value)
    free = (*(a for a in found_axes if not among(a, targets)), *(a for a in targets if a in found_axes))
    steps = {
        node.args[0]: (int(node.args[1]), int(first))  # type: ignore[attr-defined]
        for node, first in remainders.items()
        if among(node.children[0], free) and node.children[0].lo is ZERO  # type: ignore[attr-defined]
    }
    if not steps or not _is_plain_sum(value):
        return guard(conjunction(conditions), value)
    congruences = [
        c for c in conditions if (found := _remainder(c)) is not None and found[0].children[0] in steps
    ]
    rest = [c for c in conditions if not among(c, congruences)]
    inside = [c for c in rest if is_decidable(c) and all(among(a, free) for a in free_axes(c))]
    own: list[Axis] = []
    table: dict[Expr, Expr] = {}
    for axis in free:
        step, first = steps.get(axis, (1, 0))
        own.append(Axis(axis.name, 0, normal((axis.hi - first + (step - 1)) // step)))
        table[axis] = normal(step * own[-1] + first)
    body = tidy(simplify_reads(substitute(guard(conjunction(inside), value), table)))
    tensor = LatticeSum(name, own, cast(body, body.dtype) if body.weak else body)
    element = Read(tensor, [normal(axis // steps.get(axis, (1, 0))[0]) for axis in free])
    outside = [c for c in rest if not among(c, inside)]
    return guard(conjunction([*congruences, *outside]), element)


def _remainder(condition: Expr) -> tuple[Expr, Expr] | None:
    """``(e % c, r)`` of a condition ``e % c == r``, ``r`` a number."""
    if not (isinstance(condition, Call) and condition.op is EQUAL):
        return None
    for node, first in (condition.args, condition.args[::-1]):
        if isinstance(node, Call) and node.op is MOD and isinstance(first, Const):
            return node, first
    return None


def _is_plain_sum(value: Expr) -> bool:
    """Whether there is a sum in ``value``, and no choice by data, which later adjoints have to see."""
    nodes = list(postorder(value))
    choices = [n.args[0] for n in nodes if isinstance(n, Call) and n.op is SELECT]
    choices += [n.where for n in nodes if isinstance(n, Reduce)]
    return any(isinstance(n, Reduce) for n in nodes) and all(map(is_decidable, choices))
