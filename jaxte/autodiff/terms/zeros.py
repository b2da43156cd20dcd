"""Zero elimination: what one read passes on to its tensor, as a sum over exactly the points that count.

For a read ``X[f(v)]`` in a body over ``v`` with domain ``D`` and an adjoint ``g(v)`` that flows into it,

    dX[a] = sum over { v in D : f(v) = a } of g(v)

The equations ``f(v) = a`` are solved over the integers (``jaxte.sets.solving.solve``), so that the sum runs over the free
variables only; conditions on ``a`` alone become guards around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from math import prod

from jaxte.algebra.data import Points, solve_data
from jaxte.algebra.data_conditions import without_implied
from jaxte.algebra.product import is_zero, stays_finite
from jaxte.algebra.simplify import factors_outside, plus, simplify_reads, times
from jaxte.algebra.sums import with_common_factor, with_shared_factor
from jaxte.autodiff.terms.guards import addends, guard, multiple_of_guard, scaled
from jaxte.autodiff.terms.scalar import Contribution
from jaxte.autodiff.terms.support import guarded
from jaxte.lang import dtypes
from jaxte.lang.expr import FALSE, Axis, Call, Const, Expr, Read, Reduce, call, cast, conjunction, conjuncts
from jaxte.lang.graphs import among
from jaxte.lang.limits import CASES, MOST_LAID_OUT
from jaxte.lang.operators import ADD, EQUAL, MAXIMUM, MINIMUM, NOT, SELECT
from jaxte.lang.walk import all_of, free_axes, nodes_outside, reads_of, substitute
from jaxte.sets.conditions import tidy
from jaxte.sets.digits import Number, at_digits, number_of
from jaxte.sets.domain import IntegerSet
from jaxte.sets.intervals import extent_of, may_be_negative
from jaxte.sets.isl_text import is_decidable
from jaxte.sets.resolved import Values, values_of
from jaxte.sets.solving.elimination import mentions
from jaxte.sets.solving.solve import simplify_domain
from jaxte.sets.transformation import Domain, DomainTransformation
from jaxte.tensors.reducers import builtin_reducer


def summands(contribution: Contribution, targets: Sequence[Axis]) -> list[Expr]:
    """What the read passes to the element at ``targets``: expressions whose sum it is; none if there is nothing."""
    assert isinstance(contribution.read, Read)
    name = f"d{contribution.read.tensor.name}"
    found = [eliminate(points, targets, name) for points in _points_at(contribution, targets)]
    return [result for result in found if result is not None]


def has_many_cases(contribution: Contribution) -> bool:
    """Whether the ends at which indices are held make more cases, each a set of equations, than there is a budget for."""
    assert isinstance(contribution.read, Read)
    held = {node for index in contribution.read.indices for node in _extrema(index)}
    return len(held) > CASES


def _extrema(index: Expr) -> list[Call]:
    """The minima and maxima of positions that ``index`` consists of, not those at which data are read in it."""
    own = set(nodes_outside(index, (Read,)))
    held = [n for n in all_of(Call, index) if n.op in (MAXIMUM, MINIMUM) and n in own]
    return [n for n in held if not reads_of(n)]


def is_left_open(contribution: Contribution, targets: Sequence[Axis]) -> bool:
    """Whether solving for the points that count takes more work than there is a budget for."""
    return any(
        not simplify_domain(Domain(points.axes, [c for c in points.conditions if is_decidable(c)])).solved
        for points in _points_at(contribution, targets)
    )


def _points_at(contribution: Contribution, targets: Sequence[Axis]) -> Iterator[Points]:
    """The points at which the element at ``targets`` is read, case by case."""
    read = contribution.read
    assert isinstance(read, Read)
    given = frozenset(targets)
    for conditions, indices in _split_extrema(read.indices):
        # Axes that are targets already (those of the head's prefix) are parameters.
        variables = tuple(a for a in contribution.axes if a not in given)
        equations = [call(EQUAL, index, target) for index, target in zip(indices, targets, strict=True)]
        for part in _at_values(contribution.value, variables):
            value, guards = lift_guards(part)
            flat = [
                c for own in (contribution.where, *conditions, *guards, *equations) for c in conjuncts(own)
            ]
            yield _over_digits(Points(variables, tuple(flat), value))


def _at_values(value: Expr, axes: Sequence[Axis]) -> list[Expr]:
    """``value`` as what it is at each value of an axis by which it chooses, and the rest: at one value there is nothing to sum over."""
    apart: dict[Values, list[Expr]] = {}
    rest: list[Expr] = []
    for term in addends(value):
        _, guards = lift_guards(term)
        found = [
            own for g in guards for c in conjuncts(g) if (own := values_of(c)) is not None and own.is_one
        ]
        one = next((own for own in found if among(own.axis, axes)), None)
        (rest if one is None else apart.setdefault(one, [])).append(term)
    if len(apart) + bool(rest) < 2:
        return [value]
    return [reduce(plus, terms) for terms in (*apart.values(), *([rest] if rest else []))]


def _over_digits(points: Points) -> Points:
    """``points`` over digits of the axes that conditions take more than two digits of."""
    numbers = [number_of(a, points.conditions) for a in points.axes if isinstance(a, Axis)]
    apart: dict[Expr, Number] = {n.axis: n for n in numbers if n.is_taken_apart}
    if not apart:
        return points
    table: dict[Expr, Expr] = {axis: number.whole for axis, number in apart.items()}
    axes = [digit for a in points.axes for digit in (apart[a].digits if a in apart else (a,))]
    conditions = tuple(at_digits(c, table) for c in points.conditions)
    return Points(tuple(axes), conditions, at_digits(points.value, table))


def lift_guards(value: Expr) -> tuple[Expr, list[Expr]]:
    """``select(c, x, 0)`` as ``x`` and the condition ``c``, as often as it applies; of a multiple its own, of a sum what guards all terms."""
    guards: list[Expr] = []
    while isinstance(value, Call) and value.op is SELECT:
        condition, taken, other = value.args
        if is_zero(other):
            guards.append(condition)
            value = taken
        elif is_zero(taken):
            guards.append(call(NOT, condition))
            value = other
        else:
            break
    if isinstance(value, Call) and (multiple := multiple_of_guard(value)) is not None:
        number, inner = multiple
        value, found = lift_guards(inner)
        return scaled(number, value), [*guards, *found]
    value, common = _lifted_out_of_sum(value)
    return value, [*guards, *common]


def _lifted_out_of_sum(value: Expr) -> tuple[Expr, list[Expr]]:
    """A sum without the conditions that guard each of its terms, and these."""
    terms = _terms(value)
    if len(terms) == 1:
        return value, []
    found: list[tuple[Expr, list[Expr]]] = []
    for term in terms:
        own, inner = lift_guards(term)
        if not inner:
            return value, []
        found.append((own, [c for g in inner for c in conjuncts(g)]))
    common = [c for c in found[0][1] if all(among(c, inner) for _, inner in found)]
    if not common:
        return value, []
    rests = [guard(conjunction([c for c in inner if not among(c, common)]), own) for own, inner in found]
    return reduce(plus, rests), common


def _terms(value: Expr) -> list[Expr]:
    """The terms of a sum, from the left."""
    later: list[Expr] = []
    while isinstance(value, Call) and value.op is ADD:
        value, last = value.args
        later.append(last)
    return [value, *reversed(later)]


def _split_extrema(indices: Sequence[Expr]) -> Iterator[tuple[list[Expr], list[Expr]]]:
    """Cases without ``minimum`` and ``maximum`` in the indices, with the conditions of each."""
    for index in indices:
        for node in _extrema(index)[:1]:
            a, b = node.args
            first, second = (a <= b, b < a) if node.op is MINIMUM else (b <= a, a < b)
            for condition, chosen in ((first, a), (second, b)):
                rest = [substitute(i, {node: chosen}) for i in indices]
                for conditions, simple in _split_extrema(rest):
                    yield [condition, *conditions], simple
            return
    yield [], list(indices)


def eliminate(points: Points, targets: Sequence[Axis], name: str) -> Expr | None:
    """The sum of the value over ``points``, with as few free variables as can be; None if there are no points.

    A part of it that is a tensor of its own is called after ``name``, and has its axes in the order of ``targets``.
    """
    known = [c for c in points.conditions if is_decidable(c)]
    on_data = [c for c in points.conditions if not is_decidable(c)]
    transformation = simplify_domain(Domain(points.axes, known))
    if transformation.is_empty or among(FALSE, on_data):
        return None
    bands = _bands(known, points)
    if bands and _reads_askew(points.value, transformation):
        whole = simplify_domain(Domain(points.axes, [c for c in known if not among(c, bands)]))
        # Points of a product under a mask for each of a band: diagonals of an array are far apart in memory.
        if not whole.is_empty and _size(whole) <= MOST_LAID_OUT * _size(transformation):
            transformation, on_data = whole, [*on_data, *bands]
    table: dict[Expr, Expr] = dict(transformation.old_to_new)
    on_data = [simplify_reads(substitute(c, table)) for c in on_data]
    left = Points(
        transformation.new.variables,
        (*transformation.new.conditions, *on_data),
        simplify_reads(substitute(points.value, table)),
    )
    solved = without_implied(solve_data(left, targets))
    axes = tuple(a for a in solved.axes if isinstance(a, Axis))
    return sum_over(axes, solved.conditions, solved.value, targets, name, transformation.solved)


def _bands(conditions: Sequence[Expr], points: Points) -> list[Expr]:
    """The inequalities among ``conditions`` between axes that one array has both."""
    both = [set(free_axes(r)) for r in reads_of(points.value) if len(set(free_axes(r))) > 1]
    found: list[Expr] = []
    for c in conditions:
        own = set(free_axes(c))
        if len(own) > 1 and not (isinstance(c, Call) and c.op is EQUAL) and any(own <= axes for axes in both):
            found.append(c)
    return found


def _reads_askew(value: Expr, transformation: DomainTransformation) -> bool:
    """Whether an array that is read at axes by themselves is read along its diagonals."""
    for read in reads_of(value):
        if all(isinstance(i, Axis) for i in read.indices):
            places = [free_axes(transformation.old_to_new.get(i, i)) for i in read.indices]
            mixed = [axes for axes in places if len(axes) > 1]
            if any(among(a, other) for axes in mixed for a in axes for other in places if other is not axes):
                return True
    return False


def _size(transformation: DomainTransformation) -> int:
    return prod(extent_of(a.extent) for a in transformation.new.variables if isinstance(a, Axis))


def sum_over(
    axes: Sequence[Axis],
    conditions: Sequence[Expr],
    value: Expr,
    targets: Sequence[Axis],
    name: str,
    solved: bool = True,
) -> Expr:
    """``sum over axes where conditions of value``, with guards and factors that do not depend on axes outside.

    Factors stay where it took too much work to solve for the points: so does what they leave behind.
    """
    outside = [c for c in conditions if not mentions(c, axes)]
    inside = [c for c in conditions if mentions(c, axes)]
    needed = [a for a in axes if mentions(value, [a]) or any(mentions(c, [a]) for c in inside)]
    idle = [a for a in axes if a not in frozenset(needed)]
    axes = [a if a.reduction else Axis(a.name, a.lo, a.hi, reduction=True) for a in needed]
    renamed: dict[Expr, Expr] = dict(zip(needed, axes, strict=True))
    value = substitute(value, renamed)
    where = conjunction([substitute(c, renamed) for c in inside])
    for axis in idle:  # a sum of equal terms
        value = times(value, _count(axis))
    if axes:
        points = _where_points_are(axes, conjuncts(where)) if solved else None
        value = with_common_factor(with_shared_factor(value), axes)
        factors, inner = ([], value) if points is None else factors_outside(value, axes, _may_leave(where))
        if factors and points is not None:
            outside += conjuncts(points)
        dtype = inner.dtype
        if inner.weak:  # numbers beside what has left the sum, at least as wide as that
            if dtypes.is_inexact(dtype):
                dtype = dtypes.promote([(dtype, False), (value.dtype, value.weak)])[0]
            inner = cast(inner, dtype)
        value = Reduce(builtin_reducer("sum", dtype), (inner,), axes, where)
        for wrap in reversed(factors):
            value = wrap(value)
    return guarded(outside, value, targets, name)


def _where_points_are(axes: Sequence[Axis], conditions: Sequence[Expr]) -> Expr | None:
    """Where a sum over ``axes`` has points, as far as positions decide; None where that cannot be said shortly.

    Elsewhere the sum is zero, and a factor that left it may be infinite, or read what is not there.
    """
    known = [c for c in conditions if is_decidable(c)]
    outer = tuple(dict.fromkeys(a for c in known for a in free_axes(c) if not among(a, axes)))
    shadow = IntegerSet((*outer, *axes), known).shadow(outer)
    return None if shadow is None else tidy(shadow)


def _may_leave(where: Expr) -> Callable[[Expr, bool], bool]:
    """Which factors (or divisors) may leave a sum: where data decides on its points, those that are finite without any."""
    if all(is_decidable(c) for c in conjuncts(where)):
        return lambda factor, divides: True
    return lambda factor, divides: not divides and stays_finite(factor)


def _count(axis: Axis) -> Expr:
    """How many values an axis takes: none where its end lies before its beginning, for small sizes."""
    extent = axis.extent
    if isinstance(extent, Const):
        return Const(float(extent.value))  # type: ignore[arg-type]
    return call(MAXIMUM, extent, 0) if may_be_negative(extent) else extent
