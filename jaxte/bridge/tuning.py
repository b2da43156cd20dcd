"""``autotune``: the forms of each reduction timed on the machine at hand."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxte.bridge.calls.options import measurements, remember
from jaxte.bridge.compiled.compile import Graph
from jaxte.bridge.functions.evaluate import as_function
from jaxte.bridge.primitive.module import load, with_own_externs
from jaxte.bridge.tuning_file import Tuned, kept_here, save_tuning
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.errors import LoweringError
from jaxte.lang.graphs import among
from jaxte.lower.code.vocabulary import Program
from jaxte.lower.cost.policy import Policy
from jaxte.lower.program.emit import module_text
from jaxte.lower.program.plan import lower
from jaxte.tensors.facts import companions
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor

Arrays = Mapping[Tensor, Any]
_FEWEST, _MOST = 3, 50  # timed calls of each form


@dataclass(frozen=True)
class Tuning:
    """What was measured, by the signature of each reduction; it prints as a table."""

    name: str
    reductions: Mapping[str, Tuned]

    @property
    def winners(self) -> dict[str, str]:
        """The fastest form by the name of the tensor; of one name, the last."""
        return {tuned.tensor: tuned.winner for tuned in self.reductions.values()}

    def __str__(self) -> str:
        lines = [f"{self.name}: {len(self.reductions)} reductions with more than one form"]
        for tuned in self.reductions.values():
            times = sorted(tuned.seconds.items(), key=lambda item: item[1])
            told = ", ".join(f"{form} {1e3 * seconds:.3g} ms" for form, seconds in times)
            lines.append(f"  {tuned.tensor}: {told}")
        return "\n".join(lines)

    __repr__ = __str__


def autotune(
    fn: object, *args: object, file: str | os.PathLike[str] | None = None, seconds: float = 0.3
) -> Tuning:
    """Times every form of every reduction in ``fn`` and its backward pass, and uses the fastest from now on.

    Each tensor with a choice is computed alone, from the arrays that it reads, by each of its forms in turn. The times
    guide ``fn`` and all functions that are compiled later in this process; ``te.explain`` shows them.

    Args:
        fn: a jaxte function, or a builder of Tensors.
        args: the arguments of a call; their values are used.
        file: where the times are kept as JSON, for :func:`load_tuning`; entries that it has stay.
        seconds: how long each form is timed, about.

    Returns:
        The times, as a report that prints itself.

    Raises:
        LoweringError: ``file`` exists and is no tuning file or cannot be written, or two forms disagree.

    Example:
        >>> te.autotune(net, params, x, file="tuning.json")
    """
    if file is not None:
        kept_here(file)  # a file that cannot be added to is an error before anything is timed
    _check_seconds(seconds)
    function = as_function(fn)
    compiled, arrays = function._compiled(args, {})
    _check_values(function.__name__, compiled.graph.inputs, arrays)
    found: dict[str, Tuned] = {}
    for program, values in _passes(compiled.graph, arrays):
        found |= _program(program, values, compiled.graph.policy, seconds, found)
    remember({key: tuned.seconds for key, tuned in found.items()})
    if file is not None:
        save_tuning(file, found)
    function.recompile()
    return Tuning(function.__name__, found)


def _check_seconds(seconds: Any) -> None:
    if not isinstance(seconds, (int, float, np.number)) or not 0 <= seconds < math.inf:
        raise LoweringError(
            f"te.autotune: seconds is {seconds!r}; give the seconds to time each form, as 0.3"
        )


def _check_values(name: str, inputs: Sequence[Tensor], arrays: Sequence[Any]) -> None:
    for tensor, array in zip(inputs, arrays, strict=True):
        if isinstance(array, (jax.ShapeDtypeStruct, jax.core.Tracer)):
            raise LoweringError(
                f"te.autotune: the argument {tensor.name} of {name} has no values, which forms are timed with; give an "
                "array, outside of jax.jit"
            )


def _passes(graph: Graph, arrays: Sequence[Any]) -> Iterator[tuple[Program, Arrays]]:
    """The forward and the backward program with the arrays of their parameters."""
    values: dict[Tensor, Any] = {
        t: jnp.asarray(a, t.dtype) for t, a in zip(graph.inputs, arrays, strict=True)
    }
    yield graph.forward_program, values
    if not graph.differentiable or not graph.backward.adjoints:
        return
    saved = _values(graph.backward.saved, values, graph.policy)
    rng = np.random.default_rng(0)
    heads: dict[Tensor, Any] = {}
    for head, output in zip(graph.backward.heads, (graph.outputs[n] for n in graph.with_head), strict=True):
        shape = _values([output], values, graph.policy)[output].shape
        heads[head] = jnp.asarray(rng.standard_normal(shape), head.dtype)
    yield graph.programs[-1], {**saved, **heads}


def _values(tensors: Sequence[Tensor], given: Arrays, policy: Policy) -> dict[Tensor, Any]:
    """The arrays of ``tensors``, computed from those that are given."""
    missing = [t for t in dict.fromkeys(tensors) if t not in given]
    found = {t: given[t] for t in tensors if t in given}
    if missing:
        params = _parameters(missing, given)
        results = _runner(lower("values", params, missing, policy))(*(given[p] for p in params))
        found |= dict(zip(missing, results if len(missing) > 1 else [results], strict=True))
    return found


def _parameters(tensors: Sequence[Tensor], given: Arrays) -> list[Tensor]:
    return [t for t in given if t in set(topological_order(tensors))]


def _runner(program: Program) -> Callable[..., Any]:
    own, externs = with_own_externs([program])
    module = load(module_text(own, "", "one tensor, to be timed"), "tuning", externs)
    return jax.jit(module[program.name])


# --- one tensor


def _program(
    program: Program, values: Arrays, policy: Policy, seconds: float, known: Mapping[str, Tuned]
) -> dict[str, Tuned]:
    """The times of what ``program`` chooses among, without that of ``known``."""
    found: dict[str, Tuned] = {}
    given = [tensor for _, tensor in program.params]
    tensors = _computed(program, given)
    for choice in program.choices:
        for key in dict.fromkeys(e.key for e in choice.estimates):
            forms = [e.form for e in choice.estimates if e.key == key]
            if len(forms) < 2 or key in found or key in known:
                continue
            tensor = next((t for t in tensors.get(choice.tensor, ()) if _has(t, key, policy)), None)
            if tensor is not None:
                timed = _timed(tensor, key, forms, values, policy, seconds)
                found[key] = Tuned(choice.tensor, _shortened(repr(tensor)), timed)
    return found


def _computed(program: Program, given: Sequence[Tensor]) -> dict[str, list[Compute]]:
    """The tensors that a program computes, by name; several may have the same."""
    found: dict[str, list[Compute]] = {}
    for tensor in topological_order(list(program.tensors)):
        if isinstance(tensor, Compute) and not among(tensor, given):
            found.setdefault(tensor.name, []).append(tensor)
    return found


def _has(tensor: Compute, key: str, policy: Policy) -> bool:
    """Whether the reduction ``key`` is one of ``tensor``, computed alone."""
    program = lower("one", _parameters_of(tensor), [tensor], policy)
    return any(estimate.key == key for choice in program.choices for estimate in choice.estimates)


def _shortened(text: str) -> str:
    return text if len(text) <= 200 else text[:199] + "…"


def _timed(
    tensor: Compute, key: str, forms: Sequence[str], values: Arrays, policy: Policy, seconds: float
) -> dict[str, float]:
    """The seconds of each form of the reduction ``key`` in ``tensor``."""
    calls: dict[str, Callable[[], Any]] = {}
    inputs = _values([*tensor.inputs, *(t for t in _parameters_of(tensor) if t in values)], values, policy)
    for form in forms:
        # A form is forced by being the only one that was measured.
        forced = replace(policy, forms={}, without=frozenset(), measured={**measurements(), key: {form: 1.0}})
        run = _runner(lower("one", list(inputs), [tensor], forced))
        calls[form] = partial(run, *inputs.values())
    _check_agreement(tensor, calls)
    return _interleaved(calls, seconds)


def _parameters_of(tensor: Compute) -> list[Tensor]:
    """What some form of ``tensor`` reads: its inputs, and the tensors that facts about them refer to."""
    return list(dict.fromkeys([*tensor.inputs, *(c for t in tensor.inputs for c in companions(t))]))


def _check_agreement(tensor: Compute, calls: Mapping[str, Callable[[], Any]]) -> None:
    if not is_inexact(tensor.dtype):
        return
    results = {form: np.asarray(call(), np.complex128) for form, call in calls.items()}
    (first, expected), *others = results.items()
    scale = float(np.nanmax(np.abs(expected), initial=0.0))
    for form, found in others:
        with np.errstate(invalid="ignore"):  # infinities of both
            difference = float(np.nanmax(np.abs(found - expected), initial=0.0))
        if difference > 0.05 * scale:
            raise LoweringError(
                f"{tensor.name}: the forms {first} and {form} differ by {difference:.3g} where values are up to "
                f"{scale:.3g}; please report this, and force one with te.function(..., forms={{{tensor.name!r}: ...}})"
            )


def _interleaved(calls: Mapping[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """The median seconds of each call, made in turn, so that a change of the machine's pace meets all of them."""
    taken: dict[str, list[float]] = {form: [] for form in calls}
    for call in calls.values():
        jax.block_until_ready(call())
    stop = time.perf_counter() + seconds * len(calls)
    for number in range(_MOST):
        if number >= _FEWEST and time.perf_counter() > stop:
            break
        for form, call in calls.items():
            start = time.perf_counter()
            jax.block_until_ready(call())
            taken[form].append(time.perf_counter() - start)
    return {form: float(np.median(times)) for form, times in taken.items()}
