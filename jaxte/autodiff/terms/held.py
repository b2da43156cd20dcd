"""Elements that are computed once, so that all who compare them find the same bits; where memory allows it.

An extremum of computed elements is asked for the places that equal it. XLA computes a producer again in each fusion that reads it, and may round
it in another way each time, unless a barrier holds it (docs/design/places-of-maxima.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from jaxte.lang import dtypes
from jaxte.lang.expr import Axis, Expr
from jaxte.sets.intervals import known
from jaxte.tensors.tensor import Compute

MOST_HELD = 2**23  # bytes; half of a cache: larger tensors are computed in tiles, again in each
_budget: ContextVar[int] = ContextVar("_budget", default=MOST_HELD)


@contextmanager
def within(budget: int | None) -> Iterator[None]:
    """Derivations that hold no elements above ``budget`` bytes, which the user gave for all tensors."""
    token = _budget.set(MOST_HELD if budget is None else min(budget, MOST_HELD))
    try:
        yield
    finally:
        _budget.reset(token)


def may_be_held(axes: Sequence[Axis], dtype: str) -> bool:
    """Whether elements over ``axes`` are few enough to be computed once, and kept until all that is asked of them is answered."""
    size = dtypes.width(dtype)
    for axis in axes:
        extent = known(axis.extent)
        if extent is None:
            return False
        size *= extent
    return size <= _budget.get()


class Held(Compute):
    """Elements that are computed once, and in whole: all that reads them finds the same bits."""

    __slots__ = ()

    def alike(self, name: str, axes: Sequence[Axis], body: Expr) -> Compute:
        return Held(name, axes, body)
