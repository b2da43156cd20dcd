"""The memory of loops: a ``scan`` of which a budget of bytes does not hold all that its steps compute keeps some states, and computes the others again.

The schedule is that of Griewank and Walther (:mod:`jaxte.lower.recurrences.replays`), as for recurrences. Where the derivative of a step reads no state, none is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, prod
from typing import Any

import numpy as np

from jaxte.bridge.jaxprs import REMATS, scan_counts
from jaxte.frontends.jaxpr.equations.known import is_symbolic
from jaxte.frontends.jaxpr.equations.stands import Instead, traced
from jaxte.frontends.jaxpr.loops.kept import Kept
from jaxte.frontends.jaxpr.loops.kept_rules import kept_scan
from jaxte.frontends.jaxpr.loops.until import Until, until
from jaxte.lang.limits import AGAIN
from jaxte.lower.recurrences.replays import computed_again


def within(closed: Any, budget: int) -> Instead | None:
    """``closed`` with states of its loops kept in at most ``budget`` bytes each; None where nothing changes."""
    every = [(eqn, _slots(eqn, budget)) for eqn in closed.jaxpr.eqns if not _is_left(eqn)]
    found = [(eqn, slots) for eqn, slots in every if slots is not None]
    if not found:
        return None
    known = {id(eqn): slots for eqn, slots in found}

    def instead(eqn: Any, operands: Sequence[Any]) -> Sequence[Any] | None:
        slots = known.get(id(eqn))
        return None if slots is None else _keeping(eqn, operands, slots)

    return Instead(traced(closed, instead), loops=tuple((eqn, _said(eqn, slots)) for eqn, slots in found))


def _keeping(eqn: Any, operands: Sequence[Any], slots: int) -> Sequence[Any]:
    p = eqn.params
    if eqn.primitive.name == "scan":
        return kept_scan(Kept.of({**p, "slots": slots}), operands)
    own = Until(p["cond_jaxpr"], p["body_jaxpr"], p["cond_nconsts"], p["body_nconsts"], slots)
    return until(own, operands)


def slots_for(steps: int, states: int) -> int:
    """How many states are kept of a loop of so many ``steps`` in a memory of ``states``, one of which is that of the step that is computed.

    >>> slots_for(1000, 30), slots_for(1000, 2), slots_for(3, 30)
    (29, 5, 2)
    """
    least = next(n for n in range(1, steps + 1) if comb(n + AGAIN, n) >= steps)
    return max(1, min(steps - 1, max(states - 1, least)))


def _is_left(eqn: Any) -> bool:
    """Whether ``eqn`` is no loop, or one that stays as it is."""
    if eqn.primitive.name not in ("scan", "while") or eqn.effects:
        return True
    symbols = any(is_symbolic(v.aval) for v in (*eqn.invars, *eqn.outvars))
    inside = eqn.params["jaxpr"].jaxpr.eqns if eqn.primitive.name == "scan" else ()
    return symbols or [e.primitive.name in REMATS for e in inside] == [True]


def _slots(eqn: Any, budget: int) -> int | None:
    """How many states a budget has room for; None where all that steps compute fits into it, or nothing flows."""
    state = _state(eqn)
    if eqn.primitive.name == "while":
        return max(2, budget // state // 6 * 2) if state else None
    steps = eqn.params["length"]
    made = sum(_bytes(v.aval) for e in eqn.params["jaxpr"].jaxpr.eqns for v in e.outvars)
    return None if not state or steps < 2 or steps * made <= budget else slots_for(steps, budget // state)


def _state(eqn: Any) -> int:
    """Bytes of what a loop hands on and a derivative flows through."""
    carried = eqn.outvars[: scan_counts(eqn.params)[1]] if eqn.primitive.name == "scan" else eqn.outvars
    return sum(_bytes(v.aval) for v in carried if np.dtype(v.aval.dtype).kind not in "iub")


def _bytes(aval: Any) -> int:
    return prod(getattr(aval, "shape", ())) * getattr(getattr(aval, "dtype", None), "itemsize", 0)


def _said(eqn: Any, slots: int) -> str:
    if eqn.primitive.name == "while":
        return (
            f"a number of steps that is data: {slots:,} states are kept at a distance that doubles when they are all there, and as many in the backward pass "
            f"between two of them, {2 * (slots + 1) * _state(eqn):,} bytes"
        )
    steps = eqn.params["length"]
    return (
        f"states before {slots:,} of {steps:,} steps are kept at a time, {(slots + 1) * _state(eqn):,} bytes; "
        f"{computed_again(steps, slots):,} steps computed again in the backward pass"
    )
