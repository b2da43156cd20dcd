"""Equal equations as calls of one function, whose derivative JAX makes once.

What is written in ``jax.numpy`` consists of small functions under ``jax.jit``, each of which JAX linearizes once for equal operands and puts in
place of its call. The equations of a jaxpr are without these functions, and to linearize one takes JAX five times as long as to find what it made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import jax
from jax.extend import source_info_util
from jax.extend.core import Literal

from jaxte.bridge.jaxprs import bound, literal_array
from jaxte.bridge.primitive.placement import is_placed
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.limits import SEVERAL

_REMEMBERED = 4096  # calls, the oldest of which is forgotten: a program has some hundred kinds of equations


@dataclass(frozen=True)
class _Kind:
    """What equal equations have in common, and one of them."""

    key: Hashable
    eqn: Any = field(compare=False)


def as_calls(eqns: Sequence[Any]) -> list[Any]:
    """``eqns`` with a call in place of each of several equal ones that derivatives flow through."""
    kinds = [_kind_of(eqn) for eqn in eqns]
    many = Counter(kind for kind in kinds if kind is not None)
    return [
        _call(eqn, kind) if kind is not None and many[kind] >= SEVERAL else eqn
        for eqn, kind in zip(eqns, kinds, strict=True)
    ]


def _kind_of(eqn: Any) -> _Kind | None:
    """The kind of an equation; None where it has functions within, has effects, is placed on devices, or is not differentiated."""
    avals = [atom.aval for atom in (*eqn.invars, *eqn.outvars)]
    if (
        eqn.effects
        or eqn.primitive.call_primitive
        or not all(isinstance(a, jax.core.ShapedArray) for a in avals)
    ):
        return None
    if any(map(is_placed, avals)) or not any(is_inexact(str(v.aval.dtype)) for v in eqn.outvars):
        return None
    if any(callable(p) or hasattr(p, "eqns") or hasattr(p, "jaxpr") for p in eqn.params.values()):
        return None
    numbers = tuple(literal_array(a).tobytes() if isinstance(a, Literal) else None for a in eqn.invars)
    key = eqn.primitive, tuple(eqn.params.items()), tuple(avals), numbers, eqn.ctx
    try:
        hash(key)
    except TypeError:
        return None
    return _Kind(key, eqn)


def _call(eqn: Any, kind: _Kind) -> Any:
    """``eqn`` as a call of the function that is one equation of its kind."""
    call = _called(kind)
    invars = [atom for atom in eqn.invars if not isinstance(atom, Literal)]
    return eqn.replace(primitive=call.primitive, params=call.params, invars=invars)


@lru_cache(_REMEMBERED)
def _called(kind: _Kind) -> Any:
    """A call of the function that is one equation, to be put in place of the call."""
    eqn = kind.eqn

    def alone(*arrays: Any) -> Any:
        given = iter(arrays)
        operands = [a.val if isinstance(a, Literal) else next(given) for a in eqn.invars]
        with source_info_util.reset_name_stack(), eqn.ctx.manager:
            return bound(eqn, operands)

    avals = [atom.aval for atom in eqn.invars if not isinstance(atom, Literal)]
    (call,) = jax.make_jaxpr(jax.jit(alone))(*avals).eqns
    return call.replace(params={**call.params, "inline": True})
