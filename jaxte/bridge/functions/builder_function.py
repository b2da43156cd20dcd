"""A function given by a builder of Tensors: code for each combination of shapes and static arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from types import MethodType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeAlias, TypeVar, overload

import jax
from jax.tree_util import tree_flatten, tree_leaves
from jax.typing import ArrayLike as ArrayLike  # for packages that do not know jax

from jaxte.bridge.calls.arguments import bind_parameters, has_tensor, mark_static, signature_of, split
from jaxte.bridge.calls.lifted import OfArrays
from jaxte.bridge.calls.options import NO_OPTIONS, Options
from jaxte.bridge.calls.outputs import check_inputs, collect_outputs, is_array, needs_look, x64_enabled
from jaxte.bridge.compiled.compile import Compiled, compiled
from jaxte.bridge.functions.function_methods import Function
from jaxte.bridge.primitive.lazy import BUILDING, PickledByName, found_under, lazy
from jaxte.lang.checks import described
from jaxte.lang.errors import FeedError, JaxteError, shorten
from jaxte.tensors.bodies.functions import evaluated
from jaxte.tensors.tensor import Tensor

P = ParamSpec("P")
Q = ParamSpec("Q")
R_co = TypeVar("R_co", covariant=True)
Array: TypeAlias = jax.Array


class BuilderFunction(PickledByName, OfArrays[P, R_co], Function):
    """A function given by a builder of Tensors: of Tensors it returns what the builder does, of arrays the same with arrays for Tensors."""

    def __init__(
        self,
        builder: Callable[P, R_co],
        name: str | None = None,
        options: Options = NO_OPTIONS,
        static_argnames: Sequence[str] = (),
        has_aux: bool = False,
    ) -> None:
        functools.update_wrapper(self, builder)
        super().__init__(builder)
        self.__name__ = name or getattr(builder, "__name__", None) or type(builder).__name__
        self.options = options
        self.static_argnames = tuple(static_argnames)
        self.has_aux = has_aux
        self._signature = signature_of(builder, self.static_argnames)
        self._calls: dict[
            Hashable, tuple[Compiled, tuple[int, ...] | None]
        ] = {}  # with the order of the arrays
        self._kept: dict[Hashable, Compiled] = {}

    def _called(self, *args: Any, **kwargs: Any) -> Any:
        try:
            leaves, treedef = tree_flatten((args, kwargs))
            if not self.static_argnames:
                try:
                    arrays, key = split(leaves)
                except FeedError:
                    if has_tensor(leaves):
                        return self._build(args, kwargs, leaves)
                    raise
                key += (treedef, x64_enabled())
                found = self._calls.get(tuple(key))
                if found is not None and found[1] is None:
                    return found[0].run(*arrays)
            if has_tensor(leaves):
                return self._build(args, kwargs, leaves)
            compiled, arrays = self._compiled(args, kwargs)
            return compiled.run(*arrays)
        except JaxteError as error:
            shorten(error)
            raise

    if not TYPE_CHECKING:  # whose types are those of OfArrays
        __call__ = _called

    @property
    def __globals__(self) -> dict[str, Any]:
        """Those of the builder, in which decorators around this function (``jaxtyping.jaxtyped``) look up its annotations."""
        return getattr(self.builder, "__globals__", {})

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(
        self: BuilderFunction[Concatenate[Any, Q], R_co], instance: object, owner: Any = None
    ) -> OfArrays[Q, R_co]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """As a method, the builder takes the instance first: a pytree of arrays, or named in ``static_argnames``."""
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> Any:
        """By its builder, without the code made so far; under the builder's name there may be what was made of it."""
        found = found_under(self.__module__, getattr(self, "__qualname__", ""))
        given = self.__name__, self.options, self.static_argnames, self.has_aux
        if isinstance(found, BuilderFunction) and found.builder is self.builder:
            return _of_builder, (found, *given)
        return BuilderFunction, (self.builder, *given)

    def _build(self, args: tuple[Any, ...], kwargs: dict[str, Any], leaves: Sequence[Any]) -> Any:
        """Called with Tensors, the builder extends the graph that they belong to."""
        for leaf in leaves:
            if is_array(leaf):
                raise FeedError(
                    f"{self.__name__} is called with Tensors and with {described(leaf)}; give all arrays as "
                    "te.placeholder in a definition, or arrays only"
                )
        result = evaluated(self.builder, *args, **kwargs)
        if self.options != NO_OPTIONS:
            tensors = [t for t in tree_leaves(result) if isinstance(t, Tensor)]
            given = [t for t in leaves if isinstance(t, Tensor)]
            override = self.options.overrides_for(result, args, kwargs)
            self.options.travel_with(tensors, given, override, self.__name__)
        return result

    def _compiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Compiled, list[Any]]:
        if self.static_argnames:
            args, kwargs = mark_static(self._signature, self.__name__, self.static_argnames, args, kwargs)
        leaves, treedef = tree_flatten((args, kwargs))
        arrays, key = split(leaves)
        call_key = (*key, treedef, x64_enabled())
        found = self._calls.get(call_key)
        if found is None:
            with BUILDING:
                parameters = bind_parameters(self._signature, self.__name__, treedef, leaves, arrays)
                own_key = (parameters.key, x64_enabled())
                if own_key not in self._kept:
                    self._kept[own_key] = self._compile(parameters)
                in_order = parameters.order == tuple(range(len(arrays)))
                found = self._kept[own_key], None if in_order else parameters.order
                if not any(map(needs_look, arrays)):
                    self._calls[call_key] = found
        compiled, order = found
        return compiled, arrays if order is None else [arrays[n] for n in order]

    def _compile(self, parameters: Any) -> Compiled:
        with parameters.in_errors():
            result = evaluated(self.builder, *parameters.args, **parameters.kwargs)
        outputs = collect_outputs(result, self.__name__, self.has_aux)
        check_inputs(parameters.placeholders, outputs.tensors, self.__name__)
        override = self.options.overrides_for(result, parameters.args, parameters.kwargs)
        options = replace(self.options, override=override)
        return compiled(self.__name__, parameters.placeholders, outputs, options)

    def recompile(self) -> None:
        self._calls.clear()
        self._kept.clear()

    @lazy
    def with_aux(self) -> BuilderFunction[P, R_co]:
        """The same function, of whose pair of results only the first is differentiated."""
        return BuilderFunction(self.builder, self.__name__, self.options, self.static_argnames, has_aux=True)

    @property
    def custom_vjp(self) -> Any:
        raise AttributeError(
            f"{self.__name__} has one custom_vjp for each combination of shapes and static arguments; "
            "custom_vjp_for(*args) returns that of one call"
        )


def _of_builder(function: BuilderFunction[P, R_co], *given: Any) -> BuilderFunction[P, R_co]:
    """Another function of the builder of a function that is found by name."""
    return BuilderFunction(function.builder, *given)
