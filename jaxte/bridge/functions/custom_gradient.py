"""A definition with a derivative of its own: ``te.custom_gradient`` after the pattern of ``jax.custom_vjp`` and ``jax.custom_jvp``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from jax.tree_util import tree_flatten, tree_leaves, tree_unflatten

from jaxte.autodiff.sums.blocks import zero_adjoint
from jaxte.bridge.calls.arguments import has_tensor
from jaxte.bridge.calls.lifted import OfArrays
from jaxte.bridge.functions.builder_function import BuilderFunction
from jaxte.bridge.functions.function_methods import Function
from jaxte.bridge.given.array_gradient import ArrayGradient
from jaxte.bridge.primitive.lazy import PickledByName
from jaxte.derivatives.given_overrides import check_covered, check_dependencies
from jaxte.derivatives.overrides import Override, listed_names
from jaxte.derivatives.regions import at_several, transposed_rule
from jaxte.lang.checks import described, wants_arguments
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.errors import DefinitionError, DifferentiationError
from jaxte.tensors.bodies.functions import evaluated
from jaxte.tensors.elementwise import copy_of
from jaxte.tensors.tensor import Compute, Tensor

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
_Pair = tuple[Callable[..., Any], Callable[..., Any]]


class CustomGradient(PickledByName, OfArrays[P, R_co]):
    """See :func:`custom_gradient`."""

    __name__: str

    def __init__(self, fn: Callable[P, R_co]) -> None:
        functools.update_wrapper(self, fn)
        super().__init__(fn.builder if isinstance(fn, BuilderFunction) else fn)
        self.fn = self.builder
        self.__name__ = getattr(fn, "__name__", type(fn).__name__)
        self._grad: _Pair | None = None
        self._jvp: Callable[..., Any] | None = None
        self._arrays = False
        self._function: Function | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_function": None}

    def defgrad(
        self, forward: Callable[..., Any], backward: Callable[..., Any], arrays: bool = False
    ) -> None:
        """The reverse mode: ``forward(*args) -> (value, residuals)``, ``backward(residuals, head) -> (adjoint of each argument)``.

        Args:
            forward: of Tensors; its value is that of the definition, and what it returns as residuals (any pytree of Tensors) is what
                the backward pass starts from.
            backward: returns a tuple with a Tensor for each argument that is one, None where nothing flows.
            arrays: whether both are functions of arrays, as those of ``jax.custom_vjp``; the value is then that of the definition.
        """
        self._set(arrays, forward, backward)
        self._grad = forward, backward

    def defjvp(self, jvp: Callable[..., Any], arrays: bool = False) -> None:
        """The forward mode: ``jvp(primals, tangents) -> (value, tangent)``, of Tensors, or of arrays with ``arrays``.

        Without ``defgrad`` the reverse mode is its transpose.
        """
        self._set(arrays, jvp)
        self._jvp = jvp

    def _set(self, arrays: bool, *rules: Any) -> None:
        for rule in rules:
            if not callable(rule):
                raise DifferentiationError(f"a rule of {self.__name__} is {described(rule)}; give a function")
        if (self._grad or self._jvp) and arrays is not self._arrays:
            raise DifferentiationError(
                f"{self.__name__} has rules of Tensors and of arrays; give both with arrays=True, or both without"
            )
        self._arrays = arrays
        self._function = None

    def _called(self, *args: Any, **kwargs: Any) -> Any:
        """The definition with its derivative, of Tensors; of arrays, its value, differentiated in JAX by the same rules."""
        if self._grad is None and self._jvp is None:
            raise DifferentiationError(
                f"{self.__name__} has no derivative yet; give it one by {self.__name__}.defgrad(forward, backward) or .defjvp(jvp)"
            )
        if kwargs:
            args = inspect.signature(self.builder).bind(*args, **kwargs).args
        if has_tensor(tree_leaves(args)):
            return self._defined(args)
        if self._function is None:
            self._function = BuilderFunction(lambda *given: self._defined(given), self.__name__)
        return self._function(*args)

    if not TYPE_CHECKING:  # whose types are those of OfArrays
        __call__ = _called

    def _defined(self, args: tuple[Any, ...]) -> Any:
        sources = [t for t in tree_leaves(args) if isinstance(t, Tensor)]
        residuals: Any = None
        if self._grad is not None and not self._arrays:
            pair = evaluated(self._grad[0], *args)
            if not (isinstance(pair, tuple) and len(pair) == 2):
                raise DifferentiationError(
                    f"the forward function of {self.__name__} returns {described(pair)}; it has to return a pair (value, residuals)"
                )
            value, residuals = pair
        else:
            value = evaluated(self.builder, *args)
        leaves, tree = tree_flatten(value)
        for leaf in leaves:
            if not isinstance(leaf, Tensor):
                raise DefinitionError(f"{self.__name__} returns {described(leaf)}; return Tensors")
        outputs = tuple(_own(t, sources) for t in leaves)
        override = self._override(outputs, sources, args, residuals)
        check_dependencies(outputs, override.dependencies)
        check_covered(outputs, override.dependencies)
        for output in outputs:
            output.with_override(override)
        return tree_unflatten(tree, outputs)

    def _override(
        self, outputs: tuple[Tensor, ...], sources: Sequence[Tensor], args: tuple[Any, ...], residuals: Any
    ) -> Override:
        region = len(outputs) > 1
        if self._arrays:
            forward, backward = (None, None) if self._grad is None else self._grad
            return ArrayGradient(tuple(sources), forward, backward, self._jvp).of(outputs, region)
        moving = tuple(t for t in sources if is_inexact(t.dtype))
        rules = _SymbolicRules(self.__name__, args, residuals, self._grad, self._jvp, outputs, moving)
        return Override(outputs, moving, rules.adjoints, rules.tangents if self._jvp else None, region)


class _SymbolicRules:
    """Rules of Tensors, for the arguments of one call."""

    def __init__(
        self,
        label: str,
        args: tuple[Any, ...],
        residuals: Any,
        grad: _Pair | None,
        jvp: Callable[..., Any] | None,
        outputs: tuple[Tensor, ...],
        moving: tuple[Tensor, ...],
    ) -> None:
        self._label = label
        self._args = args
        self._residuals = residuals
        self._grad = grad
        self._jvp = jvp
        self._outputs = outputs
        self._moving = moving

    def adjoints(self, outs: Any, inputs: Any, heads: Any) -> list[Tensor]:
        listed = [heads] if isinstance(heads, Tensor) else list(heads)
        prefix = listed[0].shape[: listed[0].ndim - self._outputs[0].ndim]
        if self._grad is None:
            return transposed_rule(self._pushed, self._moving, listed, f"the tangent rule of {self._label}")
        return at_several(
            self._pulled, self._outputs, listed, prefix, f"the backward function of {self._label}"
        )

    def tangents(self, outs: Any, inputs: Any, moves: Sequence[Tensor]) -> list[Tensor]:
        prefix = moves[0].shape[: moves[0].ndim - self._moving[0].ndim]
        return at_several(self._pushed, self._moving, moves, prefix, f"the tangent rule of {self._label}")

    def _pulled(self, heads: Sequence[Tensor]) -> list[Tensor]:
        assert self._grad is not None
        given = heads[0] if len(self._outputs) == 1 else tuple(heads)
        returned = evaluated(self._grad[1], self._residuals, given)
        found = list(returned) if isinstance(returned, (tuple, list)) else [returned]
        tensors = [t for t in tree_leaves(self._args) if isinstance(t, Tensor)]
        flat = tree_leaves(found, is_leaf=lambda leaf: leaf is None)
        if len(flat) != len(tensors):
            raise DifferentiationError(
                f"the backward function of {self._label} returns {len(flat)} adjoints for {len(tensors)} arguments "
                f"({listed_names(tensors)}); return a tuple of one for each, None where nothing flows"
            )
        pairs = [(t, a) for t, a in zip(tensors, flat, strict=True) if is_inexact(t.dtype)]
        return [zero_adjoint(t, ()) if a is None else a for t, a in pairs]

    def _pushed(self, moves: Sequence[Tensor]) -> list[Tensor]:
        assert self._jvp is not None
        leaves, tree = tree_flatten(self._args)
        by_tensor = dict(zip(self._moving, moves, strict=True))
        moved = tree_unflatten(tree, [by_tensor.get(t) if isinstance(t, Tensor) else None for t in leaves])
        returned = evaluated(self._jvp, self._args, moved)
        if not (isinstance(returned, tuple) and len(returned) == 2):
            raise DifferentiationError(
                f"the tangent rule of {self._label} returns {described(returned)}; it has to return a pair (value, tangent)"
            )
        return tree_leaves(returned[1])


def _own(value: Tensor, sources: Sequence[Tensor]) -> Tensor:
    """``value``, or a copy where it has a derivative of its own or is an argument."""
    if isinstance(value, Compute) and value.override is None and not any(value is s for s in sources):
        return value
    return copy_of(value, value.name)


@wants_arguments
def custom_gradient(fn: Callable[P, R]) -> CustomGradient[P, R]:
    """``fn``, a builder of Tensors, with a derivative of its own; after the pattern of ``jax.custom_vjp``.

    Called with Tensors it is a part of any definition, with arrays a function with its derivative. The derivative goes wherever the
    result goes; in forward mode it is the transpose of the backward function, unless that is one of arrays or not linear: then
    ``defjvp`` gives it.

    Raises:
        DifferentiationError: at the call, no derivative was given, or one that does not cover what ``fn`` reads.

    Example:
        >>> @te.custom_gradient
        ... def softplus(x):
        ...     return te.log1p(te.exp(x))
        >>> softplus.defgrad(lambda x: (te.log1p(te.exp(x)), x), lambda x, head: (head * te.sigmoid(x),))
        >>> jax.grad(lambda x: softplus(x).sum())(jnp.float32([0.0, 100.0]))
        Array([0.5, 1. ], dtype=float32)
    """
    if not callable(fn) or isinstance(fn, Tensor):
        raise DefinitionError(f"te.custom_gradient of {described(fn)}; give a function of Tensors")
    return CustomGradient(fn)
