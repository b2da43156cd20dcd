"""The functions of the user that say what an element is: the axes that they take, and what they return."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from jaxte.lang.checks import counted, described
from jaxte.lang.errors import DefinitionError, JaxteError
from jaxte.lang.expr import Expr, as_expr
from jaxte.tensors.tensor import Tensor


def axis_names(fn: Callable[..., Any], count: int, label: str) -> list[str]:
    """Names for the axes of the tensor ``label``: those of the parameters of ``fn``."""
    parameters = list(inspect.signature(fn).parameters.values())
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if len(required) > count or (len(named) < count and not variadic):
        raise DefinitionError(
            f"the body of {label} takes {counted(len(named), 'axis', 'axes')} ({', '.join(named)}), but the shape has {count}; "
            "give the function one parameter for each axis, or *axes"
        )
    return (named + [f"i{n}" for n in range(len(named), count)])[:count]


# what Python says of brackets behind a number, a list, or text
_NO_TENSOR = (
    "object is not subscriptable",
    "list indices must be",
    "tuple indices must be",
    "string indices must be",
)

_STATIC = (bool, int, float, complex, str, list, tuple, type(None))
_OF_ARRAYS = ("shape", "ndim", "size", "dtype")


def evaluated(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What ``fn``, which the user wrote, returns for Tensors or axes."""
    try:
        return fn(*args, **kwargs)
    except JaxteError:
        raise
    except IndexError as error:
        if not str(error).startswith("only integers, slices"):
            raise
        raise DefinitionError(
            "an array of JAX is read at an index of a definition, which has no value yet; arrays that a definition reads, traced ones too, "
            f"are arguments of its te.function, or te.placeholder in a graph; numbers that are known are te.constant. JAX says: {error}"
        ) from error
    except AttributeError as error:
        if not isinstance(error.obj, _STATIC) or error.name not in _OF_ARRAYS:
            raise
        raise DefinitionError(
            f"{described(error.obj)} has no {error.name}: numbers, strings and None among the arguments of a te.function are static and stay as "
            "they are, also within lists: give an array, jnp.asarray([1.0, 2.0])"
        ) from error
    except (TypeError, ValueError) as error:
        if any(said in str(error) for said in _NO_TENSOR):
            raise DefinitionError(
                f"what is read with brackets is no Tensor: {error}; numbers, strings and functions among the arguments of a te.function are "
                "static and stay as they are, also within lists: give an array, jnp.asarray([1.0, 2.0]), or jnp.asarray(3.0), which is read as "
                "x[()], or leave out the brackets"
            ) from error
        if "<class 'jaxte." not in str(error):
            raise
        raise DefinitionError(
            "the functions of jax.numpy, jax.nn and jax.lax are of arrays; a definition is written with the functions of te, which "
            "have the same names: te.exp for jnp.exp, te.select for jnp.where, te.sum over a te.reduce_axis, te.ops for whole "
            "tensors, te.extern for any other function of arrays; a function of arrays as it is goes to te.grad, te.value_and_grad or "
            f"te.adjoint. JAX says: {error}"
        ) from error


def parameter_names(fn: Callable[..., Any], name: str) -> list[str]:
    """The names of the axes of a body without a shape: those of its parameters that have no default."""
    parameters = [p for p in inspect.signature(fn).parameters.values() if p.default is p.empty]
    for own in parameters:
        if own.kind not in (own.POSITIONAL_ONLY, own.POSITIONAL_OR_KEYWORD):
            raise DefinitionError(
                f"the body of {name} takes {own}, so that its axes are not known; give te.compute a shape, or the body one parameter for each axis"
            )
    return [own.name for own in parameters]


def check_result(value: Any, name: str) -> Expr:
    """What a body returned, as an expression, or an error that says what it should be."""
    if value is None:
        raise DefinitionError(f"the body of {name} returns nothing; return the expression of one element")
    if isinstance(value, (Expr, bool, int, float, complex)):
        return as_expr(value)
    if isinstance(value, Tensor):
        raise DefinitionError(
            f"the body of {name} returns the whole tensor {value.name}; return one element of it, "
            f"as in {value.name}[{', '.join('ijklmn'[: value.ndim]) or '()'}]"
        )
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        return as_expr(value)
    raise DefinitionError(
        f"the body of {name} returns a {type(value).__name__}; return one scalar expression (or a tuple of "
        "them for several tensors); arrays enter as te.placeholder"
    )
