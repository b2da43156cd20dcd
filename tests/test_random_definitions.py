"""Random definitions: the interpreter, the emitted code, derived adjoints, ``jax.vjp`` and differences agree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, note, settings
from hypothesis import strategies as st

import jaxte as te
from jaxte.tensor import Compute, Placeholder, Tensor, topological_order
from tests.random_definitions import Definition, definitions, draw_numbers

pytestmark = pytest.mark.usefixtures("x64")

Arrays = Mapping[Tensor, np.ndarray]
QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


def compiled_run(fn: Callable[..., Any], arrays: Sequence[np.ndarray], optimised: bool) -> Any:
    """One compilation, outside of JAX's caches; without optimisation it takes half of the time."""
    code = jax.jit(fn).lower(*arrays).compile(compiler_options=None if optimised else QUICK)
    return jax.tree.map(np.asarray, code(*arrays))


def emitted(tensors: Any, name: str = "forward") -> Callable[..., Any]:
    """The function in the text that ``te.source`` prints, apart from every custom derivative."""
    namespace: dict[str, Any] = {}
    text = te.source(tensors)
    note(text)
    exec(compile(text, "<emitted>", "exec"), namespace)
    return namespace[name]


def inputs_of(tensors: Sequence[Tensor]) -> list[Placeholder]:
    return [t for t in topological_order(tensors) if isinstance(t, Placeholder)]


def interpreted(tensor: Tensor, feeds: Arrays) -> np.ndarray:
    return np.asarray(te.interpret(tensor, {t: feeds[t] for t in inputs_of([tensor])}))


def assert_close(found: np.ndarray, expected: np.ndarray, what: str, tolerance: float = 1e-9) -> None:
    """Equal up to rounding of numbers as large as the largest one."""
    assert found.shape == expected.shape, f"{what}: {found.shape} instead of {expected.shape}"
    assert found.dtype == expected.dtype, f"{what}: {found.dtype} instead of {expected.dtype}"
    finite = np.abs(expected[np.isfinite(expected)])
    scale = max(1.0, float(finite.max(initial=0.0)))
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * scale, err_msg=what)


@dataclass(frozen=True)
class Pullback:
    """A graph with its adjoints, and numbers for it."""

    output: Tensor
    variables: Sequence[Placeholder]
    head: Placeholder
    feeds: Arrays

    @property
    def inputs(self) -> list[Placeholder]:
        return inputs_of([self.output])

    @property
    def adjoints(self) -> list[Tensor]:
        return list(te.differentiate(self.output, list(self.variables), self.head))


def pullback_of(output: Tensor, feeds: Arrays, variables: Sequence[Placeholder], seed: int) -> Pullback:
    head = te.placeholder(output.shape, output.dtype, "H")
    rng = np.random.default_rng(seed + 1)
    return Pullback(output, variables, head, {**feeds, head: draw_numbers(rng, head)})


def check(p: Pullback, residuals: bool, optimised: bool, tolerance: float = 1e-9) -> None:
    """Values and adjoints of all kinds."""
    inputs, feeds = p.inputs, p.feeds
    expected = interpreted(p.output, feeds)
    adjoints = p.adjoints
    derived = [interpreted(a, feeds) for a in adjoints]
    forward = emitted(p.output)
    arrays = [feeds[t] for t in inputs]
    order = [inputs.index(v) for v in p.variables]
    backward = te.function(inputs, p.output).custom_vjp if residuals else emitted(adjoints)
    needed = inputs_of(adjoints)

    def run(head: Any, *arrays: Any) -> Any:
        def of_variables(*values: Any) -> Any:
            filled = list(arrays)
            for place, value in zip(order, values, strict=True):
                filled[place] = value
            return filled

        values = [arrays[n] for n in order]
        value, pull = jax.vjp(lambda *v: forward(*of_variables(*v)), *values)
        if residuals:
            own = jax.vjp(lambda *v: backward(*of_variables(*v)), *values)[1](head)
        else:
            at = {**dict(zip(inputs, arrays, strict=True)), p.head: head}
            own = backward(*(at[t] for t in needed))
        return value, pull(head), own if isinstance(own, tuple) else (own,)

    value, by_jax, by_code = compiled_run(run, [feeds[p.head], *arrays], optimised)
    assert_close(value, expected, "emitted forward", tolerance)
    for variable, reference, code, meaning in zip(p.variables, by_jax, by_code, derived, strict=True):
        assert_close(code, meaning, f"emitted adjoint of {variable.name} beside the interpreter", tolerance)
        # jax.vjp has NaN where a guarded part has, which the adjoint of the guard leaves out
        known = np.isfinite(reference)
        assert_close(meaning[known], reference[known], f"adjoint of {variable.name} beside jax.vjp", tolerance)
    if np.isfinite(expected).all():
        check_differences(p, derived)


def check_differences(p: Pullback, derived: Sequence[np.ndarray], step: float = 1e-6) -> None:
    """The adjoints along one random direction by differences of the interpreter, unless there is a kink."""
    rng = np.random.default_rng(7)
    directions = [rng.standard_normal(v.shape) for v in p.variables]
    own = float(sum(np.sum(g * d) for g, d in zip(derived, directions, strict=True)))
    size = float(sum(np.sum(np.abs(g * d)) for g, d in zip(derived, directions, strict=True)))

    def moved(by: float) -> np.ndarray:
        shifted = {v: p.feeds[v] + by * d for v, d in zip(p.variables, directions, strict=True)}
        return interpreted(p.output, {**p.feeds, **shifted})

    ends = {by: moved(by) for by in (-step, step)}
    head = p.feeds[p.head]
    slope = float(np.sum(head * (ends[step] - ends[-step]))) / (2 * step)
    allowed = 2e-5 * (1 + size)
    if not abs(slope - own) <= allowed:
        middle = moved(0.0)
        before, after = (float(np.sum(head * (ends[by] - middle))) / by for by in (-step, step))
        kink = abs(after - before) > 100 * step * (1 + size)
        assert kink, f"differences give {slope:.10g}, the adjoints {own:.10g}"
        event("kink")


STRATEGIES = {'test_values_and_adjoints': dict(definition=definitions(), residuals=st.booleans(), optimised=st.integers(0, 3).map(lambda n: n == 3))}
slow_to_draw = settings(
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
        HealthCheck.filter_too_much,
    ],
)


@slow_to_draw
@given(**STRATEGIES["test_values_and_adjoints"])
def test_values_and_adjoints(definition: Definition, residuals: bool, optimised: bool) -> None:
    if not definition.variables:
        return
    p = pullback_of(definition.output, definition.feeds(), definition.variables, definition.seed)
    check(p, residuals, optimised)
