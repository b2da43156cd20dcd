"""``grad``, ``value_and_grad`` and ``vjp`` with JAX's signatures, on functions and builders of Tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.tree_util import tree_leaves

from jaxte.bridge.arguments import has_tensor
from jaxte.bridge.evaluate import as_function
from jaxte.bridge.function import Function
from jaxte.errors import DefinitionError


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


def value_and_grad(f: Any, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that computes the value and the gradient of ``f``, as ``jax.value_and_grad``. See :func:`grad`."""
    return _transformed(jax.value_and_grad, f, argnums, has_aux, "Value and gradient")


def vjp(f: Any, *primals: Any, has_aux: bool = False) -> Any:
    """The value of ``f`` and the function from cotangents to the adjoints of ``primals``, as ``jax.vjp``."""
    pull: Any = jax.vjp
    return pull(_function(f, has_aux), *primals, has_aux=has_aux)


def _function(f: Any, has_aux: bool) -> Function:
    function = as_function(f)
    return function.with_aux if has_aux and not function.has_aux else function


def _transformed(
    transform: Callable[..., Any], f: Any, argnums: int | Sequence[int], has_aux: bool, what: str
) -> Callable[..., Any]:
    function = _function(f, has_aux)
    transformed = transform(function, argnums, has_aux)

    @functools.wraps(f, assigned=("__module__", "__name__", "__qualname__"), updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        if has_tensor(tree_leaves((args, kwargs))):
            raise DefinitionError(
                f"the {what.lower()} of {function.__name__} is a function of arrays, called with Tensors here; "
                f"give {function.__name__} itself, or differentiate its Tensors with te.differentiate"
            )
        return transformed(*args, **kwargs)

    call.__doc__ = f"{what} of {function.__name__} by adjoints that jaxte derived."
    return call
