"""``adjoint``: a JAX function whose derivative, under every transformation, is that of its raised parts."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypedDict, TypeVar, Unpack, overload

from jaxte.bridge.calls.lifted import Built
from jaxte.bridge.functions.derivative import Array
from jaxte.frontends.jaxpr.raised import Raised
from jaxte.frontends.jaxpr.tune import FIRST_CALL
from jaxte.lang.checks import described, wants_arguments
from jaxte.lang.errors import ArgumentError
from jaxte.lower.cost.platforms import platform_of
from jaxte.tensors.tensor import Tensor

P = ParamSpec("P")
A = TypeVar("A")
R = TypeVar("R")


class Adjoint(Protocol):
    """What :func:`adjoint` with options alone returns."""

    def __call__(self, f: Callable[P, R], /) -> Raised[P, R]: ...


class Options(TypedDict, total=False):
    """The keywords of :func:`adjoint`."""

    everything: bool
    tune: tuple[object, ...] | Literal["first call"] | None
    tuning_file: str | os.PathLike[str] | None
    safe: bool
    platform: str | None
    save: int | None


@overload
def adjoint(
    f: Built[Callable[Concatenate[Tensor, P], Tensor | Array]], **options: Unpack[Options]
) -> Raised[..., Array]: ...
@overload
def adjoint(
    f: Built[Callable[Concatenate[dict[str, Tensor], P], Tensor | Array]], **options: Unpack[Options]
) -> Raised[..., Array]: ...
@overload
def adjoint(
    f: Built[Callable[Concatenate[A, Tensor, P], Tensor | Array]], **options: Unpack[Options]
) -> Raised[..., Array]: ...
@overload
def adjoint(f: Built[Callable[P, Tensor | Array]], **options: Unpack[Options]) -> Raised[P, Array]: ...
@overload
def adjoint(f: Callable[P, R], **options: Unpack[Options]) -> Raised[P, R]: ...
@overload
def adjoint(f: None = None, **options: Unpack[Options]) -> Adjoint: ...
@wants_arguments
def adjoint(
    f: Any = None,
    *,
    everything: bool = False,
    tune: tuple[object, ...] | Literal["first call"] | None = None,
    tuning_file: str | os.PathLike[str] | None = None,
    safe: bool = True,
    platform: str | None = None,
    save: int | None = None,
) -> Any:
    """``f`` with raised derivatives: ``jax.grad`` of the result is the gradient that jaxte derives.

    Where nothing is to be gained, ``f`` itself is called.

    Args:
        f: any JAX function; used as a decorator too.
        everything: whether all that has a rule is raised, not only what gains by estimate.
        tune: the arguments of a call. Values and gradients of the whole function are then compiled and timed with regions taken
            and left, and calls with arguments of these shapes and dtypes run the fastest; others run as estimated.
            :meth:`Raised.tune` does so again, for other arguments. With ``"first call"`` this happens by itself at the first call with
            arguments of each shape: on the arrays of the call, or, within ``jax.jit``, on numbers between 0.5 and 1.5 (zeros for integers).
        tuning_file: of ``tune="first call"``: a path. What was measured is kept in it as JSON, beside what :func:`autotune` keeps, and
            taken from it by later processes on the same machine, which then measure nothing.
        safe: whether the branch of a ``jnp.where`` that is not taken contributes 0 to the gradient where its slope is infinite or NaN, for
            which ``jax.grad`` gives NaN; False for what ``jax.grad`` gives. Values are the same both ways.
        platform: "cpu", "gpu" or "tpu", for which raised parts are planned and written; by default planned for the platform that JAX runs
            on, and written for the one that JAX lowers for.
        save: how many bytes the states of each loop (``scan``, ``fori_loop``, ``while_loop``) may take until the backward pass has come to them: as many
            are kept, and the others computed again. None for all that JAX keeps, and no gradient of a ``while_loop`` without a bound.

    Raises:
        ArgumentError: ``f`` is no function, ``tune`` no tuple of arguments that are there, ``save`` is no number of bytes, or both are given.
        LoweringError: the platform is unknown.

    Example:
        >>> @te.adjoint
        ... def heat(u):
        ...     return u + 0.1 * (jnp.roll(u, 1) + jnp.roll(u, -1) - 2 * u)
        >>> jax.grad(lambda u: jnp.sum(heat(u) ** 2))(jnp.ones(8))

        >>> te.explain(te.adjoint(heat, tune=(jnp.ones(8),)), jnp.ones(8)).measured
    """
    if f is None:
        return functools.partial(
            adjoint,
            everything=everything,
            tune=tune,
            tuning_file=tuning_file,
            safe=safe,
            platform=platform,
            save=save,
        )
    if not callable(f):
        raise ArgumentError(f"te.adjoint takes a JAX function, not {described(f)}")
    _check_options(tune, tuning_file, save)
    if platform is not None:
        platform_of(platform)
    raised = f if isinstance(f, Raised) else Raised(f, everything, safe, save=save)
    raised = raised if save in (None, raised.save) else raised.saving(save)
    raised = raised if platform in (None, raised.platform) else raised.on(platform)
    if tune == FIRST_CALL:
        return raised.tuned_at_first(tuning_file)
    if tune is not None:
        raised.tune(*tune)
    return raised


def _check_options(tune: Any, tuning_file: Any, save: Any) -> None:
    """Refuses what cannot be measured, or kept, as it is asked for."""
    if tune is not None and not isinstance(tune, tuple) and tune != FIRST_CALL:
        raise ArgumentError(
            f'tune= takes the arguments of a call as a tuple, (x,) for one, or "{FIRST_CALL}", not {described(tune)}'
        )
    if tuning_file is not None and tune != FIRST_CALL:
        raise ArgumentError(
            f'tuning_file= is for tune="{FIRST_CALL}", which keeps in it what it measured; give that too'
        )
    if save is not None and (isinstance(save, bool) or not isinstance(save, int) or save < 1):
        raise ArgumentError(
            f"save= of te.adjoint takes a number of bytes for the states of each loop, as save=2**20, not {described(save)}"
        )
    if save is not None and tune is not None:
        raise ArgumentError(
            "te.adjoint measures what keeps all states of loops: give it either tune= or save="
        )
