"""Which elements of an array are needed: those that some choice between it and the results takes.

``where(x > 0, log(x), 0)`` needs the logarithm where ``x > 0``. The reverse pass multiplies a head that is 0 at the other
elements by a slope that is infinite there, which is NaN.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp

from jaxte.frontends.jaxpr.equations.stands import as_it_stands
from jaxte.frontends.jaxpr.equations.steps import Slot, Step
from jaxte.frontends.jaxpr.rules.elementwise import ELEMENTWISE
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.graphs import ordered

# what moves elements, or adds them: its transpose says which elements of an operand go into needed ones
_MOVES = frozenset(
    [
        "broadcast_in_dim",
        "reshape",
        "transpose",
        "squeeze",
        "expand_dims",
        "rev",
        "slice",
        "dynamic_slice",
        "concatenate",
        "pad",
        "gather",
        "reduce_sum",
    ]
)
_REDUCES = frozenset(["reduce_max", "reduce_min", "reduce_prod"])
_ONE_BY_ONE = frozenset([*ELEMENTWISE, "stop_gradient", "copy", "reduce_precision"])
_EXTREMA = frozenset(["max", "min", "clamp"])
MASKS_MOVE = frozenset(["broadcast_in_dim", "reshape", "squeeze", "expand_dims", "transpose"])


@dataclass(frozen=True)
class Use:
    """``step`` reads an array as its operand ``operand``."""

    step: Step
    operand: int


Says = Mapping[Slot, int | None]
"""Arrays that say which elements of another one are needed, in a fixed order: at which of its cases an element of a choice is taken.

None stands for an array that is no condition of the same elements, or one by which different choices take different cases.
"""


class Needs:
    """What is needed of the arrays between ``steps``.

    Args:
        results: arrays that are needed in whole.
        partly: arrays of which a part is needed, by a mask that is there.
        inputs: arrays from outside that are asked about.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        results: Sequence[Slot],
        partly: Sequence[Slot] = (),
        inputs: Sequence[Slot] = (),
    ) -> None:
        self._results = set(results)
        self._partial: set[Slot] = set(partly)
        self._multiplied: set[Slot] = set()
        self._whole: set[Slot] = set()
        self._alone: set[Slot] = (
            set()
        )  # what is compared by an extremum, which asks nothing of what it is made of
        self._differentiated: set[Slot] = {*results, *partly}
        self._says: dict[Slot, Says] = {slot: {} for slot in partly}
        for slot in (*(out for step in reversed(steps) for out in step.outputs), *inputs):
            if slot not in self._partial:
                self._enter(slot)

    def partial(self, slot: Slot) -> bool:
        """Whether some elements may be needed by nothing that is differentiated."""
        return slot in self._partial

    def is_differentiated(self, step: Step) -> bool:
        """Whether a derivative flows through ``step``, and not into comparisons alone."""
        return any(out in self._differentiated and is_inexact(out.dtype) for out in step.outputs)

    def is_multiplied(self, slot: Slot) -> bool:
        """Whether elements are left out by zeros that they are multiplied by, or by an extremum: their values are still read."""
        return slot in self._multiplied

    def is_read_in_whole(self, slot: Slot) -> bool:
        """Whether the values of all elements are read, those that are left out included."""
        return slot in self._whole

    def says(self, slot: Slot) -> Says:
        """The arrays outside of what is differentiated that say which elements of ``slot`` are needed."""
        return self._says[slot]

    def mask(
        self, slot: Slot, read: Callable[[Slot], Any], known: dict[Slot, Any], values: bool = False
    ) -> Any:
        """A boolean array: whether each element is needed.

        Args:
            read: the values of :meth:`says`.
            known: masks that were made before, and where new ones go.
            values: whether the value of each element is read, needed or not.
        """
        for inside in ordered([slot], lambda own: () if own in known else self._made_of(own)):
            if inside not in known:
                masks = [self._mask_of(use, inside, read, known, values) for use in self._uses(inside)]
                known[inside] = reduce(operator.or_, masks)
        return known[slot]

    def _enter(self, slot: Slot) -> None:
        uses = self._uses(slot)
        if uses:
            self._differentiated.add(slot)
        if slot in self._results or not uses:
            return
        if all(_chooses(use) or self._is_passed(use) for use in uses):
            self._partial.add(slot)
            if not all(_leaves_out(use) or self._is_passed(use) for use in uses):
                self._alone.add(slot)
            self._says[slot] = self._said(uses)
            if any(_keeps_values(use) or use.step.outputs[0] in self._multiplied for use in uses):
                self._multiplied.add(slot)
            if any(self._reads_in_whole(use) for use in uses):
                self._whole.add(slot)

    def _reads_in_whole(self, use: Use) -> bool:
        out = use.step.outputs[0]
        if _chooses(use) and not _keeps_values(use):
            return False
        return out in self._whole if self.partial(out) else _keeps_values(use)

    def _is_passed(self, use: Use) -> bool:
        """Whether what is asked of the reader's result is asked of the operand."""
        out = use.step.outputs[0]
        return _passes(use) and self.partial(out) and out not in self._alone

    def _uses(self, slot: Slot) -> list[Use]:
        """Who reads ``slot`` and has a derivative."""
        return [
            Use(step, n)
            for step in dict.fromkeys(slot.readers)
            if self.is_differentiated(step)
            for n, operand in enumerate(step.inputs)
            if operand is slot
        ]

    def _said(self, uses: Sequence[Use]) -> Says:
        """What readers ask and what is asked of them; one mapping for a chain of steps that ask nothing."""
        below = [self._below(use) for use in uses if self.partial(use.step.outputs[0])]
        asked = [said for use in uses for said in _read(use).items()]
        if len(below) == 1 and not asked:
            return below[0]
        found: dict[Slot, int | None] = {}
        for slot, case in (*asked, *(said for says in below for said in says.items())):
            found[slot] = case if found.get(slot, case) == case else None
        return found

    def _below(self, use: Use) -> Says:
        """What is asked of a reader's result; what moves elements asks it of other elements."""
        says = self._says[use.step.outputs[0]]
        if use.step.name in _ONE_BY_ONE or not any(case is not None for case in says.values()):
            return says
        return dict.fromkeys(says)

    def _made_of(self, slot: Slot) -> list[Slot]:
        return [use.step.outputs[0] for use in self._uses(slot) if self.partial(use.step.outputs[0])]

    def _mask_of(
        self, use: Use, slot: Slot, read: Callable[[Slot], Any], known: Mapping[Slot, Any], values: bool
    ) -> Any:
        out = use.step.outputs[0]
        rest = known[out] if self.partial(out) else None
        if values and _keeps_values(use):
            return jnp.ones(slot.shape, bool) if rest is None else of_repeated(rest, slot.shape)
        if not _chooses(use):
            return _moved(use, slot, rest, read)
        own = _chosen(use, read)
        own = jnp.broadcast_to(own, slot.shape) if own.shape != slot.shape else own
        return own if rest is None else own & rest


def _chooses(use: Use) -> bool:
    """Whether the reader leaves elements out: it chooses, multiplies by a mask, or is an extremum that may take the other operand."""
    return _is_compared_alone(use) if use.step.name in _EXTREMA else _leaves_out(use)


def _keeps_values(use: Use) -> bool:
    """Whether the reader reads the values of elements that it leaves out."""
    return _chooses(use) and use.step.name != "select_n"


def _leaves_out(use: Use) -> bool:
    """Whether the reader chooses, or multiplies by a mask."""
    step = use.step
    if step.name == "select_n":
        return use.operand > 0 and all(s is not step.inputs[use.operand] for s in _others(use)[1:])
    return step.name == "mul" and _is_mask(step.inputs[1 - use.operand])


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


def _passes(use: Use) -> bool:
    """Whether an element of the operand goes into some elements of the result only."""
    step = use.step
    if len(step.outputs) != 1 or step.eqn.effects:
        return False
    if step.name == "select_n":
        return use.operand > 0
    return step.name in _ONE_BY_ONE or step.name in _REDUCES or (step.name in _MOVES and _is_first(use))


def _is_first(use: Use) -> bool:
    """Whether the operand is what is moved, and no position."""
    return use.step.name in ("concatenate", "pad") or use.operand == 0


def _read(use: Use) -> Says:
    """What the mask of an operand is made of beside that of the result."""
    step = use.step
    if _chooses(use):
        if step.name == "select_n":
            return {step.inputs[0]: use.operand - 1}
        return dict.fromkeys(step.inputs if step.name in _EXTREMA else _others(use))
    if step.name not in _MOVES:
        return {}
    return dict.fromkeys(slot for slot in step.inputs if not is_inexact(slot.dtype))


def _chosen(use: Use, read: Callable[[Slot], Any]) -> Any:
    """Whether the reader takes each element."""
    if use.step.name == "mul":
        return read(use.step.inputs[1 - use.operand]) != 0
    if use.step.name in _EXTREMA:
        return ~_is_beaten(use.step.name, read(use.step.inputs[use.operand]), [read(s) for s in _others(use)])
    which = jnp.asarray(read(use.step.inputs[0]))
    if which.dtype != bool:
        return which == use.operand - 1
    return which if use.operand == 2 else ~which


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


def _moved(use: Use, slot: Slot, mask: Any, read: Callable[[Slot], Any]) -> Any:
    """The elements of the operand that go into elements of the result at which ``mask`` holds."""
    step = use.step
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
