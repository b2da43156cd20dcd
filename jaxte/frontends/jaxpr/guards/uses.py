"""How a step reads an array: whether it leaves elements out, passes on what is asked of its result, and of which elements of the operand it does so.

The conditions under which an element is needed are alternatives: sets of numbered conditions that hold together.
``where(a, where(b, f, g), 0)`` needs ``f`` where ``a`` and ``b`` hold. What all cases of a choice read is not left out by it: alternatives that differ
in nothing but the case of one choice are joined, so that a function that both sides read is needed wherever the choice around them takes one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxte.frontends.jaxpr.equations.stands import as_it_stands
from jaxte.frontends.jaxpr.equations.steps import Slot, Step
from jaxte.frontends.jaxpr.rules.elementwise import ELEMENTWISE
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.limits import LARGE_TABLE, LEVELS

Need = frozenset[frozenset[int]]
"""An element is needed where all conditions of one of these sets hold."""

WHOLE: Need = frozenset([frozenset()])
MASKS_MOVE = frozenset(["broadcast_in_dim", "reshape", "squeeze", "expand_dims", "transpose"])
MOST_ALIKE = 4  # functions that two arrays or conditions are made by, one after the other, and are compared
_REPEATED = frozenset([*ELEMENTWISE, *MASKS_MOVE])  # what makes conditions, and may be written twice


class Conditions:
    """Conditions by number: cases of choices, and others, which are told apart only by what they are."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._cases: dict[int, tuple[int, ...]] = {}
        self.all: list[Hashable] = []

    def number(self, condition: Hashable) -> int:
        """That of a condition, which is the same for equal ones."""
        found = self._numbers.setdefault(condition, len(self.all))
        if found == len(self.all):
            self.all.append(condition)
        return found

    def case(self, cases: Iterable[Hashable], taken: int) -> int:
        """The number of the case ``taken`` among all ``cases`` of a choice, of which exactly one holds at each element."""
        numbers = tuple(map(self.number, cases))
        self._cases |= dict.fromkeys(numbers, numbers)
        return numbers[taken]

    def both(self, need: Need, number: int) -> Need:
        """Where ``need`` and the condition hold."""
        return self._short(frozenset(own | {number} for own in need))

    def either(self, needs: Iterable[Need]) -> Need:
        """Where one of ``needs`` holds."""
        found = frozenset[frozenset[int]]().union(*needs)
        # Alternatives, and conditions of one, beyond which they are one condition of their own.
        if len(found) > LEVELS:
            return self._short(found)
        while (drop := next(self._droppable(found), None)) is not None:
            own, number = drop
            found = (found - {own}) | {own - {number}}
        return self._short(frozenset(own for own in found if not any(other < own for other in found)))

    def _droppable(self, found: Need) -> Iterator[tuple[frozenset[int], int]]:
        """Alternatives with a condition that makes no difference, since at its other cases the rest of them is enough as well."""
        for own, number in ((each, n) for each in in_order(found) for n in sorted(each)):
            rest, others = own - {number}, [n for n in self._cases.get(number, ()) if n != number]
            if others and all(any(other <= rest | {n} for other in found) for n in others):
                yield own, number

    def _short(self, need: Need) -> Need:
        if len(need) <= LEVELS and all(len(own) <= LEVELS for own in need):
            return need
        return frozenset([frozenset([self.number(need)])])


def in_order(need: Need) -> list[frozenset[int]]:
    """The alternatives in an order that is the same in every run."""
    return sorted(need, key=sorted)


def made_of(slot: Slot, most: int = MOST_ALIKE) -> Hashable:
    """Equal for arrays that are one, or made of the same by the same functions."""
    if slot.known is not None:
        return slot.known.shape, str(slot.known.dtype), slot.known.tobytes()
    made = slot.origin
    if made is None or not most or made.name not in _REPEATED:
        return slot
    inputs = tuple(made_of(own, most - 1) for own in made.inputs)
    return made.name, tuple(sorted(made.eqn.params.items())), slot.shape, inputs


# what moves elements, or adds them: its transpose says which elements of an operand go into needed ones
_MOVES = frozenset(
    [
        "broadcast_in_dim", "reshape", "transpose", "squeeze", "expand_dims", "rev", "slice",
        "dynamic_slice", "concatenate", "pad", "gather", "reduce_sum",
    ]
)  # fmt: skip
_REDUCES = frozenset(["reduce_max", "reduce_min", "reduce_prod"])
ONE_BY_ONE = frozenset([*ELEMENTWISE, "stop_gradient", "copy", "reduce_precision"])
_EXTREMA = frozenset(["max", "min", "clamp"])
# by the operand that makes the slope infinite, and a number for it at which the slope is finite
STEEP: dict[tuple[int, float], tuple[str, ...]] = {
    (0, 1.0): ("log", "log2", "sqrt", "rsqrt", "cbrt", "lgamma", "digamma", "pow", "integer_pow"),
    (0, 0.0): ("log1p", "tan", "asin", "acos", "atanh", "erf_inv"),
    (0, 2.0): ("acosh",),
    (1, 1.0): ("div", "rem", "atan2"),
}


@dataclass(frozen=True)
class Use:
    """``step`` reads an array as its operand ``operand``."""

    step: Step
    operand: int


Says = Mapping[Slot, int | None]
"""Arrays that say which elements of another one are needed, in a fixed order: at which of its cases an element of a choice is taken.

None stands for an array that is no condition of the same elements, or one by which different choices take different cases.
"""


def chooses(use: Use) -> bool:
    """Whether the reader leaves elements out: it chooses, multiplies by a mask, or is an extremum that may take the other operand."""
    alone = use.step.name in _EXTREMA or (use.operand == _kept_by(use.step))
    return _is_compared_alone(use) if alone else leaves_out(use)


def keeps_values(use: Use) -> bool:
    """Whether the reader reads the values of elements that it leaves out."""
    return chooses(use) and use.step.name != "select_n"


def leaves_out(use: Use) -> bool:
    """Whether the reader chooses, or multiplies by a mask."""
    step = use.step
    if step.name == "select_n":
        return 0 < use.operand != _kept_by(step) and all(
            s is not step.inputs[use.operand] for s in _others(use)[1:]
        )
    return step.name == "mul" and _is_mask(step.inputs[1 - use.operand])


def _kept_by(step: Step) -> int | None:
    """The operand that a choice returns whatever its condition is, as in ``where(x == -inf, -inf, x)``: it changes no value, and so asks as little as an extremum does."""
    if step.name != "select_n" or len(step.inputs) != 3:
        return None
    by, *cases = step.inputs
    test = by.origin
    if test is None or by.known is not None or test.name not in ("eq", "ne"):
        return None
    own = 1 if test.name == "eq" else 2
    number, x = made_of(_repeated(cases[2 - own])), cases[own - 1]
    pairs = (test.inputs, test.inputs[::-1])
    return own if any(a is x and made_of(_repeated(b)) == number for a, b in pairs) else None


def _repeated(slot: Slot) -> Slot:
    """The number that is broadcast in an array, or converted."""
    while slot.origin is not None and slot.origin.name in ("broadcast_in_dim", "convert_element_type"):
        slot = slot.origin.inputs[0]
    return slot


def _is_compared_alone(use: Use) -> bool:
    """Whether an extremum reads a function of one array right after it, as in ``maximum(sqrt(x), 1e-6)``, beside what is not that function."""
    own = use.step.inputs[use.operand]
    made = own.origin
    if (
        made is None
        or made.name not in ELEMENTWISE
        or made.name == "select_n"
        or any(s is own for s in _others(use))
    ):
        return False
    return (use.step.name != "clamp" or use.operand == 1) and sum(s.known is None for s in made.inputs) == 1


def _others(use: Use) -> list[Slot]:
    return [slot for n, slot in enumerate(use.step.inputs) if n != use.operand]


def _is_mask(slot: Slot) -> bool:
    """Whether all elements are truth values as numbers."""
    while slot.origin is not None and slot.known is None and slot.origin.name in MASKS_MOVE:
        slot = slot.origin.inputs[0]
    made = slot.origin
    return made is not None and made.name == "convert_element_type" and made.inputs[0].dtype == "bool"


def slices_leave_out(slot: Slot, uses: Sequence[Use]) -> bool:
    """Whether ``uses`` are slices of a function with infinite slopes, and some of its elements are in none of them."""
    steep = slot.origin is not None and any(slot.origin.name in names for names in STEEP.values())
    if not steep or any(use.step.name != "slice" or use.step.has_symbols for use in uses):
        return False
    if prod(slot.shape) > LARGE_TABLE:
        return False
    read = np.zeros(slot.shape, bool)
    for use in uses:
        p = use.step.eqn.params
        steps = p["strides"] or (1,) * len(slot.shape)
        read[tuple(map(slice, p["start_indices"], p["limit_indices"], steps))] = True
    return not read.all()


def passes(use: Use) -> bool:
    """Whether an element of the operand goes into some elements of the result only."""
    step = use.step
    if len(step.outputs) != 1 or step.eqn.effects:
        return False
    if step.name == "select_n":
        return use.operand > 0
    return step.name in ONE_BY_ONE or step.name in _REDUCES or (step.name in _MOVES and _is_first(use))


def _is_first(use: Use) -> bool:
    """Whether the operand is what is moved, and no position."""
    return use.step.name in ("concatenate", "pad") or use.operand == 0


def read_beside(use: Use) -> Says:
    """What the mask of an operand is made of beside that of the result."""
    step = use.step
    if chooses(use):
        return dict.fromkeys(step.inputs if step.name in _EXTREMA else _others(use))
    if step.name not in _MOVES:
        return {}
    return dict.fromkeys(slot for slot in step.inputs if not is_inexact(slot.dtype))


def takes(by: Any, taken: int) -> Any:
    """Where a choice by ``by`` takes a case."""
    by = jnp.asarray(by)
    if by.dtype != bool:
        return by == taken
    return by if taken else ~by


def chosen(use: Use, read: Callable[[Slot], Any]) -> Any:
    """Whether a mask or an extremum takes each element."""
    if use.step.name == "mul":
        return read(use.step.inputs[1 - use.operand]) != 0
    return ~_is_beaten(use.step.name, read(use.step.inputs[use.operand]), [read(s) for s in _others(use)])


def _is_beaten(name: str, own: Any, others: Sequence[Any]) -> Any:
    """Where an extremum does not take ``own``; at ties it takes a part of it."""
    if name == "clamp":
        return (own < others[0]) | (own > others[1])
    return own < others[0] if name == "max" else own > others[0]


def of_repeated(mask: Any, shape: tuple[int, ...]) -> Any:
    """``mask`` for an array of ``shape`` whose elements an elementwise function repeats: any of the places of an element."""
    if mask.shape == shape:
        return mask
    along = tuple(d for d, extent in enumerate(mask.shape) if not shape or extent != shape[d])
    return jnp.any(mask, along, keepdims=bool(shape))


def moved(use: Use, mask: Any, read: Callable[[Slot], Any]) -> Any:
    """The elements of the operand that go into elements of the result at which ``mask`` holds; None for all of it."""
    mask = jnp.ones(use.step.outputs[0].shape, bool) if mask is None else mask
    step, slot = use.step, use.step.inputs[use.operand]
    if step.name in _REDUCES:
        return jnp.broadcast_to(jnp.expand_dims(mask, step.eqn.params["axes"]), slot.shape)
    if step.name not in _MOVES:
        return of_repeated(mask, slot.shape)
    others = [jnp.zeros(s.shape, "float32") if is_inexact(s.dtype) else read(s) for s in step.inputs]

    def move(operand: Any) -> Any:
        operands = [operand if n == use.operand else other for n, other in enumerate(others)]
        return as_it_stands(step.eqn, operands)[0]

    (found,) = jax.linear_transpose(move, others[use.operand])(mask.astype("float32"))
    return found > 0
