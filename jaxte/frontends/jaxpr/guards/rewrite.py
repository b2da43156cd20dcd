"""A function whose steep parts are computed of harmless numbers where no choice takes their results.

That is the well-known trick of two choices, ``where(c, log(where(c, x, 1)), 0)``, made for every function that needs it: values are
the same, and slopes that a head of 0 is multiplied by are finite, in every order of derivatives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend.core import Literal

from jaxte.bridge.calls.options import NO_OPTIONS
from jaxte.bridge.jaxprs import bound
from jaxte.bridge.price.operations import EXPONENTIALS, POWERS
from jaxte.frontends.jaxpr.equations.stands import Instead, as_it_stands, in_place_of
from jaxte.frontends.jaxpr.equations.steps import Slot, Step, flat, needed, slot_of, slots_of
from jaxte.frontends.jaxpr.guards.bounds import Bound, bound_of
from jaxte.frontends.jaxpr.guards.flowing import given_to, moving, still_in
from jaxte.frontends.jaxpr.guards.merged import merged
from jaxte.frontends.jaxpr.guards.needed import Needs
from jaxte.frontends.jaxpr.guards.slopes import (
    Guard,
    Root,
    filled,
    guard_of,
    guarded_slope,
    kind_of_guard,
    roots_of,
)
from jaxte.frontends.jaxpr.guards.told import (
    answers_for_infinity,
    is_needed_in_whole,
    leaves_no_nan,
    meets_no_derivative,
)
from jaxte.frontends.jaxpr.guards.values import Ranges
from jaxte.lang.graphs import filled_in, ordered
from jaxte.lang.limits import FEW, MANY_ELEMENTS, SEVERAL

_GUARDED = "not differentiated where its result is not chosen"
_OF_SQUARE = "differentiated as a power of what the root is taken of"
_DEAR = EXPONENTIALS | POWERS  # which are not computed once as they stand and once guarded
_same = jax.jit(lambda mask: mask)
Node = tuple[Step, bool]
"""A step, and whether it reads guarded values; what no guard is before is the same both ways, and stands as guarded."""


def guarded(
    closed: Any,
    steps: Sequence[Step],
    slots: Mapping[Any, Slot],
    same: int = 0,
    inside: bool = False,
    flows: Set[int] | None = None,
) -> Instead | None:
    """``closed``, whose equations are ``steps``, with guards; None where it needs none.

    Its first ``same`` arguments are so in each turn of a loop, and through those in ``flows`` a derivative may flow. What is ``inside`` of another function makes a part of a result alone.
    """
    results = [slot_of(v, slots) for v in closed.jaxpr.outvars]
    with_effects = [step for step in steps if step.eqn.effects]
    kept = {
        *needed(steps, [*results, *(slot for step in with_effects for slot in step.inputs)]),
        *with_effects,
    }
    steps = [step for step in steps if step in kept]
    needs = Needs(steps, results, whole=not inside)
    partial = [step for step in steps if any(map(needs.partial, step.outputs))]
    ranges = Ranges()
    still = still_in(steps, {slots[v] for v in (*closed.jaxpr.constvars, *closed.jaxpr.invars[:same])})
    still = still if same else set()
    moves = moving(steps, given_to(closed, slots, flows))
    guards = {
        step: guard
        for step in partial
        if not _is_taken_in_whole(step, needs, still)
        and (guard := guard_of(step, needs, ranges))
        and not meets_no_derivative(step, needs, moves)
        and not leaves_no_nan(step, needs, ranges, still)
        and not answers_for_infinity(step, needs)
        and not is_needed_in_whole(step, needs)
    }
    if (other := merged(closed, steps, slots, guards)) is not None:
        own = slots_of(other, {n: slots[v].known for n, v in enumerate(closed.jaxpr.invars)})
        steps = [step for _, found in flat(other.jaxpr.eqns, own) for step in found]
        return guarded(other, steps, own, same, inside, flows)
    roots = roots_of((step for step in steps if step not in guards), needs)
    if not guards and not roots:
        return None
    bounds = {step: bound for step in guards if (bound := bound_of(step)) is not None}
    behind = {step: guard for step, guard in guards.items() if step not in bounds}
    order = _Order(steps, needs, behind, bounds, roots)
    nodes = ordered([(step, True) for step in steps], order.before)
    if any(step.eqn.effects and not with_guards for step, with_guards in nodes):
        return None  # what it does would be done twice
    given = [slots[v] for v in (*closed.jaxpr.constvars, *closed.jaxpr.invars)]
    order.take_values({step for step, with_guards in nodes if not with_guards})
    nodes = ordered([(step, True) for step in steps], order.before)

    told = [(step.eqn, _GUARDED) for step in guards] + [(step.eqn, _OF_SQUARE) for step in roots]

    def run(*args: Any) -> list[Any]:
        values = _Values(order, dict(zip(given, (*closed.consts, *args), strict=True)))
        for node in nodes:
            values.compute(node)
        return [values.read(slot) for slot in results]

    return Instead(jax.make_jaxpr(run)(*closed.in_avals), guarded=tuple(told))


def _is_taken_in_whole(step: Step, needs: Needs, still: Set[Slot]) -> bool:
    """Whether a step makes an array that is the same in each turn of a loop, of which a turn takes all elements or none: JAX computes its slope once,
    and with a guard in each turn anew. It is guarded by no turn then, which makes a difference only where none takes it.
    """
    if len(step.outputs) != 1 or step.outputs[0] not in still:
        return False
    says = needs.says(step.outputs[0])
    return all(prod(own.shape) == 1 for own in says) and not all(own in still for own in says)


class _Order:
    """What is computed before what.

    Attributes:
        needs: which elements are needed.
        guards: of the steps that have one.
        bounds: of the steps whose slopes are finite but in rows that are not; they change no value.
        roots: the powers of square roots, whose slopes are finite where those of the roots are not; they change no value.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        needs: Needs,
        guards: Mapping[Step, Guard],
        bounds: Mapping[Step, Bound],
        roots: Mapping[Step, Root],
    ) -> None:
        self.needs, self.guards, self.bounds, self.roots = needs, guards, bounds, roots
        self._place = {step: n for n, step in enumerate(steps)}
        self._both: set[Step] = set()
        self._behind: set[Step] = set()  # a guard
        for step in steps:
            if step in guards or any(slot.origin in self._behind for slot in step.inputs):
                self._behind.add(step)

    def take_values(self, both: Set[Step]) -> None:
        """From now on guards of ``both``, which are computed as they stand too, take their values from there, and so do exponentials and their like:
        what a choice is made of that is guarded itself would be computed twice.
        """
        self._both = {step for step in both if not self.needs.is_multiplied(step.outputs[0])}
        dear = (
            step
            for step in self._both & self._behind
            if step.name in _DEAR and self.needs.is_differentiated(step)
        )
        taken = (step for step in dear if step not in self.bounds and step not in self.roots)
        self.guards = {s: Guard(s, {}) for s in taken if self.needs.partial(s.outputs[0])} | dict(self.guards)

    def takes_value(self, step: Step) -> bool:
        """Whether a guarded step takes its value from what it is without a guard."""
        return step in self._both

    def node(self, slot: Slot, with_guards: bool) -> Node | None:
        """Where the value of ``slot`` comes from; None for what is given or known."""
        origin = slot.origin
        if origin is None or origin not in self._place or origin.is_known:
            return None
        return origin, with_guards or origin not in self._behind

    def operand(self, reader: Node, slot: Slot) -> Node | None:
        """The value that ``reader`` takes of ``slot``: what is not differentiated reads all elements as they are."""
        step, with_guards = reader
        as_guarded = self.needs.is_differentiated(step) or not self.needs.partial(slot)
        return self.node(slot, with_guards and as_guarded)

    def choice(self, guard: Step, slot: Slot) -> Node | None:
        """The value of what says which elements of ``guard`` are needed: as it is, where it may be made of ``guard``."""
        earlier = slot.origin is not None and self._place.get(slot.origin, -1) < self._place[guard]
        return self.node(slot, earlier)

    def before(self, node: Node) -> list[Node]:
        step, with_guards = node
        more = self.roots[step].reads() if step in self.roots else ()
        found = [self.operand(node, slot) for slot in (*step.inputs, *more)]
        if with_guards and step in self.guards:
            found += [self.choice(step, slot) for slot in self.needs.says(step.outputs[0])]
            found += [(step, False)] if self.takes_value(step) else []
        return [own for own in found if own is not None]


class _Values:
    """What has been computed."""

    def __init__(self, order: _Order, given: Mapping[Slot, Any]) -> None:
        self._order = order
        self._given = given
        self._made: dict[tuple[Slot, bool], Any] = {}
        self._masks: dict[Slot, Any] = {}
        self._read_masks: dict[Slot, Any] = {}
        self._arrays: dict[int, Any] = {}
        self._kinds = {step: kind_of_guard(guard) for step, guard in order.guards.items()}
        self._many = Counter(kind for kind in self._kinds.values() if kind is not None)
        self._functions: dict[Hashable, Callable[..., Any]] = {}

    def read(self, slot: Slot) -> Any:
        return self._value(slot, self._order.node(slot, True))

    def compute(self, node: Node) -> None:
        step, with_guards = node
        operands = [self._value(slot, self._order.operand(node, slot)) for slot in step.inputs]
        if step.is_known:
            return
        if with_guards and step in self._order.guards:
            made = [self._guarded(step, operands)]
        elif step in self._order.bounds:
            made = [self._order.bounds[step].compute(operands)]
        elif step in self._order.roots:
            own = self._order.roots[step]
            made = [own.compute(operands[0], lambda slot: self._value(slot, self._order.operand(node, slot)))]
        else:
            made = as_it_stands(step.eqn, operands)
        self._made |= {(slot, with_guards): value for slot, value in zip(step.outputs, made, strict=True)}

    def _value(self, slot: Slot, node: Node | None) -> Any:
        if node is None:
            return self._given.get(slot, slot.known)
        return self._made[slot, node[1]]

    def _as_array(self, slot: Slot, mask: Any) -> Any:
        """A large ``mask`` of many conditions as an array, where XLA finds it again in each loop that chooses by it, forward and backward."""
        large = all(isinstance(d, int) for d in mask.shape) and prod(mask.shape) >= MANY_ELEMENTS
        # Conditions of a mask that is not found again in each loop.
        many = large and len(self._order.needs.says(slot)) >= FEW
        if not many or not NO_OPTIONS.policy().facts.drops_barriers:
            return mask
        if id(mask) not in self._arrays:
            with set_xla_metadata(inlineable="false"):
                self._arrays[id(mask)] = _same(mask)
        return self._arrays[id(mask)]

    def _guarded(self, step: Step, operands: Sequence[Any]) -> Any:
        order, (out,) = self._order, step.outputs
        guard = order.guards[step]

        def choice(slot: Slot) -> Any:
            return self._value(slot, order.choice(step, slot))

        mask = self._as_array(out, order.needs.mask(out, choice, self._masks))
        if order.takes_value(step):
            value = jax.lax.stop_gradient(self._made[out, False])
            return self._by_slope(guard, mask, value, operands)
        if order.needs.is_multiplied(out):
            whole = order.needs.is_read_in_whole(out)
            read = None if whole else order.needs.mask(out, choice, self._read_masks, values=True)
            value = jax.lax.stop_gradient(as_it_stands(step.eqn, operands)[0])
            value = value if read is None else jnp.where(read, value, jnp.ones((), value.dtype))
            return self._by_slope(guard, mask, value, operands, in_whole=True)

        def compute(mask: Any, *operands: Any) -> Any:
            return bound(step.eqn, filled(guard, mask, operands))[0]

        return in_place_of(step.eqn, compute, mask, *operands)

    def _by_slope(
        self, guard: Guard, mask: Any, value: Any, operands: Sequence[Any], in_whole: bool = False
    ) -> Any:
        """The step with a rule for its slope: of several equal guards by calls of one function, whose rule JAX follows once."""
        eqn, kind = guard.step.eqn, self._kinds[guard.step]
        if kind is None or self._many[kind] < SEVERAL:
            return in_place_of(eqn, guarded_slope(guard, in_whole), mask, value, *operands)
        moving = [n for n, atom in enumerate(eqn.invars) if not isinstance(atom, Literal)]
        key = kind, in_whole
        if key not in self._functions:
            slope = guarded_slope(guard, in_whole)
            numbers = [None if n in moving else operand for n, operand in enumerate(operands)]

            def of_moving(mask: Any, value: Any, *given: Any) -> Any:
                return slope(mask, value, *filled_in(numbers, moving, given))

            self._functions[key] = jax.jit(of_moving)
        return in_place_of(eqn, self._functions[key], mask, value, *(operands[n] for n in moving))
