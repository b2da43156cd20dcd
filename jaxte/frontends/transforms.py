"""``grad``, ``value_and_grad``, ``vjp`` and their kin with JAX's signatures: of JAX functions, and of jaxte functions.

What a function is, its type says: an object that ``te.function`` made is one of Tensors, every other callable is called with arrays as
JAX calls it, and is raised. Nothing is tried out.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import tree_leaves

from jaxte.bridge.calls.arguments import has_tensor
from jaxte.bridge.compiled.sparse import hessian as tensor_hessian
from jaxte.bridge.compiled.sparse import jacobian as tensor_jacobian
from jaxte.bridge.functions import transforms
from jaxte.bridge.functions.evaluate import Explained
from jaxte.bridge.functions.function_methods import Function
from jaxte.derivatives import linear_maps
from jaxte.frontends.jaxpr.adjoint import Raised, adjoint
from jaxte.frontends.sparse.of_function import SparseDerivative, as_bcoo, as_diagonals, as_main_diagonal
from jaxte.lang.checks import described, for_users, wants_arguments
from jaxte.lang.errors import ArgumentError, DefinitionError
from jaxte.tensors.tensor import Tensor


class Transformed(Explained):
    """A derivative of a raised function, which ``te.source`` and ``te.explain`` look into."""

    def __init__(
        self, raised: Raised, transform: Callable[..., Any], options: Mapping[str, Any], what: str
    ) -> None:
        functools.update_wrapper(
            self, raised.f, assigned=("__module__", "__name__", "__qualname__"), updated=()
        )
        self.raised, self._transform, self._options = raised, transform, dict(options)
        self._call = transform(raised, **options)
        self.__doc__ = f"{what} of {raised.__name__}, raised by jaxte."

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_call"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._call = self._transform(self.raised, **self._options)

    @for_users
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if has_tensor(tree_leaves((args, kwargs))):
            raise DefinitionError(
                f"{self.raised.__name__} is differentiated as a function of arrays, called with Tensors here; differentiate Tensors "
                "with te.differentiate"
            )
        return self._call(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def source(self, *args: Any, **kwargs: Any) -> str:
        """See :meth:`Raised.source`."""
        return self.raised.source(*self._as_traced(args), **kwargs)

    def explain(self, *args: Any, **kwargs: Any) -> Any:
        """See :meth:`Raised.explain`."""
        return self.raised.explain(*self._as_traced(args), **kwargs)

    def _as_traced(self, args: Sequence[Any]) -> list[Any]:
        """The arguments as a call has them, with those that are differentiated as arrays of JAX, whatever they are."""
        argnums = self._options.get("argnums", 0)
        listed = argnums if isinstance(argnums, Sequence) else (argnums,)
        chosen = {n % len(args) for n in listed} if args else set()
        return [jax.tree.map(_as_array, a) if n in chosen else a for n, a in enumerate(args)]


@wants_arguments
def grad(
    f: Any,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    safe: bool = True,
    platform: str | None = None,
) -> Callable[..., Any]:
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

    Raises:
        ArgumentError: a builder of Tensors that was not given to ``te.function``; an option for JAX functions alone.
        LoweringError: the platform is unknown.

    Example:
        >>> te.grad(lambda u: jnp.sum((jnp.roll(u, 1) - u) ** 2))(jnp.arange(4.0))
    """
    if isinstance(f, Function):
        _of_arrays_only(f, platform, holomorphic=holomorphic, allow_int=allow_int)
        return transforms.grad(f, argnums, has_aux)
    raised = _raised(f, "te.grad", safe, platform)
    options = dict(argnums=argnums, has_aux=has_aux, holomorphic=holomorphic, allow_int=allow_int)
    return Transformed(raised, jax.grad, options, "Gradient")


@wants_arguments
def value_and_grad(
    f: Any,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    safe: bool = True,
    platform: str | None = None,
) -> Callable[..., Any]:
    """A function that computes the value and the gradient of ``f``, as ``jax.value_and_grad``. See :func:`grad`."""
    if isinstance(f, Function):
        _of_arrays_only(f, platform, holomorphic=holomorphic, allow_int=allow_int)
        return transforms.value_and_grad(f, argnums, has_aux)
    raised = _raised(f, "te.value_and_grad", safe, platform)
    options = dict(argnums=argnums, has_aux=has_aux, holomorphic=holomorphic, allow_int=allow_int)
    return Transformed(raised, jax.value_and_grad, options, "Value and gradient")


@wants_arguments
def vjp(f: Any, *primals: Any, has_aux: bool = False, safe: bool = True, platform: str | None = None) -> Any:
    """The value of ``f`` and the function from cotangents to the adjoints of ``primals``, as ``jax.vjp``. See :func:`grad`."""
    if isinstance(f, Function):
        _of_arrays_only(f, platform)
        return transforms.vjp(f, *primals, has_aux=has_aux)
    pull: Any = jax.vjp
    return pull(_raised(f, "te.vjp", safe, platform), *primals, has_aux=has_aux)


@wants_arguments
def jvp(f: Any, primals: Any, tangents: Any, *args: Any, **options: Any) -> Any:
    """The tangents of tensors, :func:`jaxte.derivatives.linear_maps.jvp`; of a JAX function its value and tangent, as ``jax.jvp``.

    Args:
        f: Tensors, with ``primals`` their inputs; or any JAX function, raised as :func:`grad` does it.
        primals: the inputs, or the arrays at which the function is taken.
        tangents: of each of them.
        args: ``override`` and ``fdiff`` of Tensors.
        options: the same by name; ``has_aux`` of a JAX function, ``safe`` and ``platform`` as in :func:`grad`.

    Example:
        >>> value, tangent = te.jvp(heat, (u,), (du,))
    """
    if _is_jax(f):
        return jax.jvp(_raised(f, "te.jvp", **_own(options)), primals, tangents, *args, **options)
    return linear_maps.jvp(f, primals, tangents, *args, **options)


@wants_arguments
def linearize(f: Any, *primals: Any, **options: Any) -> Any:
    """The linear map from tangents of inputs to tangents of Tensors (:func:`jaxte.derivatives.linear_maps.linearize`); of a JAX function, as ``jax.linearize``.

    Args:
        f: Tensors, followed by their inputs; or any JAX function, followed by the arrays at which it is taken.
        options: ``has_aux`` of a JAX function, ``safe`` and ``platform`` as in :func:`grad`.

    Example:
        >>> value, push = te.linearize(heat, u)
    """
    if _is_jax(f):
        return jax.linearize(_raised(f, "te.linearize", **_own(options)), *primals, **options)
    return linear_maps.linearize(f, *primals, **options)


_FORMS: dict[Any, Callable[..., Any]] = {True: as_bcoo, "bcoo": as_bcoo, "diagonals": as_diagonals}


@wants_arguments
def jacobian(f: Any, *args: Any, **options: Any) -> Any:
    """The Jacobian of tensors, :func:`jaxte.derivatives.linear_maps.jacobian`; of a JAX function, as ``jax.jacobian`` or sparse.

    Args:
        f: Tensors, followed by their inputs (and ``sparse=True`` for a :class:`SparseJacobian`); or any JAX function, followed by
            ``argnums``, ``has_aux``, ``holomorphic``, ``safe`` and ``platform`` as in :func:`grad`.
        options: ``sparse=True`` (or "bcoo") of a JAX function from one array of floats to one array: a
            ``jax.experimental.sparse.BCOO`` without the zeros, sorted and unique, in the shape of the result followed by that of the argument.
            "diagonals": a dict from ``column - row`` to the elements along that diagonal, one for each row. The pattern is that of the
            definition where the function is one; else that of its jaxpr, and columns without a row in common are pushed forward together.

    Raises:
        ArgumentError: ``sparse`` is something else, or the function is not from one array to one.

    Example:
        >>> te.jacobian(lambda u: jnp.roll(u, 1) * u, sparse=True)(jnp.arange(4.0)).todense()
    """
    if not _is_jax(f):
        return tensor_jacobian(f, *args, **options)
    if sparse := options.pop("sparse", False):
        return _sparse(f, "te.jacobian", False, sparse, *args, **options)
    raised = _raised(f, "te.jacobian", **_own(options))
    named = dict(zip(("argnums", "has_aux", "holomorphic"), args, strict=False)) | options
    return Transformed(raised, jax.jacobian, named, "Jacobian")


@wants_arguments
def hessian(f: Any, *args: Any, **options: Any) -> Any:
    """Second derivatives of a tensor, :func:`jaxte.derivatives.linear_maps.hessian`; of a JAX function, as ``jax.hessian`` or sparse.

    Args:
        f: a Tensor, followed by its inputs (and ``sparse=True`` for a :class:`SparseJacobian` of the gradient); or any JAX function, followed by ``argnums``, ``has_aux``, ``holomorphic``, ``safe`` and ``platform`` as in :func:`grad`.
        options: ``sparse`` of a JAX function as for :func:`jacobian`.

    Example:
        >>> te.hessian(loss)(x)
    """
    if not _is_jax(f):
        return tensor_hessian(f, *args, **options)
    if sparse := options.pop("sparse", False):
        return _sparse(f, "te.hessian", True, sparse, *args, **options)
    raised = _raised(f, "te.hessian", **_own(options))
    names = ("argnums", "has_aux", "holomorphic")
    return Transformed(raised, jax.hessian, dict(zip(names, args, strict=False)) | options, "Hessian")


@wants_arguments
def diagonal(f: Any, argnums: int = 0) -> SparseDerivative:
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


def _sparse(f: Any, who: str, second: bool, sparse: Any, argnums: int = 0) -> SparseDerivative:
    if sparse not in _FORMS:
        raise ArgumentError(f'{who} with sparse={sparse!r}; give True or "bcoo", or "diagonals"')
    return SparseDerivative(_function_of_arrays(f, who), argnums, second, _FORMS[sparse])


def _function_of_arrays(f: Any, who: str) -> Any:
    if isinstance(f, Function):
        raise ArgumentError(
            f"{who} of {f.__name__}, a jaxte function: take {f.__name__}.sparse_jacobian(...)"
        )
    if not _is_jax(f):
        raise DefinitionError(f"{who} takes a JAX function, not {described(f)}")
    return f


def _as_array(leaf: Any) -> Any:
    return jnp.asarray(leaf) if isinstance(leaf, (np.ndarray, np.generic, float, complex)) else leaf


def _is_jax(f: Any) -> bool:
    return callable(f) and not isinstance(f, Tensor)


def _own(options: dict[str, Any]) -> dict[str, Any]:
    """The options of :func:`adjoint` among those of a transformation, taken out."""
    return {name: options.pop(name) for name in ("safe", "platform") if name in options}


def _raised(f: Any, who: str, safe: bool = True, platform: str | None = None) -> Raised:
    if isinstance(f, Function):
        _of_arrays_only(f, platform)
        return Raised(f, safe=safe)
    if isinstance(f, Tensor) or not callable(f):
        raise DefinitionError(
            f"{who} takes a JAX function, or te.function over a builder of Tensors, not {described(f)}"
        )
    found: Raised = adjoint(f, safe=safe, platform=platform)
    return found


def _of_arrays_only(f: Function, platform: str | None, **options: bool) -> None:
    if platform is not None:
        raise ArgumentError(
            f"platform={platform!r} is for JAX functions; {f.__name__} is a jaxte function, whose forms te.function chooses: give platform= there"
        )
    for name, value in options.items():
        if value:
            raise ArgumentError(
                f"{name}=True is for JAX functions; {f.__name__} is a jaxte function, whose complex and integer inputs are as "
                "te.differentiate has them; leave it out"
            )
