"""Accesses of programs with loops, as isl reads them, and the dependences between them: which write each read sees, and which additions since.

A program is given as accesses: to an array, at index expressions of axes, within conditions, at a time that is a tuple of expressions. A *write*
replaces what was there; an *addition* (a sum, a product, a maximum) keeps it. For one read isl finds the last write before it, and all additions since.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import islpy as isl

from jaxte.lang.budget import FLOW, Exhausted
from jaxte.lang.expr import TRUE, Axis, Const, Expr, as_expr
from jaxte.sets.domain import is_plain, sizes_of, stated
from jaxte.sets.isl_text import FULL_TEXT, condition_text, context, index_text, whole, within


@dataclass(frozen=True, eq=False)
class Access:
    """Elements of ``array`` that are read, or written, at the points of ``axes`` within ``conditions``."""

    label: str
    axes: tuple[Axis, ...]
    conditions: tuple[Expr, ...]
    array: str
    indices: tuple[Expr, ...]
    time: tuple[Expr, ...]


@dataclass(frozen=True, eq=False)
class Source:
    """Where a read finds ``write``, or a part of it: at positions ``at`` along its axes, for all values of ``free`` for which ``where`` holds.

    ``condition`` is on the axes of the read alone, ``where`` on those and on ``free``.
    """

    write: Access
    at: tuple[Expr, ...]
    condition: Expr
    free: tuple[Axis, ...] = ()
    where: Expr = TRUE


@dataclass(frozen=True, eq=False)
class Content:
    """What elements of an array hold for one read, or for all that see the same: the last write, and additions since.

    Attributes:
        axes: of the read; of the elements, where ``shared``, behind those of the loops around.
        domain: where something is read.
        reads: those that see this.
        parts: other contents, and the elements at which they are what is seen here too.
        around: how many loops around the reads the elements are those of an iteration of.
    """

    axes: tuple[Axis, ...]
    domain: Expr
    written: tuple[Source, ...]
    added: tuple[Source, ...]
    reads: tuple[Access, ...]
    shared: bool
    parts: tuple[tuple[Content, Expr], ...] = ()
    around: int = 0


class Accesses:
    """Accesses as relations of isl: from the points of their axes to elements of an array, or to times."""

    def __init__(self, every: Sequence[Access]) -> None:
        indexed = [e for a in every for e in (*a.conditions, *a.indices, *(x.hi for x in a.axes))]
        found = list(dict.fromkeys(sizes_of(indexed, ())))
        self.sizes: dict[Expr, str] = {
            s: f"p_{s.name}" if is_plain(s.name) else f"q{n}" for n, s in enumerate(found)
        }
        self._given = [
            *(f"{name} >= {s.least}" for s, name in zip(found, self.sizes.values(), strict=True)),
            *(condition_text(c, self.sizes) for c in stated(found)),
        ]
        self._known: dict[tuple[Access, int | None], isl.Map] = {}
        self._domains: dict[Access, isl.Set] = {}

    @cached_property
    def _params(self) -> str:
        return f"[{', '.join(self.sizes.values())}] -> " if self.sizes else ""

    def _names(self, axes: Sequence[Axis]) -> dict[Expr, str]:
        return {**self.sizes, **{a: f"v{n}" for n, a in enumerate(axes)}}

    def _where(self, axes: Sequence[Axis], conditions: Sequence[Expr]) -> str:
        names = self._names(axes)
        parts = [f"{index_text(a.lo, names)} <= {names[a]} < {index_text(a.hi, names)}" for a in axes]
        parts += [condition_text(c, names) for c in conditions] + self._given
        return " and ".join(p for p in parts if p != FULL_TEXT) or FULL_TEXT

    def _dims(self, axes: Sequence[Axis]) -> str:
        return ", ".join(f"v{n}" for n in range(len(axes)))

    def _entry(self, access: Access, target: str) -> str:
        return f"{access.label}[{self._dims(access.axes)}] -> {target} : {self._where(access.axes, access.conditions)}"

    def _array_text(self, access: Access, around: int = 0) -> str:
        names = self._names(access.axes)
        indices = [*access.axes[:around], *access.indices]
        return f"{access.array}[{', '.join(index_text(i, names) for i in indices)}]"

    def _time_text(self, access: Access) -> str:
        names = self._names(access.axes)
        return f"[{', '.join(index_text(t, names) for t in access.time)}]"

    def elements(self, accesses: Sequence[Access]) -> isl.UnionMap:
        """The elements of all ``accesses``."""
        return self._union([self._entry(a, self._array_text(a)) for a in accesses])

    def times(self, accesses: Sequence[Access]) -> isl.UnionMap:
        """The times of all ``accesses``."""
        return self._union([self._entry(a, self._time_text(a)) for a in accesses])

    def _union(self, entries: Sequence[str]) -> isl.UnionMap:
        return isl.UnionMap.read_from_str(context(), f"{self._params}{{ {'; '.join(entries)} }}")

    def access(self, access: Access, around: int = 0) -> isl.Map:
        """From the points of ``access`` to the elements that it reads or writes, each in an iteration of so many of the loops around."""
        return self._relation(access, around)

    def time(self, access: Access) -> isl.Map:
        """From the points of ``access`` to their times."""
        return self._relation(access, None)

    def _relation(self, access: Access, around: int | None) -> isl.Map:
        """To elements, or to times for None: read once, since each access is held beside each other one of its array."""
        key = access, around
        if key not in self._known:
            target = self._time_text(access) if around is None else self._array_text(access, around)
            written = f"{self._params}{{ {self._entry(access, target)} }}"
            self._known[key] = unnamed(isl.Map.read_from_str(context(), written))
        return self._known[key]

    def domain(self, access: Access, *more: Expr) -> isl.Set:
        """The points of ``access``, those at which ``more`` holds, too."""
        if access not in self._domains:
            self._domains[access] = self._set(access.axes, access.conditions)
        own = self._domains[access]
        return own.intersect(self._set(access.axes, more)) if more else own

    def box(self, axes: Sequence[Axis]) -> isl.Set:
        """The points between the bounds of ``axes``."""
        return self._set(axes, ())

    def _set(self, axes: Sequence[Axis], conditions: Sequence[Expr]) -> isl.Set:
        where = self._where(axes, conditions)
        return isl.Set.read_from_str(context(), f"{self._params}{{ [{self._dims(axes)}] : {where} }}")


def unnamed(relation: isl.Map) -> isl.Map:
    """``relation`` between points without the labels of accesses."""
    for side in (isl.dim_type.in_, isl.dim_type.out):
        if relation.has_tuple_id(side):
            relation = relation.reset_tuple_id(side)
    return relation


def cases(relation: isl.Map) -> list[tuple[isl.Set, isl.MultiAff]]:
    """A function, piece by piece."""
    found: list[tuple[isl.Set, isl.MultiAff]] = []
    unnamed(relation).as_pw_multi_aff().foreach_piece(lambda points, values: found.append((points, values)))
    return found


class Dependences:
    """The sources of ``reads`` among ``writes`` and ``additions``.

    Attributes:
        maps: for each read, from its points to those of each write and addition that it sees, by their labels.

    Raises:
        Exhausted: isl takes more operations than one program may.
    """

    def __init__(
        self, reads: Sequence[Access], writes: Sequence[Access], additions: Sequence[Access]
    ) -> None:
        self.by_label = {a.label: a for a in (*reads, *writes, *additions)}
        self.accesses = Accesses([*reads, *writes, *additions])
        self.added = {a.label for a in additions}
        self._times: dict[str, list[int | None]] = {}
        info = isl.UnionAccessInfo.from_sink(self.accesses.elements(reads))
        info = info.set_must_source(self.accesses.elements(writes))
        schedule = self.accesses.times([*reads, *writes])
        answered, flow = within(context(), FLOW, lambda: info.set_schedule_map(schedule).compute_flow())
        if not answered:
            raise Exhausted
        self.maps: dict[str, dict[str, isl.Map]] = {a.label: {} for a in reads}
        found_maps: list[isl.Map] = []
        flow.get_may_dependence().foreach_map(found_maps.append)
        for found in found_maps:
            source, sink = (str(found.get_tuple_name(d)) for d in (isl.dim_type.in_, isl.dim_type.out))
            self.maps[sink][source] = unnamed(found.reverse().coalesce())
        for read in reads:
            own_writes = [w for w in writes if w.array == read.array]
            if self._at_numbers([read, *own_writes]):
                self.maps[read.label] = self._last_of(read, own_writes)
            for addition in (a for a in additions if a.array == read.array):
                earlier = self._after(read, addition)
                if not earlier.is_empty():
                    self.maps[read.label][addition.label] = earlier.coalesce()
        for own in self.maps.values():
            self._keep_latest(own)

    def _at_numbers(self, accesses: Sequence[Access]) -> bool:
        """Whether two of ``accesses`` are in iterations of one loop that are different numbers, by their conditions.

        isl takes such numbers for places in the text, and that one access comes before the other for each iteration of the loops within; so it loses writes.
        """
        times = [self._fixed_times(a) for a in accesses]
        for n, first in enumerate(times):
            for second in times[:n]:
                pairs = zip(first, second, strict=True)
                apart = [d for d, (a, b) in enumerate(pairs) if a is not None and b is not None and a != b]
                # places and counters in turn, and the step
                if apart and apart[0] % 2 and apart[0] < len(first) - 1:
                    return True
        return False

    def _fixed_times(self, access: Access) -> list[int | None]:
        """The numbers in the time of ``access`` that are the same at all points."""
        if (
            access.label not in self._times
            and not access.conditions
            and all(a.extent is not as_expr(1) for a in access.axes)
        ):
            self._times[access.label] = [int(t.value) if isinstance(t, Const) else None for t in access.time]  # type: ignore[arg-type]
        if access.label not in self._times:
            hull = isl.Set.from_basic_set(self.accesses.time(access).range().affine_hull())
            own = [hull.plain_get_val_if_fixed(isl.dim_type.set, n) for n in range(len(access.time))]
            self._times[access.label] = [None if v.is_nan() else whole(v) for v in own]
        return self._times[access.label]

    def _last_of(self, read: Access, writes: Sequence[Access]) -> dict[str, isl.Map]:
        """The write that ``read`` sees, from times: the latest of all that come before it."""
        before = {w.label: self._after(read, w) for w in writes}
        times = {w.label: self.accesses.time(w) for w in writes}
        every = [own.apply_range(times[label]) for label, own in before.items() if not own.is_empty()]
        if not every:
            return {}
        latest = reduce(isl.Map.union, every).lexmax()
        found = {
            label: own.intersect(latest.apply_range(times[label].reverse())) for label, own in before.items()
        }
        return {label: own.coalesce() for label, own in found.items() if not own.is_empty()}

    def _keep_latest(self, sources: dict[str, isl.Map]) -> None:
        """Leaves out of the ``sources`` of a read the additions that the write that it sees replaced.

        isl is asked for writes alone: of additions, which it takes for writes that may not happen, it leaves some out that follow the read in the text of a loop.
        """
        if len(sources) < 2:
            return
        seen = [(self.by_label[label], own) for label, own in sources.items() if label not in self.added]
        for label in list(sources):
            source = self.by_label[label]
            for write, relation in seen if label in self.added else ():
                replaced = self._after(write, source)
                if not replaced.is_empty():
                    sources[label] = sources[label].subtract(relation.apply_range(replaced))
            if sources[label].is_empty():
                del sources[label]

    def _after(self, write: Access, source: Access) -> isl.Map:
        """From the points of ``write`` to those of ``source`` that it replaces: at the same element, earlier."""
        same = self.accesses.access(write).apply_range(self.accesses.access(source).reverse())
        return same.intersect(self.accesses.time(write).lex_gt_map(self.accesses.time(source)))
