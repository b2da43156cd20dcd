"""Whether a loop that is written anew gains, and whether its steps are taken together, in seconds on the platform."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from jax.extend.core import Literal

from jaxte.bridge.calls.options import planned_facts
from jaxte.frontends.jaxpr.loops.accesses import Access
from jaxte.frontends.jaxpr.loops.body import Body

_MOST_TOGETHER = 1 << 26  # bytes of one intermediate of all steps
_VIEWS = ("squeeze", "reshape", "expand_dims", "convert_element_type")
_PRODUCTS = ("mul", "dot_general")
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
    if any(eqn.primitive.name in _ALONE for eqn in eqns) or _reads_again(body, eqns):
        return False
    made = [prod(v.aval.shape) * np.dtype(v.aval.dtype).itemsize for eqn in eqns for v in eqn.outvars]
    return max(made, default=0) * body.counters.steps <= _MOST_TOGETHER


def _reads_again(body: Body, eqns: Sequence[Any]) -> bool:
    """Whether steps are products of rows with vectors and numbers alone, and reading rows for each of them takes longer than the steps of a loop.

    A loop reads a row once for all products of it. Together they are one statement each, which reads the whole matrix, and one whose sum is
    taken writes it.
    """
    facts = planned_facts()
    step = facts.wide_step / facts.rates.step
    return _bytes_again(body, eqns) / facts.rates.stream > step


def _bytes_again(body: Body, eqns: Sequence[Any]) -> int:
    """Bytes of rows that all products of a step but the first read; 0 where a step computes anything else of more than one number."""
    rows: dict[Any, Any] = {v: v for v in body.jaxpr.invars[body.consts + body.carried :]}
    size: dict[Any, int] = {}
    links = {id(eqn) for total in body.sums.values() for eqn in total.links}
    products: Counter[Any] = Counter()
    for eqn in eqns:
        if len(eqn.outvars) != 1:
            return 0
        (out,), name = eqn.outvars, eqn.primitive.name
        own = {rows[a]: a for a in eqn.invars if not isinstance(a, Literal) and a in rows}
        if id(eqn) in body.lifted or id(eqn) in body.reads:
            access = body.lifted[id(eqn)] if id(eqn) in body.lifted else body.reads[id(eqn)][1]
            rows[out] = _place(access)
        elif own and name in _VIEWS:
            (rows[out],) = own
        elif own and name in _PRODUCTS and (name == "mul" or out.aval.size == 1):
            products.update(own.keys())  # of one number too, which is read in no time
            size |= {row: a.aval.size * a.aval.dtype.itemsize for row, a in own.items()}
        elif out.aval.size > 1 and id(eqn) not in links and not _repeats_number(eqn):
            return 0
    return sum((many - 1) * size[row] for row, many in products.items())


def _place(access: Access) -> Any:
    """The same for reads of the same rows."""
    starts = (p and (p.numbers.tobytes(), p.outer) for p in access.starts)
    return access.array, access.sizes, tuple(starts)


def _repeats_number(eqn: Any) -> bool:
    return eqn.primitive.name == "broadcast_in_dim" and eqn.invars[0].aval.size == 1
