"""The dataflow of a program array by array, which its readings share: what reads of an array see depends on the writes to that array alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxte.lang.expr import Axis, Expr, Read
from jaxte.sets.accesses import Access
from jaxte.sets.flow import Flow


class Flows:
    """What readings of one program have found; accesses that they have in common are the same object."""

    def __init__(self) -> None:
        self._accesses: dict[tuple[Any, ...], Access] = {}
        self._axes: dict[tuple[Any, ...], Axis] = {}
        self._known: dict[tuple[Any, ...], Flow] = {}

    def axis(self, number: int, read: Read, place: int, name: str, extent: Any) -> Axis:
        """The axis that stands for a position that is data, of a read in the statement of this ``number``."""
        return self._axes.setdefault((number, read, place), Axis(name, 0, extent))

    def access(
        self,
        label: str,
        axes: Sequence[Axis],
        conditions: Sequence[Expr],
        array: str,
        indices: Sequence[Expr],
        time: Sequence[Expr],
    ) -> Access:
        parts = label, tuple(axes), tuple(conditions), array, tuple(indices), tuple(time)
        return self._accesses.setdefault(parts, Access(*parts))

    def by_array(
        self, reads: Sequence[Access], writes: Sequence[Access], additions: Sequence[Access]
    ) -> dict[str, Flow]:
        """The flow of each array.

        Raises:
            Exhausted: isl takes more operations than one array may.
        """
        found = {}
        for array in dict.fromkeys(a.array for a in (*reads, *writes, *additions)):
            key = tuple(tuple(a for a in own if a.array == array) for own in (reads, writes, additions))
            if key not in self._known:
                self._known[key] = Flow(*key)
            found[array] = self._known[key]
        return found
