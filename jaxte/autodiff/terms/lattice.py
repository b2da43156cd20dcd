"""Sums that count only where positions are multiples: a tensor of their own over these positions.

What stands behind ``i % 2 == 0`` is the same as ``S[i // 2]`` there, where ``S[m]`` is the sum at ``i == 2 * m``: half of the points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxte.algebra.simplify import simplify_reads
from jaxte.autodiff.terms.guards import guard
from jaxte.lang.divisions import Remainder, division
from jaxte.lang.expr import TRUE, ZERO, Axis, Call, Const, Expr, Read, Reduce, cast, conjunction, conjuncts
from jaxte.lang.graphs import among
from jaxte.lang.operators import EQUAL, SELECT
from jaxte.lang.walk import free_axes, postorder, substitute
from jaxte.sets.affine import linear, normal
from jaxte.sets.conditions import tidy
from jaxte.sets.domain import IntegerSet
from jaxte.sets.isl_text import is_decidable
from jaxte.tensors.tensor import Compute


class LatticeSum(Compute):
    """A sum within an adjoint, over the positions at which it counts."""

    __slots__ = ()


def guarded(conditions: Sequence[Expr], value: Expr, targets: Sequence[Axis], name: str) -> Expr:
    """``value`` where all of ``conditions`` hold, else zero; a sum that they ask for at multiples only is a tensor, a part of ``name``.

    Its axes are in the order of ``targets``, after those of the prefix of a head.
    """
    remainders = dict(found for c in conditions if (found := _remainder(c)) is not None)
    if remainders:
        value = simplify_reads(substitute(value, remainders))
    own = free_axes(value)
    free = (*(a for a in own if not among(a, targets)), *(a for a in targets if a in own))
    multiples = {c: m for c in conditions if (m := _multiples(c)) is not None and among(m.axis, free)}
    if not multiples or not _is_plain_sum(value):
        return guard(conjunction(conditions), value)
    rest = [c for c in conditions if c not in multiples]
    inside = [c for c in rest if is_decidable(c) and all(among(a, free) for a in free_axes(c))]
    implied = _implied(conditions, free)
    if implied is None:
        return guard(conjunction(conditions), value)
    inside += [c for c in conjuncts(implied) if not among(c, inside)]
    outside = [*multiples, *(c for c in rest if not among(c, inside))]
    element = _of_tensor(guard(conjunction(inside), value), free, list(multiples.values()), name)
    return guard(conjunction(outside), element)


def _implied(conditions: Sequence[Expr], free: Sequence[Axis]) -> Expr | None:
    """What conditions on other axes, too, say of the axes of the tensor: it reads nothing that they keep out. None if that is long."""
    known = [c for c in conditions if is_decidable(c)]
    others = {a: None for c in known for a in free_axes(c) if not among(a, free)}
    if not any(
        among(a, free) and among(b, others) for c in known for a in free_axes(c) for b in free_axes(c)
    ):
        return TRUE
    return IntegerSet((*free, *others), known).shadow(free)


@dataclass(frozen=True, slots=True)
class Multiples:
    """The values ``start``, ``start + step``, ... of ``axis``."""

    axis: Axis
    step: int
    start: int


def _of_tensor(value: Expr, free: Sequence[Axis], multiples: Sequence[Multiples], name: str) -> Read:
    """``value`` as the element of a tensor over ``free`` that has the positions of ``multiples`` only."""
    by_axis = {m.axis: m for m in multiples}
    axes: list[Axis] = []
    table: dict[Expr, Expr] = {}
    places: list[Expr] = []
    for axis in free:
        m = by_axis.get(axis, Multiples(axis, 1, 0))
        axes.append(Axis(axis.name, 0, normal((axis.hi - m.start + (m.step - 1)) // m.step)))
        table[axis] = normal(m.step * axes[-1] + m.start)
        places.append(normal(axis // m.step))
    body = tidy(simplify_reads(substitute(value, table)))
    made = LatticeSum(f"{name}_at_multiples", axes, cast(body, body.dtype) if body.weak else body)
    return Read(made.as_part_of(name), places)


def _remainder(condition: Expr) -> tuple[Expr, Expr] | None:
    """``(e % c, r)`` of a condition ``e % c == r``, ``r`` a number."""
    if not (isinstance(condition, Call) and condition.op is EQUAL):
        return None
    for node, first in (condition.args, condition.args[::-1]):
        if isinstance(division(node), Remainder) and isinstance(first, Const):
            return node, first
    return None


def _multiples(condition: Expr) -> Multiples | None:
    """The values of an axis from 0 that ``condition`` leaves, if it is about their remainder."""
    remainder = _remainder(condition)
    if remainder is None:
        return None
    node, first = remainder
    form, step = linear(node.children[0]), int(node.children[1])
    for axis, sign in form.terms.items():
        if len(form.terms) == 1 and isinstance(axis, Axis) and axis.lo is ZERO and sign in (1, -1):
            return Multiples(axis, step, (int(first) - form.constant) * sign % step)
    return None


def _is_plain_sum(value: Expr) -> bool:
    """Whether there is a sum in ``value``, and no choice by data, which later adjoints have to see."""
    nodes = list(postorder(value))
    choices = [n.args[0] for n in nodes if isinstance(n, Call) and n.op is SELECT]
    choices += [n.where for n in nodes if isinstance(n, Reduce)]
    return any(isinstance(n, Reduce) for n in nodes) and all(map(is_decidable, choices))
