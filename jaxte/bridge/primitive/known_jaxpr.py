"""Lowers a jaxpr that is there: JAX's ``lower_fun`` would trace a function of it once more, which takes as long as to lower it."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import jax
from jax.interpreters import mlir

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
