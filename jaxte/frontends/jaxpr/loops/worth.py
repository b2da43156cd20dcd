"""Whether a loop that is written anew gains, and whether its steps are taken together, in seconds on the platform."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from jaxte.frontends.jaxpr.loops.body import Body

_MOST_TOGETHER = 1 << 26  # bytes of one intermediate of all steps
_ALONE = ("cond", "while", "custom_vjp_call")  # of which all steps together compute more than one does


def gain(body: Body) -> bool:
    """Whether rows take the place of arrays that each step's derivative would copy or add to."""
    return bool(body.arrays or body.lifted) and (body.is_map or _rows(body) > 0)


def _rows(body: Body) -> int:
    """Bytes of arrays that are handed on, or added to in the backward pass, in each step, less those of rows."""
    arrays = [(a.first.aval, a.row_size) for a in body.arrays.values()]
    arrays += [(access.array.aval, prod(access.sizes)) for access in body.lifted.values()]
    return sum((prod(aval.shape) - row) * aval.dtype.itemsize for aval, row in arrays if _is_moved(aval))


def _is_moved(aval: Any) -> bool:
    return np.dtype(aval.dtype).kind in "fc" or str(aval.dtype) == "bfloat16"


def at_once(body: Body) -> bool:
    """Whether all steps are computed together."""
    written = {id(w.eqn) for a in body.arrays.values() for w in a.writes}
    eqns = [eqn for eqn in body.jaxpr.eqns if id(eqn) not in written]
    if any(eqn.primitive.name in _ALONE for eqn in eqns):
        return False
    made = [prod(v.aval.shape) * np.dtype(v.aval.dtype).itemsize for eqn in eqns for v in eqn.outvars]
    return max(made, default=0) * body.counters.steps <= _MOST_TOGETHER
