"""Random sums of products under several masks, which stand in the sum's condition, at its terms or around it; what no point reads is anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jaxte as te
from jaxte.lang.expr import Expr
from jaxte.tensors.tensor import Compute
from tests.random_exclusions import FUNCTIONS, RandomExclusions

IN_SUM, AT_TERMS, AROUND = range(3)


@dataclass
class RandomMasks(RandomExclusions):
    """A sum over some of two to four axes of products of functions, each of an array over some of them, as the masks are."""

    def _output(self) -> Compute:
        own = self.own
        self.extents = [own.number(2, 4) for _ in range(own.number(2, 4))]
        every = range(len(self.extents))
        kept = [n for n in every if not own.number(0, 2)][: len(every) - 1]
        summed = {n: te.reduce_axis((0, self.extents[n]), f"k{n}") for n in every if n not in kept}
        self.kept = kept

        def body(*axes: Any) -> Expr:
            at = [summed[n] if n in summed else axes[kept.index(n)] for n in every]
            tests: list[list[Expr]] = [[], [], []]
            for _ in range(own.number(2, 3)):
                self._mask(at, tests)
            value: Any = 1.0
            for _ in range(own.number(2, 4)):
                value = own.among(FUNCTIONS)(self._element_at(at)) * value
            if not own.number(0, 3):
                value = value * 2.0 - value * self._element_at(at)
            value = te.select(_all(tests[AT_TERMS]), value, 0.0) if tests[AT_TERMS] else value
            where = {"where": _all(tests[IN_SUM])} if tests[IN_SUM] else {}
            found = te.sum(value, axis=list(summed.values()), **where)
            return te.select(_all(tests[AROUND]), found, 0.0) if tests[AROUND] else found

        return te.compute(tuple(self.extents[n] for n in kept), body, "y")

    def _places(self) -> list[int]:
        """One or more of the axes."""
        every = range(len(self.extents))
        return [n for n in every if self.own.number(0, 1)] or [self.own.among(list(every))]

    def _mask(self, at: Sequence[Any], tests: list[list[Expr]]) -> None:
        """One test more, of a mask over some of the axes."""
        places = sorted({self.own.number(0, len(at) - 1) for _ in range(2)})  # which share axes with others
        mask = te.placeholder(tuple(self.extents[n] for n in places), "float64", f"M{len(self.masks)}")
        self.masks.append(mask)
        where = self.own.among(
            (IN_SUM, AT_TERMS, AROUND) if set(places) <= set(self.kept) else (IN_SUM, AT_TERMS)
        )
        tests[where].append(mask[tuple(at[n] for n in places)] > 0)

    def _element_at(self, at: Sequence[Any]) -> Any:
        """An element of a new array over some of the axes."""
        places = self._places()
        array = te.placeholder(tuple(self.extents[n] for n in places), "float64", f"X{len(self.arrays)}")
        self.arrays.append(array)
        return array[tuple(at[n] for n in places)]


def _all(tests: Sequence[Expr]) -> Expr:
    return te.logical_and(*tests) if len(tests) > 1 else tests[0]
