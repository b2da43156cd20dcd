"""What an expression depends on beside some inner axes: the outer parts of its indices.

``g[m] * x[b, i + k, j + m]`` depends, beside ``m``, on ``b``, ``i + k`` and ``j``: on three numbers and not on four. So a sum over ``m`` is a
tensor over these three, with fewer points than the axes have where ``i + k`` takes fewer values than ``(i, k)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod

from jaxte.lang.errors import IndexExpressionError
from jaxte.lang.expr import Axis, Call, Const, Expr, Read, Reduce, call
from jaxte.lang.graphs import components
from jaxte.lang.operators import GREATER_EQUAL
from jaxte.lang.walk import free_axes, reads_of, substitute
from jaxte.sets.affine import from_linear, linear
from jaxte.sets.conditions import narrowed
from jaxte.sets.index_forms import Term, nonnegative_forms, term_of
from jaxte.sets.intervals import axis_bounds, extent, extent_of, interval
from jaxte.sets.linear import Linear

Bounds = Mapping[Expr, tuple[int, int]]


@lru_cache(maxsize=4096)
def _in_order(parts: tuple[tuple[Expr, int], ...]) -> Linear:
    """The form of ``parts`` by the names of their axes, after the first of which a coordinate is named, however they are spelled."""
    return Linear(dict(parts if len(parts) < 2 else sorted(parts, key=lambda part: _names(part[0]))))


def _names(atom: Expr) -> str:
    return ",".join(axis.name for axis in free_axes(atom)) + str(atom)


class Split:
    """How expressions depend on the axes beside ``inner`` ones.

    Attributes:
        terms: the distinct outer parts of indices, in order of appearance.
    """

    def __init__(self, inner: Iterable[Axis], exprs: Sequence[Expr]) -> None:
        self.inner = frozenset(inner)
        self.terms: dict[Term, None] = {}
        stack, seen = [*reversed(exprs)], set(exprs)
        while stack:
            node = stack.pop()
            forms = index_forms(node)
            if forms is not None:
                self._take(forms)
                continue
            children: Sequence[Expr] = tuple(free_axes(node)) if isinstance(node, Reduce) else node.children
            fresh = [c for c in dict.fromkeys(children) if c not in seen]
            seen.update(fresh)
            stack.extend(reversed(fresh))

    def _take(self, forms: Sequence[Linear]) -> None:
        """Adds the terms of the outer parts of ``forms``."""
        for form in forms:
            for part in self.outer_parts(form):
                if part.terms:
                    term, _ = term_of(_in_order(tuple(part.terms.items())), self.terms)
                    self.terms[term] = None

    def outer_parts(self, form: Linear) -> list[Linear]:
        """The part of ``form`` without inner axes; the axes themselves that stand with inner ones in a quotient or remainder."""
        outer: dict[Expr, int] = {}
        axes: dict[Axis, None] = {}
        for atom, coefficient in form.terms.items():
            own = free_axes(atom)
            if self.inner.isdisjoint(own):
                if not own and not isinstance(atom, Axis):
                    continue  # a size
                outer[atom] = coefficient
            else:
                axes |= {axis: None for axis in own if axis not in self.inner}
        return [Linear(outer), *[Linear({axis: 1}) for axis in axes]] if axes else [Linear(outer)]


@lru_cache(maxsize=4096)
def index_forms(node: Expr) -> tuple[Linear, ...] | None:
    """The affine forms that ``node`` is made of, if it is an axis, a read at known positions or a comparison of positions."""
    match node:
        case Axis():
            return (Linear({node: 1}),)
        case Read(_, indices) if not any(map(reads_of, indices)):
            try:
                return tuple([linear(index) for index in indices])
            except IndexExpressionError:
                return None
        case Call() if not reads_of(node):
            return nonnegative_forms(node) or None
    return None


@dataclass(frozen=True, eq=False)
class Coordinate:
    """One axis of a tensor, and where on it what is read stands: at ``form``, which is ``start`` at its first element.

    Most are only counted, while their costs are compared: the axis is made when it is asked for.
    """

    form: Linear
    start: int
    name: str
    extent: Expr | int

    @cached_property
    def axis(self) -> Axis:
        return Axis(self.name, 0, self.extent)

    @property
    def position(self) -> Expr:
        return from_linear(self.form - Linear({}, self.start))


@dataclass(frozen=True, slots=True)
class Coordinates:
    """Axes of a tensor for what depends on ``terms``, as few points as there are: terms of their own, or axes."""

    by_term: Mapping[Term, Coordinate]
    by_axis: Mapping[Axis, Coordinate]

    order: tuple[Coordinate, ...]

    @property
    def points(self) -> int:
        return prod([extent_of(c.extent) for c in self.order])


@lru_cache(maxsize=4096)
def _box_bounds(term: Term) -> tuple[int, int] | None:
    return interval(term.form, axis_bounds(term.axes))


def term_bounds(terms: Iterable[Term], conditions: Sequence[Expr]) -> dict[Term, tuple[int, int] | None]:
    """Inclusive bounds of each term over the ranges of its axes, where ``conditions`` hold; None if they are not known."""
    found = {term: _box_bounds(term) for term in terms}
    for condition in conditions:
        for form in nonnegative_forms(condition):
            if not form.terms:
                continue
            term, factor = term_of(form, found)
            if (known := found.get(term)) is not None:
                found[term] = narrowed(known, factor, form.constant)
    return found


def coordinates(
    terms: Iterable[Term],
    bounds: Mapping[Term, tuple[int, int] | None],
    order: Sequence[Axis],
    turned: bool = False,
) -> Coordinates | None:
    """The axes for what depends on ``terms``, in the ``order`` of those that the terms are about.

    None where an axis has a range that begins elsewhere than at a number.

    Args:
        turned: whether terms that wrap, as ``(k - i) % 4``, take the place of as many points of their axes.
    """
    by_term: dict[Term, Coordinate] = {}
    by_axis: dict[Axis, Coordinate] = {}
    for group in components(terms, lambda term: term.axes):
        axes = list({axis: None for term in group for axis in term.axes})
        known = [bounds[term] for term in group]
        of_terms = prod([max(0, k[1] - k[0] + 1) for k in known if k is not None])
        least = prod(map(extent, axes))
        if all(known) and (of_terms < least or (turned and of_terms == least and any(map(wraps, group)))):
            for term, own in zip(group, known, strict=True):
                assert own is not None
                by_term[term] = Coordinate(term.form, own[0], _name(term), max(0, own[1] - own[0] + 1))
            continue
        for old in axes:
            if not isinstance(old.lo, Const):
                return None
            start = int(old.lo.value)  # type: ignore[arg-type]
            by_axis[old] = Coordinate(Linear({old: 1}), start, old.name, old.extent)
    places = {axis: place for place, axis in enumerate(order)}

    def place(found: Coordinate) -> int:
        return min([places.get(axis, len(places)) for atom in found.form.terms for axis in free_axes(atom)])

    return Coordinates(by_term, by_axis, tuple(sorted([*by_term.values(), *by_axis.values()], key=place)))


def reads_windows(expr: Expr) -> bool:
    """Whether ``expr`` reads a tensor at the sum of two axes: an array of it is as many times as large as its windows are."""
    return any(len(free_axes(index)) > 1 for read in reads_of(expr) for index in read.indices)


def wraps(term: Term) -> bool:
    """Whether a quotient or remainder is among what ``term`` adds up."""
    return any(isinstance(atom, Call) for atom in term.form.terms)


def _name(term: Term) -> str:
    return next(iter(term.axes)).name


class Rewriting:
    """Expressions in terms of the axes of ``coordinates``, with ``inner`` axes replaced by those of ``table``."""

    def __init__(self, split: Split, found: Coordinates, table: Mapping[Axis, Axis]) -> None:
        self._split = split
        self._found = found
        self._axes: dict[Expr, Expr] = {}
        for old, new in table.items():
            self._axes[old] = new
        self._axes |= {old: _shifted(c) for old, c in found.by_axis.items()}
        for term, own in found.by_term.items():
            if len(term.form.terms) == 1 and isinstance(axis := next(iter(term.form.terms)), Axis):
                self._axes[axis] = _shifted(own) if term.form.terms[axis] == 1 else -_shifted(own)
        self._memo: dict[Expr, Expr] = {}

    def __call__(self, node: Expr) -> Expr:
        if node not in self._memo:
            self._memo[node] = self._rewritten(node)
        return self._memo[node]

    def _rewritten(self, node: Expr) -> Expr:
        match node:
            case Axis():
                return self.index(Linear({node: 1}))
            case Read(tensor, indices) if index_forms(node) is not None:
                return Read(tensor, [self.index(linear(index)) for index in indices])
            case Call(op, (left, right)) if (forms := index_forms(node)) is not None:
                if len(forms) > 1:
                    return call(op, *map(self.index, self._sides(linear(left), linear(right))))
                return call(GREATER_EQUAL, self.index(forms[0]), 0)
            case Reduce():
                return substitute(node, {axis: self(axis) for axis in free_axes(node)})
        children = [self(child) for child in node.children]
        if all(new is old for new, old in zip(children, node.children, strict=True)):
            return node
        return node.rebuild(children)

    def _sides(self, left: Linear, right: Linear) -> tuple[Linear, Linear]:
        """The sides of an equation; their difference and zero where either has a part of what its term is: of ``k - j == i``, ``k`` of ``k - i``."""
        apart = all(self._split.outer_parts(side)[0].terms for side in (left, right))
        return (left - right, Linear({}, 0)) if apart else (left, right)

    def index(self, form: Linear) -> Expr:
        """An index over the new axes."""
        result = Linear({}, form.constant)
        outer = self._split.outer_parts(form)[0]
        if outer.terms:
            term, factor = term_of(outer, self._found.by_term)
            own = self._found.by_term.get(term)
            new = None if own is None else linear(_shifted(own)) * factor
            result = result + (self._replaced(outer) if new is None else new)
        for atom, coefficient in form.terms.items():
            if atom not in outer.terms:
                result = result + self._replaced(Linear({atom: coefficient}))
        return from_linear(result)

    def _replaced(self, form: Linear) -> Linear:
        return linear(substitute(from_linear(form), self._axes))


def _shifted(found: Coordinate) -> Expr:
    return found.axis + found.start if found.start else found.axis
