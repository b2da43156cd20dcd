"""When the elements of equations that read each other are computed: an affine clock for each, by which whatever is read comes before.

A clock counts one axis, or goes along diagonals (``2 * i + j``), or counts every iteration of the loops. It is best if each read is of a fixed number of
steps ago; else what is read is kept as long as the loop runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import product
from typing import TypeVar

from jaxte.frontends.loops.equations.edges import Clocks, Edge, Lag, Nest, PointsOf, edges_of
from jaxte.frontends.loops.program import Counter, Equation
from jaxte.lang.expr import Axis, Const, Expr, as_expr
from jaxte.lang.graphs import circles
from jaxte.lang.limits import PLACES
from jaxte.lang.walk import reads_of
from jaxte.sets.affine import from_linear, linear, normal
from jaxte.sets.index_forms import linear_or_none
from jaxte.sets.linear import Linear

T = TypeVar("T")
Candidates = Callable[[Equation], Sequence[Expr]]
_FACTORS = (0, 1, 2, 4)  # of the loops in the time of a diagonal


class Search:
    """Clocks of equations that read each other."""

    def __init__(
        self, equations: Sequence[Equation], points: PointsOf, edges: Sequence[Edge] | None = None
    ) -> None:
        self.equations = list(equations)
        self._points_of = points
        self.edges = (
            [e for own in equations for e in edges_of(own, equations)] if edges is None else list(edges)
        )
        places = {equation: n for n, equation in enumerate(self.equations)}
        self._to_earlier: list[list[Edge]] = [[] for _ in self.equations]  # or from these, and to itself
        for edge in self.edges:
            self._to_earlier[max(places[edge.source], places[edge.target])].append(edge)
        self._left_out: dict[Equation, Axis] = {}
        self._known: dict[tuple[Edge, Expr, Expr], Lag | None] = {}
        self._indices: dict[Edge, dict[Expr, Linear | None]] = {}
        self._at_points: dict[tuple[Edge, Expr, bool], list[int] | None] = {}
        self._diagonals: dict[Equation, list[Expr]] = {}
        self._tried = 0

    def fixed(self) -> Clocks | None:
        """Clocks by which each read is of a fixed number of steps ago."""
        return self._best(self._single, True) or self._best(self._diagonal, True)

    def kept(self) -> Clocks | None:
        """Clocks that count one axis of each, or go along diagonals, as a matrix that is solved for element by element.

        Along diagonals, what is read at places that are steps of different numbers behind is of steps before: not all conditions show it of the same one.
        """
        along_axes = self.kept_along_axes()
        if along_axes is not None:
            return along_axes
        found = self._best(self._diagonal, False)
        earlier = found is not None and all(lag.is_fixed or lag.least for lag in found.lags.values())
        return found if earlier else None

    def kept_along_axes(self) -> Clocks | None:
        """Clocks that count one axis of each."""
        return self._best(self._single, False)

    def nested(self) -> Nest | None:
        """An outer clock, which counts one axis of each, and clocks of those that read each other within one iteration of it."""
        self._tried = 0
        return self._assigned({}, self._single, True, self._nest)

    def in_order(self) -> Clocks | None:
        """Clocks that count the iterations of the loops, one after the other."""
        times = _ranks(self.equations)
        return None if times is None else self._clocks(times, False)

    def _best(self, candidates: Candidates, fixed: bool) -> Clocks | None:
        self._tried = 0
        return self._assigned({}, candidates, fixed, lambda times: self._clocks(times, fixed))

    def _assigned(
        self,
        times: dict[Equation, Expr],
        candidates: Candidates,
        fixed: bool,
        whole: Callable[[Mapping[Equation, Expr]], T | None],
    ) -> T | None:
        """What ``whole`` makes of the first clocks that fit, of equations one after the other, of which it makes something."""
        place = len(times)
        if place == len(self.equations):
            return whole(times)
        for time in candidates(self.equations[place]):
            self._tried += 1
            # Times of equations, after which no clock is looked for.
            if self._tried > PLACES:
                return None
            own = {**times, self.equations[place]: time}
            if all(self._fits(edge, own, fixed) for edge in self._to_earlier[place]):
                found = self._assigned(own, candidates, fixed, whole)
                if found is not None:
                    return found
        return None

    def _fits(self, edge: Edge, times: Mapping[Equation, Expr], fixed: bool) -> bool:
        key = edge, times[edge.source], times[edge.target]
        steps = self._at_some_points(*key)
        if min(steps, default=0) < 0 or (fixed and len(steps) > 1):
            return False
        lag = self._lag(*key)
        return lag is not None and (lag.is_fixed or not fixed)

    def _at_some_points(self, edge: Edge, reader: Expr, target: Expr) -> set[int]:
        """How many steps before its reader an element is computed at a few points: most clocks are seen not to fit at these."""
        own, read = self._values(edge, reader, False), self._values(edge, target, True)
        return set() if own is None or read is None else {a - b for a, b in zip(own, read, strict=True)}

    def _values(self, edge: Edge, time: Expr, is_read: bool) -> list[int] | None:
        """A time of the reader, or of what is read, at those points, once for all that it is held beside; None where data decides."""
        key = edge, time, is_read
        if key not in self._at_points:
            form = self._as_read(edge, time) if is_read else linear(time)
            self._at_points[key] = None if form is None else self._points_of(edge).values(form)
        return self._at_points[key]

    def _as_read(self, edge: Edge, time: Expr) -> Linear | None:
        """When what is read is computed, by the axes of the reader; None where data decides."""
        if edge not in self._indices:
            pairs = zip(edge.target.axes, edge.indices, strict=True)
            self._indices[edge] = {a: None if reads_of(i) else linear_or_none(i) for a, i in pairs}
        form, indices = linear(time), self._indices[edge]
        result = Linear({}, form.constant)
        for atom, factor in form.terms.items():
            own = indices.get(atom, Linear({atom: 1}))
            if own is None:
                return None
            result = result.plus(own, factor)
        return result

    def _difference(self, edge: Edge, reader: Expr, target: Expr) -> Linear | None:
        """How many steps before its reader an element is computed; None where data decides."""
        read = self._as_read(edge, target)
        return None if read is None else linear(reader) - read

    def _nest(self, times: Mapping[Equation, Expr]) -> Nest | None:
        """Recurrences within the steps of clocks that leave equations at one time to read each other."""
        lags = {e: self._lag(e, times[e.source], times[e.target]) for e in self.edges}
        outer = Clocks(dict(times), {e: lag for e, lag in lags.items() if lag is not None})
        here = [e for e, lag in outer.lags.items() if not lag.least]
        if len(here) == len(self.edges):  # iterations that do not depend on each other are no loop
            return None
        if not outer.is_fixed:  # one read, at places that are steps of different numbers behind it
            return None
        below: dict[Equation, list[Equation]] = {own: [] for own in self.equations}
        for edge in here:
            below[edge.source].append(edge.target)
        blocks: list[tuple[list[Equation], Clocks]] = []
        for block in circles(self.equations, below.__getitem__):
            if len(block) > 1 or any(e.source is e.target for e in here if e.source is block[0]):
                inner = Search(
                    block, self._points_of, [e for e in here if e.source in block and e.target in block]
                )
                inner.leave_out(times)
                clocks = inner.fixed() or inner.kept_along_axes()
                if clocks is None:
                    return None
                blocks.append((block, clocks))
        return Nest(outer, blocks) if blocks else None

    def leave_out(self, times: Mapping[Equation, Expr]) -> None:
        """No clock counts the axes that ``times`` are."""
        self._left_out = {own: time for own, time in times.items() if isinstance(time, Axis)}

    def _clocks(self, times: Mapping[Equation, Expr], fixed: bool) -> Clocks | None:
        lags = {}
        graph: TopologicalSorter[Equation] = TopologicalSorter(dict.fromkeys(self.equations, ()))
        for edge in self.edges:
            lag = self._lag(edge, times[edge.source], times[edge.target])
            if lag is None or (fixed and not lag.is_fixed):
                return None
            lags[edge] = lag
            if not lag.least:
                if edge.source is edge.target:
                    return None
                graph.add(edge.source, edge.target)
        try:
            graph.prepare()
        except CycleError:
            return None
        return Clocks(dict(times), lags)

    def _lag(self, edge: Edge, reader: Expr, target: Expr) -> Lag | None:
        """None where what is read is computed later, at some point."""
        key = edge, reader, target
        if key not in self._known:
            self._known[key] = self._measured(edge, reader, target)
        return self._known[key]

    def _measured(self, edge: Edge, reader: Expr, target: Expr) -> Lag | None:
        difference = self._difference(edge, reader, target)
        if difference is None:
            return None
        if difference.is_constant:
            return Lag(difference.constant, True) if difference.constant >= 0 else None
        points = self._points_of(edge)
        if points.every.is_empty():
            return Lag(1, True)
        least = points.least(difference)
        if least is None or least < 0:
            return None
        if len(set(points.values(difference))) > 1:
            return Lag(least, False)
        return Lag(least, points.least(difference * -1) == -least)

    # --- candidates

    def _single(self, equation: Equation) -> Sequence[Expr]:
        return self._axes(equation)

    def _axes(self, equation: Equation) -> tuple[Axis, ...]:
        out = self._left_out.get(equation)
        return tuple(a for a in equation.axes if a is not out)

    def _diagonal(self, equation: Equation) -> Sequence[Expr]:
        if equation not in self._diagonals:
            self._diagonals[equation] = list(self._along_diagonals(self._axes(equation)))
        return self._diagonals[equation]

    def _along_diagonals(self, axes: Sequence[Axis]) -> Iterator[Expr]:
        for factors in product(_FACTORS, repeat=min(len(axes), 3)):
            if 1 in factors and sum(f > 0 for f in factors) > 1:
                yield from_linear(Linear({a: f for a, f in zip(axes, factors, strict=False) if f}))
        yield from self._mirrored(axes)

    def _mirrored(self, axes: Sequence[Axis]) -> Iterator[Expr]:
        """Diagonals that go down one axis, as a table of intervals by their lengths: ``j - i``."""
        for signs in product((0, 1, -1), repeat=min(len(axes), 3)):
            if 1 in signs and -1 in signs:
                time = as_expr(0)
                for sign, axis in zip(signs, axes, strict=False):
                    time = time + (sign * axis if sign >= 0 else axis.extent - 1 - axis)
                yield normal(time)


def _ranks(equations: Sequence[Equation]) -> dict[Equation, Expr] | None:
    """The number of each iteration, of statements in loops, in the order of the program."""
    statements = {e: e.statement for e in equations}
    if any(s is None for s in statements.values()):
        return None
    entries = [(s.places, s.counters, e) for e, s in statements.items() if s is not None]
    found: dict[Equation, Expr] = {}

    def block(
        own: list[tuple[tuple[int, ...], tuple[Counter, ...], Equation]], level: int, start: Expr
    ) -> int | None:
        """The number of iterations of a block."""
        offset = 0
        for place in sorted({places[level] for places, _, _ in own}):
            inner = [e for e in own if e[0][level] == place]
            leaf = [e for e in inner if len(e[1]) == level]
            for _, _, equation in leaf:
                found[equation] = normal(start + offset)
                offset += 1
            nested = [e for e in inner if len(e[1]) > level]
            if not nested:
                continue
            counter = nested[0][1][level]
            size = block(nested, level + 1, as_expr(0))
            extent = counter.axis.extent
            if size is None or not isinstance(extent, Const):
                return None
            for _, _, equation in nested:
                found[equation] = normal(start + offset + size * counter.axis + found[equation])
            offset += size * int(extent.value)  # type: ignore[arg-type]
        return offset

    return found if block(entries, 0, as_expr(0)) is not None else None
