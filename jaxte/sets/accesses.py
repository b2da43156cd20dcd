"""Accesses of programs with loops, as isl reads them, and what reads see of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import islpy as isl

from jaxte.lang.expr import TRUE, Axis, Expr
from jaxte.sets.domain import context, is_plain, sizes_of, stated
from jaxte.sets.isl_text import FULL_TEXT, condition_text, index_text


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
