"""How many times as long as ``exp`` other functions take, where something is planned, derived or lowered: what is dear is rather computed once.

A platform has them in its row (``lower/cost/platforms.py``), and whoever plans for it says them around that (``taking``).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FunctionTimes:
    """Multiples of the time of ``exp``.

    Attributes:
        multiples: of functions that take longer, by name; all others take as long.
    """

    multiples: tuple[tuple[str, int], ...] = ()

    def of(self, name: str) -> int:
        """How many times as long as ``exp`` the function of this name takes."""
        return next((times for own, times in self.multiples if own == name), 1)


ALIKE = FunctionTimes()
# Elements of float32 in the cache, in vectors where XLA's CPU has them: exp, tanh and erf 0.25 ns, a sine 3.5, a power 4.5, an arc tangent of two 17.
IN_VECTORS = FunctionTimes(
    (
        ("log1p", 3),
        ("expm1", 3),
        ("cosh", 4),
        ("gelu", 4),
        ("erfc", 5),
        ("asinh", 6),
        ("acosh", 6),
        ("atanh", 6),
        ("softplus", 8),
        ("sinh", 8),
        ("erfinv", 8),
        ("i0", 10),
        ("i0e", 10),
        ("i1", 10),
        ("i1e", 10),
        ("logaddexp", 8),
        ("sin", 14),
        ("cos", 14),
        ("power", 16),
        ("ndtri", 16),
        ("log_ndtr", 18),
        ("lgamma", 20),
        ("digamma", 20),
        ("polygamma", 20),
        ("atan", 25),
        ("cbrt", 32),
        ("asin", 40),
        ("tan", 45),
        ("acos", 60),
        ("atan2", 60),
        ("gammainc", 80),
        ("gammaincc", 80),
        ("expi", 150),
        ("igamma_grad_a", 200),
        ("betainc", 800),
        ("exp1", 5000),
    )
)
_times: ContextVar[FunctionTimes] = ContextVar("_times", default=IN_VECTORS)


@contextmanager
def taking(times: FunctionTimes) -> Iterator[None]:
    """Within it, functions take these multiples; outside, those of a CPU."""
    token = _times.set(times)
    try:
        yield
    finally:
        _times.reset(token)


def times_of(name: str) -> int:
    """How many times as long as ``exp`` a function takes here."""
    return _times.get().of(name)
