"""All that has a rule beside what gains by rules of structure: where the first is faster by the platform's estimate of both programs, it is taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import jax

from jaxte.bridge.calls.options import NO_OPTIONS
from jaxte.bridge.price.amounts import Amounts, seconds
from jaxte.bridge.price.programs import amounts_of, with_gradient
from jaxte.frontends.jaxpr.equations.steps import OWN_DERIVATIVES, Step
from jaxte.frontends.jaxpr.equations.table import RULES
from jaxte.frontends.jaxpr.gains.gains import reads_small_table
from jaxte.frontends.jaxpr.plan.items import Plan
from jaxte.frontends.jaxpr.plan.measured import Priced
from jaxte.frontends.jaxpr.plan.moving import Wanted
from jaxte.frontends.jaxpr.plan.plan import BODIES, Planner, bodies_of, steps_of
from jaxte.frontends.jaxpr.plan.regions import ASKED_FOR
from jaxte.frontends.jaxpr.run import evaluate
from jaxte.frontends.jaxpr.taken import as_it_is
from jaxte.lang.dtypes import is_float
from jaxte.lower.cost.paces import Paces

# Times by which a program has to be faster by estimate. Of 142 functions whose programs were measured, the estimate of the ratio is off by
# a factor of 1.8 in the mean; where 1.2 is asked of both prices, none of those taken is slower.
_MARGIN = 1.2
_LEAST = 5e-4  # seconds, below which what is saved of a call takes thousands of calls to make up for deriving the other program
_MOST_STEPS = 60  # whose derivatives are derived to find out
_MOST_KEPT = 0.4  # of the time in large products and convolutions, which stay what they are
_KEPT = ("product", "convolution", "fft", "sort")


def cheaper(closed: Any, wanted: Wanted, plan: Plan, everything: Callable[[], Planner]) -> Plan:
    """``plan``, or that of ``everything`` where this is faster by estimate, forward and backward."""
    policy = NO_OPTIONS.policy()
    paces = policy.facts.paces
    if paces is None or not _is_known(closed):
        return plan
    own = _amounts(closed, wanted, plan, policy.platform)
    if seconds(_at_least(own), paces) < _LEAST or _kept(own, paces) > _MOST_KEPT:
        return plan
    other = everything().plan(closed, wanted)
    if other.places == plan.places:
        return plan
    new = _amounts(closed, wanted, other, policy.platform)
    if not all(_MARGIN * seconds(f(new), paces) < seconds(f(own), paces) for f in (dict, _at_least)):
        return plan
    for entry in (e for region in other.regions for e in region.equations if e.reason == ASKED_FOR):
        entry.become(entry.fate, "raised with what is around it, which is faster by estimate")
    return replace(other, priced=Priced(seconds(own, paces), seconds(new, paces)))


def _at_least(amounts: Amounts) -> Amounts:
    """The part of ``amounts`` that is certain: what pads cost depends on how XLA splits their loops, so that single stencils, for which there
    are rules of structure, have a price that is too high; reductions take a fifth of the time where XLA has a routine for them.
    """
    own = {name: amount for name, amount in amounts.items() if name not in ("tested", "branch")}
    own |= {name: own[name] / 5 for name in ("row", "column") if name in own}
    return {**own, "cheap": amounts.get("cheap", 0.0) + amounts.get("tested", 0.0)}


def _kept(amounts: Amounts, paces: Paces) -> float:
    """The part of the time that is spent in what no program does faster."""
    own = {name: amounts[name] for name in _KEPT if name in amounts}
    return seconds(own, paces) / seconds(amounts, paces)


def _amounts(closed: Any, wanted: Wanted, plan: Plan, platform: str) -> Amounts:
    """What the value and the gradient do by ``plan``."""
    given = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in closed.jaxpr.invars]

    def run(*arrays: Any) -> Any:
        if plan.is_changed:
            return evaluate(plan, closed, arrays)
        return jax.core.eval_jaxpr(closed.jaxpr, closed.consts, *arrays)

    moving = [n for n, a in enumerate(given) if is_float(str(a.dtype)) and (wanted is None or n in wanted)]
    with as_it_is():
        return amounts_of(jax.make_jaxpr(with_gradient(run, moving))(*given), platform)


def _is_known(closed: Any) -> bool:
    """Whether all of a jaxpr has a rule, so that JAX differentiates it too, and it is short."""
    steps = list(_steps(closed))
    return len(steps) <= _MOST_STEPS and all(step is not None and _has_price(step) for step in steps)


def _has_price(step: Step) -> bool:
    """Whether JAX differentiates a step, no precision is asked for, and the estimate holds: scatters into a small table take less, as it
    stays in the cache.
    """
    if step.is_known:
        return True
    if (
        step.eqn.params.get("precision") is not None
        or len({s.dtype for s in step.inputs if is_float(s.dtype)}) > 1
    ):
        return False
    small = step.name == "gather" and reads_small_table(step)
    return not step.has_symbols and not small and (step.name in RULES or step.name in OWN_DERIVATIVES)


def _steps(closed: Any) -> Iterator[Step | None]:
    """The steps of a jaxpr and of the bodies in it; None for an equation of which there are none."""
    for eqn, steps in steps_of(closed)[1]:
        if steps:
            yield from steps
        elif eqn.primitive.name in BODIES and not eqn.effects:
            for body in bodies_of(eqn):
                yield from _steps(body)
        else:
            yield None
