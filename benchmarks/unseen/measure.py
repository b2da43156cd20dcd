"""One loss three ways, by jax.grad, te.grad and with all that has a rule raised: processor time in turn, and that of tracing."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax

import jaxte as te
from raising import error, interleaved
from unseen.registry import Loss

Figures = dict[str, Any]
PLAIN, DEFAULT, EVERYTHING = "plain", "default", "everything"
KINDS = (PLAIN, DEFAULT, EVERYTHING)
SLOWER, WORTH = (
    0.95,
    1.3,
)  # of jax.grad's speed: what no default may be below, and from where on it should not be left


def measured(own: Loss, kinds: Sequence[str] = KINDS) -> Figures:
    """The figures of one loss; programs with the same text are timed once."""
    f, args = own()
    floats = tuple(n for n, a in enumerate(args) if a.dtype.kind == "f")
    raised = {
        PLAIN: f,
        DEFAULT: te.adjoint(f),
        EVERYTHING: te.adjoint(f, everything=True),
    }
    found: Figures = {"topic": own.topic, "trace_s": {}, "temporaries": {}}
    calls: dict[str, Any] = {}
    stands_for: dict[str, str] = {}
    texts: dict[str, str] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in kinds:
            lowered, found["trace_s"][kind] = traced(jax.value_and_grad(raised[kind], floats), args)
            stands_for[kind] = texts.setdefault(lowered.as_text().partition("\n")[2], kind)
            if stands_for[kind] == kind:
                calls[kind] = lowered.compile()
                found["temporaries"][kind] = calls[kind].memory_analysis().temp_size_in_bytes
        report = te.explain(raised[DEFAULT], *args)
    found |= {
        "regions": len(report.regions),
        "loops": len(report.loops),
        "parts": len(report.parts),
        "guarded": len(report.guarded),
        "by_price": report.priced is not None,
    }
    results = {kind: jax.block_until_ready(call(*args)) for kind, call in calls.items()}
    found["error"] = max(error(own, results[PLAIN]) for own in results.values())
    taken = dict.fromkeys(kinds, 0.0)
    if len(calls) > 1:
        times, _ = interleaved([lambda c=c: jax.block_until_ready(c(*args)) for c in calls.values()])
        taken = dict(zip(calls, times, strict=True))
    found["ms"] = {kind: 1e3 * taken[stands_for[kind]] for kind in kinds}
    found["factor"] = {
        kind: taken[PLAIN] / taken[stands_for[kind]] if stands_for[kind] != PLAIN else 1.0 for kind in kinds
    }
    return found


def traced(f: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, float]:
    """The lowered program, and the processor time of tracing and lowering it, with nothing of JAX's kept from before."""
    jax.clear_caches()
    start = time.process_time()
    lowered = jax.jit(f).lower(*args)
    return lowered, time.process_time() - start


def is_raised(found: Figures) -> bool:
    return bool(found["regions"] or found["loops"] or found["parts"])


def allowed(found: Figures) -> float:
    """Seconds that tracing may take by the law: 1.3 times jax.grad's and 0.2 s where nothing is raised, 2 times and 1 s elsewhere."""
    times, more = (2.0, 1.0) if is_raised(found) else (1.3, 0.2)
    limit: float = times * found["trace_s"][PLAIN] + more
    return limit


def is_below(found: Figures) -> bool:
    """Whether te.grad is slower than jax.grad."""
    below: bool = found["factor"][DEFAULT] < SLOWER
    return below


def gains(found: Figures, kind: str) -> bool:
    wins: bool = found["factor"][kind] > WORTH
    return wins
