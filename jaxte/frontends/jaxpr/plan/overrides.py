"""Functions with derivatives of their own: ``jax.custom_jvp``, ``jax.custom_vjp`` and ``stop_gradient`` as overrides of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax

from jaxte.autodiff.graph.overrides import Override
from jaxte.autodiff.graph.reverse import differentiate
from jaxte.bridge.given.extern import extern
from jaxte.lang.dtypes import is_inexact
from jaxte.tensors.inputs import placeholder
from jaxte.tensors.tensor import Tensor


def blocked(tensor: Tensor) -> Tensor:
    """The elements of ``tensor``, from which nothing flows back; JAX is told too, for derivatives of the emitted code."""
    struct = jax.ShapeDtypeStruct(tensor.shape, tensor.dtype)
    made: Tensor = extern(struct, jax.lax.stop_gradient, [tensor], "stop_gradient")
    made.with_override(Override((made,), (), lambda out, inputs, head: []))
    return made


def by_tangent(
    tensor: Tensor,
    operands: Sequence[Tensor],
    tangent: Callable[[Tensor, Sequence[Tensor], Sequence[Tensor]], Tensor],
) -> None:
    """What flows back from ``tensor`` is the transpose of ``tangent(tensor, operands, tangents)``, which is linear in the last.

    An operand that stands at two places is one dependency, which moves at both.
    """
    sources = tuple(dict.fromkeys(operands))
    places = [next(n for n, source in enumerate(sources) if source is operand) for operand in operands]

    def adjoints(out: Tensor, inputs: Sequence[Tensor], head: Tensor) -> list[Tensor]:
        moves = [placeholder(t.shape, t.dtype, f"{t.name}_dot") for t in inputs]
        moved = tangent(out, [inputs[n] for n in places], [moves[n] for n in places])
        return list(differentiate(moved, moves, head=head))

    tensor.with_override(Override((tensor,), sources, adjoints))


def by_adjoint(
    tensor: Tensor, operands: Sequence[Tensor], adjoints: Callable[[Tensor, Tensor], Sequence[Tensor]]
) -> None:
    """What flows back from ``tensor`` to ``operands``, which are distinct, is ``adjoints(tensor, head)``."""
    tensor.with_override(
        Override((tensor,), tuple(operands), lambda out, inputs, head: list(adjoints(out, head)))
    )


def tangent_jaxpr(eqn: Any) -> Any:
    """The jaxpr of the tangent of a call with a derivative of its own: from operands and tangents of those that are inexact."""
    operands, moving = _operands(eqn)

    def tangent(xs: Sequence[Any], ts: Sequence[Any]) -> Any:
        return jax.jvp(_of_moving(eqn, xs, moving), [xs[n] for n in moving], ts)[1]

    return jax.make_jaxpr(tangent)(operands, [operands[n] for n in moving]), moving


def adjoint_jaxpr(eqn: Any) -> Any:
    """The jaxpr of what flows back through a call with a rule for it: from operands and the head to the operands that are inexact."""
    operands, moving = _operands(eqn)
    (out,) = eqn.outvars

    def adjoint(xs: Sequence[Any], head: Any) -> Any:
        _, pull = jax.vjp(_of_moving(eqn, xs, moving), *(xs[n] for n in moving))
        return pull([head])

    return jax.make_jaxpr(adjoint)(operands, jax.ShapeDtypeStruct(out.aval.shape, out.aval.dtype)), moving


def _operands(eqn: Any) -> tuple[list[Any], list[int]]:
    operands = [jax.ShapeDtypeStruct(a.aval.shape, a.aval.dtype) for a in eqn.invars]
    return operands, [n for n, s in enumerate(operands) if is_inexact(str(s.dtype))]


def _of_moving(eqn: Any, xs: Sequence[Any], moving: Sequence[int]) -> Callable[..., Any]:
    """A call as a function of its operands that are inexact."""
    bound = eqn.primitive.get_bind_params(eqn.params)

    def call(*values: Any) -> Any:
        filled = list(xs)
        for n, value in zip(moving, values, strict=True):
            filled[n] = value
        return eqn.primitive.bind(*filled, **bound)

    return call
