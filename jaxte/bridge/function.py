"""``function``: a builder or a graph as one object that JAX calls, differentiates, batches and compiles."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from types import MethodType
from typing import Any

from jax.tree_util import tree_flatten, tree_leaves

from jaxte.autodiff.overrides import Fdiff
from jaxte.bridge.arguments import (
    bind_parameters,
    has_tensor,
    mark_static,
    signature_of,
    split,
)
from jaxte.bridge.arrays import is_array, needs_look, x64_enabled
from jaxte.bridge.compile import Graph
from jaxte.bridge.compiled import Compiled, compiled
from jaxte.bridge.explain import Explanation, explain_graph
from jaxte.bridge.lazy import BUILDING, lazy
from jaxte.bridge.named import NamedInputs
from jaxte.bridge.options import NO_OPTIONS, Options
from jaxte.bridge.outputs import check_inputs, collect_outputs
from jaxte.bridge.sparse import places_of, sparse_of
from jaxte.bridge.two_passes import GradientNames, Residuals, TwoPasses
from jaxte.lang.checks import described, one_of_type
from jaxte.lang.errors import DefinitionError, FeedError
from jaxte.lower.cost.policy import budget_bytes, unwanted
from jaxte.lower.cost.saving import check_save
from jaxte.meaning.cost import Cost, cost
from jaxte.tensors.tensor import Tensor, evaluated


class Function:
    """A function of arrays whose gradient is derived as index expressions; see :func:`function`."""

    __name__: str
    has_aux = False
    with_aux: Any

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def _compiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Compiled, list[Any]]:
        """The code for these arguments, and their arrays in the order in which it takes them."""
        raise NotImplementedError

    def _graph(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Graph:
        return self._compiled(args, kwargs)[0].graph

    def recompile(self) -> None:
        """Forgets the code that was made so far, so that later measurements count."""
        raise NotImplementedError

    def source(self, *args: Any, **kwargs: Any) -> str:
        """The text of the module that runs for these arguments (arrays or ``jax.ShapeDtypeStruct``)."""
        return self._graph(args, kwargs).module.text

    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """What each tensor was lowered to and why, scatters, residuals, and what XLA counts."""
        return explain_graph(self._graph(args, kwargs))

    def cost(self, *args: Any, **kwargs: Any) -> Cost:
        """``te.cost`` of the forward definition."""
        return cost(self._graph(args, kwargs).outputs)

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """``jax.jit(self).lower(...)``."""
        compiled, arrays = self._compiled(args, kwargs)
        return compiled.run.lower(*arrays)

    def forward_with_residuals(self, *args: Any, **kwargs: Any) -> tuple[Any, Residuals]:
        """The outputs, and what the forward pass keeps for :meth:`backward`: arrays by the names of their tensors.

        Example:
            >>> y, kept = fn.forward_with_residuals(x)
            >>> fn.backward(kept, jnp.ones_like(y))["dx"]
        """
        compiled, arrays = self._compiled(args, kwargs)
        return TwoPasses(compiled).forward(arrays)

    def backward(self, residuals: Residuals, cotangents: Any) -> dict[str, Any]:
        """The gradients by name (see :meth:`gradient_names`), from what :meth:`forward_with_residuals` kept.

        Args:
            residuals: from the forward pass.
            cotangents: in the form of the outputs, or ``{name: array}`` by the names of their gradients.
        """
        one_of_type(
            residuals, Residuals, f"the residuals of {self.__name__}", "what fn.forward_with_residuals kept"
        )
        return residuals.passes.backward(residuals, cotangents)

    def gradient_names(self, *args: Any, **kwargs: Any) -> GradientNames:
        """From the names of inputs and outputs to the names of their gradients."""
        return TwoPasses(self._compiled(args, kwargs)[0]).names

    def intermediates(self, *args: Any, names: Sequence[str] | None = None, **kwargs: Any) -> dict[str, Any]:
        """The values of tensors on the way to the outputs, and of these, by name; all of them if no ``names`` are given."""
        compiled, arrays = self._compiled(args, kwargs)
        return TwoPasses(compiled).values(arrays, names)

    def sparse_jacobian(
        self, *args: Any, argnums: int | Sequence[int] = 0, flat: bool = False, **kwargs: Any
    ) -> Any:
        """The Jacobian as ``jax.experimental.sparse.BCOO``, sorted and unique, its pattern known from the definition.

        Args:
            args: of the call; the Jacobian is with respect to those at ``argnums``, which are arrays.
            argnums: one position, or several.
            flat: whether the matrix has rows and columns, for ``scipy.sparse`` for instance, and not the shape ``output.shape + input.shape``.

        Returns:
            One matrix; a tuple of them for several ``argnums``, in a list if there are several outputs.
        """
        return self._sparse(args, kwargs, argnums, False, flat)

    def sparse_hessian(
        self, *args: Any, argnums: int | Sequence[int] = 0, flat: bool = False, **kwargs: Any
    ) -> Any:
        """The Hessian of a scalar as ``BCOO``; for several ``argnums`` a tuple of rows of them. See :meth:`sparse_jacobian`."""
        return self._sparse(args, kwargs, argnums, True, flat)

    def _sparse(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        argnums: int | Sequence[int],
        second: bool,
        flat: bool,
    ) -> Any:
        compiled, arrays = self._compiled(args, kwargs)
        wanted = places_of(self.__name__, args, arrays, argnums)
        rows = sparse_of(compiled, arrays, wanted, second, flat)
        if isinstance(argnums, int):
            blocks = [row[0] for row in rows]
            return blocks[0] if len(blocks) == 1 else blocks
        if second:
            return tuple(map(tuple, rows))
        return tuple(rows[0]) if len(rows) == 1 else [tuple(row) for row in rows]

    def custom_vjp_for(self, *args: Any, **kwargs: Any) -> Any:
        """The plain ``jax.custom_vjp`` object of the emitted module, a function of the arrays among the arguments."""
        return self._graph(args, kwargs).module["fn"]

    def __copy__(self) -> Function:
        return self

    def __deepcopy__(self, memo: object) -> Function:
        """Itself, as for every function: what it keeps is code."""
        return self

    def __repr__(self) -> str:
        return f"<jaxte.function {self.__name__}>"


class BuilderFunction(Function):
    """A function given by a builder of Tensors."""

    def __init__(
        self,
        builder: Callable[..., Any],
        name: str | None = None,
        options: Options = NO_OPTIONS,
        static_argnames: Sequence[str] = (),
        has_aux: bool = False,
    ) -> None:
        functools.update_wrapper(self, builder)
        self.builder = builder
        self.__name__ = name or getattr(builder, "__name__", None) or type(builder).__name__
        self.options = options
        self.static_argnames = tuple(static_argnames)
        self.has_aux = has_aux
        self._signature = signature_of(builder, self.static_argnames)
        self._calls: dict[
            Hashable, tuple[Compiled, tuple[int, ...] | None]
        ] = {}  # with the order of the arrays
        self._kept: dict[Hashable, Compiled] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
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

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """As a method, the builder takes the instance first: a pytree of arrays, or named in ``static_argnames``."""
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> Any:
        """By name where it is found under it, as functions are pickled; else by its builder, without the code made so far."""
        found: Any = sys.modules.get(self.__module__)
        path = getattr(self, "__qualname__", "")
        for name in path.split("."):
            found = getattr(found, name, None)
        if found is self:
            return path
        return BuilderFunction, (
            self.builder,
            self.__name__,
            self.options,
            self.static_argnames,
            self.has_aux,
        )

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
    def with_aux(self) -> BuilderFunction:
        """The same function, of whose pair of results only the first is differentiated."""
        return BuilderFunction(self.builder, self.__name__, self.options, self.static_argnames, has_aux=True)

    @property
    def custom_vjp(self) -> Any:
        raise AttributeError(
            f"{self.__name__} has one custom_vjp for each combination of shapes and static arguments; "
            "custom_vjp_for(*args) returns that of one call"
        )


class GraphFunction(Function):
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

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
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
    def with_aux(self) -> GraphFunction:
        """The same function, of whose pair of results only the first is differentiated."""
        return GraphFunction(self.inputs.by_name, self.outputs, self.__name__, self.options, has_aux=True)


def function(
    inputs: Any = None,
    outputs: Any = None,
    *,
    name: str | None = None,
    override: Any = None,
    fdiff: Fdiff | None = None,
    static_argnames: str | Sequence[str] = (),
    platform: str | None = None,
    max_memory: float | None = None,
    forms: Mapping[str, str] | None = None,
    without: str | Sequence[str] = (),
    debug: bool = False,
    save: Any = "auto",
) -> Any:
    """A function of arrays with derived gradients, through which every transformation of JAX goes.

    As a decorator over a *builder*, which takes Tensors and returns Tensors::

        @te.function
        def dense(x, w):
            k = te.reduce_axis((0, x.shape[1]), "k")
            return te.compute((x.shape[0], w.shape[1]), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k))

        y = dense(jnp.ones((2, 3)), jnp.ones((3, 4)))

    Shapes and dtypes are those of the arrays of the call, and code is kept for each combination. Arguments may be
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
    names = (static_argnames,) if isinstance(static_argnames, str) else static_argnames
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise DefinitionError(
            f"static_argnames is {described(static_argnames)}; give the name of a parameter, or a tuple of names"
        )
    if inputs is None:
        return lambda builder: _over_builder(builder, name, options, names)
    return _over_builder(inputs, name, options, names)


def _over_builder(
    builder: Any, name: str | None, options: Options, static_argnames: Sequence[str]
) -> BuilderFunction:
    if not callable(builder) or isinstance(builder, Tensor):
        raise DefinitionError(
            f"te.function of {described(builder)}: give a function of Tensors, or inputs and outputs of a graph"
        )
    return BuilderFunction(builder, name, options, static_argnames)
