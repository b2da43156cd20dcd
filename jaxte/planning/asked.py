"""What whoever plans for a platform says around it: what a tensor between two sums costs there, and which steps are not wanted.

Where loops are cheap to start and arithmetic is dear, partial sums that are reused gain early; where arithmetic is cheap and each loop is a
kernel that takes microseconds to start, only large ones do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Intermediates:
    """Operations for each element of an intermediate, to write it and read it again, and for the loop that writes it."""

    element: int = 4
    loop: int = 0


_CHEAP = Intermediates()
_costs: ContextVar[Intermediates] = ContextVar("_costs", default=_CHEAP)
_unwanted: ContextVar[frozenset[str]] = ContextVar("_unwanted", default=frozenset())


def intermediates() -> Intermediates:
    """What intermediates cost here."""
    return _costs.get()


@contextmanager
def planned_with(costs: Intermediates, without: frozenset[str]) -> Iterator[None]:
    """Plans in which intermediates cost as much as ``costs`` says, made by steps that are not among ``without``."""
    tokens = _costs.set(costs), _unwanted.set(without)
    try:
        yield
    finally:
        _costs.reset(tokens[0])
        _unwanted.reset(tokens[1])


@dataclass(frozen=True)
class Asked:
    """Who asks the steps of planning about one tensor.

    Attributes:
        without: the names of the steps that are not wanted.
        fired: the names of those that changed something.
    """

    without: frozenset[str] = field(default_factory=_unwanted.get)
    fired: list[str] = field(default_factory=list)
