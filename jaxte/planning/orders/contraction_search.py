"""Which axes of a sum of products to sum first: what each step costs, and the tensor that it makes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import nan, prod

from jaxte.algebra.product import Factor, is_zero, may_spoil, multiplied, product_of
from jaxte.lang.expr import Axis, Call, Const, Expr, Read, Reduce, call, cast, conjunction
from jaxte.lang.graphs import among
from jaxte.lang.limits import ORDERED, SEARCHED, SLIGHT_MARGIN
from jaxte.lang.operators import NONZERO
from jaxte.lang.walk import depends_on, free_axes, substitute
from jaxte.meaning.points import share
from jaxte.planning.asked import intermediates
from jaxte.planning.terms import Coordinates, Rewriting, Split, coordinates, term_bounds
from jaxte.sets.domain import IntegerSet
from jaxte.sets.intervals import extent
from jaxte.sets.isl_text import is_decidable
from jaxte.tensors.bodies.range_checks import reads_inside
from jaxte.tensors.reducers import builtin_reducer
from jaxte.tensors.structure import PartialSum
from jaxte.tensors.tensor import Compute

_SPOILT = Const(nan)


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


class Search:
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
        if cost * SLIGHT_MARGIN >= whole.work:
            return []
        # What the conditions leave of the boxes is asked only where something is to be gained.
        asked = share(self._guards)
        cost = sum(step.counting for step in steps) + asked * self._left(whole, steps).counting
        return steps if cost * SLIGHT_MARGIN < asked * whole.counting else []

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
        if len(current.axes) > SEARCHED:
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
        conditions = [c for c in current.conditions if not among(c, own.conditions)]
        rest = tuple(a for a in current.axes if not among(a, own.axes))
        return (not _may_be_of_none(current, own) or _passes_on(own)) and (
            _have_points(conditions, rest) or not any(map(_may_spoil, own.factors))
        )


def _may_be_of_none(current: Sum, own: Sum) -> bool:
    """Whether ``own`` may have no point where the rest of ``current`` is infinite."""
    others = [f for f in current.factors if not among(f, own.factors)]
    return any(map(_may_spoil, others)) and not _have_points(own.conditions, own.axes)


def _passes_on(own: Sum) -> bool:
    """Whether the conditions of ``own`` say that a factor of it is not zero: what is zero passes nothing on, and neither does their sum where that is zero."""
    return all(
        isinstance(c, Call) and c.op is NONZERO and is_zero(c.args[1]) and _is_factor(c.args[0], own)
        for c in own.conditions
    )


def _is_factor(expr: Expr, own: Sum) -> bool:
    return any(f.expr is expr and not f.inverse for f in own.factors)


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
    sizes = range(1, len(axes) + 1) if len(axes) <= ORDERED else (1, len(axes))
    for size in sizes:
        yield from combinations(axes, size)


def remaining(current: Sum, step: Step, read: Expr | None = None) -> Sum:
    """What is left of ``current`` when ``step`` is a tensor, which is read at ``read``."""
    element = _Standing.of(step) if read is None else read
    rest = [f for f in current.factors if not among(f, step.own.factors)]
    conditions = [c for c in current.conditions if not among(c, step.own.conditions)]
    if _may_be_of_none(current, step.own):
        conditions.append(call(NONZERO, element, 0))
    return Sum(
        (*rest, Factor(element)),
        tuple(a for a in current.axes if not among(a, step.own.axes)),
        tuple(conditions),
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


def _is_same(part: PartialSum, step: Step) -> bool:
    """Whether ``part``, whose axes have the extents of those of ``step``, is the tensor that this would be."""
    total = part.body
    own = tensor_of(step, part.dtype, part.name)
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


def tensor_of(step: Step, dtype: str, name: str) -> PartialSum | None:
    """The intermediate; None where it would read what is not there."""
    inner = {a: Axis(a.name, a.lo, a.hi, reduction=True) for a in step.own.axes}
    rewriting = Rewriting(step.split, step.coordinates, inner)
    body = multiplied([Factor(rewriting(f.expr), f.inverse) for f in step.own.factors])
    where = conjunction([rewriting(c) for c in step.own.conditions])
    total = Reduce(builtin_reducer("sum", dtype), (cast(body, dtype),), tuple(inner.values()), where)
    axes = [c.axis for c in step.coordinates.order]
    if not reads_inside(axes, total):
        return None
    return PartialSum(f"{name}_over_{'_'.join(a.name for a in step.own.axes)}", axes, total)
