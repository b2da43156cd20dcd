"""Which equations read each other, and how far back: the edges that clocks have to respect, and clocks that do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from jaxte.frontends.loops.program import Equation, Stand
from jaxte.lang.expr import TRUE, Axis, Const, Expr, Read
from jaxte.lang.walk import depends_on, reads_of, substitute
from jaxte.sets.affine import from_linear, linear
from jaxte.sets.domain import IntegerSet
from jaxte.sets.linear import Linear
from jaxte.sets.tabulate import evaluate_index
from jaxte.tensors.bodies.contexts import contexts
from jaxte.tensors.recurrences.earlier import numbers_within


@dataclass(frozen=True, eq=False)
class Edge:
    """A read of ``target`` in the body of ``source``, at ``indices``, in which axes stand for data."""

    source: Equation
    target: Equation
    read: Read
    indices: tuple[Expr, ...]
    axes: tuple[Axis, ...]
    conditions: tuple[Expr, ...]


@dataclass(frozen=True)
class Lag:
    """How many steps before its reader an element is computed: at least ``least``."""

    least: int
    is_fixed: bool


@dataclass(frozen=True, eq=False)
class Clocks:
    """A clock for each equation, an expression of its axes."""

    times: Mapping[Equation, Expr]
    lags: Mapping[Edge, Lag]

    @property
    def is_fixed(self) -> bool:
        return all(self.lag(e.source, e.read).is_fixed for e in self.lags)

    def lag(self, source: Equation, read: Read) -> Lag:
        """That of a read wherever it stands in the body of ``source``."""
        read = source.origins.get(read, read)
        own = [lag for e, lag in self.lags.items() if e.source is source and e.read is read]
        least = min(lag.least for lag in own)
        return Lag(least, all(lag.is_fixed and lag.least == least for lag in own))

    def solved(self, equation: Equation) -> Axis | None:
        """The axis of ``equation`` that follows from its clock and the others."""
        form = linear(self.times[equation])
        return next((a for a in equation.axes if form.coefficient(a) == 1), None)


@dataclass(frozen=True, eq=False)
class Nest:
    """A clock for each equation that leaves some of them to read each other at one time, and clocks of these within it, block by block."""

    outer: Clocks
    blocks: Sequence[tuple[Sequence[Equation], Clocks]]

    @property
    def is_fixed(self) -> bool:
        """Whether each read is of a fixed number of steps ago; those that are not read what one step has made so far."""
        return True


class PointsOf:
    """The points of edges, which searches in several readings of one program share: those of equal axes and conditions are asked of isl once."""

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[Axis, ...], tuple[Expr, ...]], _Points] = {}

    def __call__(self, edge: Edge) -> _Points:
        key = edge.axes, edge.conditions
        if key not in self._known:
            self._known[key] = _Points(*key)
        return self._known[key]


class _Points:
    """The points at which a read is evaluated, and a few of them: the first, and the first of those where each axis is largest."""

    def __init__(self, axes: Sequence[Axis], conditions: Sequence[Expr]) -> None:
        self.every = IntegerSet(axes, conditions)
        first = None if self.every.is_empty() else self.every.sample()
        ends = map(self.every.last_along, axes if first is not None else ())
        self._some = [point for point in (first, *ends) if point is not None]
        self._atoms: dict[Expr, list[int]] = {}
        self._least: dict[object, int | None] = {}

    def values(self, form: Linear) -> list[int]:
        """Those of ``form`` at the few points."""
        found = [form.constant] * len(self._some)
        for atom, factor in form.terms.items():
            if atom not in self._atoms:
                self._atoms[atom] = [evaluate_index(atom, point) for point in self._some]
            found = [a + factor * b for a, b in zip(found, self._atoms[atom], strict=True)]
        return found

    def least(self, form: Linear) -> int | None:
        """The smallest value of ``form`` at all points, where that is a number."""
        if form.key not in self._least:
            most = self.every.maximum(from_linear(form * -1))
            self._least[form.key] = -int(most.value) if isinstance(most, Const) else None  # type: ignore[arg-type]
        return self._least[form.key]


def edges_of(equation: Equation, among: Sequence[Equation]) -> Iterator[Edge]:
    """The reads of ``among`` in the body of ``equation``, each under the conditions around it."""
    own = {e.stand: e for e in among}
    reads = [r for r in reads_of(equation.body) if isinstance(r.tensor, Stand) and r.tensor in own]
    stands = {r.tensor for r in reads_of(equation.body) if isinstance(r.tensor, Stand)}
    numbers = numbers_within([i for r in reads for i in r.indices], stands)
    fresh = frozenset(numbers.values())
    moved = [substitute(r, numbers) for r in reads]
    origins = {new: r for new, r in zip(moved, reads, strict=True) if isinstance(new, Read)}
    body = substitute(equation.body, numbers)
    for read, axes, conditions in contexts((*equation.axes, *fresh), body, set(origins)):
        inside = [
            c
            for axis, index in zip(own[read.tensor].axes, read.indices, strict=True)
            for c in (index >= axis.lo, index < axis.hi)
            if depends_on(index, fresh)
        ]
        domain = () if equation.domain is TRUE else (equation.domain,)
        held = (*domain, *conditions, *inside)
        yield Edge(equation, own[read.tensor], origins[read], read.indices, axes, held)
