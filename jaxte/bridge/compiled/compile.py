"""From a graph to code: the forward pass, the forward pass with residuals, the backward pass, one custom_vjp.

The backward pass is derived when it is first asked for, so that a function that is only called costs no
differentiation.

A graph and the jitted function that runs it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
from jax.tree_util import tree_unflatten

from jaxte.bridge.calls.options import NO_OPTIONS, Options
from jaxte.bridge.calls.outputs import Outputs
from jaxte.bridge.price.programs import Beside
from jaxte.bridge.primitive.lazy import lazy
from jaxte.bridge.primitive.linearized import Linearized
from jaxte.bridge.primitive.module import Module, load, title, with_own_externs
from jaxte.bridge.primitive.primitive import bind, linearized
from jaxte.bridge.primitive.program import BACKWARD, FORWARD, SAVING, Program, program
from jaxte.bridge.primitive.told import told
from jaxte.derivatives.given_overrides import check_reached, overrides_of
from jaxte.lang.graphs import identical
from jaxte.lower.code.lines import Names, identifier
from jaxte.lower.code.vocabulary import Program as Lowered
from jaxte.lower.cost.policy import DEFAULT, Policy
from jaxte.lower.program.emit import module_text
from jaxte.lower.program.laid_out import with_shared
from jaxte.lower.program.plan import lower
from jaxte.lower.rewrites.gather_layout import LAID_OUT, gathers_laid_out
from jaxte.meaning.fact_checks import check_facts
from jaxte.planning.asked import planned_with
from jaxte.planning.graph import CHAINS, planned
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Tensor


@dataclass(frozen=True, eq=False)
class Graph:
    """Tensors between inputs and outputs, and their code.

    Attributes:
        name: label in tracebacks and module docstrings.
        inputs: placeholders, in the order of the arguments.
        outputs: tensors, in the order of the results.
        with_head: positions of the outputs that are differentiated.
        override, fdiff: as in ``te.differentiate``.
        policy: how forms are chosen.
    """

    name: str
    inputs: tuple[Placeholder, ...]
    outputs: tuple[Tensor, ...]
    with_head: tuple[int, ...]
    override: Mapping[Tensor, Any] | None = None
    fdiff: Callable[..., Any] | None = None
    policy: Policy = DEFAULT

    @lazy
    def program(self) -> Program:
        """What is called; see ``bridge.primitive``."""
        return program(
            FORWARD,
            self.name,
            self.inputs,
            self.outputs,
            self.policy,
            self.override,
            self.fdiff,
            self.with_head,
        )

    @property
    def forward_program(self) -> Lowered:
        return self.program.lowered

    @property
    def forward_module(self) -> Module:
        """The forward pass alone."""
        return self.program.module

    @property
    def differentiable(self) -> tuple[int, ...]:
        """Positions of the inputs that have a derivative."""
        return self.program.differentiable

    @property
    def backward(self) -> Linearized:
        """The derivative to all inputs that have one."""
        return linearized(self.program, self.differentiable)

    @lazy
    def programs(self) -> tuple[Lowered, ...]:
        """The forward pass, the forward pass with residuals where it returns more than that, and the backward pass."""
        passes = self.both_passes
        return passes if passes[0] is self.forward_program else (self.forward_program, *passes)

    @lazy
    def both_passes(self) -> tuple[Lowered, ...]:
        """The forward pass with what it keeps, and the backward pass: what a gradient runs."""
        return self.passes(self.differentiable)

    def passes(self, perturbed: tuple[int, ...]) -> tuple[Lowered, ...]:
        """The same for the gradient by the inputs at ``perturbed`` alone; where there are none, the forward pass."""
        if not perturbed:
            return (self.forward_program,)
        back = linearized(self.program, perturbed)
        found = [back.saving.lowered]
        if back.adjoints:
            found.append(self._backward_pass(back))
        return tuple(found)

    def prepare(self, perturbed: tuple[int, ...]) -> None:
        """Derives and lowers what JAX calls for the gradient by the inputs at ``perturbed``: of the results that depend on them."""
        back = linearized(self.program, perturbed)
        called = back.backward(perturbed, back.reached) if perturbed else None
        if called is None:
            self.passes(perturbed)
        elif back.adjoints:
            _ = back.saving.lowered, called.lowered

    def _backward_pass(self, back: Linearized) -> Lowered:
        """What gradients run, where it takes nothing but residuals and heads; else a function of these."""
        params = (*back.saved, *back.heads)
        called = back.backward(back.perturbed, back.source.with_head)
        if called is not None and identical(called.inputs, params):
            return called.lowered
        made = lower(BACKWARD, params, back.adjoints, self.policy)
        if self.policy.save.is_default:  # else a barrier keeps them apart
            made = with_shared(made, back.saving.lowered, self.policy.facts)

        def within(budget: int) -> Lowered:
            return lower(BACKWARD, params, back.adjoints, replace(self.policy, max_memory=budget))

        return told(self.name, made, self.policy.facts, None if self.policy.max_memory else within)

    @property
    def prices(self) -> Beside | None:
        """The estimate of both passes beside plain JAX's; None where nothing is differentiated, of sizes that are symbols, and where no paces were measured."""
        if not self.differentiable:
            return None
        back = linearized(self.program, self.differentiable)
        called = back.backward(back.perturbed, back.source.with_head) if back.adjoints else None
        return None if called is None else called.beside_jax(called.lowered, is_own=True)

    @lazy
    def module(self) -> Module:
        """Everything, with ``fn``, a ``jax.custom_vjp`` object."""
        own, externs = with_own_externs(self.programs)
        text = module_text(own, custom_vjp_text(self), title(self.name, externs))
        return load(text, identifier(self.name), externs)


def custom_vjp_text(graph: Graph) -> str:
    """The end of the module: a ``jax.custom_vjp`` of its functions."""
    back = graph.backward
    names = Names([FORWARD, SAVING, BACKWARD, "fn", "_fwd", "_bwd", "residuals", "cotangents"])
    for lowered in graph.programs:
        names = _reserve(names, [n for n, _ in lowered.externs])
    params = [names.new(t.name) for t in graph.inputs]
    outputs = [names.new(t.name) for t in graph.outputs]
    kept = [names.new(t.name) for t in back.kept]
    heads = [names.new(t.name) for t in back.heads]
    own = back.source  # of placeholders alone: an adjoint's program is differentiated as a copy
    named: dict[Tensor, str] = dict(zip((*own.outputs, *back.kept), (*outputs, *kept), strict=True))
    named |= dict(zip(own.inputs, params, strict=True))
    residuals = [named[t] for t in back.saved]
    lines = ["", "", f"def _fwd({', '.join(params)}):"]
    lines += [f"    {_targets([*outputs, *kept])} = {back.saving.name}({', '.join(params)})"]
    lines += [f"    return {_tuple(outputs) if len(outputs) > 1 else outputs[0]}, {_tuple(residuals)}"]
    lines += ["", "", "def _bwd(residuals, cotangents):"]
    lines += _bwd_body(graph, residuals, heads)
    lines += ["", "", f"fn = jax.custom_vjp({FORWARD})", "fn.defvjp(_fwd, _bwd)", ""]
    return "\n".join(lines)


def _reserve(names: Names, taken: Sequence[str]) -> Names:
    for name in taken:
        names.new(name)
    return names


def _bwd_body(graph: Graph, residuals: Sequence[str], heads: Sequence[str]) -> list[str]:
    """Cotangents of the inputs from those of the outputs; None stands for the zero of an integer input."""
    results = ["None"] * len(graph.inputs)
    if not graph.backward.adjoints:
        return [f"    return {_tuple(results)}"]
    lines = [f"    {_tuple(residuals)} = residuals"] if residuals else []
    if len(graph.outputs) == 1:
        lines += [f"    {heads[0]} = cotangents"]
    else:
        taken = dict(zip(graph.with_head, heads, strict=True))
        unpacked = [taken.get(n, "_") for n in range(len(graph.outputs))]
        lines += [f"    {_tuple(unpacked)} = cotangents"]
    names = Names([*residuals, *heads, BACKWARD])
    adjoints = [names.new(f"d{graph.inputs[n].name}") for n in graph.differentiable]
    for position, name in zip(graph.differentiable, adjoints, strict=True):
        results[position] = name
    operands = [*residuals, *heads]
    if not graph.policy.save.is_default:  # or XLA would keep what both passes compute
        lines += [f"    {_tuple(operands)} = lax.optimization_barrier({_tuple(operands)})"]
    lines += [f"    {_targets(adjoints)} = {BACKWARD}({', '.join(operands)})"]
    lines += [f"    return {_tuple(results)}"]
    return lines


def _targets(names: Sequence[str]) -> str:
    return ", ".join(names)


def _tuple(names: Sequence[str]) -> str:
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"


@dataclass(frozen=True, eq=False)
class Compiled:
    """A graph and what runs it."""

    graph: Graph
    outputs: Outputs
    debug: bool = False

    @lazy
    def run(self) -> Any:
        """The compiled function of flat arrays; it returns the pytree of the outputs."""
        dtypes = [t.dtype for t in self.graph.inputs]
        program, single, tree = self.graph.program, self.outputs.is_single, self.outputs.tree

        def run(*arrays: Any) -> Any:
            # Drops weak types, which would not promote as the placeholders do; nothing otherwise.
            strong = [jax.lax.convert_element_type(a, d) for a, d in zip(arrays, dtypes, strict=True)]
            if self.debug:
                jax.debug.callback(self._check, *strong)
            results = bind(program, *strong)
            return results[0] if single else tree_unflatten(tree, results)

        run.__name__ = identifier(self.graph.name)
        return self._checked(jax.jit(run, inline=True)) if self.debug else jax.jit(run, inline=True)

    def _check(self, *arrays: Any) -> None:
        check_facts(dict(zip(self.graph.inputs, arrays, strict=True)))

    def _checked(self, run: Any) -> Any:
        """``run`` after a test of the facts, where the arrays are there to be tested."""

        @functools.wraps(run)
        def checked(*arrays: Any) -> Any:
            if not any(isinstance(a, jax.core.Tracer) for a in arrays):
                self._check(*arrays)
            return run(*arrays)

        checked.lower = run.lower  # type: ignore[attr-defined]
        return checked


def compiled(name: str, inputs: Sequence[Any], outputs: Outputs, options: Options = NO_OPTIONS) -> Compiled:
    """The code between ``inputs`` and ``outputs``."""
    policy = options.policy()
    tensors = outputs.tensors
    if options.save.chosen:
        options.save.check(topological_order([*inputs, *tensors]))
    overrides = overrides_of(tensors, options.override)
    check_reached(overrides, inputs)
    if not overrides and options.fdiff is None:
        named = not options.save.is_default or any(name != "*" for name in policy.forms)
        unwanted = policy.without | {CHAINS.name} if named else policy.without  # a step of a loop has no name
        with planned_with(policy.facts.intermediates, unwanted, policy.debug):
            tensors = planned(tensors if LAID_OUT in policy.without else gathers_laid_out(tensors))
    graph = Graph(name, tuple(inputs), tensors, outputs.with_head, options.override, options.fdiff, policy)
    return Compiled(graph, outputs, options.debug)
