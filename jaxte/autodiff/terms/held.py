"""Elements that are computed once, so that all who compare them find the same bits; where memory allows it.

An extremum of computed elements is asked for the places that equal it. XLA computes a producer again in each fusion that reads it, and may round
it in another way each time, unless a barrier holds it (docs/design/places-of-maxima.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from math import prod

from jaxte.lang import dtypes
from jaxte.lang.expr import Axis, Expr
from jaxte.sets.intervals import known
from jaxte.tensors.tensor import Compute

MOST_HELD = 2**23  # bytes; half of a cache: larger tensors are computed in tiles, again in each
_budget: ContextVar[int | None] = ContextVar("_budget", default=None)


@contextmanager
def within(budget: int | None) -> Iterator[None]:
    """Derivations that hold nothing above ``budget`` bytes, which the user gave for all tensors."""
    token = _budget.set(budget)
    try:
        yield
    finally:
        _budget.reset(token)


def may_be_held(axes: Sequence[Axis], dtype: str) -> bool:
    """Whether elements over ``axes`` are few enough to be computed once, and kept until all that is asked of them is answered."""
    size = _bytes(axes, dtype)
    most = _budget.get()
    return size is not None and size <= (MOST_HELD if most is None else min(most, MOST_HELD))


def may_exist(tensor: Compute) -> bool:
    """Whether ``tensor``, one of the definition, is within what the user gave for all tensors."""
    most, size = _budget.get(), _bytes(tensor.axes, tensor.dtype)
    return most is None or (size is not None and size <= most)


def _bytes(axes: Sequence[Axis], dtype: str) -> int | None:
    """What elements over ``axes`` take; None where an extent is not known yet."""
    extents = [known(axis.extent) for axis in axes]
    return None if None in extents else dtypes.width(dtype) * prod(e for e in extents if e is not None)


class Held(Compute):
    """Elements that are computed once, and in whole: all that reads them finds the same bits."""

    __slots__ = ()

    def alike(self, name: str, axes: Sequence[Axis], body: Expr) -> Compute:
        return Held(name, axes, body)
