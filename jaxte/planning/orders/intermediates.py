"""What a tensor between two sums costs, in operations of the sums: to write it and read it again, and to start one loop more.

Where loops are cheap to start and arithmetic is dear, partial sums that are reused gain early; where arithmetic is cheap and each loop is a
kernel that takes microseconds to start, only large ones do. Whoever plans for a platform says so around it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Intermediates:
    """Operations for each element of an intermediate, and for the loop that writes it."""

    element: int = 4
    loop: int = 0


_CHEAP = Intermediates()
_costs: ContextVar[Intermediates] = ContextVar("_costs", default=_CHEAP)


def intermediates() -> Intermediates:
    """What intermediates cost here."""
    return _costs.get()


@contextmanager
def planned_with(costs: Intermediates) -> Iterator[None]:
    """Plans in which intermediates cost as much as ``costs`` says."""
    token = _costs.set(costs)
    try:
        yield
    finally:
        _costs.reset(token)
