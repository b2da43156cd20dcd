"""The memory of loops: states before segments are kept, and the steps of a segment are computed again when the reverse pass comes to it.

A step that is computed again keeps nothing but what it began with, and nothing at all where it is linear. Segments have segments where a budget
asks for it: with ``c`` states for each of ``L`` levels, ``c ** L`` steps are reached, each computed ``L`` times more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import jax
import numpy as np
from jax import lax

from jaxte.bridge.jaxprs import scan_counts
from jaxte.frontends.jaxpr.equations.known import is_symbolic
from jaxte.frontends.jaxpr.equations.stands import Instead, traced

Step = Callable[[Any, Any], tuple[Any, Any]]
_AGAIN = ("remat", "remat2", "checkpoint")


@dataclass(frozen=True)
class Schedule:
    """How the steps of a loop are kept.

    Attributes:
        steps: how many there are.
        count: segments; as many as steps where each is one step.
        inner: the schedule of one segment; None for a step.
        rest: that of the steps behind the last segment, if there are any.
    """

    steps: int
    count: int
    inner: Schedule | None = None
    rest: Schedule | None = None

    @property
    def kept(self) -> list[int]:
        """How many states are kept at once, by level."""
        return [self.count, *(self.inner.kept if self.inner else [])]

    @property
    def again(self) -> int:
        """How many steps are computed again, those included that each step's own derivative computes."""
        if self.inner is None:
            return self.steps
        rest = self.rest.steps + self.rest.again if self.rest else 0
        return self.count * (self.inner.steps + self.inner.again) + rest


def schedule(steps: int, slots: int) -> Schedule:
    """The fewest levels by which ``slots`` states are enough for so many steps."""
    slots = max(slots, 2)
    if steps <= slots:
        return Schedule(steps, steps)
    levels = next(n for n in range(2, steps + 1) if max(slots // n, 2) ** n >= steps)
    count = max(slots // levels, 2)
    length = -(-steps // count)
    count, rest = divmod(steps, length)
    inner = schedule(length, max(slots - count, 2))
    return Schedule(steps, count, inner, schedule(rest, max(slots - count, 2)) if rest else None)


def segmented(closed: Any, budget: int) -> Instead | None:
    """``closed`` with states of its loops kept in at most ``budget`` bytes each; None where nothing changes."""
    jaxpr = closed.jaxpr
    found = {id(eqn): _slots(eqn, budget) for eqn in jaxpr.eqns if _is_long(eqn)}
    found = {key: slots for key, slots in found.items() if slots is not None}
    if not found:
        return None
    told = []

    def instead(eqn: Any, operands: Sequence[Any]) -> Sequence[Any] | None:
        slots = found.get(id(eqn))
        return None if slots is None else _loop(eqn, operands, slots)

    for eqn in jaxpr.eqns:
        slots = found.get(id(eqn))
        if slots is not None:
            told.append((eqn, _said(schedule(eqn.params["length"], slots), _state(eqn))))
    return Instead(traced(closed, instead), loops=tuple(told))


def _is_long(eqn: Any) -> bool:
    if eqn.primitive.name != "scan" or eqn.effects:
        return False
    inside = eqn.params["jaxpr"].jaxpr
    symbols = any(is_symbolic(v.aval) for v in (*eqn.invars, *eqn.outvars))
    return not symbols and [e.primitive.name in _AGAIN for e in inside.eqns] != [True]


def _slots(eqn: Any, budget: int) -> int | None:
    """How many states a budget has room for; None where all that steps compute fits into it."""
    steps, state = eqn.params["length"], _state(eqn)
    made = sum(_bytes(v.aval) for e in eqn.params["jaxpr"].jaxpr.eqns for v in e.outvars)
    return None if not state or steps < 2 or steps * made <= budget else budget // state


def _state(eqn: Any) -> int:
    """Bytes of what a loop hands on and a derivative flows through."""
    p = eqn.params
    carried = eqn.outvars[: scan_counts(p)[1]]
    return sum(_bytes(v.aval) for v in carried if np.dtype(v.aval.dtype).kind not in "iub")


def _bytes(aval: Any) -> int:
    return prod(getattr(aval, "shape", ())) * getattr(getattr(aval, "dtype", None), "itemsize", 0)


def _said(own: Schedule, state: int) -> str:
    first, *more = own.kept
    inner = f", {' and '.join(map(str, more))} more at a time in the backward pass" if more else ""
    return (
        f"states before {first:,} of {own.steps:,} steps are kept{inner}, {sum(own.kept) * state:,} bytes; "
        f"{own.again:,} steps computed again"
    )


def _loop(eqn: Any, operands: Sequence[Any], slots: int) -> list[Any]:
    p = eqn.params
    consts, carried = scan_counts(p)
    fixed, first, xs = operands[:consts], operands[consts : consts + carried], operands[consts + carried :]

    def step(carry: Any, x: Any) -> tuple[Any, Any]:
        made = jax.core.eval_jaxpr(p["jaxpr"].jaxpr, p["jaxpr"].consts, *fixed, *carry, *x)
        return made[:carried], made[carried:]

    carry, ys = _run(step, list(first), list(xs), schedule(p["length"], slots), p["reverse"])
    return [*carry, *ys]


def _run(step: Step, carry: Any, xs: Any, own: Schedule, reverse: bool) -> tuple[Any, Any]:
    """All steps of a schedule; in ``reverse`` from the last of ``xs`` on."""
    if own.inner is None:
        return _scan(step, carry, xs, own.steps, reverse)
    inner, rest = own.inner, own.rest
    whole, behind = own.count * inner.steps, 0 if rest is None else rest.steps
    main = slice(behind, None) if reverse else slice(0, whole)
    left = slice(0, behind) if reverse else slice(whole, None)

    def segment(carry: Any, xs: Any) -> tuple[Any, Any]:
        return _run(step, carry, xs, inner, reverse)

    cut = [x[main].reshape(own.count, inner.steps, *x.shape[1:]) for x in xs]
    carry, ys = _scan(segment, carry, cut, own.count, reverse)
    ys = [y.reshape(whole, *y.shape[2:]) for y in ys]
    if rest is None:
        return carry, ys
    last = jax.checkpoint(lambda carry, xs: _run(step, carry, xs, rest, reverse), prevent_cse=False)
    carry, more = last(carry, [x[left] for x in xs])
    pairs = [(b, a) if reverse else (a, b) for a, b in zip(ys, more, strict=True)]
    return carry, [lax.concatenate(pair, 0) for pair in pairs]


def _scan(step: Step, carry: Any, xs: Any, steps: int, reverse: bool) -> tuple[Any, Any]:
    return lax.scan(jax.checkpoint(step, prevent_cse=False), carry, xs, steps, reverse)
