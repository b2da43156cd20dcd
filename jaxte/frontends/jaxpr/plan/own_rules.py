"""Steps with a derivative of their own, ``jax.custom_jvp`` and ``jax.custom_vjp``: tensors with an override that says what JAX's rule says.

A rule makes two things: the value anew, and its derivative. What is differentiated once more is what the rule does, so derivatives of
derivatives see the value that the rule makes: often by a call of the function itself, whose rule then holds again, else by other
operations, whose derivative is their own. Rules may lead to rules without end (the derivatives of ``jnp.sinc`` at 0), so the rules of
calls in rules are looked at when a derivative asks for them; what has no notation then is JAX's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import jax

from jaxte.bridge.given.extern import extern
from jaxte.derivatives.overrides import Override
from jaxte.derivatives.reverse import differentiate
from jaxte.frontends.jaxpr.equations.steps import (
    OWN_DERIVATIVES,
    Refused,
    Slot,
    Step,
    flat,
    needed,
    slot_of,
    slots_of,
)
from jaxte.frontends.jaxpr.equations.table import Unraised
from jaxte.frontends.jaxpr.plan.neighbours import is_shifted
from jaxte.frontends.jaxpr.taken import bound_call, calls_itself, rule_of
from jaxte.frontends.jaxpr.values.value import Kind, Value, of_tensor
from jaxte.lang.expr import Axis
from jaxte.lang.graphs import among
from jaxte.tensors.inputs import Placeholder, placeholder
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Tensor


class Raises(Protocol):
    """What raises the steps of functions and of rules.

    Attributes:
        placeholders: the arrays that it takes from outside.
        in_rule: whether the steps are those of a rule, the rules of whose calls are looked at later.
        later: whether the time has come, so that what has no notation is JAX's, and nothing is refused.
    """

    placeholders: dict[Slot, Placeholder]
    in_rule: bool
    later: bool

    def value(self, slot: Slot) -> Value: ...

    def give(self, slot: Slot, value: Value) -> None: ...

    def raise_(self, step: Step) -> None: ...

    def inside(self, values: dict[Slot, Value], in_rule: bool, later: bool) -> Raises:
        """One for a body whose operands are ``values``."""


def with_own_rule(raiser: Raises, step: Step) -> Value:
    """The result of ``step``, which is a tensor with an override.

    Raises:
        Refused: the function, or its rule, is no function of single elements.
    """
    operands = [raiser.value(slot) for slot in step.inputs]
    call = _Call(raiser, step, operands, [v.tensor() for v in operands])
    try:
        call.check()
        call.tensor.with_override(call.override())
        if not raiser.in_rule:
            call.look()
    except (Refused, Unraised) as refused:
        if not raiser.later:
            raise Refused(step, str(refused)) from None
        return _by_jax(step.label, bound_call(step.eqn), step.outputs, call.tensors)[0]
    return call.result


@dataclass(eq=False)
class _Call:
    """One call: ``operands``, the tensors that they are, and the tangents that its rule was asked for."""

    raiser: Raises
    step: Step
    operands: list[Value]
    tensors: list[Tensor]
    made: dict[tuple[Any, ...], Tensor] = field(default_factory=dict)
    moves: set[Tensor] = field(default_factory=set)

    @cached_property
    def rule(self) -> tuple[Any, list[int]]:
        """The jaxpr of its rule, and the operands that have a derivative."""
        return rule_of(self.step.eqn)

    @cached_property
    def moving(self) -> list[Tensor]:
        return [self.tensors[n] for n in self.rule[1]]

    @cached_property
    def result(self) -> Value:
        """What the function makes, a tensor of its own."""
        closed = self.step.eqn.params["call_jaxpr"]
        (made,) = self._raised(closed, [0], self.operands, None, self.raiser.later)
        made.computed()
        return made

    @property
    def tensor(self) -> Tensor:
        return self.result.tensor()

    @property
    def by_tangent(self) -> bool:
        return self.step.name == "custom_jvp_call"

    def check(self) -> None:
        """That the rule can be that of a tensor."""
        label = self.step.label
        if len(self.step.outputs) != 1:
            raise Refused(self.step, f"{label} has a derivative of its own and several results")
        if self.by_tangent:
            still = set(range(len(self.operands))) - set(self.rule[1])
            if any(self.operands[n].kind is not Kind.NUMBER for n in still):
                raise Refused(self.step, f"{label} has a derivative of its own and operands without one")
            return
        shape = self.step.outputs[0].shape
        if len(set(self.moving)) < len(self.moving) or any(t.shape != shape for t in self.moving):
            raise Refused(self.step, f"{label} has a derivative of its own and broadcasts its operands")

    def override(self) -> Override:
        sources = tuple(dict.fromkeys(self.moving))
        adjoints = self._transposed if self.by_tangent else self._adjoints
        return Override((self.tensor,), sources, adjoints, primal=lambda: self.primal)

    def look(self) -> None:
        """Refuses the rule now if it would be refused later."""
        sources = tuple(dict.fromkeys(self.moving))
        (self._transposed if self.by_tangent else self._adjoints)(self.tensor, sources, self.tensor)
        _ = self.primal

    @cached_property
    def primal(self) -> Tensor | None:
        """The value as the rule makes it; None where it calls the function itself for that."""
        own = self.tensor
        last = self.moving if self.by_tangent else [own]
        (found,) = self._by_rule([0], self.operands, last, own)
        made = found.tensor()
        if made is own:
            return None
        if among(own, topological_order([made])):
            raise Refused(self.step, f"{self.step.label} has a rule that makes its value of its own value")
        return made

    def _transposed(self, out: Tensor, inputs: Sequence[Tensor], head: Tensor) -> list[Tensor]:
        """The transpose of the tangent; an operand that stands at two places moves at both."""
        moves = [placeholder(t.shape, t.dtype, f"{t.name}_dot") for t in inputs]
        self.moves.update(moves)
        where = {t: n for n, t in enumerate(dict.fromkeys(self.moving))}
        own = list(self.operands)
        for n, tensor in zip(self.rule[1], self.moving, strict=True):
            own[n] = of_tensor(inputs[where[tensor]])
        (moved,) = self._by_rule([1], own, [moves[where[t]] for t in self.moving], out)
        return list(differentiate(moved.computed(), moves, head=head))

    def _adjoints(self, out: Tensor, inputs: Sequence[Tensor], head: Tensor) -> list[Tensor]:
        results = range(1, len(self.moving) + 1)
        return [own.computed() for own in self._by_rule(results, self.operands, [head], out)]

    def _by_rule(
        self, results: Sequence[int], operands: Sequence[Value], last: Sequence[Tensor], out: Tensor
    ) -> list[Value]:
        """Some results of the rule; ``out`` is what the function makes of ``operands``."""
        later = self.raiser.in_rule
        return self._raised(self.rule[0], results, [*operands, *map(of_tensor, last)], of_tensor(out), later)

    def _raised(
        self, closed: Any, results: Sequence[int], operands: Sequence[Value], out: Value | None, later: bool
    ) -> list[Value]:
        """Some results of a jaxpr of elementwise functions; by JAX if the time to refuse it is over."""
        try:
            return self._notation(closed, results, operands, out, later)
        except (Refused, Unraised):
            if not later:
                raise
        avals = [Slot(closed.jaxpr.outvars[n].aval) for n in results]
        tensors = [v.tensor() for v in operands]

        def call(*xs: Any) -> list[Any]:
            made = jax.core.eval_jaxpr(closed.jaxpr, closed.consts, *xs)
            return [made[n] for n in results]

        return _by_jax(self.step.label, call, avals, tensors)

    def _notation(
        self, closed: Any, results: Sequence[int], operands: Sequence[Value], out: Value | None, later: bool
    ) -> list[Value]:
        jaxpr = closed.jaxpr
        slots = slots_of(closed)
        given = {slots[v]: x for v, x in zip(jaxpr.invars, operands, strict=True)}
        own = self.raiser.inside(given, True, later)
        steps = [s for _, found in flat(jaxpr.eqns, slots, self.step.label) for s in found]
        wanted = [slot_of(jaxpr.outvars[n], slots) for n in results]
        for inner in needed(steps, wanted):
            if inner.is_known:
                continue
            if out is not None and self._is_again(inner, own, operands):
                own.give(inner.outputs[0], out)
            elif inner.name == "custom_jvp_call" and self._is_moved(inner, own):
                self._give_body(inner, own, later)
            elif inner.name in OWN_DERIVATIVES and len(inner.outputs) == 1:
                self._raise_once(inner, own)
            else:
                own.raise_(inner)
        found = [own.value(slot) for slot in wanted]
        if own.placeholders or any(is_shifted(v.body) for v in found):
            label = self.step.label
            raise Refused(
                self.step, f"{label} has a derivative of its own and is no function of single elements"
            )
        return found

    def _is_moved(self, inner: Step, own: Raises) -> bool:
        """Whether an operand is made of tangents: a function of these is linear, and what it does is transposed, as in JAX, not its rule, which may call it again without end."""
        if not self.moves:
            return False
        return not self.moves.isdisjoint(topological_order([own.value(s).tensor() for s in inner.inputs]))

    def _give_body(self, inner: Step, own: Raises, later: bool) -> None:
        """Raises what a call does, without its rule."""
        operands = [own.value(s) for s in inner.inputs]
        results = range(len(inner.outputs))
        made = self._raised(inner.eqn.params["call_jaxpr"], results, operands, None, later)
        for slot, value in zip(inner.outputs, made, strict=True):
            own.give(slot, value)

    def _raise_once(self, inner: Step, own: Raises) -> None:
        """Raises a call in the rule, which is one tensor in all that the rule makes of the same operands: its rule may not be linear in the head."""
        operands = [own.value(s) for s in inner.inputs]
        key = inner.eqn, *(v[tuple(self._axes[: v.ndim])] for v in operands)
        if key in self.made:
            own.give(inner.outputs[0], of_tensor(self.made[key]))
        else:
            own.raise_(inner)
            self.made[key] = own.value(inner.outputs[0]).tensor()

    @cached_property
    def _axes(self) -> list[Axis]:
        ranks = [len(s.shape) for s in (*self.step.inputs, *self.step.outputs)]
        return [Axis(f"a{n}", 0, 1) for n in range(max(ranks))]

    def _is_again(self, inner: Step, own: Raises, operands: Sequence[Value]) -> bool:
        if inner.name != self.step.name:
            return False
        return calls_itself(self.step, inner, operands, [own.value(s) for s in inner.inputs])


def _by_jax(label: str, fn: Any, outputs: Sequence[Slot], tensors: Sequence[Tensor]) -> list[Value]:
    """The results of ``fn``, with JAX's derivative of it."""
    structs = [jax.ShapeDtypeStruct(s.shape, s.dtype) for s in outputs]
    return [of_tensor(t) for t in extern(structs, fn, tensors, label)]
