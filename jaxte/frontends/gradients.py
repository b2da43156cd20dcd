"""``grad`` and ``value_and_grad`` with JAX's signatures: of JAX functions, and of jaxte functions.

Type checkers take the parameters of a gradient from the function, and the type of each derivative from the annotation of its argument. The overloads of
functions of jaxte come first, and overlap with those of all callables.
"""

# mypy: disable-error-code="overload-overlap"
from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, Unpack, overload

import jax

from jaxte.bridge.calls.lifted import Built
from jaxte.bridge.functions import derivative
from jaxte.bridge.functions.builder_function import Array
from jaxte.bridge.functions.derivative import Derivative
from jaxte.bridge.functions.function_methods import Function
from jaxte.frontends.jaxpr.adjoint import adjoint
from jaxte.frontends.transformed import (
    Options,
    OwnFunction,
    PyTree,
    Transformed,
    not_measured,
    of_arrays_only,
    raised_for,
)
from jaxte.lang.checks import wants_arguments
from jaxte.tensors.tensor import Tensor

P = ParamSpec("P")
A = TypeVar("A", bound=Any)  # by which a lambda may do what it likes with its parameter
B = TypeVar("B", bound=Any)
R = TypeVar("R")
Aux = TypeVar("Aux")


@overload
def grad(
    f: Built[Callable[Concatenate[Tensor, P], Tensor | Array]],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> Derivative[Concatenate[Tensor, P], Tensor]: ...
@overload
def grad(
    f: Built[Callable[Concatenate[A, P], Tensor | Array]],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> Derivative[Concatenate[A, P], A]: ...
@overload
def grad(
    f: Built[Callable[Concatenate[A, Tensor, P], Tensor | Array]],
    argnums: Literal[1],
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> Derivative[Concatenate[A, Tensor, P], Tensor]: ...
@overload
def grad(
    f: Built[Callable[Concatenate[A, B, P], Tensor | Array]],
    argnums: Literal[1],
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> Derivative[Concatenate[A, B, P], B]: ...
@overload
def grad(
    f: Built[Callable[Concatenate[Tensor, Tensor, P], Tensor | Array]],
    argnums: tuple[Literal[0], Literal[1]],
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> Derivative[Concatenate[Tensor, Tensor, P], tuple[Tensor, Tensor]]: ...
@overload
def grad(
    f: Built[Callable[Concatenate[A, B, P], Tensor | Array]],
    argnums: tuple[Literal[0], Literal[1]],
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> Derivative[Concatenate[A, B, P], tuple[A, B]]: ...
@overload
def grad(
    f: Built[Callable[Concatenate[A, P], tuple[Tensor | Array, Aux]]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
    **options: Unpack[Options],
) -> Derivative[Concatenate[A, P], tuple[A, Aux]]: ...
@overload
def grad(
    f: OwnFunction, argnums: int = 0, has_aux: Literal[False] = False, **options: Unpack[Options]
) -> Callable[..., Array]: ...
@overload
def grad(
    f: OwnFunction, argnums: Sequence[int], has_aux: Literal[False] = False, **options: Unpack[Options]
) -> Callable[..., tuple[Array, ...]]: ...
@overload
def grad(
    f: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False, **options: Unpack[Options]
) -> Callable[..., PyTree]: ...
@overload
def grad(
    f: Callable[Concatenate[A, P], R],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> Transformed[Concatenate[A, P], A]: ...
@overload
def grad(
    f: Callable[Concatenate[A, P], tuple[R, Aux]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
    **options: Unpack[Options],
) -> Transformed[Concatenate[A, P], tuple[A, Aux]]: ...
@overload
def grad(
    f: Callable[Concatenate[A, B, P], R],
    argnums: Literal[1],
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> Transformed[Concatenate[A, B, P], B]: ...
@overload
def grad(
    f: Callable[Concatenate[A, B, P], R],
    argnums: tuple[Literal[0], Literal[1]],
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> Transformed[Concatenate[A, B, P], tuple[A, B]]: ...
@overload
def grad(
    f: Callable[P, R], argnums: Sequence[int], has_aux: Literal[False] = False, **options: Unpack[Options]
) -> Transformed[P, tuple[PyTree, ...]]: ...
@overload
def grad(
    f: Callable[P, R], argnums: int | Sequence[int] = 0, has_aux: bool = False, **options: Unpack[Options]
) -> Transformed[P, PyTree]: ...
@wants_arguments
def grad(
    f: Any,
    argnums: Any = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    safe: bool = True,
    platform: str | None = None,
    tune: tuple[object, ...] | Literal["first call"] | None = None,
    tuning_file: str | os.PathLike[str] | None = None,
) -> Any:
    """A function that computes the gradient of ``f``, as ``jax.grad`` does, with adjoints that jaxte derived.

    Args:
        f: any JAX function, of which the parts that gain are raised to index expressions (see :func:`adjoint`); or a jaxte
            function, made by ``te.function`` of a builder of Tensors. It returns a scalar.
        argnums: the argument, or the arguments, with respect to which.
        has_aux: whether ``f`` returns a pair ``(output, auxiliary)`` whose second part is not differentiated.
        holomorphic: as in ``jax.grad``, of JAX functions.
        allow_int: as in ``jax.grad``, of JAX functions.
        safe: whether the branch of a ``jnp.where`` that is not taken contributes 0 where its slope is infinite or NaN, for which
            ``jax.grad`` gives NaN; False for what ``jax.grad`` gives. Of JAX functions: Tensors are always so.
        platform: "cpu", "gpu" or "tpu", for which it is decided what gains, and for which that is written (see :func:`adjoint`). Of JAX
            functions: a jaxte function has the one of its ``te.function``.
        tune: ``"first call"`` measures, at the first call with arguments of each shape, which regions are raised; or the arguments of a call
            (see :func:`adjoint`). Of JAX functions: the forms of a jaxte function are measured by :func:`autotune`.
        tuning_file: of ``tune="first call"``: where what was measured is kept (see :func:`adjoint`).

    Raises:
        ArgumentError: a builder of Tensors that was not given to ``te.function``; an option for JAX functions alone.
        LoweringError: the platform is unknown.

    Example:
        >>> te.grad(lambda u: jnp.sum((jnp.roll(u, 1) - u) ** 2))(jnp.arange(4.0))
    """
    if isinstance(f, Function):
        of_arrays_only(f, platform, holomorphic=holomorphic, allow_int=allow_int)
        not_measured(f, tune)
        return derivative.grad(f, argnums, has_aux)
    raised = adjoint(raised_for(f, "te.grad", safe, platform), tune=tune, tuning_file=tuning_file)
    options = dict(argnums=argnums, has_aux=has_aux, holomorphic=holomorphic, allow_int=allow_int)
    return Transformed(raised, jax.grad, options, "Gradient")


@overload
def value_and_grad(
    f: Built[Callable[Concatenate[Tensor, P], Tensor | Array]],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> Derivative[Concatenate[Tensor, P], tuple[Tensor, Tensor]]: ...
@overload
def value_and_grad(
    f: Built[Callable[Concatenate[A, P], Tensor | Array]],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> Derivative[Concatenate[A, P], tuple[Tensor, A]]: ...
@overload
def value_and_grad(
    f: Built[Callable[Concatenate[A, Tensor, P], Tensor | Array]],
    argnums: Literal[1],
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> Derivative[Concatenate[A, Tensor, P], tuple[Tensor, Tensor]]: ...
@overload
def value_and_grad(
    f: Built[Callable[Concatenate[A, B, P], Tensor | Array]],
    argnums: Literal[1],
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> Derivative[Concatenate[A, B, P], tuple[Tensor, B]]: ...
@overload
def value_and_grad(
    f: Built[Callable[Concatenate[Tensor, Tensor, P], Tensor | Array]],
    argnums: tuple[Literal[0], Literal[1]],
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> Derivative[Concatenate[Tensor, Tensor, P], tuple[Tensor, tuple[Tensor, Tensor]]]: ...
@overload
def value_and_grad(
    f: Built[Callable[Concatenate[A, B, P], Tensor | Array]],
    argnums: tuple[Literal[0], Literal[1]],
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> Derivative[Concatenate[A, B, P], tuple[Tensor, tuple[A, B]]]: ...
@overload
def value_and_grad(
    f: OwnFunction, argnums: int = 0, has_aux: Literal[False] = False, **options: Unpack[Options]
) -> Callable[..., tuple[Array, Array]]: ...
@overload
def value_and_grad(
    f: OwnFunction, argnums: Sequence[int], has_aux: Literal[False] = False, **options: Unpack[Options]
) -> Callable[..., tuple[Array, tuple[Array, ...]]]: ...
@overload
def value_and_grad(
    f: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False, **options: Unpack[Options]
) -> Callable[..., tuple[PyTree, PyTree]]: ...
@overload
def value_and_grad(
    f: Callable[Concatenate[A, P], R],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> Transformed[Concatenate[A, P], tuple[R, A]]: ...
@overload
def value_and_grad(
    f: Callable[Concatenate[A, P], tuple[R, Aux]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
    **options: Unpack[Options],
) -> Transformed[Concatenate[A, P], tuple[tuple[R, Aux], A]]: ...
@overload
def value_and_grad(
    f: Callable[Concatenate[A, B, P], R],
    argnums: Literal[1],
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> Transformed[Concatenate[A, B, P], tuple[R, B]]: ...
@overload
def value_and_grad(
    f: Callable[Concatenate[A, B, P], R],
    argnums: tuple[Literal[0], Literal[1]],
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> Transformed[Concatenate[A, B, P], tuple[R, tuple[A, B]]]: ...
@overload
def value_and_grad(
    f: Callable[P, R], argnums: Sequence[int], has_aux: Literal[False] = False, **options: Unpack[Options]
) -> Transformed[P, tuple[R, tuple[PyTree, ...]]]: ...
@overload
def value_and_grad(
    f: Callable[P, R], argnums: int | Sequence[int] = 0, has_aux: bool = False, **options: Unpack[Options]
) -> Transformed[P, tuple[PyTree, PyTree]]: ...
@wants_arguments
def value_and_grad(
    f: Any,
    argnums: Any = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    safe: bool = True,
    platform: str | None = None,
    tune: tuple[object, ...] | Literal["first call"] | None = None,
    tuning_file: str | os.PathLike[str] | None = None,
) -> Any:
    """A function that computes the value and the gradient of ``f``, as ``jax.value_and_grad``. See :func:`grad`."""
    if isinstance(f, Function):
        of_arrays_only(f, platform, holomorphic=holomorphic, allow_int=allow_int)
        not_measured(f, tune)
        return derivative.value_and_grad(f, argnums, has_aux)
    raised = adjoint(raised_for(f, "te.value_and_grad", safe, platform), tune=tune, tuning_file=tuning_file)
    options = dict(argnums=argnums, has_aux=has_aux, holomorphic=holomorphic, allow_int=allow_int)
    return Transformed(raised, jax.value_and_grad, options, "Value and gradient")
