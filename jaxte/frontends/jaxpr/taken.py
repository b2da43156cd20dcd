"""Derivatives within a function: those that other code takes, with the functions of these raised, and those that a function has of its own.

JAX has no hook for what is differentiated, so ``jax.grad``, ``jax.value_and_grad`` and ``jax.vjp`` are replaced as long as somebody asks for it. Whether a call is
raised is asked for each thread, and when the call is traced, so that what was made within and is called later is what it was without.

Functions with derivatives of their own say what the rules of ``jax.custom_jvp`` and ``jax.custom_vjp`` compute, and ``stop_gradient`` that there is none.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import jax

from jaxte.bridge.functions.evaluate import Explained
from jaxte.bridge.given.extern import extern
from jaxte.derivatives.overrides import Override
from jaxte.frontends.jaxpr.equations.steps import Step
from jaxte.frontends.jaxpr.equations.table import Unraised
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.graphs import filled_in
from jaxte.tensors.tensor import Tensor

Raising = Callable[[Callable[..., Any]], Callable[..., Any]]
"""From a function to the same function with raised derivatives."""

_NAMES = ("grad", "value_and_grad", "vjp")
_RAISING: ContextVar[Raising | None] = ContextVar("raising", default=None)
_LOCK = threading.Lock()


class _Places:
    """The functions of JAX that are replaced, and by how many blocks."""

    def __init__(self) -> None:
        self._blocks = 0
        self._originals: dict[str, Any] = {}

    def enter(self) -> None:
        with _LOCK:
            if not self._blocks:
                self._originals = {name: getattr(jax, name) for name in _NAMES}
                for name, original in self._originals.items():
                    setattr(jax, name, _asking(original))
            self._blocks += 1

    def leave(self) -> None:
        with _LOCK:
            self._blocks -= 1
            if not self._blocks:
                for name, original in self._originals.items():
                    # else somebody replaced it in turn
                    if getattr(getattr(jax, name), "original", None) is original:
                        setattr(jax, name, original)


_PLACES = _Places()


@contextmanager
def taken_by(raising: Raising | None) -> Iterator[None]:
    """Within, functions that are given to ``jax.grad`` and its kin in this thread go through ``raising``; through nothing where it is None."""
    _PLACES.enter()
    token = _RAISING.set(raising)
    try:
        yield
    finally:
        _RAISING.reset(token)
        _PLACES.leave()


@contextmanager
def as_it_is() -> Iterator[None]:
    """Within, nothing is raised: what is traced is raised as a whole."""
    token = _RAISING.set(None)
    try:
        yield
    finally:
        _RAISING.reset(token)


def _asking(original: Callable[..., Any]) -> Callable[..., Any]:
    """``original`` of functions that are raised when they are called within a block."""

    @functools.wraps(original)
    def of(fun: Any, *args: Any, **kwargs: Any) -> Any:
        raising = _RAISING.get()
        if raising is None or not callable(fun) or isinstance(fun, Explained):
            return original(fun, *args, **kwargs)
        return original(_within(fun, raising(fun)), *args, **kwargs)

    setattr(of, "original", original)  # noqa: B010
    return of


def _within(fun: Callable[..., Any], raised: Callable[..., Any]) -> Callable[..., Any]:
    def chosen(*args: Any, **kwargs: Any) -> Any:
        return (fun if _RAISING.get() is None else raised)(*args, **kwargs)

    return functools.update_wrapper(
        chosen, fun, assigned=("__module__", "__name__", "__qualname__", "__doc__"), updated=()
    )


def blocked(tensor: Tensor) -> Tensor:
    """The elements of ``tensor``, from which nothing flows back; JAX is told too, for derivatives of the emitted code."""
    struct = jax.ShapeDtypeStruct(tensor.shape, tensor.dtype)
    made: Tensor = extern(struct, jax.lax.stop_gradient, [tensor], "stop_gradient")
    made.with_override(Override((made,), (), lambda out, inputs, head: []))
    return made


def tangent_jaxpr(eqn: Any) -> tuple[Any, list[int]]:
    """The rule of a call: its value and tangent, from operands and tangents of those that are inexact; and which these are."""
    operands, moving = _operands(eqn)

    def moved(xs: Sequence[Any], ts: Sequence[Any]) -> Any:
        values, tangents = jax.jvp(_of_moving(eqn, xs, moving), [xs[n] for n in moving], ts)
        return [*values, *tangents]

    return _traced_rule(moved, operands, [operands[n] for n in moving]), moving


def adjoint_jaxpr(eqn: Any) -> tuple[Any, list[int]]:
    """The rule of a call: its value and what flows back to operands that are inexact, from operands and the head; and which these are."""
    operands, moving = _operands(eqn)
    (out,) = eqn.outvars

    def adjoint(xs: Sequence[Any], head: Any) -> Any:
        values, pull = jax.vjp(_of_moving(eqn, xs, moving), *(xs[n] for n in moving))
        return [*values, *pull([head])]

    return _traced_rule(adjoint, operands, jax.ShapeDtypeStruct(out.aval.shape, out.aval.dtype)), moving


def _traced_rule(rule: Callable[..., Any], *structs: Any) -> Any:
    """The jaxpr of a rule in which all operands move that can, within which nothing is raised, or a derivative of the call would ask for its rule without end.

    Raises:
        Unraised: the rule is an error then, as it is where somebody has written that an operand has no derivative.
    """
    with as_it_is():
        try:
            return jax.make_jaxpr(rule)(*structs)
        except (
            Exception
        ) as error:  # of the user's own function, whatever it is: JAX asks the rule again, for what moves
            raise Unraised(
                f"a derivative of its own that is {type(error).__name__} where all operands move"
            ) from error


def rule_of(eqn: Any) -> tuple[Any, list[int]]:
    """The value of a call as its rule makes it, and its derivative, by tangents or by what flows back.

    Raises:
        Unraised: the rule is an error where all operands move.
    """
    return tangent_jaxpr(eqn) if eqn.primitive.name == "custom_jvp_call" else adjoint_jaxpr(eqn)


def is_same_call(a: Any, b: Any) -> bool:
    """Whether two calls are of the same function, with the same rule: what they compute, where they stand, what their rules compute."""
    if a.primitive is not b.primitive:
        return False
    own, other = (e.params["call_jaxpr"] for e in (a, b))
    if own is other and a.params is b.params:
        return True
    if own.jaxpr.debug_info.func_src_info != other.jaxpr.debug_info.func_src_info or str(own) != str(other):
        return False
    try:
        return str(rule_of(a)[0]) == str(rule_of(b)[0])
    except Unraised:
        return False


def calls_itself(step: Step, inner: Step, operands: Sequence[Any], given: Sequence[Any]) -> bool:
    """Whether ``inner``, in the rule of ``step``, is a call of the same function on the same operands."""
    if len(given) > len(operands) or any(a is not b for a, b in zip(given, operands, strict=False)):
        return False
    return is_same_call(inner.eqn, step.eqn)


def _operands(eqn: Any) -> tuple[list[Any], list[int]]:
    operands = [jax.ShapeDtypeStruct(a.aval.shape, a.aval.dtype) for a in eqn.invars]
    return operands, [n for n, s in enumerate(operands) if is_inexact(str(s.dtype))]


def bound_call(eqn: Any) -> Callable[..., Any]:
    """A call as a function of its operands."""
    params = eqn.primitive.get_bind_params(eqn.params)
    return lambda *xs: eqn.primitive.bind(*xs, **params)


def _of_moving(eqn: Any, xs: Sequence[Any], moving: Sequence[int]) -> Callable[..., Any]:
    """A call as a function of its operands that are inexact."""
    bound = bound_call(eqn)

    def call(*values: Any) -> Any:
        return bound(*filled_in(xs, moving, values))

    return call
