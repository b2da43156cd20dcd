"""Sums that are added, as the sum of what is: ``jnp.sum(a, axis=0) + jnp.einsum("i,ij->j", b, c) * d`` is ``jnp.sum(a + b[:, None] * c * d[None, :], axis=0)``.

XLA for GPUs makes a kernel of each sum along columns, and one more of what adds them up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from jaxte.lang.operators import ADD, MULTIPLY, NEGATIVE, SUBTRACT
from jaxte.lower.arrays.elementwise import Apply, Arange, Name, Number
from jaxte.lower.arrays.node import Node, same_shape
from jaxte.lower.arrays.products import Einsum, Reduced
from jaxte.lower.arrays.steps import ALL, NEW, Index, Step
from jaxte.lower.arrays.views import View
from jaxte.lower.code.broadcasting import apply_steps
from jaxte.lower.code.scaled_sums import ROUNDED_ALIKE

_MOST = 8  # sums that are one, whose operands one kernel reads
_FACTORS = (Name, Number, View, Apply, Arange)  # no sums, nor what is an array before it is read


@dataclass(frozen=True)
class _Sum:
    """``sign`` times the sum of ``array`` over ``axes``, multiplied by ``factors``, each of which is a number, or an array like the sum."""

    array: Node
    axes: tuple[int, ...]
    factors: tuple[Node, ...] = ()
    sign: int = 1

    @property
    def inside(self) -> Node:
        """What is summed, but for its sign, with the factors within."""
        found = self.array
        beside: list[Step] = [Index(tuple(NEW if n in self.axes else ALL for n in range(found.ndim)))]
        for factor in self.factors:
            found = Apply(MULTIPLY, (found, apply_steps(factor, beside) if factor.ndim else factor))
        return found

    def is_beside(self, other: _Sum) -> bool:
        """Whether both go over the same positions."""
        return self.axes == other.axes and same_shape(self.array.shape, other.array.shape)


def sums_as_one(node: Node, parts: Mapping[str, Node]) -> Node | None:
    """``node`` with the sums over the same positions that it adds as one; None where there are no two of these.

    ``parts`` are what stands under a name that is read nowhere else.
    """
    if node.dtype not in ROUNDED_ALIKE:
        return None
    terms = _terms(node, parts)
    found = [_sum_in(term, node) for _, term in terms]
    first, together = _most([own for own in found if own is not None])
    if first is None or not 1 < together <= _MOST:
        return None
    joined, rest = list[tuple[int, Node]](), list[tuple[int, Node]]()
    for (sign, term), own in zip(terms, found, strict=True):
        if own is not None and own.is_beside(first):
            joined.append((sign * own.sign, own.inside))
        else:
            rest.append((sign, term))
    return _added([(1, Reduced("sum", _added(joined), first.axes)), *rest])


def _most(sums: Sequence[_Sum]) -> tuple[_Sum | None, int]:
    """The first of the sums that are most over the same positions, and how many these are."""
    counts = [sum(own.is_beside(other) for other in sums) for own in sums]
    most = max(counts, default=0)
    return (sums[counts.index(most)] if most else None), most


def _terms(node: Node, parts: Mapping[str, Node]) -> list[tuple[int, Node]]:
    """What ``node`` adds and subtracts, in sequence."""
    found: list[tuple[int, Node]] = []
    stack = [(1, node)]
    while stack:
        sign, term = stack.pop()
        match term:
            case Apply(op, (first, second)) if (
                op in (ADD, SUBTRACT) and term.kind == first.kind == second.kind
            ):
                stack += [(sign if op is ADD else -sign, second), (sign, first)]
            case Apply(op, (inner,)) if op is NEGATIVE:
                stack.append((-sign, inner))
            case Name(identifier) if identifier in parts:
                stack.append((sign, parts[identifier]))
            case _:
                found.append((sign, term))
    return found


def _added(terms: Sequence[tuple[int, Node]]) -> Node:
    (sign, total), *others = terms
    total = total if sign > 0 else Apply(NEGATIVE, (total,))
    for sign, term in others:
        total = Apply(ADD if sign > 0 else SUBTRACT, (total, term))
    return total


def _sum_in(term: Node, result: Node) -> _Sum | None:
    """The sum that ``term`` is a multiple of, of elements like those of ``result``."""
    match term:
        case Reduced("sum", array, tuple(axes), "", None, False) if array.kind == result.kind:
            return _Sum(array, tuple(sorted(n % array.ndim for n in axes)))
        case Einsum(_, (_, _)) if term.kind == result.kind:
            return _of_whole(term)
        case Apply(op, (first, second)) if op is MULTIPLY:
            for factor, inner in ((first, second), (second, first)):
                own = _sum_in(inner, result) if _is_factor(factor, inner) else None
                if own is not None:
                    return replace(own, factors=(*own.factors, factor))
        case Apply(op, (inner,)) if op is NEGATIVE and (own := _sum_in(inner, result)) is not None:
            return replace(own, sign=-own.sign)
    return None


def _is_factor(factor: Node, beside: Node) -> bool:
    """Whether ``factor`` is a number, or an array of the shape of the sum ``beside`` it, that exists or is computed element by element."""
    if factor.ndim and not same_shape(factor.shape, beside.shape):
        return False
    stack = [factor]
    while stack:
        node = stack.pop()
        if not isinstance(node, _FACTORS):
            return False
        stack += node.operands
    return True


def _of_whole(einsum: Einsum) -> _Sum | None:
    """A product of an array with all dimensions and another one, in sequence, as a sum; None where each has a dimension of its own."""
    inputs, _, out = einsum.spec.partition("->")
    own = inputs.split(",")
    for whole, part in ((0, 1), (1, 0)):
        letters = own[whole]
        kept = [a for a in letters if a in out]
        if (
            set(own[part]) <= set(letters)
            and list(out) == kept
            and list(own[part]) == [a for a in letters if a in own[part]]
        ):
            beside = Index(tuple(ALL if a in own[part] else NEW for a in letters))
            other = apply_steps(einsum.factors[part], [beside])
            product = Apply(MULTIPLY, (other, einsum.factors[whole]))
            axes = tuple(n for n, a in enumerate(letters) if a not in out)
            return _Sum(product, axes) if axes and len(set(letters)) == len(letters) else None
    return None
