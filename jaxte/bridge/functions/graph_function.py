"""A function given by inputs and outputs of a graph."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any, Generic, TypeVar

from jaxte.bridge.calls.arrays import is_array, needs_look, x64_enabled
from jaxte.bridge.calls.named import NamedInputs
from jaxte.bridge.calls.options import NO_OPTIONS, Options
from jaxte.bridge.calls.outputs import check_inputs, collect_outputs
from jaxte.bridge.compiled.compile import Graph
from jaxte.bridge.compiled.compiled import Compiled, compiled
from jaxte.bridge.functions.function_methods import Function
from jaxte.bridge.primitive.lazy import lazy

R_co = TypeVar("R_co", covariant=True)


class GraphFunction(Function, Generic[R_co]):
    """A function given by inputs and outputs of a graph."""

    def __init__(
        self,
        inputs: Any,
        outputs: Any,
        name: str | None = None,
        options: Options = NO_OPTIONS,
        has_aux: bool = False,
    ) -> None:
        self.inputs = NamedInputs.of(inputs)
        self.outputs = outputs
        collected = collect_outputs(outputs, "te.function(inputs, outputs)", has_aux)
        self.__name__ = name or collected.tensors[0].name
        self.has_aux = has_aux
        self.options = options
        check_inputs(self.inputs.tensors, collected.tensors, self.__name__)
        self._code = compiled(self.__name__, self.inputs.tensors, collected, options)
        self._checked: set[Hashable] = set()

    def __call__(self, *args: Any, **kwargs: Any) -> R_co:
        if not kwargs:
            key = (
                *((type(a), getattr(a, "shape", a), getattr(a, "dtype", None)) for a in args),
                x64_enabled(),
            )
            try:
                known = key in self._checked
            except TypeError:  # a list among the arguments
                known = False
            if known:
                return self._code.run(*args)
        _, arrays = self._compiled(args, kwargs)
        return self._code.run(*arrays)

    def __reduce__(self) -> Any:
        """By the graph, without the code made so far."""
        given = self.inputs.by_name, self.outputs, self.__name__, self.options, self.has_aux
        return GraphFunction, given

    def _compiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Compiled, list[Any]]:
        arrays = self.inputs.arrays(self.__name__, args, kwargs)
        if all(is_array(a) and not needs_look(a) for a in args) and not kwargs:
            self._checked.add((*((type(a), a.shape, a.dtype) for a in args), x64_enabled()))
        return self._code, arrays

    def _graph(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Graph:
        if args or kwargs:
            self._compiled(args, kwargs)
        return self._code.graph

    @property
    def custom_vjp(self) -> Any:
        """The plain ``jax.custom_vjp`` object that the emitted module defines as ``fn``."""
        return self._code.graph.module["fn"]

    def recompile(self) -> None:
        self._code = Compiled(
            replace(self._code.graph, policy=self.options.policy()), self._code.outputs, self.options.debug
        )

    @lazy
    def with_aux(self) -> GraphFunction[Any]:
        """The same function, of whose pair of results only the first is differentiated."""
        return GraphFunction(self.inputs.by_name, self.outputs, self.__name__, self.options, has_aux=True)
