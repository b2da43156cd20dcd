"""Between which numbers the elements of an array lie: one row for each primitive, from the ranges of its operands.

The ends are those of the numbers themselves; where a function or a difference is rounded, they are moved outwards by more than the rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import inf

import jax.numpy as jnp
import numpy as np

from jaxte.frontends.jaxpr.equations.steps import Slot, Step
from jaxte.frontends.jaxpr.guards.uses import MASKS_MOVE
from jaxte.lang.dtypes import is_complex, is_inexact

SLACK = 1e-5  # relative, of functions that XLA approximates, and of what is left of terms that cancel


@dataclass(frozen=True)
class Range:
    """Numbers between ``low`` and ``high``.

    Attributes:
        apart: none is nearer to 0, although some may be on either side.
        nan: whether there may be NaN among them.
    """

    low: float
    high: float
    nan: bool = False
    apart: float = 0.0

    @property
    def least(self) -> float:
        """The least magnitude."""
        return max(self.apart, self.low, -self.high, 0.0)

    @property
    def most(self) -> float:
        """The greatest magnitude."""
        return max(abs(self.low), abs(self.high))

    @property
    def is_infinite(self) -> bool:
        return self.most == inf

    def union(self, other: Range) -> Range:
        return Range(
            min(self.low, other.low),
            max(self.high, other.high),
            self.nan or other.nan,
            min(self.least, other.least),
        )

    def within(self, low: float = -inf, high: float = inf, nan: bool = True, apart: float = 0.0) -> Range:
        """Those that lie between the ends, too; all, where none would be left."""
        low, high = max(self.low, low), min(self.high, high)
        return self if low > high else Range(low, high, self.nan and nan, max(self.apart, apart))


ANY = Range(-inf, inf, nan=True)
_INTEGERS = Range(-inf, inf)
_Row = Callable[[Step, Sequence[Range]], Range]


def of_given(slot: Slot) -> Range:
    """The range of what is known, or nothing is known of."""
    if slot.known is None or is_complex(slot.dtype) or not np.size(slot.known):
        return Range(0.0, 1.0) if slot.dtype == "bool" else ANY if is_inexact(slot.dtype) else _INTEGERS
    numbers = np.asarray(slot.known)
    numbers = numbers if numbers.dtype.kind in "bui" else numbers.astype("float64")
    low, high = float(numbers.min()), float(numbers.max())
    return ANY if low != low else Range(low, high, apart=float(np.abs(numbers).min()))


def of_step(step: Step, below: Sequence[Range]) -> Range:
    """The range of what a step makes of operands in the ranges ``below``."""
    row, (out, *more) = ROWS.get(step.name), step.outputs
    if row is None or more or is_complex(out.dtype) or any(is_complex(s.dtype) for s in step.inputs):
        return of_given(out)
    found = row(step, below)
    if not is_inexact(out.dtype):  # what may have wrapped is any
        stays = limit_of(out, "min") <= found.low and found.high <= limit_of(out, "max")
        return replace(found, nan=False) if stays else of_given(out)
    largest = limit_of(out, "max")
    low, high = (end if abs(end) <= largest else math.copysign(inf, end) for end in (found.low, found.high))
    return ANY if low != low or high != high else Range(low, high, found.nan, min(found.least, largest))


def limit_of(slot: Slot, name: str) -> float:
    """A limit of the dtype of a float or integer array, such as ``"max"``."""
    return _limit(slot.dtype, name)


@cache
def _limit(dtype: str, name: str) -> float:
    if dtype == "bool":
        return float(name == "max")
    info = jnp.finfo(dtype) if is_inexact(dtype) else jnp.iinfo(dtype)
    return float(getattr(info, name))


def _added(a: Range, b: Range) -> Range:
    low, high = (_end(x, y, sign) for x, y, sign in ((a.low, b.low, -1), (a.high, b.high, 1)))
    opposite = (a.high == inf and b.low == -inf) or (a.low == -inf and b.high == inf)
    return Range(low, high, a.nan or b.nan or opposite)


def _end(x: float, y: float, sign: int) -> float:
    """The sum of two ends, moved outwards where the terms cancel."""
    if abs(x) == inf or abs(y) == inf:
        return sign * inf
    return x + y + (sign * SLACK * (abs(x) + abs(y)) if x * y < 0 else 0.0)


def _times(a: Range, b: Range) -> Range:
    ends = [0.0 if 0 in (x, y) else x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    zero_of_infinity = (a.least == 0 and b.is_infinite) or (b.least == 0 and a.is_infinite)
    apart = 0.0 if 0 in (a.least, b.least) else a.least * b.least
    return Range(min(ends), max(ends), a.nan or b.nan or zero_of_infinity, apart)


def _negated(a: Range) -> Range:
    return Range(-a.high, -a.low, a.nan, a.apart)


def _over(a: Range) -> Range:
    """One over the numbers."""
    if a.least == 0:
        return Range(0.0 if a.low >= 0 else -inf, inf, a.nan)
    far, near = 1 / a.most, 1 / a.least
    low = far if a.low > 0 else -near
    return Range(low, near if a.high > 0 else -far, a.nan, far)


def _quotient(a: Range, b: Range) -> Range:
    found = _times(a, _over(b))
    unclear = (a.least == 0 and b.least == 0) or (a.is_infinite and b.is_infinite)
    return replace(found, nan=a.nan or b.nan or unclear)


def _magnitude(a: Range) -> Range:
    return Range(a.least, a.most, a.nan)


def _raised(a: Range, power: float) -> Range:
    """Whole powers, and any of positive numbers."""
    if power < 0:
        return _over(_raised(a, -power))
    if power % 2 == 0 or a.low >= 0:
        return Range(_power(a.least, power), _power(a.most, power), a.nan)
    if power % 1:
        return ANY
    low, high = (math.copysign(_power(abs(end), power), end) for end in (a.low, a.high))
    return Range(low, high, a.nan, _power(a.least, power))


def _power(x: float, power: float) -> float:
    try:
        return x**power
    except OverflowError:
        return inf


def power_of(step: Step) -> float | None:
    """The one number that ``step`` raises its first operand to."""
    if step.name in ("integer_pow", "square"):
        return float(step.eqn.params.get("y", 2))
    power = step.inputs[1].known
    return float(power) if power is not None and np.ndim(power) == 0 else None


def _of_power(step: Step, below: Sequence[Range]) -> Range:
    power = power_of(step)
    return ANY if power is None else _raised(below[0], power)


def _of_product(step: Step, below: Sequence[Range]) -> Range:
    return _raised(below[0], 2) if step.inputs[0] is step.inputs[1] else _times(*below)


def _of_sum(step: Step, below: Sequence[Range]) -> Range:
    out, array = step.outputs[0], step.inputs[0]
    count = math.prod(array.shape) // max(1, math.prod(out.shape))
    (own,) = below
    if not count:
        return Range(0.0, 0.0)
    found = _times(own, Range(count, count))
    cancel = own.low < 0 < own.high
    return replace(found, nan=own.nan or (cancel and own.is_infinite), apart=0.0 if cancel else found.apart)


def _extremum(choice: Callable[..., float]) -> _Row:
    def row(step: Step, below: Sequence[Range]) -> Range:
        low, high = (choice(getattr(own, end) for own in below) for end in ("low", "high"))
        return Range(low, high, any(own.nan for own in below), min(own.least for own in below))

    return row


def _clamped(step: Step, below: Sequence[Range]) -> Range:
    first, own, last = below
    low = min(max(own.low, first.low), last.low)
    return Range(low, min(max(own.high, first.high), last.high), own.nan or first.nan or last.nan)


def _monotone(f: Callable[[float], float], first: float = -inf, slack: float = SLACK) -> _Row:
    """A function that grows from its value at ``first``, before which it is NaN."""

    def end(x: float, sign: int) -> float:
        try:
            y = f(x)
        except OverflowError:
            return inf
        except ValueError:  # of a pole, or of infinity
            return -inf if sign < 0 else inf
        return y + sign * slack * abs(y) if abs(y) != inf else y

    def row(step: Step, below: Sequence[Range]) -> Range:
        (own,) = below
        return Range(end(max(own.low, first), -1), end(own.high, 1), own.nan or own.low < first)

    return row


def _bounded(low: float, high: float, nan_of_infinity: bool = False) -> _Row:
    def row(step: Step, below: Sequence[Range]) -> Range:
        return Range(low, high, below[0].nan or (nan_of_infinity and below[0].is_infinite))

    return row


def _same(step: Step, below: Sequence[Range]) -> Range:
    return below[0]


def _converted(step: Step, below: Sequence[Range]) -> Range:
    whole = not is_inexact(step.outputs[0].dtype) and step.outputs[0].dtype != "bool"
    if step.outputs[0].dtype == "bool" or (whole and (below[0].nan or below[0].is_infinite)):
        return of_given(step.outputs[0])
    (own,) = below
    return Range(float(math.trunc(own.low)), float(math.trunc(own.high))) if whole else own


def _union(step: Step, below: Sequence[Range]) -> Range:
    found = below[0]
    for own in below[1:]:
        found = found.union(own)
    return found


def _reduced(step: Step, below: Sequence[Range]) -> Range:
    return below[0] if math.prod(step.inputs[0].shape) else ANY


ROWS: dict[str, _Row] = {
    **dict.fromkeys((*MASKS_MOVE, "rev", "slice", "dynamic_slice", "copy", "stop_gradient"), _same),
    **dict.fromkeys(("reduce_max", "reduce_min"), _reduced),
    **dict.fromkeys(("concatenate", "pad"), _union),
    **dict.fromkeys(("add", "add_any"), lambda step, below: _added(*below)),
    **dict.fromkeys(("integer_pow", "square", "pow"), _of_power),
    **dict.fromkeys(("sin", "cos"), _bounded(-1 - SLACK, 1 + SLACK, nan_of_infinity=True)),
    **dict.fromkeys(("tanh", "erf"), _bounded(-1 - SLACK, 1 + SLACK)),
    "sub": lambda step, below: _added(below[0], _negated(below[1])),
    "neg": lambda step, below: _negated(below[0]),
    "abs": lambda step, below: _magnitude(below[0]),
    "mul": _of_product,
    "div": lambda step, below: _quotient(*below),
    "reduce_sum": _of_sum,
    "max": _extremum(max),
    "min": _extremum(min),
    "clamp": _clamped,
    "logistic": _bounded(0.0, 1 + SLACK),
    "sign": _bounded(-1.0, 1.0),
    "sqrt": _monotone(math.sqrt, first=0.0),
    "exp": _monotone(math.exp),
    "log": _monotone(math.log, first=0.0),
    "log1p": _monotone(math.log1p, first=-1.0),
    "expm1": _monotone(math.expm1),
    "floor": _monotone(np.floor, slack=0.0),
    "ceil": _monotone(np.ceil, slack=0.0),
    "rsqrt": lambda step, below: _over(ROWS["sqrt"](step, below)),
    "convert_element_type": _converted,
}


def harmless(slot: Slot) -> float:
    """The least magnitude that a choice by ``x > 0`` or ``x != 0`` is taken to leave: an own choice is meant to make slopes finite.

    That is the third root of the least normal number, whose third power is one.
    """
    return float(limit_of(slot, "tiny") ** (1 / 3)) if is_inexact(slot.dtype) else 1.0
