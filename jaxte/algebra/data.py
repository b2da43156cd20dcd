"""Equations with data: those that determine a variable, directly or by what is known of the data.

``i == J[k]`` determines ``i``. ``I[i] == a`` does not, unless a fact says more: where I is a permutation with the inverse Q it is
``i == Q[a]``; where I lists the neighbours of ``i``, and is symmetric, ``I[i, p] == a`` holds exactly for the
neighbours ``i == I[a, q]`` of ``a``, each at its place ``p == slot[a, q]``. Where the elements of I are known numbers, so is where each of them stands
(``known_places.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from jaxte.algebra.known_places import places_of
from jaxte.lang.expr import Axis, Call, Expr, Read, as_expr, call, widened
from jaxte.lang.graphs import among, identical
from jaxte.lang.limits import MOST_TIMES
from jaxte.lang.operators import EQUAL
from jaxte.lang.walk import free_axes, postorder, reads_of, rewrite, substitute
from jaxte.sets.affine import from_linear, linear, normal
from jaxte.sets.conditions import prune
from jaxte.sets.index_forms import difference
from jaxte.sets.intervals import axis_bounds
from jaxte.sets.solving.elimination import mentions
from jaxte.sets.solving.solve import simplify_domain
from jaxte.sets.transformation import Domain
from jaxte.tensors.facts import Permutation, SymmetricAdjacency, find, values_in
from jaxte.tensors.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Points:
    """A value at the points of ``axes`` where every condition holds."""

    axes: tuple[Expr, ...]
    conditions: tuple[Expr, ...]
    value: Expr

    def replaced(
        self, condition: Expr, equations: Sequence[Expr], axes: Sequence[Expr] | None = None
    ) -> Points:
        """The points with ``equations`` in the place of ``condition``."""
        own = [e for c in self.conditions for e in (equations if c is condition else (c,))]
        return Points(tuple(self.axes if axes is None else axes), tuple(dict.fromkeys(own)), self.value)


def solve_data(points: Points, targets: Sequence[Axis] = ()) -> Points:
    """The points with every equation solved that determines a variable.

    The value that the data gives may lie outside the variable's range: that is a condition from then on.

    An equation that says to which of the ``targets`` each point goes, as ``Y[i] + k == y`` does, is left as it is where ``y`` takes many more values
    than ``k``: solved for ``k``, the sum would meet each ``i`` at each ``y``, and leave most of them out.
    """
    done: set[Expr] = set()  # equations that facts were applied to
    budget = MOST_TIMES
    while True:
        found = None
        for condition in points.conditions:
            found = _determined(condition, points.axes)
            growth = 1.0 if found is None else _growth(found[1], found[2], targets)
            if found is not None and growth <= budget:
                budget /= max(growth, 1.0)
                break
            found = None
        if found is not None:
            points = _solved(points, *found)
            continue
        turned = next(_turned(points, done), None)
        if turned is None:
            return points
        points = turned


def _growth(variable: Axis, value: Expr, targets: Sequence[Axis]) -> float:
    """How many times the points grow when ``variable`` is ``value``, in place of a target that it says."""
    if not reads_of(value):
        return 1.0
    own = [a for a in free_axes(value) if among(a, targets)]
    bounds = axis_bounds([variable, *own])
    if variable not in bounds or any(a not in bounds for a in own):
        return 1.0
    sizes = {a: high - low + 1 for a, (low, high) in bounds.items()}
    return max(
        (sizes[a] / sizes[variable] for a in own if abs(linear(value).coefficient(a)) == 1), default=1.0
    )


def _determined(condition: Expr, axes: Sequence[Expr]) -> tuple[Expr, Axis, Expr] | None:
    found = data_equation(condition, axes)
    if found is None or not isinstance(found[0], Axis):
        return None
    return condition, found[0], found[1]


def _solved(points: Points, condition: Expr, variable: Axis, value: Expr) -> Points:
    limits = [] if _in_range(value, variable) else [variable.lo <= value, value < variable.hi]
    table: dict[Expr, Expr] = {variable: widened(value)}
    rest = [substitute(c, table) for c in points.conditions if c is not condition]
    return Points(
        tuple(a for a in points.axes if a is not variable),
        tuple(dict.fromkeys(map(composed, [*rest, *limits]))),
        composed(substitute(points.value, table)),
    )


def _in_range(value: Expr, variable: Axis) -> bool:
    """Whether facts keep ``value`` in the range of ``variable``."""
    if not isinstance(value, Read):
        return False
    stop = values_in(value.tensor)
    return stop is not None and variable.lo is as_expr(0) and normal(as_expr(stop)) is normal(variable.hi)


def data_equation(condition: Expr, axes: Sequence[Expr]) -> tuple[Expr, Expr] | None:
    """``(variable, value)`` for an equation with data that determines one of ``axes``."""
    if not (isinstance(condition, Call) and condition.op is EQUAL and reads_of(condition)):
        return None
    form = difference(condition)
    if form is None:
        return None
    hidden = {node for atom in form.terms if not isinstance(atom, Axis) for node in postorder(atom)}
    for axis in axes:
        factor = form.coefficient(axis)
        if abs(factor) == 1 and axis not in hidden:
            return axis, from_linear(form.without(axis) * -factor)
    return None


# --- facts


def _turned(points: Points, done: set[Expr]) -> Iterator[Points]:
    """The points with one equation ``I[...] == value`` written for the indices of I."""
    for condition in points.conditions:
        if condition in done:
            continue
        done.add(condition)
        for read, value in data_readings(condition):
            if not mentions(read, points.axes):
                continue
            if (fact := find(read.tensor, Permutation)) is not None and fact.inverse is not None:
                turned = _by_inverse(points, condition, read, value, fact.inverse, done)
            elif (fact := find(read.tensor, SymmetricAdjacency)) is not None:
                turned = _by_symmetry(points, condition, read, value, fact)
            else:
                turned = _at_known_places(points, condition, read, value)
            if turned is not None:
                yield turned


def data_readings(condition: Expr) -> Iterator[tuple[Read, Expr]]:
    """``(read, value)`` for each way in which an equation is ``read == value``."""
    if not (isinstance(condition, Call) and condition.op is EQUAL):
        return
    form = difference(condition)
    if form is None:
        return
    for atom, factor in form.terms.items():
        rest = from_linear(form.without(atom) * -factor)
        if isinstance(atom, Read) and abs(factor) == 1 and atom not in set(postorder(rest)):
            yield atom, rest


def _within(value: Expr, extent: object) -> list[Expr]:
    """The conditions that keep ``value`` in ``[0, extent)``, where its axes do not."""
    limits = [value >= 0, value < as_expr(extent)]
    return prune(limits, tuple(free_axes(value)))


def _by_inverse(
    points: Points, condition: Expr, read: Read, value: Expr, inverse: Tensor, done: set[Expr]
) -> Points | None:
    """``I[..., e] == value`` as ``e == Q[..., value]``."""
    *leading, last = read.indices
    found = Read(inverse, (*leading, value))
    if isinstance(last, Axis) and among(last, points.axes):
        equation = call(EQUAL, last, found)
        done.add(equation)  # or it would be turned back
        return points.replaced(condition, [equation, *_within(value, read.tensor.shape[-1])])
    left = points.replaced(condition, _within(value, read.tensor.shape[-1]))
    return _indices_solved(left, [(last, found)])


def _at_known_places(points: Points, condition: Expr, read: Read, value: Expr) -> Points | None:
    """``I[e] == value`` as what the axes of ``e`` are where that holds, if the elements of I are known numbers."""
    others = [c for c in points.conditions if c is not condition]
    found = places_of(read, value, points.axes, others, points.value)
    if found is None:
        return None
    table: dict[Expr, Expr] = {read: value, **{axis: widened(own) for axis, own in found.at.items()}}
    rest = [substitute(c, table) for c in others if not among(c, found.stated)]
    left = [a for a in points.axes if not among(a, tuple(found.at))]
    return Points(
        (*left, *([] if found.axis is None else [found.axis])),
        tuple(dict.fromkeys(map(composed, [*rest, *([] if found.counts is None else [found.counts])]))),
        composed(substitute(points.value, table)),
    )


def _by_symmetry(
    points: Points, condition: Expr, read: Read, value: Expr, fact: SymmetricAdjacency
) -> Points | None:
    """``A[i, p] == value`` as ``i == A[value, q]`` and ``p == slot[value, q]``, for a new ``q``."""
    row, place = read.indices
    name = place.name if isinstance(place, Axis) else "q"
    q = Axis(name, 0, read.tensor.shape[1], reduction=True)
    neighbour = Read(read.tensor, (value, q))
    left = points.replaced(condition, _within(value, read.tensor.shape[0]), (*points.axes, q))
    if fact.slot is not None:
        return _indices_solved(left, [(row, neighbour), (place, Read(fact.slot, (value, q)))])
    whole = isinstance(place, Axis) and normal(place.extent) is normal(as_expr(read.tensor.shape[1]))
    if not whole or any(mentions(e, [place]) for e in (row, points.value, *left.conditions)):
        return None  # which of the neighbours' places it is would have to be known
    return _indices_solved(
        replace(left, axes=tuple(a for a in left.axes if a is not place)), [(row, neighbour)]
    )


def _indices_solved(points: Points, equations: Sequence[tuple[Expr, Expr]]) -> Points | None:
    """The points where each index equals what is read beside it; None if that leaves a variable of an index free.

    What is read is a parameter while the equations are solved over the integers: ``(p + 1) % 3 == s`` gives
    ``p == (s + 2) % 3``.
    """
    parameters = [Axis(f"s{n}", 0, _stop(read)) for n, (_, read) in enumerate(equations)]
    indices = [index for index, _ in equations]
    variables = tuple(a for a in points.axes if any(mentions(index, [a]) for index in indices))
    solved = simplify_domain(
        Domain(variables, [call(EQUAL, i, s) for i, s in zip(indices, parameters, strict=True)])
    )
    if solved.is_empty or solved.new.variables:
        return None
    reads: dict[Expr, Expr] = {s: widened(read) for s, (_, read) in zip(parameters, equations, strict=True)}
    # Where an index stands as it is, so does what is read.
    table: dict[Expr, Expr] = {index: widened(read) for index, read in equations}
    table |= {v: substitute(e, reads) for v, e in solved.old_to_new.items()}
    limits = [substitute(c, reads) for c in solved.new.conditions]
    rest = [substitute(c, table) for c in points.conditions]
    return Points(
        tuple(a for a in points.axes if not among(a, variables)),
        tuple(dict.fromkeys(map(composed, [*rest, *limits]))),
        composed(substitute(points.value, table)),
    )


# --- reads at positions that are data


# --- what equations with data imply


def _stop(read: Expr) -> Expr | int:
    """One more than the largest value that facts allow for what is read."""
    assert isinstance(read, Read)
    stop = values_in(read.tensor)
    return read.tensor.shape[-1] if stop is None else stop


def composed(expr: Expr) -> Expr:
    """``expr`` with ``I[Q[a]]`` as ``a`` where Q is the inverse of I, and ``A[A[a, q], slot[a, q]]`` as ``a``."""

    def rule(node: Expr) -> Expr:
        match node:
            case Read(tensor, (*leading, Read(other, (*before, inner)))) if identical(leading, before):
                fact = find(tensor, Permutation)
                if fact is not None and fact.inverse is other:
                    return inner
            case Read(tensor, (Read(a, (row, q)), Read(b, place))) if tensor is a and identical(
                place, (row, q)
            ):
                fact = find(tensor, SymmetricAdjacency)
                if fact is not None and fact.slot is b:
                    return row
        return node

    return rewrite(expr, rule)
