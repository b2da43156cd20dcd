"""Between which numbers arrays lie, by the steps and the choices that make them, and whether slopes are finite there."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from math import inf, log

from jaxte.frontends.jaxpr.equations.steps import Slot, Step
from jaxte.frontends.jaxpr.guards.ranges import (
    ANY,
    ROWS,
    SLACK,
    Range,
    harmless,
    limit_of,
    of_given,
    of_step,
    power_of,
)
from jaxte.frontends.jaxpr.guards.uses import Says, made_of
from jaxte.frontends.jaxpr.rules.elementwise import ELEMENTWISE
from jaxte.lang.dtypes import is_float, is_inexact
from jaxte.lang.graphs import ordered
from jaxte.lang.limits import LEVELS

_OPPOSITE = {"gt": "le", "le": "gt", "lt": "ge", "ge": "lt", "eq": "ne", "ne": "eq"}
_TURNED = {"gt": "lt", "lt": "gt", "ge": "le", "le": "ge", "eq": "eq", "ne": "ne"}
Fact = tuple[str, Slot]
"""A comparison with an array that holds of each element."""


@dataclass(frozen=True)
class _Left:
    """What an array is at elements that are left out.

    Attributes:
        moving: the range of those from which a derivative flows on; None where there are none.
        values: the range of all.
    """

    moving: Range | None
    values: Range

    @property
    def may_be_nan(self) -> bool:
        """Whether a derivative flows on from elements that may be NaN, as then does all that is made of them."""
        return self.moving is not None and self.moving.nan


_ALL_LEFT = _Left(ANY, ANY)


class Ranges:
    """The ranges of arrays, each found once."""

    def __init__(self) -> None:
        self._found: dict[Slot, Range] = {}
        self._left: dict[Hashable, _Left | None] = {}
        self._facts: dict[tuple[Step, int], list[Fact]] = {}
        self._made: dict[Slot, Hashable] = {}

    def of(self, slot: Slot) -> Range:
        """Between which numbers all elements of ``slot`` lie."""
        if slot in self._found:
            return self._found[slot]
        for own in ordered([slot], self._below):
            if own not in self._found:
                self._found[own] = self._own(own)
        return self._found[slot]

    def is_steep(self, step: Step, operand: int, says: Says | None) -> bool:
        """Whether NaN may flow back from a slope of ``step`` that ``operand`` makes infinite, at elements where not all of ``says`` hold.

        What flows into the other operands is multiplied by such slopes too, also where this operand is a constant.
        """
        if _is_finite(step, operand, self.of(step.inputs[operand])):
            return False
        # Functions of single elements between a choice and what is asked about.
        own = self._left_out(step.inputs[operand], says, LEVELS)
        if own is None:
            return False
        others = [self._left_out(s, says, LEVELS) for n, s in enumerate(step.inputs) if n != operand]
        asked = own.values if any(o is not None and o.moving for o in others) else own.moving
        return asked is not None and not _is_finite(step, operand, asked)

    def is_steep_at_nan(self, step: Step) -> bool:
        """Whether the slope of a function of one array is finite but where this is NaN."""
        return _is_finite(step, 0, self.of(step.inputs[0]).within(nan=False))

    def _below(self, slot: Slot) -> Iterable[Slot]:
        made = slot.origin
        if slot in self._found or slot.known is not None or made is None:
            return ()
        return made.inputs if made.name in ROWS or made.name == "select_n" else ()

    def _own(self, slot: Slot) -> Range:
        made = slot.origin
        if slot.known is not None or made is None:
            return of_given(slot)
        if made.name == "select_n":
            return _union(self._case(made, n, self.of(case)) for n, case in enumerate(made.inputs[1:]))
        return of_step(made, [self._found[s] for s in made.inputs]) if made.name in ROWS else of_given(slot)

    def _left_out(self, slot: Slot, says: Says | None, most: int) -> _Left | None:
        """What ``slot`` is at elements where not all of ``says`` hold; None where there are none.

        A choice drops what flows into a side that it does not take, so that a derivative flows on only from what it takes there. None in place of
        conditions stands for some of which one does not hold, whatever the others say; where all hold, the elements are needed.
        """
        if says is not None and not says:
            return None
        key = slot, most, None if says is None else tuple(says.items())
        if key not in self._left:
            self._left[key] = self._found_left(slot, says, most)
        return self._left[key]

    def _found_left(self, slot: Slot, says: Says | None, most: int) -> _Left | None:
        made, values = slot.origin, self.of(slot)
        if slot.known is not None or not is_inexact(slot.dtype):
            return _Left(None, values)
        if made is None or not most or made.name not in ELEMENTWISE:
            return _Left(None if made is not None and made.name == "stop_gradient" else values, values)
        if made.name == "select_n":
            return self._left_by_choice(made, says, most)
        if _multiplies_itself(made):
            return self._left_by_power(made, says, most)
        found: list[_Left] = []
        for operand in made.inputs:
            own = self._left_out(operand, says, most - 1)
            if own is None or own.may_be_nan:
                return own and _ALL_LEFT  # whatever the others are
            found.append(own)
        moving = [own.moving for own in found if own.moving is not None]
        values = of_step(made, [own.values for own in found])
        if len(moving) != 1:
            return _Left(values if moving else None, values)
        return _Left(of_step(made, [own.moving or own.values for own in found]), values)

    def _left_by_power(self, power: Step, says: Says | None, most: int) -> _Left | None:
        """A power has no slope but NaN where it is NaN itself: what flows into it there is NaN on the way on, whatever it is."""
        own = self._left_out(power.inputs[0], says, most - 1)
        if own is None:
            return None
        values = of_step(power, [own.values] * len(power.inputs))
        moving = own.moving and of_step(power, [own.moving.within(nan=False)] * len(power.inputs))
        return _Left(moving, values)

    def _left_by_choice(self, choice: Step, says: Says | None, most: int) -> _Left | None:
        moving: list[Range] = []
        values: list[Range] = []
        for n, case in enumerate(choice.inputs[1:]):
            own = self._left_out(case, self._at_case(choice, n, says), most - 1)
            if own is not None:
                values.append(self._case(choice, n, own.values))
                moving += [] if own.moving is None else [self._case(choice, n, own.moving)]
            if moving and moving[-1].nan:
                return _ALL_LEFT
        return _Left(_union(moving) if moving else None, _union(values)) if values else None

    def _case(self, choice: Step, n: int, own: Range) -> Range:
        """What is left of the range of a case where the choice takes it."""
        if (choice, n) not in self._facts:
            by, case = choice.inputs[0], choice.inputs[1 + n]
            told = by.dtype == "bool" and by.shape == case.shape and case.known is None
            self._facts[choice, n] = [*self._told(by, bool(n), case)] if told else []
        for name, other in self._facts[choice, n]:
            own = _narrowed(own, name, self.of(other), choice.inputs[1 + n])
        return own

    def _told(self, by: Slot, holds: bool, case: Slot) -> Iterator[Fact]:
        """What is known of ``case`` where ``by`` holds, or does not."""
        step = by.origin
        if step is None or by.known is not None:
            return
        match step.name:
            case "not":
                yield from self._told(step.inputs[0], not holds, case)
            case "and" | "or" if (step.name == "and") is holds:
                for own in step.inputs:
                    yield from self._told(own, holds, case)
            case "is_finite" if holds and self._are_alike(step.inputs[0], case):
                yield "is_finite", case
            case name if name in _OPPOSITE:
                yield from self._compared(step, name, holds, case)

    def _compared(self, step: Step, name: str, holds: bool, case: Slot) -> Iterator[Fact]:
        """A comparison of ``case`` as it is told, or of NaN where it fails."""
        a, b = step.inputs
        for slot, other, told in ((a, b, name), (b, a, _TURNED[name])):
            if self._are_alike(slot, case):
                yield told if holds else _OPPOSITE[told], other
                if holds is (name != "ne"):  # of NaN all comparisons fail but "ne"
                    yield "is_number", other

    def _at_case(self, choice: Step, case: int, says: Says | None) -> Says | None:
        """Which of ``says`` are left to ask where ``choice`` takes its operand number ``case``."""
        asked = next((own for own in says or () if self._are_alike(own, choice.inputs[0])), None)
        if says is None or asked is None or says[asked] is None:
            return says
        return {own: c for own, c in says.items() if own is not asked} if says[asked] == case else None

    def _are_alike(self, a: Slot, b: Slot) -> bool:
        """Whether two arrays are one, or made of the same by the same functions."""
        return a is b or self._as_made(a) == self._as_made(b)

    def _as_made(self, slot: Slot) -> Hashable:
        if slot not in self._made:
            self._made[slot] = made_of(slot)
        return self._made[slot]


def _multiplies_itself(step: Step) -> bool:
    """Whether ``step`` is a power of at least 2, so that its slope has what it is a power of as a factor."""
    if step.name == "mul":
        return step.inputs[0] is step.inputs[1]
    power = power_of(step) if step.name in ("square", "integer_pow") else None
    return power is not None and power >= 2


def _narrowed(own: Range, name: str, other: Range, case: Slot) -> Range:
    """The elements of which the comparison ``name`` with numbers in the range ``other`` holds."""
    least = harmless(case)
    match name:
        case "gt":
            own = own.within(low=other.low, apart=least if other.low >= 0 else 0.0)
            return own.within(low=max(own.low, least)) if own.low == 0 <= other.low else own
        case "ge":
            return own.within(low=other.low)
        case "lt":
            own = own.within(high=other.high, apart=least if other.high <= 0 else 0.0)
            return own.within(high=min(own.high, -least)) if own.high == 0 >= other.high else own
        case "le":
            return own.within(high=other.high)
        case "eq":
            return own.within(other.low, other.high)
        case "ne" if other.low == other.high == 0:
            return own.within(apart=least)
        case "is_number":
            return own.within(nan=False)
        case "is_finite":
            largest = limit_of(case, "max")
            return own.within(-largest, largest, nan=False)
    return own


def _union(ranges: Iterable[Range]) -> Range:
    first, *more = ranges
    for own in more:
        first = first.union(own)
    return first


def _is_finite(step: Step, operand: int, own: Range) -> bool:
    """Whether all slopes of ``step`` are finite where an operand is in the range ``own``."""
    power = power_of(step) if step.name == "pow" and operand == 0 else None
    if power is not None and power >= 1 and not power % 1:
        return True  # as it is of the same power written as a product
    finite = _FINITE.get((step.name, operand))
    return finite is not None and is_float(step.outputs[0].dtype) and not own.nan and finite(step, own)


def _from(share: float) -> Callable[[Step, Range], bool]:
    """From the least normal number to the power of ``share`` on, up to which the slope and that of the slope are finite."""
    return lambda step, own: own.least >= limit_of(step.outputs[0], "tiny") ** share and own.low > 0


def _apart(step: Step, own: Range) -> bool:
    return own.least >= harmless(step.outputs[0])


def _does_not_overflow(step: Step, own: Range) -> bool:
    return own.high < log(limit_of(step.outputs[0], "max")) - 1


def _inside(step: Step, own: Range) -> bool:
    return own.most <= 1 - SLACK


def _power_is_finite(step: Step, own: Range) -> bool:
    power = power_of(step)
    if power is None:
        return False
    if step.name == "integer_pow":
        return power > 0 or own.least >= limit_of(step.outputs[0], "tiny") ** (1 / (2 - power))
    return own.low > 0 and own.least >= harmless(step.outputs[0]) and -1 <= power < inf


_FINITE: dict[tuple[str, int], Callable[[Step, Range], bool]] = {
    **{(name, 0): _does_not_overflow for name in ("exp", "exp2", "expm1")},
    **{(name, 0): _inside for name in ("asin", "acos", "atanh", "erf_inv", "tan")},
    **{(name, 0): _power_is_finite for name in ("pow", "integer_pow")},
    **{("div", 1): _apart, ("rem", 1): _apart, ("atan2", 1): _apart},
    ("log", 0): _from(1 / 2),
    ("sqrt", 0): _from(2 / 3),
    ("rsqrt", 0): _from(2 / 5),
    ("log1p", 0): lambda step, own: own.low >= SLACK - 1,
    ("acosh", 0): lambda step, own: own.low >= 1 + SLACK,
}
