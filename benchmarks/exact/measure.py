"""The errors of one function in one dtype: both forms beside plain JAX in float64, of the same arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from exact.subjects import Subject

# the law: at most so many times as far off as plain JAX, or so many units in the last place of the largest element
TIMES, UNITS = 2.0, 4.0
DTYPES = ("float32", "bfloat16")
SEEDS = range(4)  # one draw alone may fall well for one of both
MORE_SEEDS = range(16)  # and so may four
Figures = dict[str, Any]
Overall = Callable[[Sequence[float]], float]


def measured(subject: Subject, dtype: str) -> Figures:
    """The errors in units in the last place: of the values, ``[ours, theirs]``, and of the gradients.

    They are the worst of four draws; where these break the law, the root mean square of sixteen, and ``draws`` says so. ``worst`` is the
    largest share of what the law allows. Where plain JAX does not run in ``dtype``, or its results in float64 are of other dtypes, the figures
    are a ``reason`` alone.
    """
    found = _measured(subject, dtype, SEEDS, max)
    if 1 < found.get("worst", 0) < math.inf:
        found = {**_measured(subject, dtype, MORE_SEEDS, _root_mean_square), "draws": len(MORE_SEEDS)}
    return found


def _root_mean_square(errors: Sequence[float]) -> float:
    return math.sqrt(sum(e * e for e in errors) / len(errors))


def _measured(subject: Subject, dtype: str, seeds: Sequence[int], overall: Overall) -> Figures:
    draws = [_rounded(subject.arguments(seed), dtype) for seed in seeds]
    try:
        theirs = _results(subject.theirs, draws)
    except Exception as error:
        return {"reason": f"plain JAX: {_first_line(error)}"}
    exact = _exact(subject, draws)
    if any(e.dtype != np.float64 for e in exact[0] if e.dtype.kind == "f"):
        return {"reason": "plain JAX computes part of it in float32 whatever it is given"}
    try:
        ours = _results(subject.ours, draws)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {_first_line(error)}", "worst": math.inf}
    wider = {
        t.dtype.name
        for o, t in zip(ours[0], theirs[0], strict=True)
        if _is_floating(t) and t.dtype != o.dtype
    }
    if wider:
        return {"reason": f"plain JAX computes in {wider.pop()}, since its constants are"}
    values = _number_of_values(subject, draws[0])
    pairs = _pairs(ours, theirs, exact, dtype, overall)
    found: Figures = {"worst": max((_share(*pair) for pair in pairs), default=0.0)}
    for what, own in (("values", pairs[:values]), ("gradients", pairs[values:])):
        if own:
            found[what] = max(own, key=lambda pair: _share(*pair))
    return found


def _pairs(ours: Any, theirs: Any, exact: Any, dtype: str, overall: Overall) -> list[list[float]]:
    """The errors of both in units, for each result."""
    pairs = []
    for n in range(len(exact[0])):
        unit = (
            float(jnp.finfo(dtype).eps) if _is_floating(theirs[0][n]) else 1.0
        )  # integers are right or wrong
        both = [
            overall([_error(run[n], e[n]) for run, e in zip(side, exact, strict=True)])
            for side in (ours, theirs)
        ]
        pairs.append([b / unit for b in both])
    return pairs


def _share(ours: float, theirs: float) -> float:
    """How much of what is allowed is taken; above 1 the law is broken."""
    return ours / max(TIMES * theirs, UNITS)


def _results(run: Any, draws: Sequence[Any]) -> list[list[np.ndarray]]:
    """Values and gradients in one list, for each draw."""
    compiled = jax.jit(lambda *args: jax.tree.leaves(run(*args)))
    return [[np.asarray(x) for x in compiled(*args)] for args in draws]


def _number_of_values(subject: Subject, args: Any) -> int:
    return len(jax.eval_shape(subject.theirs, *args)[0])


def _exact(subject: Subject, draws: Sequence[Any]) -> list[list[np.ndarray]]:
    with jax.enable_x64(True):
        wide = [jax.tree.map(lambda x: x.astype("float64") if _is_floating(x) else x, args) for args in draws]
        return _results(subject.theirs, wide)


def _rounded(args: Any, dtype: str) -> Any:
    return jax.tree.map(lambda x: np.asarray(x).astype(jnp.dtype(dtype)) if _is_floating(x) else x, args)


def _is_floating(x: Any) -> bool:
    return bool(jnp.issubdtype(x.dtype, jnp.floating))


def _error(found: np.ndarray, exact: np.ndarray) -> float:
    """The largest difference over the largest element; elements that are no numbers in both are right."""
    if found.shape != exact.shape:
        return math.inf
    f, e = found.astype("float64"), exact.astype("float64")
    equal = (f == e) | (np.isnan(f) & np.isnan(e))
    off = np.where(equal, 0.0, np.abs(np.where(equal, 0.0, f) - np.where(equal, 0.0, e)))
    largest = np.max(np.abs(e), initial=0.0, where=np.isfinite(e))
    worst = float(np.max(off, initial=0.0))
    return 0.0 if worst == 0 else math.inf if math.isnan(worst) or largest == 0 else worst / float(largest)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
