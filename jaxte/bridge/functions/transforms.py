"""``grad``, ``value_and_grad`` and ``vjp`` with JAX's signatures, on functions and builders of Tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.tree_util import tree_leaves

from jaxte.bridge.calls.arrays import is_array
from jaxte.bridge.functions.derivative import Derivative
from jaxte.bridge.functions.evaluate import as_function
from jaxte.bridge.functions.function_methods import Function
from jaxte.lang.checks import described, several, wants_arguments
from jaxte.lang.errors import ArgumentError


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
