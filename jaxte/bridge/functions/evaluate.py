"""Tensors to arrays, and the text and the explanation of tensors and functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Generic, TypeVar, overload

import jax
from jax.tree_util import tree_leaves
from jax.typing import ArrayLike

from jaxte.bridge.calls.outputs import Outputs, check_value, checked_arrays, collect_outputs
from jaxte.bridge.compiled.compile import Compiled, Graph, compiled
from jaxte.bridge.compiled.explain import Explanation, explain_graph
from jaxte.bridge.functions.builder_function import BuilderFunction
from jaxte.bridge.functions.function_methods import Function
from jaxte.bridge.primitive.lazy import BUILDING
from jaxte.derivatives.reverse import DifferentiationResult
from jaxte.lang.checks import described, wants_arguments
from jaxte.lang.errors import DefinitionError
from jaxte.meaning.feeds import check_feeds
from jaxte.show.printing import Code
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Tensor

Report_co = TypeVar("Report_co", covariant=True)


@overload
def evaluate(tensors: Tensor, feeds: Mapping[Any, ArrayLike]) -> jax.Array: ...
@overload
def evaluate(tensors: tuple[Tensor, ...], feeds: Mapping[Any, ArrayLike]) -> tuple[jax.Array, ...]: ...
@overload
def evaluate(
    tensors: list[Tensor] | DifferentiationResult, feeds: Mapping[Any, ArrayLike]
) -> list[jax.Array]: ...
@overload
def evaluate(tensors: Mapping[str, Tensor], feeds: Mapping[Any, ArrayLike]) -> dict[str, jax.Array]: ...
@wants_arguments
def evaluate(tensors: Any, feeds: Mapping[Any, ArrayLike]) -> Any:
    """The values of ``tensors`` as JAX arrays, by the emitted code.

    Args:
        tensors: a Tensor, or a list, tuple or dict of them (a DifferentiationResult too).
        feeds: ``{placeholder: array}``, an array for each input.

    Raises:
        FeedError: an array that is missing, not asked for, or does not fit its placeholder.

    Example:
        >>> X = te.placeholder((3,), name="X")
        >>> te.evaluate(te.compute((3,), lambda i: 2 * X[2 - i]), {X: np.float32([1, 2, 3])})
        Array([6., 4., 2.], dtype=float32)
    """
    outputs = collect_outputs(_listed(tensors), "te.evaluate(tensors, feeds)")
    inputs = placeholders_of(outputs.tensors)
    if not isinstance(feeds, Mapping):
        check_feeds(inputs, feeds)
    for key, value in feeds.items():
        if isinstance(key, Placeholder):
            check_value("te.evaluate", key, value)
    if len(feeds) != len(inputs) or not all(isinstance(k, Tensor) and k in feeds for k in inputs):
        check_feeds(inputs, feeds)  # names what is missing or too many
    arrays = checked_arrays(inputs, feeds)
    with BUILDING:
        code = _code(outputs)
    return code.run(*arrays)


@lru_cache(maxsize=64)
def _code(outputs: Outputs) -> Compiled:
    """The code of the tensors that were evaluated last."""
    return compiled("evaluate", placeholders_of(outputs.tensors), outputs)


def _listed(tensors: Any) -> Any:
    """Sequences that are no pytrees, as lists."""
    return (
        list(tensors) if isinstance(tensors, Sequence) and not isinstance(tensors, (tuple, str)) else tensors
    )


def placeholders_of(tensors: Sequence[Tensor]) -> tuple[Placeholder, ...]:
    """The inputs that ``tensors`` need, in order of appearance."""
    return tuple(t for t in topological_order(tensors) if isinstance(t, Placeholder))


class Explained(ABC, Generic[Report_co]):
    """What says itself which code runs for it; functions that other layers make of parts of several graphs."""

    @abstractmethod
    def source(self, *args: Any, **kwargs: Any) -> str:
        """The text that runs for these arguments."""

    @abstractmethod
    def explain(self, *args: Any, **kwargs: Any) -> Report_co:
        """What became of its parts, and why."""


@wants_arguments
def source(x: object, *args: object, **kwargs: object) -> str:
    """The emitted Python module, exactly as it runs. The module imports only jax, and a notebook shows it highlighted.

    Args:
        x: a jaxte function (or a builder) with the arguments of a call, of which shapes and dtypes count; what ``te.adjoint``
            or ``te.grad`` made of a JAX function, with such arguments; or a Tensor, several Tensors, or the result of :func:`differentiate`, as one function of their inputs.

    Example:
        >>> print(te.source(Y))
    """
    if isinstance(x, Explained):
        return Code(x.source(*args, **kwargs))
    if _is_function(x):
        return Code(as_function(x).source(*args, **kwargs))
    return Code(graph_of(x).forward_module.text)


@overload
def explain(  # type: ignore[overload-overlap]  # what explains itself comes first
    x: Explained[Report_co], *args: object, **kwargs: object
) -> Report_co: ...
@overload
def explain(x: object, *args: object, **kwargs: object) -> Explanation: ...
@wants_arguments
def explain(x: object, *args: object, **kwargs: object) -> Any:
    """Reports how each tensor was lowered and why, which scatters are left, what is saved, and what XLA counts.

    Takes what :func:`source` takes.

    Example:
        >>> assert not te.explain(net, x, w).scatters
    """
    if isinstance(x, Explained):
        return x.explain(*args, **kwargs)  # type: ignore[no-any-return]
    if _is_function(x):
        return as_function(x).explain(*args, **kwargs)
    return explain_graph(graph_of(x))


def graph_of(tensors: Any) -> Graph:
    """The graph that ``evaluate`` runs for ``tensors``, without a backward pass."""
    if not any(isinstance(leaf, Tensor) for leaf in tree_leaves(_listed(tensors))):
        raise DefinitionError(
            f"te.source and te.explain take a function with the arguments of a call, or Tensors, not {described(tensors)}"
        )
    outputs = collect_outputs(_listed(tensors), "te.source and te.explain")
    name = outputs.tensors[0].name if outputs.is_single else "tensors"
    return replace(compiled(name, placeholders_of(outputs.tensors), outputs).graph, with_head=())


def _is_function(x: Any) -> bool:
    return isinstance(x, Function) or (callable(x) and not isinstance(x, (Tensor, Sequence, Mapping)))


def as_function(f: Any) -> Function:
    """A jaxte function as it is; a builder made one."""
    if isinstance(f, Function):
        return f
    if isinstance(f, Tensor) or not callable(f):
        raise DefinitionError(
            f"expected a jaxte function or a builder of Tensors, got {f!r}; te.function(inputs, outputs) makes one of a graph"
        )
    return BuilderFunction(f)
