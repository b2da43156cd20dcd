"""The gradient of a jaxte function as an object: called with arrays, pickled with its function, typed by the builder's annotations.

``grad``, ``value_and_grad`` and ``vjp`` with JAX's signatures, on functions and builders of Tensors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeAlias, TypeVar, overload

import jax
from jax.tree_util import tree_leaves

from jaxte.bridge.calls.arguments import has_tensor
from jaxte.bridge.calls.outputs import is_array
from jaxte.bridge.compiled.explain import Explanation
from jaxte.bridge.functions.evaluate import Explained, as_function
from jaxte.bridge.functions.function_methods import Function
from jaxte.bridge.primitive.lazy import PickledByName
from jaxte.lang.checks import described, for_users, several, wants_arguments
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.errors import ArgumentError, DefinitionError, DtypeError
from jaxte.tensors.tensor import Tensor

P = ParamSpec("P")
A = TypeVar("A")
R_co = TypeVar("R_co", covariant=True)
Array: TypeAlias = jax.Array
Pair: TypeAlias = tuple[Array, Array]
Arrays: TypeAlias = dict[str, Array]
Tensors: TypeAlias = dict[str, Tensor]


class Derivative(PickledByName, Explained[Explanation], Generic[P, R_co]):
    """What ``te.grad`` and ``te.value_and_grad`` make of a jaxte function.

    Its parameters are those of the builder. Where they are annotated as Tensors it is called with arrays all the same, and gives arrays.
    """

    def __init__(
        self,
        function: Function,
        transform: Callable[..., Any],
        argnums: int | tuple[int, ...],
        has_aux: bool,
        what: str,
    ) -> None:
        functools.update_wrapper(
            self, function, assigned=("__module__", "__name__", "__qualname__"), updated=()
        )
        self.function, self._transform, self._argnums, self._has_aux = function, transform, argnums, has_aux
        self._what = what.lower()
        self.__doc__ = f"{what} of {function.__name__} by adjoints that jaxte derived."
        self._transformed = transform(function, argnums, has_aux)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_transformed"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._transformed = self._transform(self.function, self._argnums, self._has_aux)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<the {self._what} of {self.function.__name__}>"

    def source(self, *args: Any, **kwargs: Any) -> str:
        """The module of the function and of its backward pass."""
        return self.function.source(*args, **kwargs)

    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """What the tensors of both passes were lowered to, and why."""
        return self.function.explain(*args, **kwargs)

    @for_users
    def _called(self, *args: Any, **kwargs: Any) -> Any:
        name = self.function.__name__
        if has_tensor(tree_leaves((args, kwargs))):
            raise DefinitionError(
                f"the {self._what} of {name} is a function of arrays, called with Tensors here; "
                f"give {name} itself, or differentiate its Tensors with te.differentiate"
            )
        for number in self._argnums if isinstance(self._argnums, tuple) else (self._argnums,):
            _check_differentiated(self._what, name, args, number)
        try:
            return self._transformed(*args, **kwargs)
        except TypeError as error:
            if not any(words in str(error) for words in ("scalar-output", "real-valued outputs")):
                raise
            raise ArgumentError(
                f"the {self._what} of {name}, which does not return one real number; sum its elements, take te.real or "
                f"te.abs of complex ones, or take te.vjp. JAX says: {error}"
            ) from None

    if TYPE_CHECKING:

        @overload
        def __call__(self: Derivative[P, Tensor], *args: object, **kwargs: object) -> Array: ...
        @overload
        def __call__(self: Derivative[P, Tensors], *args: object, **kwargs: object) -> Arrays: ...
        @overload
        def __call__(self: Derivative[P, tuple[Tensor, Tensor]], *args: object, **kwargs: object) -> Pair: ...
        @overload
        def __call__(
            self: Derivative[P, tuple[Tensors, Tensor]], *args: object, **kwargs: object
        ) -> tuple[Arrays, Array]: ...
        @overload
        def __call__(
            self: Derivative[P, tuple[Tensor, Tensors]], *args: object, **kwargs: object
        ) -> tuple[Array, Arrays]: ...
        @overload
        def __call__(
            self: Derivative[P, tuple[Tensor, tuple[Tensor, Tensor]]], *args: object, **kwargs: object
        ) -> tuple[Array, Pair]: ...
        @overload
        def __call__(  # type: ignore[overload-overlap]  # the pairs of two Tensors, which come first
            self: Derivative[P, tuple[Tensor, A]], *args: P.args, **kwargs: P.kwargs
        ) -> tuple[Array, A]: ...
        @overload
        def __call__(
            self: Derivative[P, tuple[A, Tensor]], *args: P.args, **kwargs: P.kwargs
        ) -> tuple[A, Array]: ...
        @overload
        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
        def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    else:
        __call__ = _called


def _check_differentiated(what: str, name: str, args: tuple[Any, ...], number: int) -> None:
    """That the argument at ``number`` is there, and has a derivative."""
    if not -len(args) <= number < len(args):
        raise ArgumentError(
            f"the {what} of {name} to argument {number}: it is called with {len(args)} arguments by position"
        )
    for leaf in tree_leaves(args[number]):
        if is_array(leaf) and not is_inexact(str(leaf.dtype)):
            raise DtypeError(
                f"the {what} of {name} to argument {number}, which holds an array of dtype {leaf.dtype}: integers have none; cast "
                "it to a float first, or leave it out of argnums"
            )
        if not (is_array(leaf) or isinstance(leaf, (float, complex))):
            raise ArgumentError(
                f"the {what} of {name} to argument {number}, which holds {described(leaf)}; give arrays of floats"
            )


@wants_arguments
def grad(f: Any, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that computes the gradient of ``f``, as ``jax.grad`` does, by the derived adjoints.

    Args:
        f: a jaxte function, or a builder of Tensors; it returns a scalar.
        argnums: the argument, or the arguments, with respect to which.
        has_aux: whether ``f`` returns a pair ``(output, auxiliary)`` whose second part is not differentiated.

    Example:
        >>> te.grad(loss)(params, x, y)
    """
    return _transformed(jax.grad, f, argnums, has_aux, "Gradient")


@wants_arguments
def value_and_grad(f: Any, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that computes the value and the gradient of ``f``, as ``jax.value_and_grad``. See :func:`grad`."""
    return _transformed(jax.value_and_grad, f, argnums, has_aux, "Value and gradient")


@wants_arguments
def vjp(f: Any, *primals: Any, has_aux: bool = False) -> Any:
    """The value of ``f`` and the function from cotangents to the adjoints of ``primals``, as ``jax.vjp``."""
    for leaf in tree_leaves(primals):
        if not (is_array(leaf) or isinstance(leaf, (bool, int, float, complex))):
            raise ArgumentError(f"te.vjp: a primal is {described(leaf)}; give arrays")
        if type(leaf) is int and not -(2**31) <= leaf < 2**31:
            raise ArgumentError(f"te.vjp: a primal is {leaf}, which no int32 holds; give an array of int64")
    pull: Any = jax.vjp
    return pull(_function(f, has_aux), *primals, has_aux=has_aux)


def _function(f: Any, has_aux: bool) -> Function:
    function = as_function(f)
    return function.with_aux if has_aux and not function.has_aux else function


def _transformed(
    transform: Callable[..., Any], f: Any, argnums: int | Sequence[int], has_aux: bool, what: str
) -> Derivative[..., Any]:
    numbers = several(argnums, int, "argnums", "the position of an argument, or positions")
    own = argnums if isinstance(argnums, int) else tuple(numbers)
    return Derivative(_function(f, has_aux), transform, own, has_aux, what)
