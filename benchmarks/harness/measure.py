"""One case, measured: that its sides agree, then times and counts. A side that fails says so and the others go on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np

from harness.case import BY_HAND, IDIOMATIC, INDEXED, JAXTE, TORCH, Case
from harness.clock import Budget, Taken, interleaved
from harness.inputs import draw
from harness.passes import BOTH, FORWARD, PASSES, stage
from harness.sides import HAS_TORCH, Ready, heads, prepare

Result = dict[str, Any]
# the error of each side of each pass
Lost = Mapping[str, Mapping[str, str]]
# the others are compared with the first of these that runs
REFERENCES = (IDIOMATIC, BY_HAND, INDEXED, JAXTE)


def measure(
    case: Case,
    size: str,
    budget: Budget,
    note: Callable[[Result, str], None] = lambda result, at: None,
    lost: Lost | None = None,
) -> Result:
    """All figures of ``case``; ``note`` gets what is known so far and what comes next, before each step.

    ``lost`` has the errors of the sides that ended earlier workers; they are not run again.
    """
    result: Result = {
        "name": case.name,
        "title": case.title,
        "formula": case.formula,
        "size": dict(case.sizes[size]),
        "spellings": dict(case.spellings),
        "holds_back": case.holds_back,
        "left_out": left_out(case, size),
        "passes": {},
    }
    args = draw(case.inputs_at(size))
    sides = [side for side in (*REFERENCES, TORCH) if side in case.sides and side not in result["left_out"]]
    say = partial(note, result)
    h = _heads(case, [side for side in sides if side not in _lost(lost, FORWARD)], args, say)
    for which in PASSES if h else PASSES[:1]:
        errors = _lost(lost, which)
        figures: Result = {"bytes_at_least": _bytes_at_least(case, which, args, h)}
        figures["sides"] = {side: {"error": error} for side, error in errors.items()}
        result["passes"][which] = figures
        left = [side for side in sides if side not in errors]
        ready = _prepared(case, which, left, args, h, figures["sides"], say)
        say(f"timing {which}")
        for side, taken in _times(ready, figures["sides"], budget).items():
            figures["sides"][side] |= {
                "seconds": taken.median,
                "least_seconds": taken.least,
                "rounds": taken.rounds,
            }
        figures |= least_flops({s: f for s, f in figures["sides"].items() if s not in case.works_more})
    return result


def _times(ready: Mapping[str, Ready], figures: Mapping[str, Result], budget: Budget) -> dict[str, Taken]:
    """JAX's sides in turn; then PyTorch by itself, whose threads spin for a while after each call and would slow the others."""
    calls = {side: r.call for side, r in ready.items()}
    once = {side: figures[side]["first_seconds"] for side in calls}
    apart = {side: calls.pop(side) for side in (TORCH,) if side in calls}
    return interleaved(calls, once, budget) | interleaved(apart, once, budget)


def left_out(case: Case, size: str) -> dict[str, str]:
    """The sides that do not run, with the reasons."""
    found = dict(case.left_out.get(size, {}))
    if TORCH in case.sides and not HAS_TORCH:
        found[TORCH] = "PyTorch is not installed"
    elif TORCH in case.sides and jax.default_backend() != "cpu":
        found[TORCH] = "PyTorch runs on the CPU here"
    return found


def _lost(lost: Lost | None, which: str) -> Mapping[str, str]:
    """The errors of a pass. What fails forward is not tried with its gradients either."""
    lost = lost or {}
    return dict(lost.get(FORWARD, {})) | dict(lost.get(which, {}))


def _heads(
    case: Case, sides: Sequence[str], args: Sequence[np.ndarray], say: Callable[[str], None]
) -> list[np.ndarray]:
    """Heads by the shapes of the first side that can be traced."""
    for side in sides:
        say(stage(FORWARD, side))
        # it fails again where its error is kept
        try:
            return heads(case, side, args)
        except Exception:
            continue
    return []


def _prepared(
    case: Case,
    which: str,
    sides: Sequence[str],
    args: Sequence[np.ndarray],
    h: Sequence[np.ndarray],
    figures: dict[str, Result],
    say: Callable[[str], None],
) -> dict[str, Ready]:
    """The sides that compile, run and agree with the first of them; what is known of each goes to ``figures``."""
    reference: list[np.ndarray] | None = None
    ready = {}
    for side in sides:
        say(stage(which, side))
        try:
            made = prepare(case, side, which, args, h)
            start = time.perf_counter()
            found = made.results()
            first = time.perf_counter() - start
            off = 0.0 if reference is None else difference(reference, found)
            if not off < case.tolerance:
                raise ArithmeticError(f"differs by {off:.1e} from {next(iter(ready))}")
        # the row of the table says what went wrong, whatever it was, and the other sides are measured
        except Exception as error:
            said = next(iter(str(error).splitlines()), "no message")
            figures[side] = {"error": f"{type(error).__name__}: {said[:200]}"}
            continue
        reference = found if reference is None else reference
        figures[side] = {
            "difference": off,
            "first_seconds": first,
            "compile_seconds": made.compile_seconds,
            **made.counts,
        }
        ready[side] = made
    return ready


def difference(expected: Sequence[np.ndarray], found: Sequence[np.ndarray]) -> float:
    """The largest norm of a difference over the norm of what was expected."""
    if [x.shape for x in expected] != [x.shape for x in found]:
        return float("inf")
    worst = 0.0
    for a, b in zip(expected, found, strict=True):
        a, b = a.astype("float64").ravel(), b.astype("float64").ravel()
        off, size = np.linalg.norm(a - b), np.linalg.norm(a)
        worst = max(worst, float(off / size) if size else float(off))
        if not np.isfinite(worst):
            return float("inf")
    return worst


def _bytes_at_least(case: Case, which: str, args: Sequence[np.ndarray], h: Sequence[np.ndarray]) -> int:
    """Inputs and outputs, each once: the outputs of a function are as large as its heads, gradients as their arguments."""
    outputs = sum(x.nbytes for x in h)
    total = sum(x.nbytes for x in args) + outputs
    if which == BOTH:
        total += outputs + sum(args[n].nbytes for n in case.differentiated(args))
    return total


def least_flops(sides: dict[str, Result]) -> Result:
    """The fewest flops among the sides, without those whose loops XLA counts once."""
    counted = {
        side: s["flops"] for side, s in sides.items() if s.get("flops") is not None and not s.get("looped")
    }
    if not counted:
        return {"flops_at_least": 0.0, "flops_of": None}
    side = min(counted, key=lambda s: counted[s])
    return {"flops_at_least": counted[side], "flops_of": side}
