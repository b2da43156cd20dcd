"""Steps to Tensors: every value an expression of one element, made a tensor where composing it further would cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jaxte.frontends.jaxpr import rules
from jaxte.frontends.jaxpr.equations.steps import (
    OWN_DERIVATIVES,
    Slot,
    Step,
    flat,
    known_array,
    needed,
    slot_of,
)
from jaxte.frontends.jaxpr.equations.table import RULES, Reads, Site, Unraised
from jaxte.frontends.jaxpr.gains.gains import DEAR
from jaxte.frontends.jaxpr.gains.parts import is_diagonal, part_of_product
from jaxte.frontends.jaxpr.plan.neighbours import Neighbours, neighbours
from jaxte.frontends.jaxpr.plan.overrides import adjoint_jaxpr, blocked, by_adjoint, by_tangent, tangent_jaxpr
from jaxte.frontends.jaxpr.values.constants import positions_in
from jaxte.frontends.jaxpr.values.shifts import (
    chooses_between_reads,
    divides,
    is_framed,
    is_held,
    is_repeat,
    is_shifted,
    is_turned,
    size_of,
    steepens_itself,
)
from jaxte.frontends.jaxpr.values.value import Kind, Value, axes_of, defined, of_tensor, positions, typed
from jaxte.lang.dtypes import DTYPES, is_float, is_inexact
from jaxte.lang.expr import Const, Expr, Read
from jaxte.tensors.inputs import placeholder
from jaxte.tensors.shapes import MAX_EXTENT
from jaxte.tensors.tensor import Placeholder, Tensor

_ = rules  # fills the table
_MOST_STEPS = 16  # of what computes a known array of floats that is written as notation
_LONGEST = 64  # nodes of an expression that is composed further
_LONGEST_SUM = (
    2048  # of one that adds up functions of neighbours: taken apart, they would be computed by each part
)


@dataclass
class Refused(Exception):
    """A step that could not be raised, and why."""

    step: Step
    reason: str

    def __str__(self) -> str:
        return self.reason


@dataclass
class Builder:
    """Raises steps; ``placeholders`` are the arrays that came from outside, in order of appearance."""

    placeholders: dict[Slot, Placeholder] = field(default_factory=dict)
    values: dict[Slot, Value] = field(default_factory=dict)
    results: frozenset[Slot] = frozenset()
    neighbours: Neighbours = field(default_factory=Neighbours)

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
        """A function of elements with a derivative of its own: a tensor with an override."""
        operands = [self.value(slot) for slot in step.inputs]
        tensors = [v.tensor() for v in operands]
        if step.name == "stop_gradient":
            self.values[step.outputs[0]] = of_tensor(blocked(tensors[0]))
            return
        if len(step.outputs) != 1:
            raise Refused(step, f"{step.label} has a derivative of its own and several results")
        if step.name == "custom_vjp_call":
            self._with_own_adjoint(step, operands, tensors)
            return
        jaxpr, moving = tangent_jaxpr(step.eqn)
        if any(n not in moving and v.kind is not Kind.NUMBER for n, v in enumerate(operands)):
            raise Refused(step, f"{step.label} has a derivative of its own and operands without one")
        (result,) = self._pointwise(step, step.eqn.params["call_jaxpr"], operands)

        def tangent(out: Tensor, inputs: Sequence[Tensor], moves: Sequence[Tensor]) -> Tensor:
            own = list(operands)
            for n, tensor in zip(moving, inputs, strict=True):
                own[n] = of_tensor(tensor)
            (found,) = self._pointwise(step, jaxpr, [*own, *map(of_tensor, moves)], of_tensor(out))
            return found.computed()

        by_tangent(result.computed(), [tensors[n] for n in moving], tangent)
        tangent(
            tensors[moving[0]], [tensors[n] for n in moving], [tensors[n] for n in moving]
        )  # or it is refused now
        self.values[step.outputs[0]] = result

    def _with_own_adjoint(self, step: Step, operands: Sequence[Value], tensors: Sequence[Tensor]) -> None:
        """A function of elements with a rule for what flows back: each adjoint an expression of elements and the head."""
        sources = [t for t in tensors if is_inexact(t.dtype)]
        if len(set(sources)) < len(sources) or any(t.shape != step.outputs[0].shape for t in sources):
            raise Refused(step, f"{step.label} has a derivative of its own and broadcasts its operands")
        jaxpr, _ = adjoint_jaxpr(step.eqn)
        (result,) = self._pointwise(step, step.eqn.params["call_jaxpr"], operands)

        def adjoints(out: Tensor, head: Tensor) -> list[Tensor]:
            found = self._pointwise(step, jaxpr, [*operands, of_tensor(head)], of_tensor(out), len(sources))
            return [own.computed() for own in found]

        by_adjoint(result.computed(), sources, adjoints)
        adjoints(result.tensor(), result.tensor())  # or it is refused now
        self.values[step.outputs[0]] = result

    def _pointwise(
        self, step: Step, closed: Any, operands: Sequence[Value], result: Value | None = None, count: int = 1
    ) -> list[Value]:
        """The results of a jaxpr of elementwise functions on ``operands``; ``result`` is what ``step`` itself makes of them."""
        slots = {v: Slot(v.aval) for v in closed.jaxpr.invars}
        slots |= {
            v: Slot(v.aval, known_array(c))
            for v, c in zip(closed.jaxpr.constvars, closed.consts, strict=True)
        }
        own = Builder(values={slots[v]: x for v, x in zip(closed.jaxpr.invars, operands, strict=True)})
        steps = [s for _, found in flat(closed.jaxpr.eqns, slots, step.label) for s in found]
        results = [slot_of(v, slots) for v in closed.jaxpr.outvars]
        for inner in needed(steps, results):
            if result is not None and _is_again(inner, step, own, operands):
                own.give(inner.outputs[0], result)
            elif not inner.is_known:
                own.raise_(inner)
        found = [own.value(slot) for slot in results]
        if (
            own.placeholders
            or len(found) != count
            or any(is_shifted(v.body) or v.kind is Kind.REDUCED for v in found)
        ):
            raise Refused(
                step, f"{step.label} has a derivative of its own and is no function of single elements"
            )
        return found

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
        longest = _LONGEST_SUM if slot in self.neighbours.summed else _LONGEST
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


def _is_again(inner: Step, step: Step, own: Builder, operands: Sequence[Value]) -> bool:
    """Whether a derivative calls the function that it is the derivative of, on the same operands."""
    if inner.name != step.name or len(inner.inputs) > len(operands):
        return False
    same = all(own.value(s) is x for s, x in zip(inner.inputs, operands, strict=False))
    return same and str(inner.eqn.params["call_jaxpr"]) == str(step.eqn.params["call_jaxpr"])


def _is_dear(slot: Slot) -> bool:
    """Whether a known array is more than a few operations on positions: it is computed now, not at each element that reads it."""
    steps: dict[Step, None] = {}
    stack = [slot]
    while stack:
        step = stack.pop().origin
        if step is None or step in steps:
            continue
        if step.name in DEAR or len(steps) >= _MOST_STEPS:
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
