"""``jacobian``, ``hessian`` and ``diagonal``: of tensors as definitions, of JAX functions as JAX has them or sparse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypedDict, TypeVar, Unpack, overload

import jax

from jaxte.bridge.compiled.sparse import SparseJacobian
from jaxte.bridge.compiled.sparse import hessian as tensor_hessian
from jaxte.bridge.compiled.sparse import jacobian as tensor_jacobian
from jaxte.bridge.functions.builder_function import Array
from jaxte.bridge.functions.function_methods import Function
from jaxte.frontends.sparse.of_function import SparseDerivative
from jaxte.frontends.sparse.storage import (
    Banded,
    as_banded,
    as_bcoo,
    as_bcsr,
    as_diagonals,
    as_main_diagonal,
)
from jaxte.frontends.transformed import OwnFunction, PyTree, Transformed, is_jax, own_options, raised_for
from jaxte.lang.checks import described, wants_arguments
from jaxte.lang.errors import ArgumentError, DefinitionError
from jaxte.tensors.tensor import Tensor

if TYPE_CHECKING:
    from jax.experimental.sparse import BCOO, BCSR

P = ParamSpec("P")
R = TypeVar("R")
_FORMS: dict[Any, Callable[..., Any]] = {
    True: as_bcoo,
    "bcoo": as_bcoo,
    "bcsr": as_bcsr,
    "banded": as_banded,
    "diagonals": as_diagonals,
}


class Options(TypedDict, total=False):
    """The keywords of :func:`jacobian` and :func:`hessian` of JAX functions."""

    holomorphic: bool
    safe: bool
    platform: str | None


@overload
def jacobian(
    f: Tensor, input: Tensor, /, optimize: bool = True, sparse: Literal[False] = False
) -> Tensor: ...
@overload
def jacobian(
    f: Tensor, input: Tensor, /, optimize: bool = True, *, sparse: Literal[True]
) -> SparseJacobian: ...
@overload
def jacobian(
    f: Tensor, input: Sequence[Tensor], /, optimize: bool = True, sparse: Literal[False] = False
) -> list[Tensor]: ...
@overload
def jacobian(
    f: Sequence[Tensor], input: Tensor, /, optimize: bool = True, sparse: Literal[False] = False
) -> list[Tensor]: ...
@overload
def jacobian(
    f: Sequence[Tensor], input: Sequence[Tensor], /, optimize: bool = True, sparse: Literal[False] = False
) -> list[list[Tensor]]: ...
@overload
def jacobian(
    f: Callable[..., Array], argnums: int = 0, *, sparse: Literal[True, "bcoo"]
) -> SparseDerivative[BCOO]: ...
@overload
def jacobian(
    f: Callable[..., Array], argnums: int = 0, *, sparse: Literal["bcsr"]
) -> SparseDerivative[BCSR]: ...
@overload
def jacobian(
    f: Callable[..., Array], argnums: int = 0, *, sparse: Literal["banded"]
) -> SparseDerivative[Banded]: ...
@overload
def jacobian(
    f: Callable[..., Array], argnums: int = 0, *, sparse: Literal["diagonals"]
) -> SparseDerivative[dict[int, Array]]: ...
@overload
def jacobian(
    f: OwnFunction, argnums: int = 0, has_aux: Literal[False] = False, **options: Unpack[Options]
) -> Transformed[..., Array]: ...
@overload
def jacobian(
    f: Callable[Concatenate[Array, P], Array],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> Transformed[Concatenate[Array, P], Array]: ...
@overload
def jacobian(
    f: Callable[P, R], argnums: int | Sequence[int] = 0, has_aux: bool = False, **options: Unpack[Options]
) -> Transformed[P, PyTree]: ...
@wants_arguments
def jacobian(f: Any, *args: Any, **options: Any) -> Any:
    """The Jacobian of tensors, :func:`jaxte.derivatives.linear_maps.jacobian`; of a JAX function, as ``jax.jacobian`` or sparse.

    Args:
        f: Tensors, followed by their inputs (and ``sparse=True`` for a :class:`SparseJacobian`); or any JAX function, followed by
            ``argnums``, ``has_aux``, ``holomorphic``, ``safe`` and ``platform`` as in :func:`grad`.
        options: ``sparse=True`` (or "bcoo") of a JAX function from one array of floats to one array: a
            ``jax.experimental.sparse.BCOO`` without the zeros, sorted and unique, in the shape of the result followed by that of the argument.
            "bcsr": a ``jax.experimental.sparse.BCSR``, the matrix with a row for each element of the result. "banded": this matrix as LAPACK
            keeps it, with ``elements`` for ``scipy.linalg.solve_banded``, ``lower`` and ``upper``.
            "diagonals": a dict from ``column - row`` to the elements along that diagonal, one for each row. The pattern is that of the
            definition where the function is one; else that of its jaxpr, and columns without a row in common are pushed forward together.

    Raises:
        ArgumentError: ``sparse`` is something else, or the function is not from one array to one.

    Example:
        >>> te.jacobian(lambda u: jnp.roll(u, 1) * u, sparse=True)(jnp.arange(4.0)).todense()
    """
    if not is_jax(f):
        return tensor_jacobian(f, *args, **options)
    if sparse := options.pop("sparse", False):
        return _sparse(f, "te.jacobian", False, sparse, *args, **options)
    raised = raised_for(f, "te.jacobian", **own_options(options))
    named = dict(zip(("argnums", "has_aux", "holomorphic"), args, strict=False)) | options
    return Transformed(raised, jax.jacobian, named, "Jacobian")


@overload
def hessian(f: Tensor, inputs: Tensor, /, sparse: Literal[False] = False) -> Tensor: ...
@overload
def hessian(f: Tensor, inputs: Tensor, /, sparse: Literal[True]) -> SparseJacobian: ...
@overload
def hessian(f: Tensor, inputs: Sequence[Tensor], /, sparse: Literal[False] = False) -> list[list[Tensor]]: ...
@overload
def hessian(f: Tensor, inputs: Sequence[Tensor], /, sparse: Literal[True]) -> list[list[SparseJacobian]]: ...
@overload
def hessian(
    f: Callable[..., Array], argnums: int = 0, *, sparse: Literal[True, "bcoo"]
) -> SparseDerivative[BCOO]: ...
@overload
def hessian(
    f: Callable[..., Array], argnums: int = 0, *, sparse: Literal["bcsr"]
) -> SparseDerivative[BCSR]: ...
@overload
def hessian(
    f: Callable[..., Array], argnums: int = 0, *, sparse: Literal["banded"]
) -> SparseDerivative[Banded]: ...
@overload
def hessian(
    f: Callable[..., Array], argnums: int = 0, *, sparse: Literal["diagonals"]
) -> SparseDerivative[dict[int, Array]]: ...
@overload
def hessian(
    f: OwnFunction, argnums: int = 0, has_aux: Literal[False] = False, **options: Unpack[Options]
) -> Transformed[..., Array]: ...
@overload
def hessian(
    f: Callable[Concatenate[Array, P], Array],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> Transformed[Concatenate[Array, P], Array]: ...
@overload
def hessian(
    f: Callable[P, R], argnums: int | Sequence[int] = 0, has_aux: bool = False, **options: Unpack[Options]
) -> Transformed[P, PyTree]: ...
@wants_arguments
def hessian(f: Any, *args: Any, **options: Any) -> Any:
    """Second derivatives of a tensor, :func:`jaxte.derivatives.linear_maps.hessian`; of a JAX function, as ``jax.hessian`` or sparse.

    Args:
        f: a Tensor, followed by its inputs (and ``sparse=True`` for a :class:`SparseJacobian` of the gradient); or any JAX function, followed by ``argnums``, ``has_aux``, ``holomorphic``, ``safe`` and ``platform`` as in :func:`grad`.
        options: ``sparse`` of a JAX function as for :func:`jacobian`.

    Example:
        >>> te.hessian(loss)(x)
    """
    if not is_jax(f):
        return tensor_hessian(f, *args, **options)
    if sparse := options.pop("sparse", False):
        return _sparse(f, "te.hessian", True, sparse, *args, **options)
    raised = raised_for(f, "te.hessian", **own_options(options))
    names = ("argnums", "has_aux", "holomorphic")
    return Transformed(raised, jax.hessian, dict(zip(names, args, strict=False)) | options, "Hessian")


@wants_arguments
def diagonal(f: Callable[..., Array], argnums: int = 0) -> SparseDerivative[Array]:
    """A function that computes the diagonal of the Jacobian of ``f``, a JAX function that returns as many elements as it takes.

    Args:
        f: any JAX function from one array of floats to another one.
        argnums: the argument that it is differentiated by.

    Returns:
        A function of the arguments of ``f``; its result has the shape of that argument.

    Raises:
        ArgumentError: the function is not from one array to one, or not of as many elements (when it is called).

    Example:
        >>> te.diagonal(lambda u: u**3 - jnp.roll(u, 1))(jnp.arange(4.0))
    """
    return SparseDerivative(_function_of_arrays(f, "te.diagonal"), argnums, False, as_main_diagonal)


def _sparse(f: Any, who: str, second: bool, sparse: Any, argnums: int = 0) -> SparseDerivative[Any]:
    if sparse not in _FORMS:
        raise ArgumentError(
            f'{who} with sparse={sparse!r}; give True or "bcoo", "bcsr", "banded" or "diagonals"'
        )
    return SparseDerivative(_function_of_arrays(f, who), argnums, second, _FORMS[sparse])


def _function_of_arrays(f: Any, who: str) -> Any:
    if isinstance(f, Function):
        raise ArgumentError(
            f"{who} of {f.__name__}, a jaxte function: take {f.__name__}.sparse_jacobian(...)"
        )
    if not is_jax(f):
        raise DefinitionError(f"{who} takes a JAX function, not {described(f)}")
    return f


Jacobian = jacobian  # as TVM calls it
