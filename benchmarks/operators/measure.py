"""One row, measured: errors of value and gradient, the form of the adjoint, times and memory beside plain JAX."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxte as te
from harness.case import IDIOMATIC, JAXTE
from harness.clock import Budget, interleaved, seconds
from harness.inputs import draw
from harness.passes import BOTH, FORWARD
from harness.sides import function, heads, outputs, with_gradients
from operators.programs import same_program
from operators.row import Row

# the largest difference over the largest element of the reference that counts as working
TOLERANCE = 1e-4
# beside constants, whose programs are empty, no time is a ratio of anything
TINY = 3e-6

Result = dict[str, Any]


def measured(row: Row, budget: Budget | None) -> Result:
    """The figures of a row; without a budget no times."""
    case, args = row.case, draw(row.inputs)
    h = heads(case, IDIOMATIC, args)
    argnums = case.differentiated(args)
    found: Result = {"level": row.level, "target": row.target, "note": row.note, "passes": {}}
    found["forms"], found["scatters"] = forms(row, args)
    for which in (FORWARD, BOTH) if h and argnums else (FORWARD,):
        sides = {side: _compiled(row, side, which, args, h, argnums) for side in (JAXTE, IDIOMATIC)}
        figures = {"error": _error(sides, len(h) if which == BOTH else 0)}
        figures["same"] = same_program(*(compiled.as_text() for compiled, _ in sides.values()))
        figures["temporaries"] = {side: _temporaries(compiled) for side, (compiled, _) in sides.items()}
        if budget is not None:
            calls = {side: _call(compiled, arrays) for side, (compiled, arrays) in sides.items()}
            once = {side: seconds(call) for side, call in calls.items()}
            taken = interleaved(calls, once, budget)
            figures["seconds"] = {side: t.least for side, t in taken.items()}
        found["passes"][which] = figures
    found["works"] = all(p["error"] <= TOLERANCE for p in found["passes"].values())
    return found


def with_least(new: Result, old: Result | None) -> Result:
    """``new`` with the least times of both, if they are of the same programs: other work on the machine only adds to a time."""
    if old is None or any(new[key] != old[key] for key in ("forms", "scatters")):
        return new
    for which, figures in new["passes"].items():
        before = old["passes"].get(which, {})
        if "seconds" in before and before["temporaries"] == figures["temporaries"]:
            figures["seconds"] = {s: min(t, before["seconds"][s]) for s, t in figures["seconds"].items()}
    return new


def forms(row: Row, args: Sequence[np.ndarray]) -> tuple[list[str], list[str]]:
    """What the adjoints were lowered to, and why scatters are left."""
    report = te.explain(te.function(row.run), *args)
    choices = report.choices.get("backward", ())
    found = dict.fromkeys(re.sub(r" over .*", "", c.form) for c in choices)
    return list(found), list(dict.fromkeys(c.reason for c in choices if "scatter" in c.form))


def _compiled(
    row: Row,
    side: str,
    which: str,
    args: Sequence[np.ndarray],
    h: Sequence[np.ndarray],
    argnums: tuple[int, ...],
) -> tuple[Any, list[Any]]:
    fn = function(row.case, side)
    arrays: list[Any] = [jnp.asarray(x) for x in args]
    if which == BOTH:
        fn, arrays = with_gradients(fn, argnums), [[jnp.asarray(x) for x in h], *arrays]
    return jax.jit(fn).lower(*arrays).compile(), arrays


def _call(compiled: Any, arrays: list[Any]) -> Any:
    return lambda: jax.block_until_ready(compiled(*arrays))


def _error(sides: dict[str, tuple[Any, list[Any]]], skipped: int) -> float:
    """The largest difference over the largest element of the reference; of the gradients alone, behind ``skipped`` values."""
    found, expected = (
        [np.asarray(x) for x in outputs(run(*arrays))[skipped:]] for run, arrays in sides.values()
    )
    worst = 0.0
    for f, e in zip(found, expected, strict=True):
        if f.shape != e.shape or f.dtype != e.dtype:
            return float("inf")
        f, e = f.astype("float64"), e.astype("float64")
        equal = (f == e) | (np.isnan(f) & np.isnan(e))
        off = np.max(np.abs(np.where(equal, 0, f - e)), initial=0.0)
        worst = max(worst, float(off / max(np.max(np.abs(e), initial=0.0), 1.0)))
    return worst if np.isfinite(worst) else float("inf")


def _temporaries(compiled: Any) -> int:
    return int(compiled.memory_analysis().temp_size_in_bytes)
