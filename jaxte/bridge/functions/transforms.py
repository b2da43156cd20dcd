"""``grad``, ``value_and_grad`` and ``vjp`` with JAX's signatures, on functions and builders of Tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.tree_util import tree_leaves

from jaxte.bridge.calls.arguments import has_tensor
from jaxte.bridge.calls.arrays import is_array
from jaxte.bridge.functions.evaluate import as_function
from jaxte.bridge.functions.function_methods import Function
from jaxte.lang.checks import described, for_users, several, wants_arguments
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.errors import ArgumentError, DefinitionError, DtypeError


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
) -> Callable[..., Any]:
    function = _function(f, has_aux)
    numbers = several(argnums, int, "argnums", "the position of an argument, or positions")
    transformed = transform(function, argnums, has_aux)

    @functools.wraps(f, assigned=("__module__", "__name__", "__qualname__"), updated=())
    @for_users
    def call(*args: Any, **kwargs: Any) -> Any:
        if has_tensor(tree_leaves((args, kwargs))):
            raise DefinitionError(
                f"the {what.lower()} of {function.__name__} is a function of arrays, called with Tensors here; "
                f"give {function.__name__} itself, or differentiate its Tensors with te.differentiate"
            )
        for number in numbers:
            _check_differentiated(what.lower(), function.__name__, args, number)
        try:
            return transformed(*args, **kwargs)
        except TypeError as error:
            if not any(words in str(error) for words in ("scalar-output", "real-valued outputs")):
                raise
            raise ArgumentError(
                f"the {what.lower()} of {function.__name__}, which does not return one real number; sum its elements, take te.real or "
                f"te.abs of complex ones, or take te.vjp. JAX says: {error}"
            ) from None

    call.__doc__ = f"{what} of {function.__name__} by adjoints that jaxte derived."
    return call


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
