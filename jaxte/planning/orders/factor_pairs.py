"""Products of three arrays and more, two at a time: tensors between them, which the sum and the adjoints of all factors have in common.

    z[n, a] = sum over b, c of t[a, b, c] * x[n, b] * y[n, c]   is   sum over b, c of p[n, b, c] * t[a, b, c]   with   p[n, b, c] = x[n, b] * y[n, c]

``jnp.einsum`` takes two operands at a time as well, in an order that it finds for each sum by itself. The adjoints of three factors are three more such
sums, of which each begins anew. With the tensor between them as a definition, what flows back to ``p`` is one product, ``H`` with ``t``, of which those
to ``x`` and to ``y`` are made, and ``p`` itself stands in the gradient of ``t``: two products for each one of the sum, whatever the number of factors.

The order is that of the least work of the sum alone, so that nothing is lost where it has no adjoint: the best order of a set of factors is the best
way to put two sets together, over the axes that others, or the result, still have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from jaxte.algebra.product import Factor, multiplied, product_of, split_outer
from jaxte.algebra.sums import value_nodes
from jaxte.lang import dtypes
from jaxte.lang.expr import TRUE, Axis, Expr, Read, Reduce
from jaxte.lang.graphs import among
from jaxte.lang.walk import free_axes, substitute
from jaxte.planning.asked import intermediates
from jaxte.planning.orders.contraction import EXACT
from jaxte.sets.intervals import extent, known
from jaxte.tensors.bodies.range_checks import reads_inside
from jaxte.tensors.reducers import builtin_reducer
from jaxte.tensors.structure import PartialSum
from jaxte.tensors.tensor import Compute

_FEWEST, _MOST = 3, 6  # factors, of which all sets are compared
_WORTH = 1.15  # how much less the sum and its adjoints have to cost
_LEAST = 2**14  # points of a sum: a smaller one is nothing to any function
_SHORTEST = 8  # points that are summed: fewer are written out, and no product of matrices
_MOST_BYTES = (
    2**24
)  # of a tensor between two products; larger ones are computed in tiles, which have no use for it
_MOST_TIMES = 8  # as large as the arrays that it is between, that such a tensor is


class FactorPair(Compute):
    """The product of two factors of a larger product."""

    __slots__ = ()


@dataclass(frozen=True)
class _Contraction:
    """Operands, each a set of axes, and the axes of the result.

    Attributes:
        operands: axes of each.
        result: those of the sum.
    """

    operands: tuple[frozenset[Axis], ...]
    result: frozenset[Axis]

    @cached_property
    def best(self) -> dict[int, tuple[float, tuple[int, int]]]:
        """For each set of operands, as bits, the least work of its product, and the two sets that this is of."""
        count = len(self.operands)
        found: dict[int, tuple[float, tuple[int, int]]] = {1 << n: (0.0, (0, 0)) for n in range(count)}
        for chosen in sorted(range(1, 2**count), key=int.bit_count):
            if chosen not in found:
                pairs = _halves(chosen)
                costs = [found[a][0] + found[b][0] + self.step(a, b) for a, b in pairs]
                least = min(range(len(pairs)), key=costs.__getitem__)
                found[chosen] = costs[least], pairs[least]
        return found

    @property
    def work(self) -> float:
        """Of the whole product."""
        return self.best[self.all][0]

    @property
    def all(self) -> int:
        return 2 ** len(self.operands) - 1

    def axes(self, chosen: int) -> frozenset[Axis]:
        """What the product of ``chosen`` is over, when all is summed that nothing else has."""
        inside = [own for n, own in enumerate(self.operands) if chosen >> n & 1]
        outside = [own for n, own in enumerate(self.operands) if not chosen >> n & 1]
        return frozenset().union(*inside) & self.result.union(*outside)

    def step(self, first: int, second: int) -> float:
        """Operations of the product of two sets of operands."""
        made, met = self.axes(first | second), self.axes(first) | self.axes(second)
        each = prod(map(extent, met)) * (1 if made == met else 2)
        costs = intermediates()
        is_last = first | second == self.all
        return each + (0 if is_last else prod(map(extent, made)) * costs.element + costs.loop)

    def back(self, chosen: int, variable: int) -> float:
        """Operations of what flows back through the best product of ``chosen`` to the operands that are ``variable``."""
        total, stack = 0.0, [chosen]
        while stack:
            first, second = self.best[stack.pop()][1]
            if not first:
                continue
            met = self.axes(first) | self.axes(second)
            for side in (first, second):
                if side & variable:
                    own = prod(map(extent, self.axes(side)))
                    total += prod(map(extent, met)) * (1 if self.axes(side) == met else 2)
                    total += own * intermediates().element if self.best[side][1][0] else 0
                    stack.append(side)
        return total

    def without(self, operand: int) -> _Contraction:
        """The adjoint of an operand: the head, which has the axes of the result, in its place."""
        others = tuple(self.result if n == operand else own for n, own in enumerate(self.operands))
        return _Contraction(others, self.operands[operand])


def _halves(chosen: int) -> list[tuple[int, int]]:
    """The ways to part a set of bits in two."""
    found = []
    part = (chosen - 1) & chosen
    while part:
        if part > chosen ^ part:
            found.append((part, chosen ^ part))
        part = (part - 1) & chosen
    return found


def in_pairs(node: Reduce, axes: Sequence[Axis], name: str) -> Reduce:
    """``node``, or the sum of a product of two, one of them or both tensors of products of its factors.

    Args:
        node: a reduction.
        axes: of the definition that it stands in.
        name: what the tensors are called after.
    """
    groups = _groups(node)
    if groups is None:
        return node
    inner = frozenset(node.axes)
    found = _Contraction(
        tuple(frozenset(free_axes(g)) for g in groups), frozenset().union(*map(free_axes, groups)) - inner
    )
    variable = sum(1 << n for n, g in enumerate(groups) if _is_variable(g))
    if not _gains(found, variable) or not _are_small(found, node.dtype):
        return node
    return _Writing(found, groups, tuple(axes), name, node).whole()


def _groups(node: Reduce) -> list[Expr] | None:
    """The factors of a sum, those of fewer axes with one that has them all; None where they are few, or no arrays at the axes themselves."""
    if (
        node.reducer.name != "sum"
        or node.dtype not in EXACT
        or node.where is not TRUE
        or node.exprs[0].reduces
    ):
        return None
    product = product_of(node.exprs[0])
    outer, _ = split_outer(product.factors, node.axes)
    if product.is_conditional or outer or len(product.factors) < _FEWEST:
        return None
    if not all(_is_plain(f.expr) for f in product.factors):
        return None
    groups: list[list[Factor]] = []
    for factor in sorted(product.factors, key=lambda f: -len(free_axes(f.expr))):
        own = free_axes(factor.expr)
        around = [g for g in groups if own.keys() <= free_axes(g[0].expr).keys()]
        if around:
            min(around, key=lambda g: prod(map(extent, free_axes(g[0].expr)))).append(factor)
        else:
            groups.append([factor])
    found = [multiplied(g) for g in groups]
    alone = all(
        any(among(a, free_axes(g)) for g in found[:n] + found[n + 1 :])
        for n, own in enumerate(found)
        for a in free_axes(own)
        if among(a, node.axes)
    )
    fits = (
        _FEWEST <= len(found) <= _MOST and alone and all(g.dtype == node.dtype and not g.weak for g in found)
    )
    return found if fits else None


def _is_plain(expr: Expr) -> bool:
    """Whether ``expr`` is a function of elements at axes, of which all extents are known."""
    reads = [n for n in value_nodes(expr) if isinstance(n, Read)]
    inside = all(isinstance(i, Axis) or not free_axes(i) for r in reads for i in r.indices)
    return inside and all(known(a.extent) is not None for a in free_axes(expr))


def _is_variable(group: Expr) -> bool:
    """Whether something flows back to ``group``."""
    reads = [r for r in value_nodes(group) if isinstance(r, Read) and dtypes.is_inexact(r.dtype)]
    return any(not isinstance(r.tensor, Compute) or r.tensor.inputs for r in reads)


def _gains(found: _Contraction, variable: int) -> bool:
    """Whether the sum and its adjoints take less by way of the same tensors than each by itself."""
    if prod(map(extent, frozenset().union(*found.operands))) < _LEAST:
        return False
    summed = frozenset().union(*found.operands) - found.result
    if prod(map(extent, summed)) < _SHORTEST:
        return False
    apart = sum(found.without(n).work for n in range(len(found.operands)) if variable >> n & 1)
    return found.work + apart > _WORTH * (found.work + found.back(found.all, variable))


def _are_small(found: _Contraction, dtype: str) -> bool:
    width, stack = dtypes.width(dtype), [found.all]
    around = max(prod(map(extent, own)) for own in (*found.operands, found.result)) * _MOST_TIMES * width
    while stack:
        for side in found.best[stack.pop()][1]:
            if side.bit_count() > 1:
                stack.append(side)
                size = prod(map(extent, found.axes(side))) * width
                if size > min(_MOST_BYTES, around):
                    return False
    return True


@dataclass(frozen=True)
class _Writing:
    """The definitions of the tensors between the factors of ``node``."""

    order: _Contraction
    groups: Sequence[Expr]
    axes: tuple[Axis, ...]
    name: str
    node: Reduce

    def whole(self) -> Reduce:
        """The sum of the last two; ``node`` itself where a tensor would read what is not there."""
        sides = [self._element(side) for side in self.order.best[self.order.all][1]]
        if any(side is None for side in sides):
            return self.node
        body = multiplied([Factor(side) for side in sides if side is not None])
        left = [a for a in self.node.axes if among(a, free_axes(body))]
        return Reduce(self.node.reducer, (body,), left, TRUE, self.node.position)

    def _element(self, chosen: int) -> Expr | None:
        """The product of ``chosen`` at the axes of the sum."""
        if chosen.bit_count() == 1:
            return self.groups[chosen.bit_length() - 1]
        first, second = self.order.best[chosen][1]
        sides = [self._element(first), self._element(second)]
        if sides[0] is None or sides[1] is None:
            return None
        made = self.order.axes(chosen)
        body: Expr = sides[0] * sides[1]
        inside = tuple(a for a in self.node.axes if among(a, free_axes(body)) and a not in made)
        own = {a: Axis(a.name, 0, a.extent) for a in (*self.axes, *self.node.axes) if a in made}
        table: dict[Expr, Expr] = {a: b + a.lo for a, b in own.items()}
        inner = {a: Axis(a.name, a.lo, a.hi, reduction=True) for a in inside}
        body = substitute(body, table | dict(inner))
        kind: type[Compute] = FactorPair
        label = f"{self.name}_pair"
        if inner:
            body = Reduce(builtin_reducer("sum", self.node.dtype), (body,), tuple(inner.values()), TRUE)
            kind, label = PartialSum, f"{self.name}_over_{'_'.join(a.name for a in inside)}"
        if not reads_inside(tuple(own.values()), body):
            return None
        return Read(kind(label, tuple(own.values()), body), [a - a.lo for a in own])
