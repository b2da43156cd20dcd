"""What a form does, counted in the units of ``rates``, and the seconds that takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from math import prod
from operator import add, attrgetter, truediv

from jaxte.algebra.sums import function_times
from jaxte.lang import dtypes
from jaxte.lang.expr import Axis, Call, Const, Expr
from jaxte.lang.limits import CALLS, MOST_TERMS
from jaxte.lang.scalars.table import TABLE
from jaxte.lang.walk import all_of
from jaxte.lower.cost.platform import Rates
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
        most = max(self.temporaries, other.temporaries)
        amounts = [*map(add, _amounts(self), _amounts(other)), most]
        return Work(*amounts)

    def __mul__(self, times: float) -> Work:
        """The same work ``times`` times, one after the other."""
        amounts = [*[amount * times for amount in _amounts(self)], self.temporaries]
        return Work(*amounts)

    def seconds(self, rates: Rates) -> float:
        """The time that all of it takes, each kind at its rate."""
        own = sum(map(truediv, _amounts(self), _amounts(rates)))
        return own + (2 * self.temporaries / rates.spill if self.temporaries > rates.cache else 0.0)


# all but the temporaries; rates have the same names
_amounts = attrgetter(*[f.name for f in fields(Work)[:-1]])


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


def expensive_calls(exprs: Sequence[Expr]) -> int:
    """What an element takes, in evaluations of ``exp``: a sine counts as several."""
    return sum(function_times(n) for n in all_of(Call, *exprs) if is_expensive(n))


def is_expensive(node: Expr) -> bool:
    """Whether ``node`` is an evaluation of exp, of a division of data, or of their like."""
    return isinstance(node, Call) and not node.weak and not _is_cheap(node)


def _is_cheap(node: Call) -> bool:
    """Whether an operation takes a few instructions, as small whole powers do."""
    if node.op.name == "power" and isinstance(exponent := node.args[1], Const):
        return exponent.value in (-1, 0.5, 1, 2, 3, 4)
    return TABLE[node.op.name].cheap
