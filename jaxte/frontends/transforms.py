"""``grad``, ``value_and_grad``, ``vjp`` and their kin with JAX's signatures: of JAX functions, and of jaxte functions.

What a function is, its type says: an object that ``te.function`` made is one of Tensors, every other callable is called with arrays as
JAX calls it, and is raised. Nothing is tried out.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar, overload

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import tree_leaves

from jaxte.bridge.calls.arguments import has_tensor
from jaxte.bridge.functions import transforms
from jaxte.bridge.functions.evaluate import Explained
from jaxte.bridge.functions.function_methods import Function
from jaxte.derivatives import linear_maps
from jaxte.derivatives.overrides import Fdiff
from jaxte.frontends.jaxpr.adjoint import adjoint
from jaxte.frontends.jaxpr.raised import Raised
from jaxte.lang.checks import described, for_users, wants_arguments
from jaxte.lang.errors import ArgumentError, DefinitionError
from jaxte.tensors.tensor import Tensor

T = TypeVar("T")
U = TypeVar("U")


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
        self.raised.tune_once(*self._as_traced(args), **kwargs)
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
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    safe: bool = True,
    platform: str | None = None,
    tune: tuple[Any, ...] | Literal["first call"] | None = None,
    tuning_file: Any = None,
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
        _of_arrays_only(f, platform, holomorphic=holomorphic, allow_int=allow_int)
        _not_measured(f, tune)
        return transforms.grad(f, argnums, has_aux)
    raised = raised_for(f, "te.grad", safe, platform)
    if tune is not None or tuning_file is not None:
        raised = adjoint(raised, tune=tune, tuning_file=tuning_file)
    options = dict(argnums=argnums, has_aux=has_aux, holomorphic=holomorphic, allow_int=allow_int)
    return Transformed(raised, jax.grad, options, "Gradient")


@wants_arguments
def value_and_grad(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    safe: bool = True,
    platform: str | None = None,
    tune: tuple[Any, ...] | Literal["first call"] | None = None,
    tuning_file: Any = None,
) -> Callable[..., tuple[Any, Any]]:
    """A function that computes the value and the gradient of ``f``, as ``jax.value_and_grad``. See :func:`grad`."""
    if isinstance(f, Function):
        _of_arrays_only(f, platform, holomorphic=holomorphic, allow_int=allow_int)
        _not_measured(f, tune)
        return transforms.value_and_grad(f, argnums, has_aux)
    raised = raised_for(f, "te.value_and_grad", safe, platform)
    if tune is not None or tuning_file is not None:
        raised = adjoint(raised, tune=tune, tuning_file=tuning_file)
    options = dict(argnums=argnums, has_aux=has_aux, holomorphic=holomorphic, allow_int=allow_int)
    return Transformed(raised, jax.value_and_grad, options, "Value and gradient")


@overload
def vjp(
    f: Function,
    *primals: Any,
    has_aux: Literal[False] = False,
    safe: bool = True,
    platform: str | None = None,
) -> tuple[Any, Callable[..., Any]]: ...
@overload
def vjp(
    f: Callable[..., T],
    *primals: Any,
    has_aux: Literal[False] = False,
    safe: bool = True,
    platform: str | None = None,
) -> tuple[T, Callable[..., Any]]: ...
@overload
def vjp(
    f: Callable[..., tuple[T, U]],
    *primals: Any,
    has_aux: Literal[True],
    safe: bool = True,
    platform: str | None = None,
) -> tuple[T, Callable[..., Any], U]: ...
@wants_arguments
def vjp(f: Any, *primals: Any, has_aux: bool = False, safe: bool = True, platform: str | None = None) -> Any:
    """The value of ``f`` and the function from cotangents to the adjoints of ``primals``, as ``jax.vjp``. See :func:`grad`."""
    if isinstance(f, Function):
        _of_arrays_only(f, platform)
        return transforms.vjp(f, *primals, has_aux=has_aux)
    pull: Any = jax.vjp
    return pull(raised_for(f, "te.vjp", safe, platform), *primals, has_aux=has_aux)


@overload
def jvp(
    f: Tensor,
    primals: Tensor | Sequence[Tensor],
    tangents: Any,
    override: Mapping[Tensor, Any] | None = None,
    fdiff: Fdiff | None = None,
) -> Tensor: ...
@overload
def jvp(
    f: Sequence[Tensor],
    primals: Tensor | Sequence[Tensor],
    tangents: Any,
    override: Mapping[Tensor, Any] | None = None,
    fdiff: Fdiff | None = None,
) -> list[Tensor]: ...
@overload
def jvp(
    f: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool = False,
    *,
    safe: bool = True,
    platform: str | None = None,
) -> tuple[Any, ...]: ...
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
    if is_jax(f):
        return jax.jvp(raised_for(f, "te.jvp", **own_options(options)), primals, tangents, *args, **options)
    return linear_maps.jvp(f, primals, tangents, *args, **options)


@overload
def linearize(
    f: Tensor | Sequence[Tensor], inputs: Tensor | Sequence[Tensor], /
) -> linear_maps.Linearization: ...
@overload
def linearize(
    f: Callable[..., Any],
    *primals: Any,
    has_aux: Literal[False] = False,
    safe: bool = True,
    platform: str | None = None,
) -> tuple[Any, Callable[..., Any]]: ...
@overload
def linearize(
    f: Callable[..., Any],
    *primals: Any,
    has_aux: Literal[True],
    safe: bool = True,
    platform: str | None = None,
) -> tuple[Any, Callable[..., Any], Any]: ...
@wants_arguments
def linearize(f: Any, *primals: Any, **options: Any) -> Any:
    """The linear map from tangents of inputs to tangents of Tensors (:func:`jaxte.derivatives.linear_maps.linearize`); of a JAX function, as ``jax.linearize``.

    Args:
        f: Tensors, followed by their inputs; or any JAX function, followed by the arrays at which it is taken.
        options: ``has_aux`` of a JAX function, ``safe`` and ``platform`` as in :func:`grad`.

    Example:
        >>> value, push = te.linearize(heat, u)
    """
    if is_jax(f):
        return jax.linearize(raised_for(f, "te.linearize", **own_options(options)), *primals, **options)
    return linear_maps.linearize(f, *primals, **options)


def _as_array(leaf: Any) -> Any:
    return jnp.asarray(leaf) if isinstance(leaf, (np.ndarray, np.generic, float, complex)) else leaf


def is_jax(f: Any) -> bool:
    return callable(f) and not isinstance(f, Tensor)


def own_options(options: dict[str, Any]) -> dict[str, Any]:
    """The options of :func:`adjoint` among those of a transformation, taken out."""
    return {name: options.pop(name) for name in ("safe", "platform") if name in options}


def raised_for(f: Any, who: str, safe: bool = True, platform: str | None = None) -> Raised:
    if isinstance(f, Function):
        _of_arrays_only(f, platform)
        return Raised(f, safe=safe)
    if isinstance(f, Tensor) or not callable(f):
        raise DefinitionError(
            f"{who} takes a JAX function, or te.function over a builder of Tensors, not {described(f)}"
        )
    return adjoint(f, safe=safe, platform=platform)


def _not_measured(f: Function, tune: Any) -> None:
    if tune is not None:
        raise ArgumentError(
            f"tune= is for JAX functions; {f.__name__} is a jaxte function, whose forms te.autotune measures: leave tune= out"
        )


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
