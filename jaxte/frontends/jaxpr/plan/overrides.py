"""Functions with derivatives of their own: what the rules of ``jax.custom_jvp`` and ``jax.custom_vjp`` compute, and ``stop_gradient``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax

from jaxte.bridge.given.extern import extern
from jaxte.derivatives.overrides import Override
from jaxte.frontends.jaxpr.equations.steps import Step
from jaxte.frontends.jaxpr.taken import as_it_is
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.graphs import filled_in
from jaxte.tensors.tensor import Tensor


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

    with as_it_is():  # within what is raised, a derivative of the call would ask for its rule without end
        return jax.make_jaxpr(moved)(operands, [operands[n] for n in moving]), moving


def adjoint_jaxpr(eqn: Any) -> tuple[Any, list[int]]:
    """The rule of a call: its value and what flows back to operands that are inexact, from operands and the head; and which these are."""
    operands, moving = _operands(eqn)
    (out,) = eqn.outvars

    def adjoint(xs: Sequence[Any], head: Any) -> Any:
        values, pull = jax.vjp(_of_moving(eqn, xs, moving), *(xs[n] for n in moving))
        return [*values, *pull([head])]

    with as_it_is():
        return jax.make_jaxpr(adjoint)(operands, jax.ShapeDtypeStruct(out.aval.shape, out.aval.dtype)), moving


def rule_of(eqn: Any) -> tuple[Any, list[int]]:
    """The value of a call as its rule makes it, and its derivative, by tangents or by what flows back."""
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
    return str(rule_of(a)[0]) == str(rule_of(b)[0])


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
