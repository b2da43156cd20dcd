"""Integers of a loop's body that its counter decides: what they are in each step, found by NumPy for all steps at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jax.extend.core import Literal

Numbers = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Outer:
    """What counts in a loop around this one.

    Attributes:
        least, most: what it lies between.
    """

    least: int
    most: int


_ANY = 1 << 40  # of what is not known to lie anywhere


@dataclass(frozen=True, eq=False)
class Position:
    """A number in each step: one of ``numbers``, in the order in which steps run, plus multiples of what counts around the loop."""

    numbers: Numbers
    outer: tuple[tuple[Outer, int], ...] = ()

    @property
    def least(self) -> int:
        return int(self.numbers.min()) + sum(min(f * o.least, f * o.most) for o, f in self.outer)

    @property
    def most(self) -> int:
        return int(self.numbers.max()) + sum(max(f * o.least, f * o.most) for o, f in self.outer)

    @property
    def is_still(self) -> bool:
        """Whether it is the same in all steps."""
        return bool((self.numbers == self.numbers[0]).all())

    def plus(self, other: Position, factor: int = 1) -> Position:
        terms = dict(self.outer)
        for own, by in other.outer:
            terms[own] = terms.get(own, 0) + factor * by
        return Position(self.numbers + factor * other.numbers, tuple((o, f) for o, f in terms.items() if f))

    def within(self, least: int, most: int) -> Position | None:
        """This one moved between two numbers, as ``dynamic_slice`` does; None where that differs by what counts outside."""
        if least <= self.least and self.most <= most:
            return self
        return None if self.outer else Position(np.clip(self.numbers, least, most))


def constant(value: Any, steps: int) -> Position:
    """The same number in each step."""
    return Position(np.full(steps, np.asarray(value).item()))


class Counters:
    """The numbers that are known in each step of a body.

    Args:
        jaxpr: the body, a list of equations without calls.
        given: what is known of its arguments and constants.
        steps: how many steps there are.
    """

    def __init__(self, jaxpr: Any, given: Mapping[Any, Position], steps: int) -> None:
        self.steps = steps
        self._of = dict(given)
        for eqn in jaxpr.eqns:
            row = _ROWS.get(eqn.primitive.name)
            if row is None or len(eqn.outvars) != 1 or not _is_number(eqn.outvars[0]):
                continue
            operands = [self.of(a) for a in eqn.invars]
            made = None if any(p is None for p in operands) else row(eqn.params, *operands)
            if made is not None:
                self._of[eqn.outvars[0]] = made

    def of(self, atom: Any) -> Position | None:
        """What ``atom`` is in each step; None where that is not known."""
        if isinstance(atom, Literal):
            return constant(atom.val, self.steps) if _is_number(atom) else None
        return self._of.get(atom)


def counted(
    jaxpr: Any, given: Mapping[Any, Position], states: Sequence[tuple[Any, Any, Position | None]], steps: int
) -> Counters:
    """The numbers of a body whose ``states`` (what a step takes, what it returns, what the first one takes) may be counters."""
    trial = {v: Position(np.zeros(1, int), ((Outer(-_ANY, _ANY), 1),)) for v, _, _ in states if _is_number(v)}
    once = Counters(jaxpr, {v: Position(p.numbers[:1], p.outer) for v, p in given.items()} | trial, 1)
    found = dict(given)
    for taken, returned, first in states:
        after = once.of(returned) if taken in trial else None
        if first is not None and after is not None and after.outer == trial[taken].outer:
            found[taken] = Position(first.numbers + after.numbers[0] * np.arange(steps), first.outer)
    return Counters(jaxpr, found, steps)


def _is_number(atom: Any) -> bool:
    aval = atom.aval
    return all(n == 1 for n in getattr(aval, "shape", (2,))) and np.dtype(aval.dtype).kind in "iub"


def _same(p: Any, x: Position) -> Position:
    return x


def _converted(p: Any, x: Position) -> Position:
    return Position(x.numbers.astype(bool if np.dtype(p["new_dtype"]).kind == "b" else int), x.outer)


def _times(p: Any, x: Position, y: Position) -> Position | None:
    if y.outer:
        x, y = y, x
    if not x.outer:
        return Position(x.numbers * y.numbers)
    if y.outer or not y.is_still:
        return None
    by = int(y.numbers[0])
    return Position(x.numbers * by, tuple((o, f * by) for o, f in x.outer if by))


def _compared(always: Callable[[int, int], bool], function: Any) -> Callable[..., Position | None]:
    """A comparison, of which ``always`` says whether it holds for all differences between two numbers."""

    def row(p: Any, x: Position, y: Position) -> Position | None:
        difference = x.plus(y, -1)
        if not difference.outer:
            return Position(function(difference.numbers, 0))
        held = always(difference.least, difference.most)
        fails = not held and _never(function, difference.least, difference.most)
        return Position(np.full(len(difference.numbers), held)) if held or fails else None

    return row


def _never(function: Any, least: int, most: int) -> bool:
    """Whether a comparison with 0 holds nowhere between two numbers."""
    inside = (least, most, *([0] if least <= 0 <= most else []))
    return not any(function(np.asarray(v), 0) for v in inside)


def _selected(p: Any, which: Position, *cases: Position) -> Position | None:
    if which.is_still:
        return cases[int(which.numbers[0])]
    if len({c.outer for c in cases}) > 1:
        return None
    return Position(np.choose(which.numbers.astype(int), [c.numbers for c in cases]), cases[0].outer)


def _plain(function: Callable[..., Numbers]) -> Callable[..., Position | None]:
    """A function of numbers that nothing outside moves."""

    def row(p: Any, *operands: Position) -> Position | None:
        if any(o.outer for o in operands):
            return None
        try:
            return Position(np.asarray(function(*(o.numbers for o in operands))))
        except (ZeroDivisionError, FloatingPointError):
            return None

    return row


def _remainder(x: Numbers, y: Numbers) -> Numbers:
    if not y.all():
        raise ZeroDivisionError
    return np.fmod(x, y)


def _quotient(x: Numbers, y: Numbers) -> Numbers:
    if not y.all():
        raise ZeroDivisionError
    return np.sign(x) * np.sign(y) * (np.abs(x) // np.abs(y))


_ROWS: dict[str, Callable[..., Position | None]] = {
    **dict.fromkeys(("broadcast_in_dim", "squeeze", "reshape", "copy", "stop_gradient"), _same),
    "convert_element_type": _converted,
    "add": lambda p, x, y: x.plus(y),
    "sub": lambda p, x, y: x.plus(y, -1),
    "neg": lambda p, x: constant(0, len(x.numbers)).plus(x, -1),
    "mul": _times,
    "select_n": _selected,
    "lt": _compared(lambda a, b: b < 0, np.less),
    "le": _compared(lambda a, b: b <= 0, np.less_equal),
    "gt": _compared(lambda a, b: a > 0, np.greater),
    "ge": _compared(lambda a, b: a >= 0, np.greater_equal),
    "eq": _compared(lambda a, b: a == b == 0, np.equal),
    "ne": _compared(lambda a, b: a > 0 or b < 0, np.not_equal),
    "min": _plain(np.minimum),
    "max": _plain(np.maximum),
    "clamp": _plain(lambda low, x, high: np.minimum(np.maximum(x, low), high)),
    "rem": _plain(_remainder),
    "div": _plain(_quotient),
    "and": _plain(np.bitwise_and),
    "or": _plain(np.bitwise_or),
    "not": _plain(np.invert),
    "sign": _plain(np.sign),
    "abs": _plain(np.abs),
}
