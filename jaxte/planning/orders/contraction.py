"""A sum of products, one axis after the other: which axes to sum first, and the tensors in between.

    sum over k, m of g[k] * g[m] * x[i + k, j + m]   is   sum over k of g[k] * T[i + k, j]
    with                                                  T[p, j] = sum over m of g[m] * x[p, j + m]

This is the elimination of variables that paths of einsum are made of, over index terms in place of axes (see :mod:`jaxte.planning.terms`): an intermediate
is a tensor over the terms that are left when the summed axes are gone. Products of arrays at plain axes are left to ``jnp.einsum``, which has
such a search of its own. Of 16-bit numbers, all sums but the last are kept in float32, so that the whole is rounded
once, but where they have units of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import nan, prod

from jaxte.algebra.product import Factor, Product, may_spoil, multiplied, product_of
from jaxte.lang.expr import Axis, Call, Const, Expr, Read, Reduce, cast, conjunction
from jaxte.lang.graphs import among
from jaxte.lang.operators import EQUAL
from jaxte.lang.walk import depends_on, free_axes, reads_of, substitute
from jaxte.meaning.points import share
from jaxte.planning.asked import intermediates
from jaxte.planning.orders.batches import with_batches_first
from jaxte.planning.orders.choices import summed_inside, with_shared_branches
from jaxte.planning.terms import Coordinates, Rewriting, Split, coordinates, term_bounds
from jaxte.sets.affine import linear
from jaxte.sets.domain import IntegerSet
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import extent, reach
from jaxte.sets.isl_text import is_decidable
from jaxte.tensors.bodies.range_checks import reads_inside
from jaxte.tensors.reducers import builtin_reducer, is_rounded, with_wide_reads
from jaxte.tensors.structure import PartialSum
from jaxte.tensors.tensor import Compute

_SPOILT = Const(nan)
_AGAIN = 4  # points at which one element is met that a sum of one factor is planned for
_WORTH = 1.15  # how much less a plan has to cost to be taken: sums of products of three windows gain 1.2 by counts, 1.3 to 5 by the clock
MOST_AXES = 4  # up to which all subsets are tried as what to sum first
_SEARCHED = 6  # axes up to which every order is tried; of more, what costs least goes first
EXACT = ("float32", "float64", "complex64", "complex128")  # sums of others would be rounded once more


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of a product over ``axes``, at each point of what it depends on beside these."""

    factors: tuple[Factor, ...]
    axes: tuple[Axis, ...]
    conditions: tuple[Expr, ...]

    @property
    def outer(self) -> tuple[Axis, ...]:
        """What it depends on."""
        found = {a: None for e in (*(f.expr for f in self.factors), *self.conditions) for a in free_axes(e)}
        return tuple(a for a in found if not among(a, self.axes))

    @property
    def work(self) -> int:
        """Operations of all of it: one at each point for each factor that depends on what is summed over."""
        inner = sum(depends_on(f.expr, self.axes) for f in self.factors)
        return prod(map(extent, (*self.outer, *self.axes))) * max(1, inner)

    @property
    def counting(self) -> float:
        """Operations at the points where the conditions hold."""
        return self.work * share(self.conditions)


@dataclass(frozen=True, slots=True)
class Step:
    """A part of a sum: its ``own`` factors, summed over ``axes`` where ``conditions`` hold, as a tensor over ``coordinates``.

    It may be ``known`` already, and is made ``anyway`` where that is a part of another sum.
    """

    own: Sum
    split: Split
    coordinates: Coordinates
    known: PartialSum | None = None
    anyway: bool = False

    @property
    def work(self) -> int:
        return 0 if self.anyway else self._each() + self._kept

    @property
    def counting(self) -> float:
        """The same at the points where the conditions hold."""
        return 0 if self.anyway else self._each() * share(self.own.conditions) + self._kept

    @property
    def _kept(self) -> int:
        """What the intermediate costs beside the sum that it is."""
        costs = intermediates()
        return self.coordinates.points * costs.element + costs.loop

    def _each(self) -> int:
        return self.coordinates.points * prod(map(extent, self.own.axes)) * len(self.own.factors)


def planned_sum(
    node: Reduce, axes: Sequence[Axis], guards: Sequence[Expr], name: str, parts: Sequence[PartialSum] = ()
) -> Expr:
    """``node``, or the same from partial sums, which are tensors of their own.

    Args:
        node: a reduction over the points of ``axes`` where ``guards`` hold.
        name: what the tensors are called after.
        parts: those of all sums of the graph.
    """
    if node.reducer.name != "sum" or not node.axes:
        return node
    if node.dtype in EXACT:
        return _planned(node, axes, guards, name, parts)
    wide = with_wide_reads(node)
    if wide is None or (intermediates().narrow and not is_rounded(node)):
        return node
    found = _planned(wide, axes, guards, name)
    return node if found is wide and not is_rounded(node) else cast(found, node.dtype)


def _planned(
    node: Reduce, axes: Sequence[Axis], guards: Sequence[Expr], name: str, parts: Sequence[PartialSum] = ()
) -> Expr:
    node = with_batches_first(node, name)
    product = product_of(node.exprs[0], [node.where])
    shared = with_shared_branches(product)
    search, whole = _Search(axes, guards, name, parts, as_read=True), _whole(shared, node)
    inside = search.step_over(whole, summed_inside(shared, node))
    if inside is not None:
        return _written(search, whole, [inside], node, name)
    if not _may_gain(product, node):
        return node
    search, whole = _Search(axes, guards, name, parts), _whole(product, node)
    steps = search.best(whole)
    return _written(search, whole, steps, node, name) if steps else node


def _whole(product: Product, node: Reduce) -> Sum:
    return Sum(tuple(f for f in product.factors if not f.guard), node.axes, _conditions(product))


def _conditions(product: Product) -> tuple[Expr, ...]:
    return (*product.guards, *(f.expr for f in product.factors if f.guard))


def _may_gain(product: Product, node: Reduce) -> bool:
    """Whether there are several factors, with an index that is more than an axis, or one that meets the same elements again and again."""
    several = [f for f in product.factors if not f.guard and free_axes(f.expr)]
    if not several or any(map(_is_data_equation, _conditions(product))):
        return False
    indices = [i for f in several for read in reads_of(f.expr) for i in read.indices]
    if len(several) == 1:
        return any(_meets_again(i, node.axes) for i in indices)
    plain = all(isinstance(i, (Axis, Const)) for i in indices)
    return not (plain and not _conditions(product))


def _meets_again(index: Expr, axes: Sequence[Axis]) -> bool:
    """Whether ``index`` has the same value at many points of ``axes``, as ``i + k + l + m`` has."""
    own = [a for a in axes if depends_on(index, (a,))]
    ends = reach(linear(index)) if len(own) > 2 and is_index(index) else None
    others = reach(linear(substitute(index, {a: a.lo for a in own}))) if ends is not None else None
    if ends is None or others is None:
        return False
    values = ends[1] - ends[0] - (others[1] - others[0]) + 1
    return prod(map(extent, own)) >= _AGAIN * values


def _is_data_equation(condition: Expr) -> bool:
    """Whether ``condition`` says where a value goes: such a sum visits each value once, whatever its axes are."""
    return isinstance(condition, Call) and condition.op is EQUAL and bool(reads_of(condition))


class _Search:
    """The steps that cost least.

    Args:
        axes: of the tensor that the sum stands in.
        guards: where it stands.
        name: of that tensor.
        parts: those of all sums.
        as_read: whether parts have their axes in the order in which factors read them, so that several sums have the same part.
    """

    def __init__(
        self,
        axes: Sequence[Axis],
        guards: Sequence[Expr],
        name: str,
        parts: Sequence[PartialSum],
        as_read: bool = False,
    ) -> None:
        self._name = name
        self._as_read = as_read
        self._parts = parts
        self._axes = tuple(axes)
        self._guards = tuple(guards)
        self._known: dict[frozenset[Axis], tuple[float, list[Step]]] = {}

    def best(self, whole: Sum) -> list[Step]:
        cost, steps = self._best(whole)
        if cost * _WORTH >= whole.work:
            return []
        # What the conditions leave of the boxes is asked only where something is to be gained.
        asked = share(self._guards)
        cost = sum(step.counting for step in steps) + asked * self._left(whole, steps).counting
        return steps if cost * _WORTH < asked * whole.counting else []

    def _left(self, whole: Sum, steps: Sequence[Step]) -> Sum:
        for step in steps:  # the tensors of the search stand for those of its own way there
            whole = remaining(whole, self.step_over(whole, step.own.axes) or step)
        return whole

    def _best(self, current: Sum) -> tuple[float, list[Step]]:
        """The least work of ``current``, and the steps that it takes: the same, whatever was summed before in which order."""
        left = frozenset(current.axes)
        if left not in self._known:
            self._known[left] = self._least(current)
        return self._known[left]

    def _least(self, current: Sum) -> tuple[float, list[Step]]:
        least: float = current.work
        found: list[Step] = []
        steps = self._steps(current)
        if len(current.axes) > _SEARCHED:
            steps = iter(sorted(steps, key=lambda step: step.work)[:1])
        for step in steps:
            if step.work >= least or not self.may_leave(current, step.own):
                continue
            rest = remaining(current, step)
            cost, after = self._best(rest) if rest.axes else (_elementwise(rest), [])
            if step.work + cost < least:
                least, found = step.work + cost, [step, *after]
        return least, found

    def _steps(self, current: Sum) -> Iterator[Step]:
        for axes in _subsets(current.axes):
            step = self.step_over(current, axes)
            if step is not None:
                yield step

    def step_over(self, current: Sum, axes: Sequence[Axis]) -> Step | None:
        """The sum over ``axes`` of the factors that depend on them."""
        own = Sum(
            tuple(f for f in current.factors if depends_on(f.expr, axes)),
            tuple(axes),
            tuple(c for c in current.conditions if depends_on(c, axes)),
        )
        if not own.factors:
            return None
        split = Split(axes, [*(f.expr for f in own.factors), *own.conditions])
        bounds = term_bounds(split.terms, (*current.conditions, *self._guards))
        order = own.outer if self._as_read else _as_multiplied(own, (*self._axes, *current.axes))
        found = coordinates(split.terms, bounds, order)
        return None if found is None else self._known_part(Step(own, split, found))

    def _known_part(self, step: Step) -> Step:
        """``step`` with the part that is the same."""
        extents = [extent(c.axis) for c in step.coordinates.order] if self._parts else []
        for part in self._parts:
            if list(map(extent, part.axes)) == extents and _is_same(part, step):
                return replace(step, known=part, anyway=part.part_of != self._name)
        return step

    def may_leave(self, current: Sum, own: Sum) -> bool:
        """Whether the sum of ``own`` and the rest may be multiplied: where one of them has no point, it is zero whatever the other is."""
        others = [f for f in current.factors if not among(f, own.factors)]
        conditions = [c for c in current.conditions if not among(c, own.conditions)]
        rest = tuple(a for a in current.axes if not among(a, own.axes))
        return (_have_points(own.conditions, own.axes) or not any(map(_may_spoil, others))) and (
            _have_points(conditions, rest) or not any(map(_may_spoil, own.factors))
        )


def _as_multiplied(own: Sum, order: Sequence[Axis]) -> Sequence[Axis]:
    """``order`` with the axes of one factor after those of the other, as a product of matrices has them, which is transposed otherwise."""
    if len(own.factors) != 2 or own.conditions:
        return order
    place = {axis: n for n, axis in enumerate(order)}
    each = [sorted((a for a in free_axes(f.expr) if a in place), key=place.__getitem__) for f in own.factors]
    by_first = sorted(filter(None, each), key=lambda axes: place[axes[0]])
    return list(dict.fromkeys([*(a for axes in by_first for a in axes), *order]))


def _have_points(conditions: Sequence[Expr], axes: Sequence[Axis]) -> bool:
    """Whether ``conditions`` surely hold at some point of ``axes``, whatever the other axes are."""
    if not all(map(is_decidable, conditions)):
        return False
    outer = tuple(dict.fromkeys(a for c in conditions for a in free_axes(c) if not among(a, axes)))
    return not conditions or IntegerSet((*outer, *axes), conditions).covers(outer)


def _elementwise(rest: Sum) -> float:
    return prod(map(extent, rest.outer)) * max(1, len(rest.factors))


def _subsets(axes: Sequence[Axis]) -> Iterator[tuple[Axis, ...]]:
    sizes = range(1, len(axes) + 1) if len(axes) <= MOST_AXES else (1, len(axes))
    for size in sizes:
        yield from combinations(axes, size)


def remaining(current: Sum, step: Step, read: Expr | None = None) -> Sum:
    """What is left of ``current`` when ``step`` is a tensor, which is read at ``read``."""
    element = _Standing.of(step) if read is None else read
    rest = [f for f in current.factors if not among(f, step.own.factors)]
    return Sum(
        (*rest, Factor(element)),
        tuple(a for a in current.axes if not among(a, step.own.axes)),
        tuple(c for c in current.conditions if not among(c, step.own.conditions)),
    )


class _Standing:
    """Reads of tensors that are not made yet, while their cost is estimated."""

    @staticmethod
    def of(step: Step) -> Expr:
        axes = [c.axis for c in step.coordinates.order]
        spoils = any(map(_may_spoil, step.own.factors))
        return Read(
            Compute("part", axes, _SPOILT if spoils else Const(0.0)),
            [c.position for c in step.coordinates.order],
        )


def _may_spoil(factor: Factor) -> bool:
    """Whether a factor may be infinite or NaN where the arrays are finite; tensors that are not made yet say so by their body."""
    if (
        isinstance(factor.expr, Read)
        and isinstance(factor.expr.tensor, Compute)
        and factor.expr.tensor.body is _SPOILT
    ):
        return True
    return may_spoil(factor)


def _written(search: _Search, whole: Sum, steps: Sequence[Step], node: Reduce, name: str) -> Expr:
    """``whole`` by ``steps``; as it was where an intermediate would read what is not there."""
    current = whole
    for planned in steps:
        step = search.step_over(current, planned.own.axes)
        if step is None or not search.may_leave(current, step.own):
            return node
        part = _tensor(step, node.dtype, name) if step.known is None else step.known
        if part is None:
            return node
        current = remaining(current, step, Read(part, [c.position for c in step.coordinates.order]))
    if not current.axes:
        value = multiplied(current.factors, current.conditions)
    else:
        body = multiplied(current.factors)
        value = Reduce(
            builtin_reducer("sum", node.dtype),
            (cast(body, node.dtype),),
            current.axes,
            conjunction(current.conditions),
        )
    return value if value.dtype == node.dtype and not value.weak else cast(value, node.dtype)


def _is_same(part: PartialSum, step: Step) -> bool:
    """Whether ``part``, whose axes have the extents of those of ``step``, is the tensor that this would be."""
    total = part.body
    own = _tensor(step, part.dtype, part.name)
    if own is None or not isinstance(total, Reduce) or len(total.axes) != len(step.own.axes):
        return False
    assert isinstance(own.body, Reduce)
    table = dict(zip((*part.axes, *total.axes), (*own.axes, *own.body.axes), strict=True))
    if any(old.lo is not new.lo or old.hi is not new.hi for old, new in table.items()):
        return False
    there = product_of(substitute(total.exprs[0], table), [substitute(total.where, table)])
    here = product_of(own.body.exprs[0], [own.body.where])
    # a square has its factor twice
    return Counter(there.factors) == Counter(here.factors) and Counter(there.guards) == Counter(here.guards)


def _tensor(step: Step, dtype: str, name: str) -> PartialSum | None:
    inner = {a: Axis(a.name, a.lo, a.hi, reduction=True) for a in step.own.axes}
    rewriting = Rewriting(step.split, step.coordinates, inner)
    body = multiplied([Factor(rewriting(f.expr), f.inverse) for f in step.own.factors])
    where = conjunction([rewriting(c) for c in step.own.conditions])
    total = Reduce(builtin_reducer("sum", dtype), (cast(body, dtype),), tuple(inner.values()), where)
    axes = [c.axis for c in step.coordinates.order]
    if not reads_inside(axes, total):
        return None
    return PartialSum(f"{name}_over_{'_'.join(a.name for a in step.own.axes)}", axes, total)
