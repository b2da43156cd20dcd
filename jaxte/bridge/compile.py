"""From a graph to code: the forward pass, the forward pass with residuals, the backward pass, one custom_vjp.

The backward pass is derived when it is first asked for, so that a function that is only called costs no
differentiation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax

from jaxte.autodiff.reverse import vjp_graph
from jaxte.bridge.lazy import lazy
from jaxte.bridge.module import Module, load, title, with_own_externs
from jaxte.lang.dtypes import is_inexact
from jaxte.lower.code.identifiers import Names, identifier
from jaxte.lower.code.vocabulary import Program
from jaxte.lower.cost.policy import DEFAULT, Policy
from jaxte.lower.program.emit import module_text
from jaxte.lower.program.plan import lower
from jaxte.lower.program.residuals import saved_tensors
from jaxte.tensors.tensor import Placeholder, Tensor, placeholder

FORWARD, SAVING, BACKWARD = "forward", "forward_with_residuals", "backward"


@dataclass(frozen=True)
class Backward:
    """The backward pass as tensors.

    Attributes:
        heads: the adjoint of each output that has a derivative.
        adjoints: the adjoint of each input that has a derivative.
        saved: forward tensors kept for it.
    """

    heads: tuple[Placeholder, ...]
    adjoints: tuple[Tensor, ...]
    saved: tuple[Tensor, ...]


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
    def forward_program(self) -> Program:
        return lower(FORWARD, self.inputs, self.outputs, self.policy)

    @lazy
    def forward_module(self) -> Module:
        """The forward pass alone."""
        return self._load([self.forward_program], "")

    @lazy
    def differentiable(self) -> tuple[int, ...]:
        """Positions of the inputs that have a derivative."""
        return tuple(n for n, t in enumerate(self.inputs) if is_inexact(t.dtype)) if self.with_head else ()

    @lazy
    def backward(self) -> Backward:
        outputs = [self.outputs[n] for n in self.with_head]
        sources = [self.inputs[n] for n in self.differentiable]
        names = ["H"] if len(outputs) == 1 else [f"H_{t.name}" for t in outputs]
        heads = [placeholder(t.shape, t.dtype, n) for t, n in zip(outputs, names, strict=True)]
        adjoints = vjp_graph(outputs, heads, sources, self.override, self.fdiff) if sources else []
        saved = saved_tensors(self.inputs, self.outputs, adjoints, self.policy)
        return Backward(tuple(heads), tuple(adjoints), tuple(saved))

    @lazy
    def kept(self) -> tuple[Tensor, ...]:
        """The residuals that are neither inputs nor outputs, which the forward pass has to return beside them."""
        at_hand = {*self.inputs, *self.outputs}
        return tuple(t for t in self.backward.saved if t not in at_hand)

    @lazy
    def programs(self) -> tuple[Program, ...]:
        """The forward pass, the forward pass with residuals where it returns more than that, and the backward pass."""
        back = self.backward
        found = [self.forward_program]
        if self.kept:
            found.append(lower(SAVING, self.inputs, (*self.outputs, *self.kept), self.policy))
        if back.adjoints:
            found.append(lower(BACKWARD, (*back.saved, *back.heads), back.adjoints, self.policy))
        return tuple(found)

    @lazy
    def module(self) -> Module:
        """Everything, with ``fn``, a ``jax.custom_vjp`` object."""
        return self._load(self.programs, custom_vjp_text(self))

    def _load(self, programs: Sequence[Program], epilogue: str) -> Module:
        own, externs = with_own_externs(programs)
        text = module_text(own, epilogue, title(self.name, externs))
        return load(text, identifier(self.name), externs)

    @lazy
    def call(self) -> Callable[..., Any]:
        """The same ``custom_vjp`` as the module's ``fn``, whose backward pass is made when it is first needed."""

        def forward(*arrays: Any) -> Any:
            return self.forward_module[FORWARD](*arrays)

        forward.__name__ = identifier(self.name)
        fn = jax.custom_vjp(forward)
        fn.defvjp(lambda *arrays: self.module["_fwd"](*arrays), lambda *args: self.module["_bwd"](*args))
        return fn


def custom_vjp_text(graph: Graph) -> str:
    """The end of the module: a ``jax.custom_vjp`` of its functions."""
    back = graph.backward
    names = Names([FORWARD, SAVING, BACKWARD, "fn", "_fwd", "_bwd", "residuals", "cotangents"])
    for program in graph.programs:
        names = _reserve(names, [n for n, _ in program.externs])
    params = [names.new(t.name) for t in graph.inputs]
    outputs = [names.new(t.name) for t in graph.outputs]
    kept = [names.new(t.name) for t in graph.kept]
    heads = [names.new(t.name) for t in back.heads]
    named: dict[Tensor, str] = dict(zip((*graph.outputs, *graph.kept), (*outputs, *kept), strict=True))
    named |= dict(zip(graph.inputs, params, strict=True))
    residuals = [named[t] for t in back.saved]
    lines = ["", "", f"def _fwd({', '.join(params)}):"]
    lines += [f"    {_targets([*outputs, *kept])} = {SAVING if kept else FORWARD}({', '.join(params)})"]
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
    lines += [f"    {_targets(adjoints)} = {BACKWARD}({', '.join([*residuals, *heads])})"]
    lines += [f"    return {_tuple(results)}"]
    return lines


def _targets(names: Sequence[str]) -> str:
    return ", ".join(names)


def _tuple(names: Sequence[str]) -> str:
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"
