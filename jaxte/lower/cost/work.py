"""What a form does, counted in the units of ``rates``, and the seconds that takes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from math import prod

from jaxte.lang import dtypes
from jaxte.lang.expr import Axis
from jaxte.lower.cost.platforms import Rates
from jaxte.lower.limits import CALLS, MOST_TERMS
from jaxte.sets.intervals import extent_of
from jaxte.tensors.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Work:
    """Amounts of the kinds of work that ``Rates`` has, and ``temporaries``: bytes of the largest intermediate."""

    dot: float = 0
    convolution: float = 0
    grouped_convolution: float = 0
    volume_convolution: float = 0
    stream: float = 0
    tap: float = 0
    window: float = 0
    scan: float = 0
    step: float = 0
    transcendental: float = 0
    gather: float = 0
    scatter: float = 0
    kernel: float = 0
    written: float = 0
    temporaries: float = 0

    def __add__(self, other: Work) -> Work:
        return Work(
            *(
                max(a, b) if name == "temporaries" else a + b
                for name, a, b in (
                    (f.name, getattr(self, f.name), getattr(other, f.name)) for f in fields(self)
                )
            )
        )

    def __mul__(self, times: float) -> Work:
        """The same work ``times`` times, one after the other."""
        return Work(
            *(
                v if f.name == "temporaries" else v * times
                for f in fields(self)
                for v in (getattr(self, f.name),)
            )
        )

    def seconds(self, rates: Rates) -> float:
        """The time that all of it takes, each kind at its rate."""
        own = sum(
            getattr(self, f.name) / getattr(rates, f.name) for f in fields(self) if f.name != "temporaries"
        )
        return own + (2 * self.temporaries / rates.spill if self.temporaries > rates.cache else 0.0)


def long_text(terms: float) -> Work:
    """What it takes to compile ``terms`` that are written out, beyond as many as are written out in any case: the share of one call."""
    return Work(written=max(0.0, terms - MOST_TERMS) / CALLS)


def points(axes: Iterable[Axis]) -> int:
    """How many points the box of ``axes`` has."""
    return prod(extent_of(axis.extent) for axis in axes)


def bytes_of(tensor: Tensor) -> int | None:
    """The memory of ``tensor``; None where it depends on symbolic sizes."""
    count = dtypes.width(tensor.dtype)
    for extent in tensor.shape:
        if not isinstance(extent, int):
            return None
        count *= extent
    return count
