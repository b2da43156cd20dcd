"""One loss by te.grad beside jax.grad: values, processor time in turn, temporaries, trace and compile time, what is raised."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import jaxte as te
from raising import error, interleaved
from wild.registry import Loss

Figures = dict[str, Any]
SAME_PROGRAM = 1.0  # of a loss of which nothing is raised
LAW = {
    False: (1.3, 0.2),
    True: (2.0, 1.0),
}  # of tracing: times jax.grad's, and seconds more, by whether anything is raised


def measured(own: Loss, everything: bool = False) -> Figures:
    """The figures of one loss. With ``everything``, those of te.adjoint(everything=True) in place of the default."""
    f, args = own.make()
    floats = tuple(n for n, a in enumerate(args) if _is_float(a))
    raised = te.adjoint(f, everything=everything)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = _program(jax.value_and_grad(f, floats), args)
        ours = _program(jax.value_and_grad(raised, floats), args)
        report = te.explain(te.adjoint(f, everything=everything), *args)
        results = [jax.block_until_ready(p["call"](*args)) for p in (ours, theirs)]
    found: Figures = {
        "source": own.source,
        "what": own.what,
        "regions": len(report.regions),
        "loops": len(report.loops),
        "parts": len(report.parts),
        "guarded": len(report.guarded),
        "raised": report.raised_equations,
        "kept": report.kept_equations,
        "reasons": sorted({line.reason for region in report.regions for line in region.lines if line.reason}),
        "error": error(*_finite(*results)),
        "finite": [all(bool(np.isfinite(leaf).all()) for leaf in jax.tree.leaves(r[1])) for r in results],
        "same": ours["text"] == theirs["text"],
    }
    for name in ("trace_s", "compile_s", "temporaries"):
        found[name], found[f"jax_{name}"] = ours[name], theirs[name]
    found["factor"], found["clock_factor"] = SAME_PROGRAM, SAME_PROGRAM
    if not found["same"]:
        calls = [lambda p=p: jax.block_until_ready(p["call"](*args)) for p in (ours, theirs)]
        (mine, other), clock = interleaved(calls)
        found |= {"ms": 1e3 * mine, "jax_ms": 1e3 * other, "factor": other / mine}
        found["clock_factor"] = clock[1] / clock[0]
    return found


def breaks_law(found: Figures) -> bool:
    """Whether tracing and lowering took longer than the law of tracing allows."""
    listed = found["regions"] or found["loops"] or found["parts"]
    in_rules = (
        not found["same"] and not found["guarded"]
    )  # what a rule of jax.custom_vjp differentiates is raised within it
    times, more = LAW[bool(listed or in_rules)]
    limit: float = times * found["jax_trace_s"] + more
    return found["trace_s"] > limit


def is_solved(found: Figures) -> bool:
    """Whether what a thread complains of is gone: NaN, or half of the time."""
    ours, theirs = found["finite"]
    return (ours and not theirs) or found["factor"] >= 2


def _program(f: Callable[..., Any], args: Any) -> Figures:
    """The compiled function, with the processor time that tracing and compiling it took."""
    start = time.process_time()
    lowered = jax.jit(f).lower(*args)
    traced = time.process_time()
    text = lowered.as_text()
    begin = time.process_time()
    call = lowered.compile()
    return {
        "call": call,
        "text": text.partition("\n")[2],
        "trace_s": traced - start,
        "compile_s": time.process_time() - begin,
        "temporaries": call.memory_analysis().temp_size_in_bytes,
    }


def _is_float(tree: Any) -> bool:
    leaves = jax.tree.leaves(tree)
    return bool(leaves) and all(jax.numpy.issubdtype(x.dtype, jax.numpy.floating) for x in leaves)


def _finite(ours: Any, theirs: Any) -> tuple[Any, Any]:
    """Both results with 0 where one of them is not finite."""
    both = jax.tree.map(lambda a, b: np.isfinite(a) & np.isfinite(b), ours, theirs)
    own, other = (jax.tree.map(lambda ok, a: np.where(ok, a, 0), both, r) for r in (ours, theirs))
    return own, other
