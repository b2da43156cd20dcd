"""Whether the interpreter, the emitted code, derived adjoints, ``jax.vjp`` and differences agree on a definition."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import currently_in_test_context, event, note, settings

import jaxte as te
from jaxte.lang.expr import Call, Reduce
from jaxte.lang.graphs import place_of
from jaxte.lang.walk import postorder
from jaxte.lower.cost.policy import Policy
from jaxte.lower.program.plan import lower
from jaxte.planning.asked import planned_with
from jaxte.planning.graph import planned
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor
from tests import numpy_programs
from tests.lower.evaluation.program import evaluate_program
from tests.random_definitions import Definition, draw_numbers
from tests.xla_flags import HAS_OLDER_EMITTERS

Arrays = Mapping[Tensor, np.ndarray]
QUICK = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
} | ({"xla_cpu_use_fusion_emitters": True} if HAS_OLDER_EMITTERS else {})
"""For programs of which bytes, flops, temporaries or the text are asked: fused as users have them, and hardly optimised after that."""
QUICKEST = QUICK | ({"xla_cpu_use_fusion_emitters": False} if HAS_OLDER_EMITTERS else {})
"""Half of the time again, by other code for each fusion, so that nothing but values may be asked of it. Not for plain JAX that gathers what it has gathered:
this code computes positions again for each element that is read, and a stencil of gathers takes all memory there is."""


def compiled_run(
    fn: Callable[..., Any], arrays: Sequence[np.ndarray], optimised: bool, closed: bool = False
) -> Any:
    """One compilation, outside of JAX's caches; without optimisation it takes a sixth of the time.

    With ``closed``, integers are NumPy arrays that the compiled function closes over.
    """
    own = [n for n, a in enumerate(arrays) if not (closed and a.dtype.kind == "i")]

    def call(*given: Any) -> Any:
        filled = dict(enumerate(arrays)) | dict(zip(own, given, strict=True))
        return fn(*(filled[n] for n in range(len(arrays))))

    given = [arrays[n] for n in own]
    traced = jax.jit(call).trace(*given)

    def compiled() -> list[Any]:
        code = traced.lower().compile(compiler_options=None if optimised else QUICKEST)
        return jax.tree.leaves(code(*given))

    found = compiled() if optimised else numpy_programs.results(traced.jaxpr, given, compiled)
    return jax.tree.unflatten(traced.out_tree, list(map(np.asarray, found)))


def pulled(fn: Callable[..., Any], arrays: Sequence[np.ndarray], head: Any) -> list[np.ndarray]:
    """The value of ``fn`` and what its derivative makes of ``head``, in one compilation; optimised in full runs only."""

    def run(head: Any, *arrays: Any) -> Any:
        value, pull = jax.vjp(fn, *arrays)
        return value, *pull(head)

    return list(compiled_run(run, [head, *arrays], optimised=settings.default.max_examples >= 1000))


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

    @cached_property
    def adjoints(self) -> list[Tensor]:
        return list(te.differentiate(self.output, list(self.variables), self.head))


def check_both_passes(output: Tensor, rng: np.random.Generator, tolerance: float = 1e-4) -> None:
    """Values and gradients of ``te.function`` in float32, for all inputs, beside those of the interpreter."""
    inputs, head = inputs_of([output]), te.placeholder(output.shape, name="head")
    feeds = {t: rng.uniform(0.5, 2, t.shape).astype("float32") for t in inputs}
    fn = te.function(inputs, output)
    at = rng.standard_normal(output.shape).astype("float32")
    value, *pulled_back = pulled(fn, list(feeds.values()), at)
    np.testing.assert_allclose(value, interpreted(output, feeds), tolerance, tolerance / 10)
    adjoints = list(te.differentiate(output, inputs, head=head))
    given = feeds | {head: at}
    expected = te.interpret(adjoints, {t: given[t] for t in inputs_of(adjoints)})
    for found, own in zip(pulled_back, expected, strict=True):
        np.testing.assert_allclose(found, own, tolerance, tolerance / 10)


def pullback_of(output: Tensor, feeds: Arrays, variables: Sequence[Placeholder], seed: int) -> Pullback:
    head = te.placeholder(output.shape, output.dtype, "H")
    rng = np.random.default_rng(seed + 1)
    return Pullback(output, variables, head, {**feeds, head: draw_numbers(rng, head)})


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


def has_extremum(tensors: Sequence[Tensor]) -> bool:
    """Whether results are compared with what they are the greatest or least of: of two elements in JAX's derivatives, too."""
    bodies = [t.body for t in topological_order(tensors) if isinstance(t, Compute)]
    nodes = postorder(*bodies)
    return any(isinstance(n, Reduce) and n.reducer.name in ("max", "min") for n in nodes) or any(
        isinstance(n, Call) and n.op.name in ("maximum", "minimum", "fmax", "fmin", "clip") for n in nodes
    )


def check(
    p: Pullback,
    residuals: bool,
    optimised: bool,
    tolerance: float = 1e-9,
    by_jax: bool = True,
    closed: bool = False,
) -> set[str]:
    """Values and adjoints of all kinds.

    Args:
        residuals: whether the adjoints are those of ``te.function``, not the text of their definitions.
        by_jax: whether ``jax.vjp`` of the text is asked, too; differences are, always.
        closed: whether positions are NumPy arrays that the compiled code closes over.

    Returns:
        What was allowed for: "apart" where compiled code finds another one of equal elements, "spoiled" where a
        NaN of the value is in an adjoint at elements that a condition leaves out, "excluded" where it is in the interpreter's only, "infinite" where an infinity stands
        for a NaN or the other way, since a factor has left a sum.
    """
    derived = [interpreted(a, p.feeds) for a in p.adjoints]
    expected = interpreted(p.output, p.feeds)
    run = program(p, residuals, by_jax)
    given = [p.feeds[p.head], *(p.feeds[t] for t in p.inputs)]

    def compare(results: Any) -> set[str]:
        value, *judged = jax.tree.map(np.asarray, results)
        notes = compare_values(value, expected, tolerance)
        notes |= compare_adjoints(p.variables, derived, judged, tolerance, np.isfinite(expected).all())
        if p.output.dtype == "float64" and np.isfinite(expected).all():
            check_differences(p, derived)
        return notes

    def evaluated(feeds: Arrays) -> list[np.ndarray]:
        arrays = [feeds[p.head], *(feeds[t] for t in p.inputs)]
        value, own, *_ = compiled_run(run, arrays, optimised, closed)
        return [np.asarray(value), *map(np.asarray, own)]

    found = compiled_run(run, given, optimised, closed)
    try:
        return compare(found)
    except AssertionError:
        is_single = p.output.dtype == "float32"  # in which a sine of what is large has few digits
        if is_single and is_rounding(p, evaluated(p.feeds), [expected, *derived], evaluated):
            return {"cancelled"}
        if not has_extremum([p.output, *p.adjoints]):
            raise
        # XLA may compute an element twice and round it in two ways (a fused multiplication and addition), so that no
        # element equals the extremum, in jax.vjp too. Operation by operation there is one value of each.
        with jax.disable_jit():
            return compare(run(*map(jnp.asarray, given))) | {"apart"}


def check_nodes(
    p: Pullback, tolerance: float = 1e-9, at_ties: bool = False, platform: str = "cpu"
) -> set[str]:
    """Value and adjoints as the nodes of the emitted program mean them, in NumPy: nothing is compiled, so that a program takes a tenth of the time.

    Differences say nothing ``at_ties``: ``minimum(maximum(x, 0), 0)`` has slope 1/4 at 0, by JAX's rules.
    """
    results = [p.output, *p.adjoints]
    derived = [interpreted(a, p.feeds) for a in p.adjoints]
    expected = interpreted(p.output, p.feeds)
    policy = Policy(platform)
    with planned_with(policy.facts.intermediates, policy.without, policy.debug):
        lowered = lower("both", inputs_of(results), planned(results), policy)

    def evaluated(feeds: Arrays) -> list[np.ndarray]:
        return evaluate_program(lowered, [feeds[t] for _, t in lowered.params])

    value, *own = evaluated(p.feeds)
    notes: set[str] = set()
    try:
        notes |= compare_values(value, expected, tolerance)
        notes |= compare_adjoints(p.variables, derived, [own], tolerance, np.isfinite(expected).all())
    except AssertionError:
        if not is_rounding(p, [value, *own], [expected, *derived], evaluated):
            raise
        return notes | {"cancelled"}
    if not at_ties and p.output.dtype == "float64" and np.isfinite(expected).all():
        check_differences(p, derived)
    return notes


def is_rounding(
    p: Pullback,
    found: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    evaluated: Callable[[Arrays], Sequence[np.ndarray]],
) -> bool:
    """Whether emitted code and interpreter differ by no more than either does from itself where each input is a few units in the last place off."""
    rng = np.random.default_rng(11)
    spread = [np.zeros(f.shape) for f in found]
    for _ in range(6):
        moved = {
            t: (x * (1 + 4 * np.finfo(x.dtype).eps * rng.uniform(-1, 1, x.shape))).astype(x.dtype)
            if x.dtype.kind == "f"
            else x
            for t, x in p.feeds.items()
        }
        again = [interpreted(t, moved) for t in (p.output, *p.adjoints)]
        for n, (code, meaning) in enumerate(zip(evaluated(moved), again, strict=True)):
            spread[n] = np.fmax(spread[n], np.abs(code - found[n]))
            spread[n] = np.fmax(spread[n], np.abs(meaning - expected[n]))
    return all(bool(np.all(np.abs(f - e) <= 10 * s)) for f, e, s in zip(found, expected, spread, strict=True))


def program(p: Pullback, residuals: bool, by_jax: bool) -> Callable[..., Any]:
    """Of a head and inputs: the value of the emitted code, its adjoints, and with ``by_jax`` those of ``jax.vjp``."""
    inputs, needed = p.inputs, inputs_of(p.adjoints)
    order = [place_of(v, inputs) for v in p.variables]
    own = te.function(inputs, p.output).custom_vjp if residuals else None
    forward = emitted(p.output) if by_jax or own is None else own
    backward = emitted(p.adjoints) if own is None else None

    def pullback(fn: Callable[..., Any], arrays: Sequence[Any], head: Any) -> Any:
        def call(*values: Any) -> Any:
            filled = dict(enumerate(arrays)) | dict(zip(order, values, strict=True))
            return fn(*(filled[n] for n in range(len(arrays))))

        value, pull = jax.vjp(call, *(arrays[n] for n in order))
        return value, pull(head)

    def run(head: Any, *arrays: Any) -> Any:
        if own is not None:
            value, adjoints = pullback(own, arrays, head)
        else:
            # adjoints may name tensors that the value does not read, in the branch of a choice that is never taken
            at = {**p.feeds, **dict(zip(inputs, arrays, strict=True)), p.head: head}
            adjoints = backward(*(at[t] for t in needed))
            value = None if by_jax else forward(*arrays)
        adjoints = adjoints if isinstance(adjoints, tuple) else (adjoints,)
        if not by_jax:
            return value, adjoints
        value, judge = pullback(forward, arrays, head)
        return value, adjoints, judge

    return run


def compare_values(found: np.ndarray, expected: np.ndarray, tolerance: float) -> set[str]:
    infinite = ~np.isfinite(found) & ~np.isfinite(expected)
    assert_close(np.where(infinite, 0, found), np.where(infinite, 0, expected), "emitted forward", tolerance)
    same = np.array_equal(found[infinite], expected[infinite], equal_nan=found.dtype.kind in "fc")
    return set() if same else {"infinite"}


def compare_adjoints(
    variables: Sequence[Placeholder],
    derived: Sequence[np.ndarray],
    judged: Sequence[Sequence[np.ndarray]],
    tolerance: float,
    finite: bool,
) -> set[str]:
    """Emitted adjoints beside the interpreter's, and these beside those of ``jax.vjp`` if there are any."""
    notes = set()
    for variable, meaning, code, *references in zip(variables, derived, *judged, strict=True):
        what = f"emitted adjoint of {variable.name} beside the interpreter"
        spoiled = ~np.isfinite(code) & (not finite)
        if not finite and np.isfinite(meaning[spoiled]).any():
            notes.add("spoiled")
        # 0 * (0 / 0) in a term of a sum is nothing where a condition excludes a factor of it
        left_out = (code == 0) & np.isnan(meaning) & (not finite)
        if left_out.any():
            notes.add("excluded")
        compared = ~spoiled & ~left_out
        assert_close(code[compared], meaning[compared], what, tolerance)
        for reference in references:
            # jax.vjp has NaN where a guarded part has, which the adjoint of the guard leaves out
            known = np.isfinite(reference)
            beside = f"adjoint of {variable.name} beside jax.vjp"
            assert_close(meaning[known], reference[known], beside, tolerance)
    return notes


def is_nan_in_jax(p: Pullback, derived: Sequence[np.ndarray]) -> bool:
    """Whether jax.vjp has NaN wherever the adjoints have it: behind a pole, as in ``tanh(y / 0)``, the value is finite and the slope is not known."""
    given = [p.feeds[p.head], *(p.feeds[t] for t in p.inputs)]
    _, _, judge = program(p, residuals=False, by_jax=True)(*map(jnp.asarray, given))
    return all(np.isnan(np.asarray(j))[np.isnan(d)].all() for j, d in zip(judge, derived, strict=True))


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
    if np.isnan(own) and is_nan_in_jax(p, derived):
        return
    if not abs(slope - own) <= allowed:
        middle = moved(0.0)
        before, after = (float(np.sum(head * (ends[by] - middle))) / by for by in (-step, step))
        # the slopes of both sides are as far apart as the adjoint is off, however small the head makes them
        kink = abs(after - before) > max(10 * step * (1 + size), 0.5 * abs(slope - own))
        assert kink, f"differences give {slope:.10g}, the adjoints {own:.10g}"
        if currently_in_test_context():
            event("kink")
