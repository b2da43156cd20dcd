"""The tensors of a program with differences apart, what is told of those that stay, and sums of one difference over its two sides as one.

    sum over j of w[i, j] * (x[i, c] - x[j, c])  -  sum over j of v[j, i] * (x[j, c] - x[i, c])

is  sum over j of (w[i, j] + v[j, i]) * (x[i, c] - x[j, c])

Whatever depends on the distances of points to each other has such a gradient: each point is met as the first and as the second one of a pair. The weights have a
value for each pair, the difference one for each of its features, too. What a feature is scaled by, ``((x[i, c] - x[j, c]) / s[c])**2``, stands outside of both sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from jaxte.lang.expr import Expr, Reduce
from jaxte.lang.graphs import Members
from jaxte.lang.walk import outermost, substitute, with_tensors
from jaxte.lower.apart.differences import (
    APART,
    Difference,
    Parts,
    apart,
    difference_in,
    has_known_extents,
    is_faster,
    why_inexact,
)
from jaxte.lower.cost.policy import ANY, Policy
from jaxte.lower.recurrences.finals import Changed, changes
from jaxte.tensors.tensor import Compute, Tensor


@dataclass(frozen=True)
class Apart:
    """What the differences of a program became.

    Attributes:
        changed: what stands for the tensors that are computed otherwise, and for those that read them.
        refused: the forms that tensors have not, although they would be faster, with the reason.
    """

    changed: Changed = field(default_factory=dict)
    refused: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)


def with_differences_apart(order: Sequence[Tensor], given: Members[Tensor], policy: Policy) -> Apart:
    """``order`` with the sides of differences apart, where that is faster and exact enough, or asked for.

    Args:
        order: all tensors, each after what it reads.
        given: those that exist already.
        policy: the platform, and the forms that the user named.
    """
    own = [t for t in order if t not in given]
    met = {t: here for t in own if isinstance(t, Compute) and (here := _differences(t))}
    if not met:
        return Apart()
    refused: dict[str, tuple[tuple[str, str], ...]] = {}
    taken: dict[Tensor, dict[Reduce, Difference]] = {}
    for tensor, differences in met.items():
        for found in differences:
            reason = _why_not(found, tensor, policy)
            if not reason:
                taken.setdefault(tensor, {})[found.node] = found
            elif reason != _SLOWER:
                refused[tensor.name] = ((APART, reason),)

    parts = Parts()

    def body(tensor: Compute, known: Changed) -> Expr:
        table: dict[Expr, Expr] = {}
        for node in taken.get(tensor, ()):
            table |= _renewed(node, known, tensor, parts)
        return substitute(tensor.body, table)

    changed = changes(own, body, {}) if taken else {}
    for old in taken:
        new = changed.get(old, old)
        if new is not old and isinstance(new, Compute):
            new.as_planned_by([*new.planned_by, APART])
    return Apart(changed, refused)


def _differences(tensor: Compute) -> list[Difference]:
    if not tensor.body.reduces:
        return []
    found = [difference_in(node) for node in outermost(tensor.body)]
    return [own for own in found if own is not None and has_known_extents(own)]


_SLOWER = "slower"


def _why_not(found: Difference, tensor: Compute, policy: Policy) -> str:
    """Why the sides stay together; empty where they do not."""
    if APART in policy.without:
        return _SLOWER
    wanted = [policy.forms.get(name) for name in (tensor.name, tensor.part_of, ANY)]
    if APART in wanted:
        return ""
    if not policy.facts.lays_out_sums or not is_faster(found, policy.facts):
        return _SLOWER
    inexact = why_inexact(found)
    return (
        f'faster, but {inexact}; where that is exact enough, give forms={{"{tensor.part_of}": "{APART}"}}'
        if inexact
        else ""
    )


def _renewed(node: Reduce, known: Changed, tensor: Compute, parts: Parts) -> dict[Expr, Expr]:
    """What stands for ``node``, over what stands for the tensors that it reads."""
    own = with_tensors(node, known)
    assert isinstance(own, Reduce)
    found = difference_in(own)
    value = None if found is None else apart(found, tensor, parts)
    if value is None or value.dtype != node.dtype or value.weak:
        return {}
    return {node: value}
