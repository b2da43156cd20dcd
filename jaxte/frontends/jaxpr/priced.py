"""What gains by rules of structure beside all that has a rule, and beside nothing: what is faster by the platform's estimate of the programs is taken."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import jax

from jaxte.bridge.calls.options import NO_OPTIONS
from jaxte.bridge.jaxprs import GROUPS, scan_counts
from jaxte.bridge.price.amounts import Amounts, seconds
from jaxte.bridge.price.programs import amounts_of, once, with_gradient
from jaxte.frontends.jaxpr.equations.steps import OWN_DERIVATIVES, Slot, Step, needed, slot_of
from jaxte.frontends.jaxpr.equations.table import RULES
from jaxte.frontends.jaxpr.gains.gains import MOVES, reads_small_table
from jaxte.frontends.jaxpr.gains.sums import elements
from jaxte.frontends.jaxpr.gains.worth import levels
from jaxte.frontends.jaxpr.plan.items import Plan, Priced
from jaxte.frontends.jaxpr.plan.moving import Wanted
from jaxte.frontends.jaxpr.plan.plan import Planner, Read, steps_of
from jaxte.frontends.jaxpr.plan.regions import ASKED_FOR, GAINING, Choice, Equation
from jaxte.frontends.jaxpr.run import evaluate
from jaxte.frontends.jaxpr.taken import as_it_is
from jaxte.lang.dtypes import is_float, is_inexact
from jaxte.lang.limits import MANY_ELEMENTS
from jaxte.lower.cost.paces import Paces
from jaxte.lower.cost.policy import Policy

# what no program does faster: a scatter that is left by the rules of structure has positions that are data
_KEPT = (
    "product", "product_row", "convolution", "fft", "sort", "gathered", "scattered", "scattered_row",
    "exponential", "power",
)  # fmt: skip
_ONCE = ("exponential", "power")
# which a region has no part of, and every program has
_AT_DATA = ("gathered", "scattered", "scattered_row", "sort")
# which stay in every program, and have a price
_WITHOUT_RULE = ("fft", "sort", "device_put")
_LOOP = "scan"
_PRODUCTS = ("dot_general", "conv_general_dilated")
_CERTAIN = 512  # ways along which an element is read, three stencils of eight reads: of 344 functions the price took no such chain back


def cheaper(
    closed: Any, read: Read, wanted: Wanted, plan: Plan, planner: Callable[[Choice], Planner]
) -> Plan:
    """``plan``, which is what gains by rules of structure, or one of the ``planner`` of a choice: that of all that has a rule, or of nothing, where
    this is faster by estimate, forward and backward.

    ``read`` are the arrays and equations of ``closed``. What costs least is asked first: the function as it stands, then its gradient, and last the one that has to be derived.
    """
    policy = NO_OPTIONS.policy()
    paces, asked = policy.facts.paces, policy.facts.asked
    number = _known_steps(closed, read, policy) if paces is not None else None
    if paces is None or number is None or (number > asked.most_steps and not plan.places):
        return plan
    # what is raised in loops stays, where XLA does some primitives in other ways than paces are fitted to
    loops = any(step.name == _LOOP for _, own in read[1] for step in own)
    certain = loops or _follow_shifts(plan)
    whole = number > asked.most_steps or _only_products_left(plan)
    if certain and whole:
        return plan
    alone, longer = amounts_of(closed, policy.platform), asked.of_loops if loops else 1.0
    if asked.passes * seconds(alone, paces) < longer * asked.least:
        return plan

    def candidate(own: Plan) -> _Candidate:
        program = _program(closed, wanted, own)
        return _Candidate(own, program, amounts_of(program, policy.platform), policy.platform)

    best = candidate(plan)
    if best.seconds(paces) < longer * asked.least:
        return plan
    may_be_left = plan.places and asked.taken_back * asked.both * seconds(alone, paces) < best.seconds(paces)
    if may_be_left and _part_in(_AT_DATA, best.amounts, paces) <= asked.most_kept and not certain:
        left = candidate(planner(Choice.NOTHING).plan(closed, wanted))
        best = best.or_faster(left, paces, asked.taken_back)
        _tell((e for e in left.plan.kept if e.fate in GAINING), "as it stands it is faster by estimate")
    if whole or best.is_done_well(paces, asked.most_kept, asked.each_of(number) * number):
        return best.plan
    everything = planner(Choice.EVERYTHING).plan(closed, wanted)
    if everything.places == plan.places:
        return best.plan
    raised = candidate(everything)
    if best.or_faster(raised, paces, asked.margin, longer) is best:
        return best.plan
    _tell(
        (e for region in everything.regions for e in region.equations if e.reason == ASKED_FOR),
        "raised with what is around it, which is faster by estimate",
    )
    return replace(everything, priced=Priced(best.seconds(paces), raised.seconds(paces)))


def _only_products_left(plan: Plan) -> bool:
    """Whether regions have all but products, convolutions and views, beside which everything gains nothing."""
    left = (step for entry in plan.kept for step in entry.steps if not step.is_known)
    return bool(plan.places) and all(step.name in (*MOVES, *_PRODUCTS) for step in left)


def _tell(entries: Iterable[Equation], reason: str) -> None:
    for entry in entries:
        entry.become(entry.fate, reason)


@dataclass(frozen=True)
class _Candidate:
    """A plan, the value and the gradient by it, and what these do."""

    plan: Plan
    program: Any
    amounts: Amounts
    platform: str

    def seconds(self, paces: Paces) -> float:
        return seconds(self.amounts, paces)

    def is_done_well(self, paces: Paces, most: float, least: float) -> bool:
        """Whether so little is left to be gained that no other program is derived: more than ``most`` of the time is in what no program does faster, or
        less than ``least`` seconds are above what all functions take that are computed once.

        Of exponentials and powers the former is each of them once, too, which is looked at where all are more than ``most``.
        """
        whole = self.seconds(paces)
        if whole < least:
            return True
        computed = once(self.program, self.platform)
        own = {
            name: min(self.amounts[name], computed.get(name, 0.0)) for name in _ONCE if name in self.amounts
        }
        kept = _part_in(_KEPT, self.amounts, paces)
        if kept > most:
            kept = seconds({n: a for n, a in (self.amounts | own).items() if n in _KEPT}, paces) / whole
        return kept > most or whole - seconds(computed, paces) < least

    def or_faster(self, other: _Candidate, paces: Paces, margin: float, whole: float = 1.0) -> _Candidate:
        """This one, or the other where that is faster by both prices, by the margin, and by ``whole`` by the whole price."""
        margins = (max(margin, whole), margin)
        prices = ([seconds(f(own.amounts), paces) for own in (self, other)] for f in (dict, _at_least))
        return other if all(m * new < old for m, (old, new) in zip(margins, prices, strict=True)) else self


def _at_least(amounts: Amounts) -> Amounts:
    """The part of ``amounts`` that is certain: what pads cost depends on how XLA splits their loops, so that single stencils, for which there
    are rules of structure, have a price that is too high.
    """
    own = {name: amount for name, amount in amounts.items() if name not in ("tested", "branch")}
    return {**own, "cheap": amounts.get("cheap", 0.0) + amounts.get("tested", 0.0)}


def _part_in(names: Iterable[str], amounts: Amounts, paces: Paces) -> float:
    """The part of the time that is spent in what is called ``names``."""
    own = {name: amounts[name] for name in names if name in amounts}
    return seconds(own, paces) / seconds(amounts, paces)


def _follow_shifts(plan: Plan) -> bool:
    """Whether stencils of a region follow each other so often that the estimate does not leave them to JAX, whose transposes compute an element again
    for every way along which it is read.
    """
    every = ([s for e in region.equations for s in e.steps if not s.is_known] for region in plan.regions)
    return any(prod(levels(steps)) >= _CERTAIN for steps in every)


def _program(closed: Any, wanted: Wanted, plan: Plan) -> Any:
    """The value and the gradient by ``plan``, as a jaxpr."""
    given = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in closed.jaxpr.invars]

    def run(*arrays: Any) -> Any:
        if plan.is_changed:
            return evaluate(plan, closed, arrays)
        return jax.core.eval_jaxpr(closed.jaxpr, closed.consts, *arrays)

    moving = [n for n, a in enumerate(given) if is_inexact(str(a.dtype)) and (wanted is None or n in wanted)]
    with as_it_is():
        return jax.make_jaxpr(with_gradient(run, moving))(*given)


def _known_steps(closed: Any, read: Read, policy: Policy) -> int | None:
    """How many steps of a jaxpr compute what it returns, which a derivation takes its time for: views are composed, and what is known are numbers.

    None where JAX differentiates one of its steps otherwise than by a rule, or one has no price.
    """
    slots, found = read
    steps = [step for _, own in found for step in own]
    if not all(own or eqn.primitive.name in GROUPS for eqn, own in found):
        return None
    inside = {step: _steps_within(step, policy) for step in steps if step.name == _LOOP}
    if None in inside.values() or not all(step in inside or _has_price(step) for step in steps):
        return None
    own = needed(steps, [slot_of(v, slots) for v in closed.jaxpr.outvars])
    return sum(inside.get(step) or 1 for step in own if not step.is_known and step.name not in MOVES)


def _steps_within(loop: Step, policy: Policy) -> int | None:
    """The steps of the body of a loop; None where one has no price, or XLA has better code for it than its pace says, and where a turn is too short:
    what it takes to start loops is known least.
    """
    body, paces = loop.eqn.params["jaxpr"], policy.facts.paces
    known = {n: slot.known for n, slot in enumerate(loop.inputs[: scan_counts(loop.eqn.params)[0]])}
    read = steps_of(body, {n: value for n, value in known.items() if value is not None})
    if loop.eqn.effects or paces is None or loop.has_symbols:
        return None
    if seconds(amounts_of(body, policy.platform), paces) < policy.facts.asked.each:
        return None
    return _known_steps(body, read, policy)


def _has_price(step: Step) -> bool:
    """Whether JAX differentiates a step, no precision is asked for, and the estimate holds: scatters into a small table take less, as it
    stays in the cache.
    """
    if step.is_known:
        return True
    if len({s.dtype for s in step.inputs if is_float(s.dtype)}) > 1 or not _is_at_least_as_precise(step):
        return False
    if step.has_symbols or (step.name == "gather" and reads_small_table(step)) or _begins_softmax(step):
        return False
    return step.name in RULES or step.name in OWN_DERIVATIVES or step.name in _WITHOUT_RULE


def _is_at_least_as_precise(step: Step) -> bool:
    """Whether sums and products of floats are as precise as what a step asks for: an algorithm by name is more than a precision, up to the highest of which
    platforms that have paces multiply in whole floats anyway.
    """
    asked = step.eqn.params.get("precision")
    every = asked if isinstance(asked, tuple) else (asked,)
    return all(own is None or isinstance(own, jax.lax.Precision) for own in every)


def _begins_softmax(step: Step) -> bool:
    """Whether a large extremum is of functions of what is given, or of a product: XLA computes softmaxes and their entropies of these in fewer
    passes than the estimate knows of, and JAX's derivative of them is as good as ours. Scores that are made of pairs are no such arrays.
    """
    if step.name != "reduce_max" or elements(step.inputs[0]) < MANY_ELEMENTS:
        return False
    size, stack, seen = elements(step.inputs[0]), [step.inputs[0]], set[Slot]()
    while stack:
        slot = stack.pop()
        if slot in seen or slot.known is not None or elements(slot) < size:
            continue
        seen.add(slot)
        if slot.origin is None or slot.origin.name in _PRODUCTS:
            return True
        stack += [] if slot.origin.name.startswith("reduce_") else slot.origin.inputs
    return False
