"""One equation by itself, or what stands in place of it, with its names and its place in the user's source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.extend.core import Literal

_EMPTY = jax.make_jaxpr(lambda: [])().jaxpr


def as_it_stands(eqn: Any, operands: Sequence[Any]) -> list[Any]:
    """The results of one equation by itself."""
    free = list({id(a): a for a in eqn.invars if not isinstance(a, Literal)}.values())
    values = {id(a): value for a, value in zip(eqn.invars, operands, strict=True)}
    alone = _EMPTY.replace(
        constvars=[],
        invars=free,
        outvars=list(eqn.outvars),
        eqns=[eqn],
        effects=eqn.effects,
        debug_info=_EMPTY.debug_info._replace(arg_names=None, result_paths=None),
    )
    return jax.core.eval_jaxpr(alone, [], *(values[id(a)] for a in free))


def in_place_of(eqn: Any, function: Callable[..., Any], *operands: Any) -> Any:
    """The one result of ``function``, whose equations stand where ``eqn`` stands in the user's source."""
    closed = jax.make_jaxpr(function)(*operands)
    eqns = [e.replace(source_info=eqn.source_info, ctx=eqn.ctx) for e in closed.jaxpr.eqns]
    return jax.core.eval_jaxpr(closed.jaxpr.replace(eqns=eqns), closed.consts, *operands)[0]
