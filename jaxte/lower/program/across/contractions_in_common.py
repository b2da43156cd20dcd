"""Sums of three or more arrays that begin with the same product of two of them: that product is summed once, and read by all.

    da[i, k] = sum over j, l of d[i, j, l] * c[l, k] * b[j, k]
    db[j, k] = sum over i, l of d[i, j, l] * c[l, k] * a[i, k]     both read    m[i, j, k] = sum over l of d[i, j, l] * c[l, k]

The gradients of a product of several arrays are such sums: each is a path of einsum of its own, and what is large is summed as often as there are operands.
Reverse mode along one path sums it twice for each of its products. Which paths there are is what einsum searches: two arrays at a time, at their product
of extents; a path may begin with a product that is not its cheapest where others begin with it too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from jaxte.algebra.product import Factor, multiplied, product_of
from jaxte.lang.expr import TRUE, Axis, Const, Expr, Read, Reduce
from jaxte.lang.graphs import among
from jaxte.lang.limits import MOST_PARTS, SEARCHED, SLIGHT_MARGIN
from jaxte.lang.walk import depends_on, free_axes, reductions
from jaxte.lower.cost.policy import Policy
from jaxte.lower.cost.work import Work, points
from jaxte.lower.tiles.tiling import Tiling
from jaxte.planning.orders.contraction import EXACT
from jaxte.sets.intervals import extent_of, known
from jaxte.tensors.structure import PartialSum
from jaxte.tensors.tensor import Compute, Tensor

_WIDTH = 4  # bytes of an element: in float64 all products take twice as long
_LARGE = 2**15  # elements of an array the copy of which counts
_ANY_SIZE = 2**62  # elements of an intermediate: einsum's path has no limit


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two ``reads`` of a sum that are multiplied first; ``summed`` are the axes that no other read has, and the result has not."""

    reads: tuple[Read, Read]
    summed: tuple[Axis, ...]

    @property
    def is_copied(self) -> bool:
        """Whether XLA copies the larger of the reads, which has what is summed in its middle, or some of its axes in the other one, too."""
        small, large = sorted(self.reads, key=lambda r: points(free_axes(r)))
        axes, count = _axes(large), len(self.summed)
        ends = {*axes[:count]}, {*axes[-count:]}
        return {*self.summed} not in ends or any(
            depends_on(small, (a,)) for a in axes if not among(a, self.summed)
        )

    @property
    def kept(self) -> tuple[Axis, ...]:
        """The axes of the product, in an order in which the larger of the reads is multiplied as it lies: the sum is over its first or its last axes."""
        small, large = sorted(self.reads, key=lambda r: points(free_axes(r)))
        batches = [a for a in _axes(large) if depends_on(small, (a,)) and not among(a, self.summed)]
        alone = [[a for a in _axes(r) if not among(a, (*batches, *self.summed))] for r in (small, large)]
        is_first = any(i is a for i in large.indices[: len(batches) + 1] for a in self.summed)
        return (*batches, *(a for own in (alone if is_first else alone[::-1]) for a in own))


@dataclass(frozen=True, slots=True)
class _Sum:
    """The sum ``node`` of ``tensor``: of the arrays that ``reads`` are, times numbers."""

    tensor: Compute
    node: Reduce
    reads: tuple[Read, ...]
    numbers: tuple[Factor, ...]

    @property
    def outer(self) -> list[Axis]:
        """The axes of the result that it depends on."""
        return [
            a for a in dict.fromkeys(a for r in self.reads for a in _axes(r)) if not among(a, self.node.axes)
        ]

    def pairs(self) -> Iterator[_Pair]:
        """The pairs of reads whose product is a sum."""
        for one, other in combinations(self.reads, 2):
            others = {a for r in self.reads if r is not one and r is not other for a in _axes(r)}
            both = dict.fromkeys([*_axes(one), *_axes(other)])
            summed = tuple(a for a in both if among(a, self.node.axes) and a not in others)
            if summed:
                yield _Pair((one, other), summed)


def _axes(read: Read) -> list[Axis]:
    return [a for a in read.indices if isinstance(a, Axis)]


@dataclass(frozen=True, slots=True)
class _Operand:
    """An array of a path: the number of what it is by whatever axes, and its ``axes`` in the order of that."""

    number: int
    axes: tuple[Axis, ...]
    is_read: bool = False


class _Paths:
    """The products of two arrays that the paths of einsum are made of, those of the fewest operations, with the time of each.

    XLA computes once what several paths have in common, as they are. So the time of sums is that of the different products in their paths. On the CPU it copies
    a large array that one of these begins with, whatever axis is summed.
    """

    def __init__(self, policy: Policy) -> None:
        self._rates = policy.rates
        self.copies = policy.facts.copies_for_products
        self._numbers: dict[object, int] = {}
        self._known: dict[tuple[_Sum, _Pair | None], dict[int, float]] = {}

    def seconds(self, sums: Sequence[_Sum], first: Mapping[_Sum, _Pair]) -> float:
        """The time of ``sums``, of which some begin with the ``first`` pair."""
        steps: dict[int, float] = {}
        for own in sums:
            steps |= self._steps(own, first.get(own))
        return sum(steps.values())

    def keyed(self, pair: _Pair) -> tuple[int, _Pair]:
        """The number of the product of ``pair``, and the pair with its reads in the order in which those of all its number stand."""
        one, other = map(self._read, pair.reads)
        turned = _keys(one, other, {*pair.kept})[0][1]
        ordered = _Pair(pair.reads[::-1], pair.summed) if turned else pair
        return self._product(one, other, {*pair.kept})[0].number, ordered

    def _steps(self, own: _Sum, first: _Pair | None) -> dict[int, float]:
        key = (own, first)
        if key not in self._known:
            self._known[key] = self._found(own, first)
        return self._known[key]

    def _found(self, own: _Sum, first: _Pair | None) -> dict[int, float]:
        left = [self._read(r) for r in own.reads if first is None or not among(r, first.reads)]
        outer, steps = own.outer, {}
        if first is not None:
            product, took = self._product(
                self._read(first.reads[0]), self._read(first.reads[1]), {*first.kept}
            )
            took += self._copy(map(self._read, first.reads)) if first.is_copied else 0.0
            left, steps = [product, *left], {product.number: took}
        for one, other in _path(left, outer):
            rest = [o for n, o in enumerate(left) if n not in (one, other)]
            kept = {*outer, *(a for o in rest for a in o.axes)}
            product, took = self._product(left[one], left[other], kept)
            steps[product.number] = took + self._copy((left[one], left[other]))
            left = [*rest, product]
        return steps

    def _copy(self, operands: Iterable[_Operand]) -> float:
        """The time to copy the larger of two operands, if it is a large one that is read."""
        most = max(operands, key=lambda o: points(o.axes))
        size = points(most.axes) if most.is_read and self.copies else 0
        return Work(stream=2.0 * _WIDTH * size).seconds(self._rates) if size >= _LARGE else 0.0

    def _read(self, read: Read) -> _Operand:
        number = self._numbers.setdefault(read.tensor, len(self._numbers))
        return _Operand(number, (*_axes(read),), is_read=True)

    def _product(self, one: _Operand, other: _Operand, kept: Collection[Axis]) -> tuple[_Operand, float]:
        """The product of two operands, summed to those of their axes that are ``kept``, and its time.

        Each is read, and the product written. On the CPU the larger of two that share an axis which is kept is written again, with that axis first.
        """
        key, _, both = _keys(one, other, kept)[0]
        axes = tuple(a for a in both if a in kept)
        made = _Operand(self._numbers.setdefault(key, len(self._numbers)), axes)
        sizes = points(one.axes), points(other.axes)
        turned = 2 * max(sizes) if self.copies and {*one.axes} & {*other.axes} & {*axes} else 0
        own = Work(dot=2.0 * points(both)) if len(axes) < len(both) else Work(tap=points(both))
        moved = Work(stream=_WIDTH * (sum(sizes) + points(axes) + turned), kernel=1)
        return made, (own + moved).seconds(self._rates)


def _keys(
    one: _Operand, other: _Operand, kept: Collection[Axis]
) -> list[tuple[tuple[object, ...], int, tuple[Axis, ...]]]:
    """What the product is by whatever axes, the one operand first and the other, with all its axes in the order of that; the least first."""
    found = []
    for turned, (a, b) in enumerate(((one, other), (other, one))):
        both = tuple(dict.fromkeys([*a.axes, *b.axes]))
        place = {axis: n for n, axis in enumerate(both)}
        key = (a.number, *(place[x] for x in a.axes), -1, b.number, *(place[x] for x in b.axes), -1)
        found.append(((*key, *(place[x] for x in both if x in kept)), turned, both))
    return sorted(found, key=lambda k: k[:2])


def _path(operands: Sequence[_Operand], outer: Sequence[Axis]) -> list[tuple[int, int]]:
    """The pairs of numbers that einsum multiplies, one after the other; the first two, where all at once takes no more operations."""
    if len(operands) < 2:
        return []
    numbers = {a: n for n, a in enumerate(dict.fromkeys(a for o in operands for a in o.axes))}
    asked: list[Any] = []
    for own in operands:
        asked += [
            np.broadcast_to(np.float32(0), tuple(extent_of(a.extent) for a in own.axes)),
            [numbers[a] for a in own.axes],
        ]
    found = np.einsum_path(*asked, [numbers[a] for a in outer], optimize=("optimal", _ANY_SIZE))[0][1:]
    several = any(len(step) != 2 for step in found)
    return [(0, 1)] * (len(operands) - 1) if several else [(one, other) for one, other in found]


def with_common_contractions(planned: Tiling, policy: Policy) -> Tiling:
    """``planned`` with the products with which several sums of three or more arrays begin as tensors of their own."""
    paths = _Paths(policy)
    while True:
        sums = [s for t in planned.order if isinstance(t, Compute) for s in _sums(t)]
        found = _largest_gain(sums, paths) if sums else None
        if found is None:
            return planned
        planned = _reading(planned, found)


def _sums(tensor: Compute) -> Iterator[_Sum]:
    for node in reductions(tensor.body):
        if not node.is_sum or node.where is not TRUE or node.dtype not in EXACT:
            continue
        product = product_of(node.exprs[0])
        reads = tuple(f.expr for f in product.factors if isinstance(f.expr, Read) and _is_plain(f))
        numbers = tuple(f for f in product.factors if isinstance(f.expr, Const))
        whole = len({*reads}) + len(numbers) == len(product.factors) and not product.is_conditional
        if whole and 2 < len(reads) <= SEARCHED and all(r.dtype == node.dtype for r in reads):
            yield _Sum(tensor, node, reads, numbers)


def _is_plain(factor: Factor) -> bool:
    """Whether it is a tensor at an axis of its own for each dimension, along all of it."""
    read = factor.expr
    assert isinstance(read, Read)
    axes = [a for a in read.indices if isinstance(a, Axis)]
    if factor.inverse or len(axes) < len(read.indices) or len(set(axes)) < len(axes):
        return False
    ends = zip(axes, read.tensor.shape, strict=True)
    return all(known(a.lo) == 0 and isinstance(e, int) and known(a.extent) == e for a, e in ends)


def _largest_gain(sums: Sequence[_Sum], paths: _Paths) -> Mapping[_Sum, _Pair] | None:
    """The sums that gain most by one product with which all of them begin, and more than a margin."""
    groups: dict[int, dict[_Sum, _Pair]] = {}
    for own in sums:
        for pair in own.pairs():
            number, ordered = paths.keyed(pair)
            groups.setdefault(number, {}).setdefault(own, ordered)
    several = [m for m in groups.values() if len(m) > 1 or (paths.copies and _has_large(m))]
    readers: dict[Tensor, dict[_Sum, None]] = {}
    for own in sums:
        for read in own.reads:
            readers.setdefault(read.tensor, {})[own] = None
    gained, best = 0.0, None
    for members in several:
        pair = next(iter(members.values()))
        near = [*(readers[pair.reads[0].tensor] | readers[pair.reads[1].tensor])]
        # Sums that read one of two arrays: of more, as of what each step of a long loop reads, the search takes longer than it gains.
        if len(near) > MOST_PARTS:
            continue
        apart, together = paths.seconds(near, {}), paths.seconds(near, members)
        if apart - together > gained and apart > SLIGHT_MARGIN * together:
            gained, best = apart - together, members
    return best


def _has_large(members: Mapping[_Sum, _Pair]) -> bool:
    return any(points(free_axes(r)) >= _LARGE for pair in members.values() for r in pair.reads)


def _reading(planned: Tiling, members: Mapping[_Sum, _Pair]) -> Tiling:
    """``planned`` with one tensor for the product of all ``members``, made before the first that reads it."""
    own, pair = next(iter(members.items()))
    label = "_".join(a.name for a in pair.summed)
    body = own.node.changed(
        exprs=(multiplied([Factor(r) for r in pair.reads]),), axes=pair.summed, where=TRUE
    )
    large = max(pair.reads, key=lambda r: points(free_axes(r)))
    part = PartialSum(f"{large.tensor.name}_over_{label}", pair.kept, body)
    tables: dict[Compute, dict[Expr, Expr]] = {}
    for member, at in members.items():
        left = [Factor(r) for r in member.reads if not among(r, at.reads)]
        factors = [*member.numbers, Factor(Read(part, at.kept)), *left]
        axes = [a for a in member.node.axes if not among(a, at.summed)]
        value = multiplied(factors)
        new = member.node.changed(exprs=(value,), axes=axes, where=TRUE) if axes else value
        tables.setdefault(member.tensor, {})[member.node] = new
    return planned.sharing(part, tables)
