"""Jaxprs walked equation by equation: with arrays, some equations in another way than they stand, or with what else is known of arrays; and lowered.

How the arguments of a ``scan`` divide, whichever release of JAX wrote it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

import jax
import numpy as np
from jax.extend.core import Literal
from jax.interpreters import mlir

State = TypeVar("State")
# calls, and the parameter that holds what they run: those whose equations may stand in place of them, those that are computed again, and all
GROUPS = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr"}
REMATS = {"remat": "jaxpr", "remat2": "jaxpr", "checkpoint": "jaxpr"}
CALLS = GROUPS | {"custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr"} | REMATS


def walked(
    jaxpr: Any,
    given: Sequence[State],
    results: Callable[[Any, list[State]], Sequence[State]],
    number: Callable[[Any], State],
) -> list[State]:
    """What ``jaxpr`` returns.

    Args:
        jaxpr: without effects that its equations do not have themselves.
        given: what its constants are, and its arguments behind them.
        results: what an equation makes of its operands.
        number: what a literal is.
    """
    env: dict[Any, State] = dict(zip((*jaxpr.constvars, *jaxpr.invars), given, strict=True))

    for eqn in jaxpr.eqns:
        operands = [number(a) if isinstance(a, Literal) else env[a] for a in eqn.invars]
        env |= zip(eqn.outvars, results(eqn, operands), strict=True)
    return [number(a) if isinstance(a, Literal) else env[a] for a in jaxpr.outvars]


def bound(eqn: Any, operands: Sequence[Any]) -> list[Any]:
    """The results of one equation on ``operands``, which may differ where it reads one array twice."""
    made = eqn.primitive.bind(*operands, **eqn.primitive.get_bind_params(eqn.params))
    return list(made) if eqn.primitive.multiple_results else [made]


def literal_array(literal: Any) -> np.ndarray:
    """What a literal of a jaxpr is, in its own dtype."""
    return np.asarray(literal.val, getattr(literal.aval, "dtype", None))


def scan_counts(params: Mapping[str, Any]) -> tuple[int, int]:
    """How many arguments of a ``scan`` with these parameters are constants, and how many values it carries; its rows follow them.

    JAX 0.11 keeps three groups of arguments, ``ft_in``, in place of the two numbers.
    """
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    consts, carried, _ = params["ft_in"].unpack()
    return len(list(consts)), len(list(carried))


_BY_NAME = {"dim_var_values", "const_lowering", "outer_traceback"}
_ASKED = inspect.signature(mlir.jaxpr_subcomp).parameters.values()
_IS_AS_IN_0_10 = {p.name for p in _ASKED if p.kind is p.KEYWORD_ONLY} == _BY_NAME


def lowered_jaxpr(ctx: Any, closed: Any, args: Sequence[Any]) -> Any:
    """The results of ``closed`` on ``args`` in a rule of lowering, by the same operations as its function has.

    Traced again where it holds constants, where it is lowered for several platforms, and in releases of JAX that ask for more to lower it.
    """
    if closed.consts or ctx.platforms is not None or not _IS_AS_IN_0_10:
        again = mlir.lower_fun(
            lambda *own: jax.core.eval_jaxpr(closed.jaxpr, closed.consts, *own), multiple_results=True
        )
        return again(ctx, *args)
    made, tokens = mlir.jaxpr_subcomp(
        ctx.module_context,
        closed.jaxpr,
        ctx.name_stack,
        ctx.tokens_in,
        [],
        *args,
        dim_var_values=ctx.dim_var_values,
        const_lowering=ctx.const_lowering,
        outer_traceback=None,
    )
    ctx.set_tokens_out(tokens)
    return made


def evaluated_jaxpr(closed: Any, arrays: Sequence[Any]) -> list[Any]:
    return jax.core.eval_jaxpr(closed.jaxpr, closed.consts, *arrays)


def traced_for(avals: Sequence[Any]) -> Hashable:
    """What a jaxpr of emitted code depends on: the types of arrays, and what the user asks of JAX for all of them."""
    asked = (jax.config.jax_enable_x64, jax.config.jax_default_matmul_precision)  # type: ignore[attr-defined]
    return "jaxpr", asked, tuple((tuple(a.shape), str(a.dtype)) for a in avals)
