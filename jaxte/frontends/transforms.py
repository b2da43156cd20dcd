"""``vjp``, ``jvp`` and ``linearize`` with JAX's signatures: of JAX functions, of jaxte functions, and of Tensors; and ``everywhere``."""

# Functions of jaxte are callables too, so that their overloads come first and overlap with those of all functions.
# mypy: disable-error-code="overload-overlap"

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar, TypeVarTuple, Unpack, overload

import jax
from jax.typing import ArrayLike

from jaxte.bridge.functions import derivative
from jaxte.bridge.functions.builder_function import Array
from jaxte.bridge.functions.function_methods import Function
from jaxte.derivatives import linear_maps
from jaxte.derivatives.overrides import Fdiff, Overrides
from jaxte.frontends.jaxpr.raised import Raised
from jaxte.frontends.jaxpr.taken import taken_by
from jaxte.frontends.transformed import OwnFunction, PyTree, is_jax, of_arrays_only, own_options, raised_for
from jaxte.lang.checks import wants_arguments
from jaxte.lower.cost.platforms import platform_of
from jaxte.tensors.tensor import Tensor

T = TypeVar("T")
Aux = TypeVar("Aux")
Ts = TypeVarTuple("Ts")
Pull: TypeAlias = Callable[[T], tuple[PyTree, ...]]


class Options(TypedDict, total=False):
    """The keywords of :func:`vjp` and its kin."""

    safe: bool
    platform: str | None


@overload
def vjp(
    f: OwnFunction, *primals: ArrayLike, has_aux: Literal[False] = False, **options: Unpack[Options]
) -> tuple[Array, Callable[[Array], tuple[Array, ...]]]: ...
@overload
def vjp(
    f: OwnFunction, *primals: *Ts, has_aux: Literal[False] = False, **options: Unpack[Options]
) -> tuple[Array, Callable[[Array], tuple[*Ts]]]: ...
@overload
def vjp(
    f: Function, *primals: object, has_aux: Literal[False] = False, **options: Unpack[Options]
) -> tuple[PyTree, Pull[PyTree]]: ...
@overload
def vjp(
    f: Callable[[*Ts], T], *primals: *Ts, has_aux: Literal[False] = False, **options: Unpack[Options]
) -> tuple[T, Callable[[T], tuple[*Ts]]]: ...
@overload
def vjp(
    f: Callable[[*Ts], tuple[T, Aux]], *primals: *Ts, has_aux: Literal[True], **options: Unpack[Options]
) -> tuple[T, Callable[[T], tuple[*Ts]], Aux]: ...
@overload
def vjp(
    f: Callable[..., T], *primals: object, has_aux: Literal[False] = False, **options: Unpack[Options]
) -> tuple[T, Pull[T]]: ...
@overload
def vjp(
    f: Callable[..., tuple[T, Aux]], *primals: object, has_aux: Literal[True], **options: Unpack[Options]
) -> tuple[T, Pull[T], Aux]: ...
@wants_arguments  # type: ignore[misc]  # which does not see that *primals takes every *Ts
def vjp(f: Any, *primals: Any, has_aux: bool = False, safe: bool = True, platform: str | None = None) -> Any:
    """The value of ``f`` and the function from cotangents to the adjoints of ``primals``, as ``jax.vjp``. See :func:`grad`."""
    if isinstance(f, Function):
        of_arrays_only(f, platform)
        return derivative.vjp(f, *primals, has_aux=has_aux)
    pull: Any = jax.vjp
    return pull(raised_for(f, "te.vjp", safe, platform), *primals, has_aux=has_aux)


@overload
def jvp(
    f: Tensor,
    primals: Tensor | Sequence[Tensor],
    tangents: Tensor | Sequence[Tensor],
    override: Overrides | None = None,
    fdiff: Fdiff | None = None,
) -> Tensor: ...
@overload
def jvp(
    f: Sequence[Tensor],
    primals: Tensor | Sequence[Tensor],
    tangents: Tensor | Sequence[Tensor],
    override: Overrides | None = None,
    fdiff: Fdiff | None = None,
) -> list[Tensor]: ...
@overload
def jvp(
    f: OwnFunction,
    primals: Sequence[ArrayLike],
    tangents: Sequence[ArrayLike],
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> tuple[Array, Array]: ...
@overload
def jvp(
    f: Callable[[*Ts], T],
    primals: tuple[*Ts],
    tangents: tuple[*Ts],
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> tuple[T, T]: ...
@overload
def jvp(
    f: Callable[..., T],
    primals: Sequence[object],
    tangents: Sequence[object],
    has_aux: Literal[False] = False,
    **options: Unpack[Options],
) -> tuple[T, T]: ...
@overload
def jvp(
    f: Callable[..., tuple[T, Aux]],
    primals: Sequence[object],
    tangents: Sequence[object],
    has_aux: Literal[True],
    **options: Unpack[Options],
) -> tuple[T, T, Aux]: ...
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
    f: OwnFunction, *primals: ArrayLike, has_aux: Literal[False] = False, **options: Unpack[Options]
) -> tuple[Array, Callable[..., Array]]: ...
@overload
def linearize(
    f: Callable[[*Ts], T], *primals: *Ts, has_aux: Literal[False] = False, **options: Unpack[Options]
) -> tuple[T, Callable[[*Ts], T]]: ...
@overload
def linearize(
    f: Callable[..., T], *primals: object, has_aux: Literal[False] = False, **options: Unpack[Options]
) -> tuple[T, Callable[..., T]]: ...
@overload
def linearize(
    f: Callable[..., tuple[T, Aux]], *primals: object, has_aux: Literal[True], **options: Unpack[Options]
) -> tuple[T, Callable[..., T], Aux]: ...
@wants_arguments  # type: ignore[misc]
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


@contextmanager
def everywhere(*, everything: bool = False, safe: bool = True, platform: str | None = None) -> Iterator[None]:
    """Within the block, ``jax.grad``, ``jax.value_and_grad`` and ``jax.vjp`` are those of jaxte, in code that knows nothing of it.

    A training loop of a library takes its gradients by ``jax.value_and_grad(loss)``; within the block ``loss`` is raised as
    :func:`adjoint` raises it. It holds for what is called or traced in the block by this thread; after the block, and after an exception in it,
    everything is as before. Blocks can be nested; the innermost one counts.

    - A function that was compiled before keeps its program, and so does one that is compiled within the block afterwards.
    - Code that took ``jax.grad`` out of the module before, by ``from jax import grad``, does not see it, and so do ``jax.jacrev``, ``jax.hessian``
      and ``jax.linearize``.
    - While one thread is in a block, others call a function that asks whether they are, and then JAX's own.

    Args:
        everything: as in :func:`adjoint`.
        safe: as in :func:`adjoint`.
        platform: as in :func:`adjoint`.

    Raises:
        LoweringError: the platform is unknown.

    Example:
        >>> with te.everywhere():
        ...     jax.grad(lambda u: jnp.sum(jnp.roll(u, 1) * u))(jnp.arange(4.0))
        Array([4., 2., 4., 2.], dtype=float32)
    """
    if platform is not None:
        platform_of(platform)
    with taken_by(lambda f: Raised(f, everything, safe, platform)):
        yield
