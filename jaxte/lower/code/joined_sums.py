"""Sums with what is done to them, as the sum of what is: what is added to them, and the numbers that they are multiplied by.

``jnp.sum(a, axis=0) + jnp.einsum("i,ij->j", b, c) * d`` is ``jnp.sum(a + b[:, None] * c * d[None, :], axis=0)``, and ``-(2 * jnp.sum(x, axis=0))`` is
``jnp.sum(-(2 * x), axis=0)``. Sums over slightly fewer positions, as of pairs that are some places apart, are padded with zeros.

XLA for GPUs makes a kernel of each sum along columns and fuses it with what it is taken of, with nothing that reads it: a number outside of it, or what adds
several up, is one kernel more. What is computed of a sum and of other arrays is a kernel in any case, which takes the number with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from jaxte.lang.dtypes import LEAST
from jaxte.lang.expr import ZERO, Const, Expr, as_expr
from jaxte.lang.graphs import ordered
from jaxte.lang.limits import MOST_PARTS
from jaxte.lang.operators import ADD, DIVIDE, MULTIPLY, NEGATIVE, SUBTRACT
from jaxte.lower.arrays.elementwise import Apply, Arange, Name, Number
from jaxte.lower.arrays.node import Node, Shape, same_shape
from jaxte.lower.arrays.products import Einsum, Reduced
from jaxte.lower.arrays.views import ALL, NEW, Index, Pad, Step, Transpose, View
from jaxte.lower.code.broadcasting import apply_steps
from jaxte.sets.intervals import same

# narrower elements would be rounded, and leave their range, before they are added
ROUNDED_ALIKE = ("float32", "float64")


def number_within(node: Node) -> Node | None:
    """``node`` with its numbers within the sum that it is a multiple of; None where it is none."""
    outer: list[Node] = []
    total = node
    while (inner := _scaled(total)) is not None:
        outer.append(total)
        total = inner
    if not any(isinstance(n, Apply) for n in outer) or node.dtype not in ROUNDED_ALIKE:
        return None
    if not isinstance(total, Reduced) or total.function != "sum" or total.array.kind != node.kind:
        return None
    array = total.array
    for step in reversed(outer):
        if isinstance(step, Apply):
            array = replace(step, args=tuple(a if isinstance(a, Number) else array for a in step.args))
    result: Node = replace(total, array=array)
    for step in reversed(outer):
        if isinstance(step, View):
            result = replace(step, array=result)
    return result


def _scaled(node: Node) -> Node | None:
    """What ``node`` has in another order, or multiplied by a number."""
    if isinstance(node, View):
        return node.array if isinstance(node.step, Transpose) else None
    if not isinstance(node, Apply) or node.op not in (NEGATIVE, MULTIPLY, DIVIDE):
        return None
    others = [a for a in node.args if not isinstance(a, Number)]
    numbers = [abs(a.value) for a in node.args if isinstance(a, Number)]
    if len(others) != 1 or (node.op is DIVIDE and others[0] is not node.args[0]):
        return None
    return others[0] if all(LEAST < n < 1 / LEAST for n in numbers) else None


_MOST_READ = 8  # arrays that the one kernel of joined sums reads
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
        """Whether both go over the same positions, but for some at the ends."""
        own, others = self.array.shape, other.array.shape
        return (
            self.axes == other.axes
            and len(own) == len(others)
            and all(
                same(a, b) or (n in self.axes and _are_about_as_long(a, b))
                for n, (a, b) in enumerate(zip(own, others, strict=True))
            )
        )

    def inside_of(self, longest: Shape, named: Callable[[Node], Node]) -> Node:
        """What is summed, with zeros behind up to the extents of ``longest``."""
        if same_shape(self.array.shape, longest):
            return self.inside
        pairs = zip(self.array.shape, longest, strict=True)
        behind = [as_expr(_length(whole) - _length(own)) for own, whole in pairs]
        return named(apply_steps(self.inside, [Pad(tuple((ZERO, width) for width in behind))]))


def sums_as_one(node: Node, parts: Mapping[str, Node], named: Callable[[Node], Node]) -> Node | None:
    """``node`` with the sums over the same positions that it adds as one; None where there are no two of these.

    ``parts`` are what stands under a name that is read nowhere else; ``named`` gives a name to what is padded.
    """
    if node.dtype not in ROUNDED_ALIKE:
        return None
    terms = terms_of(node, parts)
    found = [_sum_in(term, node) for _, term in terms]
    first, beside = _most([own for own in found if own is not None])
    if first is None or not 1 < len(beside) <= MOST_PARTS or len(_read(beside, parts)) > _MOST_READ:
        return None
    longest = tuple(
        max(extents, key=_length) for extents in zip(*(own.array.shape for own in beside), strict=True)
    )
    joined, rest = list[tuple[int, Node]](), list[tuple[int, Node]]()
    for (sign, term), own in zip(terms, found, strict=True):
        if own is not None and own.is_beside(first):
            joined.append((sign * own.sign, own.inside_of(longest, named)))
        else:
            rest.append((sign, term))
    return added([(1, Reduced("sum", added(joined), first.axes)), *rest])


def _most(sums: Sequence[_Sum]) -> tuple[_Sum | None, list[_Sum]]:
    """The first of the sums that are most over the same positions, and these."""
    groups = [(own, [other for other in sums if own.is_beside(other)]) for own in sums]
    return max(groups, key=lambda group: len(group[1]), default=(None, []))


def _read(sums: Sequence[_Sum], parts: Mapping[str, Node]) -> set[str]:
    """The names of the arrays that ``sums`` are made of."""
    names = set[str]()
    for own in sums:
        for node in ordered([own.array, *own.factors], lambda n: _operands(n, parts)):
            if isinstance(node, Name) and node.identifier not in parts:
                names.add(node.identifier)
    return names


def _operands(node: Node, parts: Mapping[str, Node]) -> Sequence[Node]:
    if isinstance(node, Name) and node.identifier in parts:
        return (parts[node.identifier],)
    return node.operands


def _are_about_as_long(a: Expr, b: Expr) -> bool:
    shorter, longer = sorted((_length(a), _length(b)))
    return 0 < longer <= 2 * shorter


def _length(extent: Expr) -> int:
    """The positions of an axis; 0 where they are a symbol."""
    return extent.value if isinstance(extent, Const) and isinstance(extent.value, int) else 0


def terms_of(node: Node, parts: Mapping[str, Node]) -> list[tuple[int, Node]]:
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


def added(terms: Sequence[tuple[int, Node]]) -> Node:
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
