"""Steps to Tensors: every value an expression of one element, made a tensor where composing it further would cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jaxte.frontends.jaxpr import rules
from jaxte.frontends.jaxpr.equations.steps import OWN_DERIVATIVES, Refused, Slot, Step
from jaxte.frontends.jaxpr.equations.table import RULES, Reads, Site, Unraised
from jaxte.frontends.jaxpr.gains.gains import DEAR
from jaxte.frontends.jaxpr.gains.parts import is_diagonal, part_of_product
from jaxte.frontends.jaxpr.plan.neighbours import (
    Neighbours,
    chooses_between_reads,
    divides,
    is_framed,
    is_held,
    is_repeat,
    is_shifted,
    is_turned,
    neighbours,
    size_of,
    steepens_itself,
)
from jaxte.frontends.jaxpr.plan.own_rules import with_own_rule
from jaxte.frontends.jaxpr.taken import blocked
from jaxte.frontends.jaxpr.values.positions import positions_in
from jaxte.frontends.jaxpr.values.value import Kind, Value, axes_of, defined, of_tensor, positions, typed
from jaxte.lang.dtypes import DTYPES, is_float
from jaxte.lang.expr import Const, Expr, Read
from jaxte.lang.limits import MOST_PARTS, MOST_TERMS, PLACES
from jaxte.tensors.inputs import Placeholder, placeholder
from jaxte.tensors.shapes import MAX_EXTENT
from jaxte.tensors.tensor import Tensor

_ = rules  # fills the table


@dataclass
class Builder:
    """Raises steps.

    Attributes:
        placeholders: the arrays that came from outside, in order of appearance.
        in_rule, later: as :class:`jaxte.frontends.jaxpr.plan.own_rules.Raises` has them.
    """

    placeholders: dict[Slot, Placeholder] = field(default_factory=dict)
    values: dict[Slot, Value] = field(default_factory=dict)
    results: frozenset[Slot] = frozenset()
    neighbours: Neighbours = field(default_factory=Neighbours)
    in_rule: bool = False
    later: bool = False

    def run(self, steps: Sequence[Step], results: Sequence[Slot]) -> list[Tensor]:
        """The tensors of ``results``.

        Raises:
            Refused: a step without index notation.
        """
        self.results = frozenset(results)
        self.neighbours = neighbours([s for s in steps if not s.is_known], results)
        for step in steps:
            if not step.is_known:
                self.raise_(step)
        return [self.value(slot).tensor() for slot in results]

    def give(self, slot: Slot, value: Value) -> None:
        """``slot`` holds ``value``, whatever computes it."""
        self.values[slot] = value

    def value(self, slot: Slot) -> Value:
        """The array in ``slot``."""
        if slot not in self.values:
            self.values[slot] = self._outside(slot) if slot.known is None else self._known(slot)
        return self.values[slot]

    def _outside(self, slot: Slot) -> Value:
        if slot.dtype not in DTYPES or any(not isinstance(e, int) or e > MAX_EXTENT for e in slot.shape):
            raise Unraised(f"an array of {slot.dtype}{list(slot.shape)}")
        made = placeholder(slot.shape, slot.dtype, f"x{len(self.placeholders)}")
        self.placeholders[slot] = made
        return of_tensor(made)

    def _known(self, slot: Slot) -> Value:
        """A known array as a number, as positions, as what computes it, or as it is."""
        array = np.asarray(slot.known)
        return self._notation(slot, array).knowing(array)

    def _notation(self, slot: Slot, array: np.ndarray) -> Value:
        if array.size and np.all(array == array.reshape(-1)[0]):
            number = array.reshape(-1)[0].item()
            return defined(slot.shape, slot.dtype, "number", lambda *i: _number(number, slot.dtype))
        if slot.dtype == "int32":
            axes = axes_of(slot.shape)
            found = positions_in(array, positions(axes), 1)
            if found is not None:
                return Value(slot.shape, slot.dtype, "positions", axes, found)
        if slot.origin is not None and not (is_float(slot.dtype) and _is_dear(slot)):
            try:
                self.raise_(slot.origin)
                return self.values[slot]
            except Refused:
                pass
        return self._outside(slot)

    def raise_(self, step: Step) -> None:
        """Puts the results of ``step`` among the values."""
        if step.name in OWN_DERIVATIVES:
            self._with_own_derivative(step)
            return
        rule = RULES.get(step.name)
        if rule is None:
            raise Refused(step, f"{step.name} has no rule")
        shapes = [slot.shape for slot in step.outputs]
        dtypes = [slot.dtype for slot in step.outputs]
        site = Site(shapes, dtypes, step.label, {**step.eqn.params, "primitive": step.name})
        try:
            if any(d not in DTYPES for d in dtypes):
                raise Unraised(f"arrays of {dtypes[0]}")
            operands = [self.prepared(slot, step, rule.reads) for slot in step.inputs]
            made = rule.raise_(site, *operands)
            if step.name == "reshape" and not drops_ones(step):
                made = self._simple(made, site, operands)
        except Unraised as error:
            raise Refused(step, str(error)) from None
        for slot, value in zip(step.outputs, made if isinstance(made, list) else [made], strict=True):
            part = part_of_product(value.body, value.shape)
            value = value if part is None else Value(value.shape, value.dtype, value.label, value.axes, part)
            self.settle(slot, value)
            self.values[slot] = value

    def _with_own_derivative(self, step: Step) -> None:
        """A function with a derivative of its own: a tensor with an override."""
        try:
            if step.name == "stop_gradient":
                made = of_tensor(blocked(self.value(step.inputs[0]).tensor()))
            else:
                made = with_own_rule(self, step)
        except Unraised as error:
            raise Refused(step, str(error)) from None
        self.values[step.outputs[0]] = made

    def inside(self, values: dict[Slot, Value], in_rule: bool, later: bool) -> Builder:
        """One for a body whose operands are ``values``."""
        return Builder(values=values, in_rule=in_rule, later=later)

    def _simple(self, made: Value, site: Site, operands: list[Value]) -> Value:
        """A reshape of one tensor, or one division by itself; not divisions of what is composed already."""
        read = made.body
        if isinstance(read, Read) and is_repeat(read):
            return made
        operands[0].tensor()
        made = RULES["reshape"].raise_(site, *operands)
        if isinstance(made.body, Read) and divides(made.body):
            made.tensor()
        return made

    def prepared(self, slot: Slot, step: Step, reads: Reads) -> Value:
        """The array in ``slot`` as ``step`` may read it: a tensor where composing would compute an element several times."""
        value = self.value(slot)
        if value.kind is Kind.NUMBER or value.kind is Kind.PLAIN:
            return value
        if slot in self.neighbours.paired:
            return value
        shifted = is_shifted(value.body)
        match reads:
            case Reads.VIEW | Reads.WINDOW:
                composed = (
                    value.kind is Kind.VIEW
                    and not chooses_between_reads(value.body)
                    and not is_held(value.body)
                ) or drops_ones(step)
            case Reads.PRODUCT:
                composed = is_turned(value.body) or is_framed(value.body, value.shape)
            case Reads.REDUCE:
                composed = (
                    value.kind is Kind.VIEW and (isinstance(value.body, Read) or is_diagonal(value.body))
                ) or ((value.kind is Kind.POINTWISE or value.kind is Kind.LINEAR) and not shifted)
            case _:
                composed = not shifted or self._reads_linearly(step)
        # An expression of more nodes is not composed further. Sums of functions of neighbours may have more: taken apart, they would be computed by each part.
        longest = PLACES if slot in self.neighbours.summed else MOST_PARTS
        if not composed or size_of(value.body) > longest:
            value.tensor()
        return value

    def _reads_linearly(self, step: Step) -> bool:
        """Whether the slopes of ``step`` are numbers, or read nothing else, so that it may read sums of shifted elements."""
        if step.name in ("mul", "div"):
            values = [self.value(s) for s in step.inputs]
            numbers = [v.kind is Kind.NUMBER for v in values]
            if step.name == "div" or any(numbers):
                return numbers[1] if step.name == "div" else True
            return all(v.kind <= Kind.LINEAR for v in values) and steepens_itself(*(v.body for v in values))
        return step.name == "select_n" or RULES[step.name].reads is Reads.LINEAR

    def settle(self, slot: Slot, value: Value) -> None:
        """Makes ``value`` a tensor where several readers, or one that is not linear, would compute it again."""
        readers = slot.readers
        if slot in self.neighbours.paired:
            return
        if len(readers) == 1 and slot not in self.results and drops_ones(readers[0]):
            return
        if (
            value.kind is Kind.REDUCED
            or (value.kind in (Kind.LINEAR, Kind.POINTWISE) and (len(readers) > 1 or slot in self.results))
            or (value.kind is Kind.VIEW and len(readers) > 1 and not all(r.reads_linearly for r in readers))
        ):
            value.tensor()


def _is_dear(slot: Slot) -> bool:
    """Whether a known array is more than a few operations on positions: it is computed now, not at each element that reads it."""
    steps: dict[Step, None] = {}
    stack = [slot]
    while stack:
        step = stack.pop().origin
        if step is None or step in steps:
            continue
        # Steps of what computes a known array of floats that is written as notation.
        if step.name in DEAR or len(steps) >= MOST_TERMS:
            return True
        steps[step] = None
        stack += step.inputs
    return False


def _number(number: Any, dtype: str) -> Expr:
    """``number`` with the fewest digits that are the same number in ``dtype``."""
    if dtype == "bool":
        return Const(bool(number))
    return typed(Const(float(str(np.float32(number))) if dtype == "float32" else number), dtype)


def drops_ones(step: Step) -> bool:
    """Whether ``step`` only drops or adds dimensions of one element: what it reads may be any expression."""
    if step.name not in ("squeeze", "reshape", "expand_dims"):
        return False
    (source, *_), (out,) = step.inputs, step.outputs
    return [e for e in source.shape if e != 1] == [e for e in out.shape if e != 1]
