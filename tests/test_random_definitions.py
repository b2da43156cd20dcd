"""Random definitions: the interpreter, the emitted code, derived adjoints, ``jax.vjp`` and differences agree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, currently_in_test_context, event, given, note, settings
from hypothesis import strategies as st

import jaxte as te
from jaxte.autodiff import zeros
from jaxte.expr import Reduce
from jaxte.tensor import Compute, Placeholder, Tensor, topological_order
from jaxte.walk import postorder
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
    if currently_in_test_context():
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


def has_extremum(tensors: Sequence[Tensor]) -> bool:
    bodies = [t.body for t in topological_order(tensors) if isinstance(t, Compute)]
    return any(isinstance(n, Reduce) and n.reducer.name in ("max", "min") for n in postorder(*bodies))


def check(p: Pullback, residuals: bool, optimised: bool, tolerance: float = 1e-9) -> None:
    """Values and adjoints of all kinds."""
    inputs, feeds = p.inputs, p.feeds
    adjoints = p.adjoints
    derived = [interpreted(a, feeds) for a in adjoints]
    expected = interpreted(p.output, feeds)
    order = [inputs.index(v) for v in p.variables]
    forward = emitted(p.output)
    backward = te.function(inputs, p.output).custom_vjp if residuals else emitted(adjoints)
    needed = inputs_of(adjoints)

    def run(head: Any, *arrays: Any) -> Any:
        def of_variables(fn: Callable[..., Any]) -> Any:
            def call(*values: Any) -> Any:
                filled = dict(enumerate(arrays)) | dict(zip(order, values, strict=True))
                return fn(*(filled[n] for n in range(len(arrays))))

            return jax.vjp(call, *(arrays[n] for n in order))

        value, pull = of_variables(forward)
        if residuals:
            own = of_variables(backward)[1](head)
        else:
            at = {**dict(zip(inputs, arrays, strict=True)), p.head: head}
            own = backward(*(at[t] for t in needed))
        return value, pull(head), own if isinstance(own, tuple) else (own,)

    def compare(results: Any) -> None:
        value, by_jax, by_code = jax.tree.map(np.asarray, results)
        assert_close(value, expected, "emitted forward", tolerance)
        for variable, reference, code, meaning in zip(p.variables, by_jax, by_code, derived, strict=True):
            name = variable.name
            assert_close(code, meaning, f"emitted adjoint of {name} beside the interpreter", tolerance)
            # jax.vjp has NaN where a guarded part has, which the adjoint of the guard leaves out
            known = np.isfinite(reference)
            assert_close(meaning[known], reference[known], f"adjoint of {name} beside jax.vjp", tolerance)

    given = [feeds[p.head], *(feeds[t] for t in inputs)]
    try:
        compare(compiled_run(run, given, optimised))
    except AssertionError:
        if not has_extremum(adjoints):
            raise
        # XLA may compute an element twice and round it in two ways (a fused multiplication and addition), so that no
        # element equals the extremum, in jax.vjp too. Operation by operation there is one value of each.
        with jax.disable_jit():
            compare(run(*given))
    if p.output.dtype == "float64" and np.isfinite(expected).all():
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
        if currently_in_test_context():
            event("kink")


def at_random(definition: Definition, order: int = 1) -> Pullback | None:
    """The definition, or one of its adjoints, with numbers; None if nothing in it has a derivative."""
    if not definition.variables:
        return None
    p = pullback_of(definition.output, definition.feeds(), definition.variables, definition.seed)
    if order == 1:
        return p
    adjoint = p.adjoints[definition.seed % len(p.variables)]
    variables = [t for t in inputs_of([adjoint]) if t.dtype == "float64"]
    return pullback_of(adjoint, p.feeds, variables, definition.seed) if variables else None


def examples(quick: int, full: int) -> settings:
    """How many examples `make test` and the full run draw."""
    count = full if settings.default.max_examples >= 1000 else quick
    return settings(max_examples=count, suppress_health_check=list(HealthCheck))


seldom = st.integers(0, 3).map(lambda n: n == 3)
ways: dict[str, Any] = {"residuals": st.booleans(), "optimised": seldom}


def check_at_random(definition: Definition, residuals: bool, optimised: bool) -> None:
    p = at_random(definition)
    if p is not None:
        check(p, residuals, optimised)


@pytest.mark.slow
@examples(quick=100, full=900)
@given(definition=definitions(stages=(1, 1), kinds="bodies"), **ways)
def test_bodies(definition: Definition, residuals: bool, optimised: bool) -> None:
    check_at_random(definition, residuals, optimised)


@pytest.mark.slow
@examples(quick=100, full=900)
@given(definition=definitions(stages=(1, 2)), **ways)
def test_patterns(definition: Definition, residuals: bool, optimised: bool) -> None:
    check_at_random(definition, residuals, optimised)


@pytest.mark.slow
@examples(quick=80, full=700)
@given(definition=definitions(stages=(2, 3)), **ways)
def test_chains(definition: Definition, residuals: bool, optimised: bool) -> None:
    check_at_random(definition, residuals, optimised)


@pytest.mark.slow
@examples(quick=15, full=150)
@given(definition=definitions(stages=(1, 1)), residuals=st.booleans())
def test_second_derivatives(definition: Definition, residuals: bool) -> None:
    p = at_random(definition, order=2)
    if p is not None:
        check(p, residuals, optimised=False, tolerance=1e-8)


TOLERANCES = {"float32": 1e-4, "complex128": 1e-9, "float16": 3e-2, "bfloat16": 2e-1}


@pytest.mark.slow
@examples(quick=40, full=400)
@given(
    definition=st.one_of(
        definitions("float32", (1, 2)),
        definitions("complex128"),
        definitions("float16", (1, 1)),
        definitions("bfloat16", (1, 1)),
    ),
    residuals=st.booleans(),
)
def test_other_dtypes(definition: Definition, residuals: bool) -> None:
    p = at_random(definition)
    if p is not None:
        check(p, residuals, optimised=False, tolerance=TOLERANCES[definition.output.dtype])


# --- what random definitions have found, and that they can find something

FOUND: dict[str, Callable[[], Tensor]] = {}


def found(make: Callable[[], Tensor]) -> Callable[[], Tensor]:
    FOUND[make.__name__] = make
    return make


def x(*shape: int, name: str = "X") -> Placeholder:
    return te.placeholder(shape, "float64", name)


@found
def extremum_of_elements_that_are_rounded() -> Tensor:
    """Computed again with a fused multiplication and addition, no element equalled the minimum: inf."""
    a, k = x(2), te.reduce_axis((0, 2), "k")
    return te.compute((), lambda: te.min(a[te.maximum(0, k - 1)] - 0.7 * a[k], k))


@found
def banded_maximum_of_a_function() -> Tensor:
    """Where tanh of a window and tanh of the whole array were rounded differently, an adjoint got lost."""
    a, k = x(2, 4, 3, 2), te.reduce_axis((0, 4), "k")
    top = te.compute(
        (2, 4, 3, 2),
        lambda i, j, m, n: te.max(te.tanh(a[i, k, m, n]), k, where=(k <= j + 1) & (k >= j - 1)),
    )
    return te.compute((2, 4, 3, 2), lambda i, j, m, n: te.sin(top[i, j, m, n]) * top[i, 0, m, 0])


@found
def first_maximum_of_padded_windows() -> Tensor:
    """Positions of 64 bits were padded with one of 32."""
    a, k = x(1), te.reduce_axis((0, 3), "k")
    flat = te.compute((5,), lambda i: a[0] * (i + 1))
    inside = lambda i: (i + 2 * k - 2 >= 0) & (i + 2 * k - 2 < 5)  # noqa: E731
    return te.compute((5,), lambda i: te.max(flat[i + 2 * k - 2], k, where=inside(i), ties="first"))


@found
def guarded_position_beside_an_overlap() -> Tensor:
    """A choice among positions was taken for an affine index."""
    a, table = x(5, 4), te.placeholder((4,), "int32", "I")
    m = te.reduce_axis((0, 4), "m")

    def body(i):
        row = te.select(3 - (-1 * i) < 4, table[3 - (-1 * i)], 0)
        return te.sum(te.select((row >= 0) & (row < 5), a[row, (3 * i + 2 * m) % 4], 0.0), m)

    return te.compute((4,), body)


def fixed(make: Callable[[], Tensor], seed: int) -> Pullback:
    output = make()
    assert isinstance(output, Compute)
    definition = Definition(output, seed)
    return pullback_of(output, definition.feeds(), definition.variables, seed)


@pytest.mark.parametrize("optimised", [False, True])
@pytest.mark.parametrize("residuals", [False, True])
@pytest.mark.parametrize("name", FOUND)
def test_found(name: str, residuals: bool, optimised: bool) -> None:
    for seed in (1, 6):
        check(fixed(FOUND[name], seed), residuals, optimised)


def test_number_of_another_dtype() -> None:
    """A float64 number was written without its dtype, so that float32 came out."""
    a = te.placeholder((3,), "float32", "X")
    output = te.compute((3,), lambda i: a[i] * te.const(0.1, "float64"))
    feeds = {a: np.float32([1, 2, 3])}
    assert_close(np.asarray(te.evaluate(output, feeds)), interpreted(output, feeds), "product")


@pytest.mark.parametrize("residuals", [False, True])
def test_compiled_elements_are_compared_as_they_were_reduced(residuals: bool) -> None:
    """Under XLA's own optimisation; half of these points lost an adjoint when the element was computed again."""
    a, b, k = x(6, 37), x(37, name="B"), te.reduce_axis((0, 37), "k")
    output = te.compute((6,), lambda i: te.max(a[i, k] * b[k] + 0.3 * a[i, 36 - k], k))
    head = te.placeholder((6,), "float64", "H")
    adjoints = list(te.differentiate(output, [a, b], head))
    if residuals:
        own = te.function([a, b], output).custom_vjp
        code = jax.jit(lambda h, *values: jax.vjp(own, *values)[1](h))
    else:
        code = jax.jit(te.function([head, a, b], adjoints))
    for seed in range(20):
        rng = np.random.default_rng(seed)
        feeds = {t: rng.standard_normal(t.shape) for t in (head, a, b)}
        for found, adjoint in zip(code(*feeds.values()), adjoints, strict=True):
            assert_close(np.asarray(found), interpreted(adjoint, feeds), f"seed {seed}")


def padded_window() -> Tensor:
    a, k = x(6), te.reduce_axis((0, 3), "k")
    return te.compute((2,), lambda i: te.sum(a[3 * i + k] ** 2 * (k + 1), k, where=3 * i + k >= 1))


def shifted() -> Tensor:
    a = x(6)
    return te.compute((4,), lambda i: a[i + 2] * a[i])


@pytest.mark.parametrize("make", [padded_window, shifted])
def test_a_dropped_guard_is_seen(make: Callable[[], Tensor], monkeypatch: pytest.MonkeyPatch) -> None:
    p = fixed(make, 1)
    check(p, residuals=False, optimised=False)
    monkeypatch.setattr(zeros, "guard", lambda condition, value: value)
    with pytest.raises(AssertionError, match="adjoint of X"):
        check(p, residuals=False, optimised=False)


def test_differences_see_a_wrong_adjoint() -> None:
    p = fixed(shifted, 1)
    derived = [interpreted(a, p.feeds) for a in p.adjoints]
    check_differences(p, derived)
    with pytest.raises(AssertionError, match="differences give"):
        check_differences(p, [derived[0] * 1.001])
