"""Which regions are raised, measured: the whole function with regions taken and left, in place of estimates.

``tune="first call"`` measures what is raised by itself, once for arguments of each shape, and keeps it in a file where one is named.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from jaxte.bridge.price.programs import with_gradient
from jaxte.bridge.tuning_file import Choices, kept_choices, save_choices
from jaxte.frontends.jaxpr.plan.items import Measured, Place, Plan
from jaxte.frontends.jaxpr.plan.plan import Planner
from jaxte.frontends.jaxpr.plan.regions import Choice
from jaxte.frontends.jaxpr.run import evaluate
from jaxte.frontends.jaxpr.traced import Fingerprint
from jaxte.lang.dtypes import is_float

_MOST_TOGGLED = 16  # regions that are left one by one; what is alike is left together
_MARGIN = 1.03  # by which a program has to be faster than what it replaces
_ROUNDS = 5  # of measurements, interleaved, whose median counts
_SECONDS = 0.05  # that a round takes, of which the least time is kept


def tuned(closed: Any, arrays: Sequence[Any], safe: bool = True) -> tuple[Plan, Planner | None]:
    """The fastest plan of ``closed`` on ``arrays`` with what was measured, and its planner; None where the function stays as it is.

    First nothing, what gains by estimate, all that may gain, and all that has a rule are raised; then, of the fastest of these, the
    regions are left one after the other, those of the same primitives together, as long as that is faster. With ``safe``, what is not
    chosen is not differentiated in any of them.
    """
    if not any(is_float(str(a.dtype)) for a in arrays):
        return Plan(), None
    race = _Race(closed, arrays, safe)
    best = race.best(
        [None, *(Planner(choice, safe=safe) for choice in Choice if choice is not Choice.NOTHING)]
    )
    without: dict[frozenset[Place], float] = {}
    if best.planner is not None:
        for places in _kinds(best.plan):
            other = race.entry(Planner(best.planner.choice, best.planner.left | places, safe))
            own, left = race.against(best, other)
            if left * _MARGIN < own:
                best = other
            else:
                without[places] = left / own
    original, taken = race.against(race.original, best)
    found = Measured(original, taken, {k: taken * ratio for k, ratio in without.items()}, race.programs)
    return replace(best.plan, measured=found), best.planner


def choices_of(planner: Planner | None, measured: Measured) -> Choices:
    """What a file keeps of what was measured."""
    choice = Choice.NOTHING if planner is None else planner.choice
    left = frozenset() if planner is None else planner.left
    return Choices(choice.value, tuple(sorted(left)), measured.original, measured.raised, measured.programs)


def chosen_again(closed: Any, kept: Choices, safe: bool = True) -> Plan:
    """The plan that was measured before, with its times."""
    planner = Planner(Choice(kept.choice), frozenset(kept.left), safe)
    return replace(planner.plan(closed), measured=Measured(kept.original, kept.raised, {}, kept.programs))


def _kinds(plan: Plan) -> list[frozenset[Place]]:
    """The places of the regions, those of the same primitives together, the largest first; then those of the loops."""
    found: dict[tuple[str, ...], set[Place]] = {}
    for region in plan.regions:
        kind = tuple(e.eqn.primitive.name for e in region.equations)
        found.setdefault(kind, set()).update(region.places)
    largest = sorted(found.values(), key=len, reverse=True)
    loops = [{(inner.number, inner.index)} for inner in plan.loops]
    return [frozenset(places) for places in [*largest, *loops][:_MOST_TOGGLED]]


@dataclass(frozen=True, eq=False)
class _Entry:
    planner: Planner | None
    plan: Plan
    call: Callable[[], Any]


class _Race:
    """Programs of one function: each compiled once, timed in turn with another one."""

    def __init__(self, closed: Any, arrays: Sequence[Any], safe: bool) -> None:
        self._closed, self._arrays, self._safe = closed, list(arrays), safe
        self._made: dict[frozenset[Place] | None, _Entry] = {}
        self.original = self.entry(None)

    @property
    def programs(self) -> int:
        return len(self._made)

    def entry(self, planner: Planner | None) -> _Entry:
        """The program of a planner, or of the function as it is; the same one where the same is raised."""
        plan = (planner or Planner(Choice.NOTHING, safe=self._safe)).plan(self._closed)
        key = plan.places or None
        if key not in self._made:
            self._made[key] = _Entry(planner, plan, self._compiled(plan))
        return self._made[key]

    def best(self, planners: Sequence[Planner | None]) -> _Entry:
        """The fastest of several, each beside the fastest one before it."""
        best = self.original
        for planner in planners:
            other = self.entry(planner)
            if other is not best:
                own, new = self.against(best, other)
                best = other if new * _MARGIN < own else best
        return best

    def against(self, a: _Entry, b: _Entry) -> tuple[float, float]:
        """The least times of both, called in turn."""
        if a is b:
            return (own := _seconds(a.call, 1), own)
        once = max(_seconds(e.call, 1) for e in (a, b))
        times = max(1, int(_SECONDS / max(once, 1e-6)))
        rounds = [[_seconds(e.call, times) for e in (a, b)] for _ in range(_ROUNDS)]
        own, other = map(min, zip(*rounds, strict=True))
        return own, other

    def _compiled(self, plan: Plan) -> Callable[[], Any]:
        def run(*arrays: Any) -> Any:
            if not plan.is_changed:
                return jax.core.eval_jaxpr(self._closed.jaxpr, self._closed.consts, *arrays)
            return evaluate(plan, self._closed, arrays)

        floats = [n for n, a in enumerate(self._arrays) if is_float(str(a.dtype))]
        made = jax.jit(with_gradient(run, floats)).lower(*self._arrays).compile()
        return lambda: jax.block_until_ready(made(*self._arrays))


def _seconds(call: Callable[[], Any], times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - start) / times


FIRST_CALL = "first call"


def measured_or_kept(
    closed: Any, arrays: Sequence[Any], own: Fingerprint, safe: bool, file: Any = None
) -> Plan:
    """The plan that ``file`` has for this program on this machine; else the fastest one, which is added to the file."""
    key = _key(own, safe)
    kept: Choices | None = None if file is None else kept_choices(file).get(key)
    if kept is not None:
        return chosen_again(closed, kept, safe)
    with jax.ensure_compile_time_eval():
        plan, planner = tuned(closed, [_stand_in(a) for a in arrays], safe)
    if file is not None and plan.measured is not None:
        save_choices(file, {key: choices_of(planner, plan.measured)})
    return plan


def _key(own: Fingerprint, safe: bool) -> str:
    """Equal for equal programs in all processes: without the addresses of functions that a jaxpr prints."""
    text = re.sub(r"0x[0-9a-f]+", "", f"{own.text} {own.rest} {own.x64} {safe}")
    return hashlib.sha256(text.encode() + own.constants).hexdigest()


def _stand_in(array: Any) -> Any:
    """The array itself; for one that is being traced, numbers of its shape that logarithms, roots and quotients can take."""
    if not isinstance(array, jax.core.Tracer):
        return array
    dtype = np.dtype(array.dtype)
    if not jax.numpy.issubdtype(dtype, np.inexact):
        return np.zeros(array.shape, dtype)
    return np.random.default_rng(0).uniform(0.5, 1.5, array.shape).astype(dtype)
