"""Gradients as two explicit functions: the forward pass with what it keeps, by name, and the backward pass from that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax.tree_util import register_pytree_node_class, tree_flatten, tree_unflatten

from jaxte.bridge.compiled.compile import Compiled
from jaxte.bridge.primitive.linearized import Linearized
from jaxte.bridge.primitive.primitive import bind
from jaxte.bridge.primitive.program import Program, program
from jaxte.lang.checks import described
from jaxte.lang.errors import DifferentiationError, FeedError
from jaxte.lower.code.lines import Names
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor

INTERMEDIATES = "intermediates"


@dataclass(frozen=True)
class GradientNames:
    """What the gradients are called.

    Attributes:
        inputs: for each input that has a gradient its name in the result of ``fn.backward``.
        outputs: for each output that has one the name under which ``fn.backward`` takes its cotangent.
    """

    inputs: dict[str, str]
    outputs: dict[str, str]


@register_pytree_node_class
class Residuals(Mapping[str, Any]):
    """What a forward pass keeps for its backward pass: arrays by the names of their tensors. A pytree of these arrays."""

    def __init__(self, passes: TwoPasses, arrays: Sequence[Any]) -> None:
        self.passes = passes
        self._arrays = tuple(arrays)

    def __getitem__(self, name: str) -> Any:
        return dict(zip(self.passes.kept, self._arrays, strict=True))[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.passes.kept)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        return f"Residuals({', '.join(self.passes.kept) or 'nothing'})"

    def tree_flatten(self) -> tuple[tuple[Any, ...], TwoPasses]:
        return self._arrays, self.passes

    @classmethod
    def tree_unflatten(cls, passes: TwoPasses, arrays: Sequence[Any]) -> Residuals:
        return cls(passes, arrays)

    @property
    def arrays(self) -> tuple[Any, ...]:
        return self._arrays


@dataclass(frozen=True, eq=False)
class TwoPasses:
    """The two functions of one definition."""

    compiled: Compiled

    @property
    def derivative(self) -> Linearized:
        return self.compiled.graph.backward

    @property
    def kept(self) -> tuple[str, ...]:
        """The names of the residuals."""
        return _named(self.derivative.operands)

    @property
    def names(self) -> GradientNames:
        graph = self.compiled.graph
        inputs, outputs = _named(graph.inputs), _named(graph.outputs)
        heads = [t.name for t in self.derivative.heads]
        return GradientNames(
            {inputs[n]: f"d{inputs[n]}" for n in graph.differentiable},
            {outputs[n]: head for n, head in zip(graph.with_head, heads, strict=True)},
        )

    def forward(self, arrays: Sequence[Any]) -> tuple[Any, Residuals]:
        """The outputs in their pytree, and the residuals."""
        strong = self._strong(arrays)
        derivative, outputs = self.derivative, self.compiled.outputs
        found = bind(derivative.saving, *strong)
        every = (*strong, *found)
        results = found[: len(outputs.tensors)]
        value = results[0] if outputs.is_single else tree_unflatten(outputs.tree, results)
        return value, Residuals(self, [every[n] for n in derivative.places])

    def backward(self, residuals: Residuals, cotangents: Any) -> dict[str, Any]:
        """The gradients by name."""
        names, graph = self.names, self.compiled.graph
        made = self.derivative.backward(self.derivative.perturbed, graph.with_head)
        if made is None or not names.inputs:
            raise DifferentiationError(
                f"{graph.name} has no backward pass: none of its inputs has a derivative"
            )
        heads = [
            jax.lax.convert_element_type(c, t.dtype)
            for c, t in zip(self._listed(cotangents, names), self.derivative.heads, strict=True)
        ]
        return dict(zip(names.inputs.values(), bind(made, *residuals.arrays, *heads), strict=True))

    def _listed(self, cotangents: Any, names: GradientNames) -> list[Any]:
        """The cotangent of each output that has a derivative, from a mapping by name or a pytree like the outputs."""
        graph, wanted = self.compiled.graph, list(names.outputs.values())
        if isinstance(cotangents, Mapping) and set(cotangents) == set(wanted):
            return [cotangents[name] for name in wanted]
        leaves, tree = tree_flatten(cotangents)
        if tree != self.compiled.outputs.tree:
            raise FeedError(
                f"the cotangents of {graph.name} are {described(cotangents)}; give arrays in the form of its outputs, or by name "
                f"({', '.join(wanted)})"
            )
        listed = [leaves[n] for n in graph.with_head]
        for head, array in zip(self.derivative.heads, listed, strict=True):
            if all(isinstance(e, int) for e in head.shape) and tuple(array.shape) != head.shape:
                raise FeedError(
                    f"the cotangent {head.name} of {graph.name} has shape {tuple(array.shape)}; it has to be {head.shape}"
                )
        return listed

    def values(self, arrays: Sequence[Any], names: Sequence[str] | None) -> dict[str, Any]:
        """Tensors on the way to the outputs, by name."""
        graph = self.compiled.graph
        found = [t for t in topological_order(graph.outputs) if isinstance(t, Compute)]
        by_name = dict(zip(_named(found), found, strict=True))
        wanted = list(by_name) if names is None else list(names)
        for name in wanted:
            if name not in by_name:
                raise FeedError(f"{graph.name} has no intermediate {name}; it has {', '.join(by_name)}")
        made: Program = graph.program.kept(
            (INTERMEDIATES, tuple(wanted)),
            lambda: program(
                INTERMEDIATES, graph.name, graph.inputs, [by_name[n] for n in wanted], graph.policy
            ),
        )
        return dict(zip(wanted, bind(made, *self._strong(arrays)), strict=True)) if wanted else {}

    def _strong(self, arrays: Sequence[Any]) -> list[Any]:
        inputs = self.compiled.graph.inputs
        return [jax.lax.convert_element_type(a, t.dtype) for a, t in zip(arrays, inputs, strict=True)]


def _named(tensors: Sequence[Tensor]) -> tuple[str, ...]:
    """Different names for ``tensors``, those of the emitted code."""
    names = Names([])
    return tuple(names.new(t.name) for t in tensors)
