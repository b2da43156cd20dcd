"""``function``: a builder or a graph as one object that JAX calls, differentiates, batches and compiles.

A function given by inputs and outputs of a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, ParamSpec, Protocol, TypeAlias, TypedDict, TypeVar, Unpack, overload

import jax

from jaxte.bridge.calls.options import NO_OPTIONS, Options
from jaxte.bridge.calls.outputs import (
    NamedInputs,
    check_inputs,
    collect_outputs,
    is_array,
    needs_look,
    x64_enabled,
)
from jaxte.bridge.compiled.compile import Compiled, Graph, compiled
from jaxte.bridge.functions.builder_function import BuilderFunction
from jaxte.bridge.functions.function_methods import Function
from jaxte.bridge.primitive.lazy import lazy
from jaxte.derivatives.overrides import Fdiff, Overrides
from jaxte.lang.checks import described, wants_arguments
from jaxte.lang.errors import DefinitionError
from jaxte.lower.cost.policy import budget_bytes, check_save, unwanted
from jaxte.tensors.tensor import Tensor

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


P = ParamSpec("P")
R = TypeVar("R")
Inputs = Tensor | Sequence[Tensor] | Mapping[str, Tensor]
Override: TypeAlias = Overrides | Callable[..., Overrides]
Save: TypeAlias = str | int | Sequence[str] | Sequence[Tensor] | Mapping[Tensor, bool] | Mapping[str, bool]


class FunctionOptions(TypedDict, total=False):
    """The keywords of :func:`function`."""

    name: str | None
    override: Override | None
    fdiff: Fdiff | None
    static_argnames: str | Sequence[str]
    platform: str | None
    max_memory: float | None
    forms: Mapping[str, str] | None
    without: str | Sequence[str]
    debug: bool
    save: Save


class Decorator(Protocol):
    """What :func:`function` with options alone returns."""

    def __call__(self, builder: Callable[P, R], /) -> BuilderFunction[P, R]: ...


@overload
def function(
    inputs: Callable[P, R], outputs: None = None, **options: Unpack[FunctionOptions]
) -> BuilderFunction[P, R]: ...
@overload
def function(inputs: None = None, outputs: None = None, **options: Unpack[FunctionOptions]) -> Decorator: ...
@overload
def function(
    inputs: Inputs, outputs: Tensor, **options: Unpack[FunctionOptions]
) -> GraphFunction[jax.Array]: ...
@overload
def function(
    inputs: Inputs, outputs: list[Tensor], **options: Unpack[FunctionOptions]
) -> GraphFunction[list[jax.Array]]: ...
@overload
def function(
    inputs: Inputs, outputs: tuple[Tensor, ...], **options: Unpack[FunctionOptions]
) -> GraphFunction[tuple[jax.Array, ...]]: ...
@overload
def function(
    inputs: Inputs, outputs: dict[str, Tensor], **options: Unpack[FunctionOptions]
) -> GraphFunction[dict[str, jax.Array]]: ...
@overload
def function(inputs: Inputs, outputs: object, **options: Unpack[FunctionOptions]) -> GraphFunction[Any]: ...
@wants_arguments
def function(
    inputs: Any = None,
    outputs: Any = None,
    *,
    name: str | None = None,
    override: Override | None = None,
    fdiff: Fdiff | None = None,
    static_argnames: str | Sequence[str] = (),
    platform: str | None = None,
    max_memory: float | None = None,
    forms: Mapping[str, str] | None = None,
    without: str | Sequence[str] = (),
    debug: bool = False,
    save: Save = "auto",
) -> Any:
    """Makes a function of arrays, with derived gradients under every transformation of JAX.

    As a decorator over a *builder*, which takes Tensors and returns Tensors::

        @te.function
        def dense(x, w):
            k = te.reduce_axis((0, x.shape[1]), "k")
            return te.compute((x.shape[0], w.shape[1]), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k))

        y = dense(jnp.ones((2, 3)), jnp.ones((3, 4)))

    Shapes and dtypes are those that the arrays of the call have in JAX (NumPy's float64 is float32 there, unless
    ``jax_enable_x64`` is on), and code is kept for each combination. Arguments may be
    pytrees of arrays. Arrays of JAX and NumPy (NumPy scalars too) become Tensors; Python numbers, booleans, strings,
    functions and None are static: the builder sees them as they are.

    Over a graph that exists, ``te.function(inputs, outputs)``: it is called with arrays in the order of ``inputs``, or
    by the names of the placeholders, and returns arrays in the form of ``outputs`` (a Tensor, or a list, tuple or
    dict of them). Symbolic sizes take their values from the shapes of the arrays.

    Args:
        inputs: the builder, or the placeholders of a graph.
        outputs: the results of a graph.
        name: label in tracebacks and in the emitted module.
        override: ``{tensor: (dependencies, fn)}`` as in :func:`differentiate`; over a builder, a function
            ``override(result, *args)`` that returns such a dict.
        fdiff: replaces the derivative of every pair of tensors, as in :func:`differentiate`.
        static_argnames: parameters of a builder that are static as they are, of any hashable type.
        platform: "cpu", "gpu" or "tpu", for which forms are chosen; by default the one that JAX runs on.
        max_memory: bytes that one intermediate of a reduction may take. Larger ones are made tile by tile, in the
            backward pass too.
        forms: form to take by the name of a tensor ("*" for all), in place of the cheapest by estimate;
            ``te.explain`` shows the names of the forms that each tensor offers.
        without: names of forms and rewrites not to use where there is another way; ``te.explain`` shows those that were.
        debug: whether each call tests the facts that are stated of the inputs (see ``te.facts``), and each array program that is made
            is verified: bound names, shapes, dtypes, positions inside.
        save: what the forward pass keeps for the backward pass, of the tensors between inputs and outputs: ``"auto"``, what costs more to
            compute again than to keep; ``"all"`` that is read; ``"nothing"``; ``"single_use"``, what one tensor reads only; a list of
            tensors, or of their names; a number of bytes, within which the least work is done again; or ``{tensor: True or False}``,
            which keeps some and computes some again, and leaves the rest to ``"auto"``. ``te.explain`` lists what is kept.

    Raises:
        LoweringError: ``save`` names a tensor that is not there or is too small a budget; the platform is unknown, ``max_memory``, ``forms`` or ``without`` is of no use, or, at the call, a tensor is above the
            budget and cannot be computed in tiles.
    """
    if not (name is None or isinstance(name, str)):
        raise DefinitionError(f"the name of a function is {described(name)}; give a string")
    forms = {} if forms is None else forms
    options = Options(
        override, fdiff, platform, budget_bytes(max_memory), forms, unwanted(without), debug, check_save(save)
    )
    if outputs is not None:
        if static_argnames:
            raise DefinitionError("static_argnames is for builders; a graph has no static arguments left")
        return GraphFunction(inputs, outputs, name, options)
    names = _names_of_static(static_argnames)
    if inputs is None:
        return lambda builder: _over_builder(builder, name, options, names)
    return _over_builder(inputs, name, options, names)


def _names_of_static(given: str | Sequence[str]) -> Sequence[str]:
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise DefinitionError(
            f"static_argnames is {described(given)}; give the name of a parameter, or a tuple of names"
        )
    return names


def _over_builder(
    builder: Any, name: str | None, options: Options, static_argnames: Sequence[str]
) -> BuilderFunction[..., Any]:
    if not callable(builder) or isinstance(builder, Tensor):
        raise DefinitionError(
            f"te.function of {described(builder)}: give a function of Tensors, or inputs and outputs of a graph"
        )
    return BuilderFunction(builder, name, options, static_argnames)
