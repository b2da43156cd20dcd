"""Reductions over whole axes."""

from __future__ import annotations

from typing import Any

from jaxte.frontends.jaxpr.equations.table import Reads, Site, Unraised, raises
from jaxte.frontends.jaxpr.gains.masks import is_equality, unmasked
from jaxte.frontends.jaxpr.gains.parts import along_diagonal
from jaxte.frontends.jaxpr.values.value import Value, typed
from jaxte.lang import operators as ops
from jaxte.lang.dtypes import is_complex
from jaxte.lang.expr import TRUE, Axis, Expr, Reduce, as_expr, call
from jaxte.tensors import reductions

_REDUCERS = {
    "reduce_sum": "sum",
    "reduce_prod": "prod",
    "reduce_max": "max",
    "reduce_min": "min",
    "reduce_and": "all",
    "reduce_or": "any",
}


def reduced(name: str, x: Expr, axes: list[Axis], where: Expr = TRUE, ties: str = "even") -> Expr:
    """``x`` reduced over ``axes`` in its own dtype, as the primitives of lax do."""
    return Reduce(reductions.builtin_reducer(name, x.dtype, ties), (x,), axes, where) if axes else x


def summed(x: Expr, axes: list[Axis]) -> Expr:
    """The sum of ``x`` over ``axes``: along a diagonal only, or where a mask of positions is 1, if it is 0 elsewhere."""
    masked = unmasked(x)
    if masked is None:
        return reduced("sum", *along_diagonal(x, axes))
    where, chosen = masked
    if is_equality(where):
        line = call(ops.SELECT, where, chosen, typed(as_expr(0), x.dtype))
        return reduced("sum", *along_diagonal(line, axes))
    return reduced("sum", chosen, axes, where)


def reduce_axes(extents: list[int]) -> list[Axis]:
    names = "klmpqrstuv"
    return [
        Axis(names[n] if n < len(names) else f"k{n}", 0, e, reduction=True) for n, e in enumerate(extents)
    ]


@raises(*_REDUCERS, reads=Reads.REDUCE, notation="`sum over k of x[i, k]`")
def _reduce(site: Site, x: Value) -> Value:
    name = _REDUCERS[site.params["primitive"]]
    if name in ("all", "any") and site.dtype != "bool":
        raise Unraised("bits of integers reduced")
    if name in ("max", "min") and is_complex(site.dtype):
        raise Unraised("extrema of complex numbers")
    gone = [d % x.ndim for d in site.params["axes"]] if x.ndim else []

    def element(*i: Any) -> Expr:
        own = dict(zip(gone, reduce_axes([x.shape[d] for d in gone]), strict=True))
        rest = iter(i)
        index = tuple(own[d] if d in own else next(rest) for d in range(x.ndim))
        trimmed = tuple(as_expr(0) if e == 1 else k for k, e in zip(index, x.shape, strict=True))
        over = [a for d, a in own.items() if x.shape[d] != 1]
        what = typed(x[trimmed], site.dtype)
        return summed(what, over) if name == "sum" else reduced(name, what, over)

    if 0 in x.shape:
        raise Unraised("reductions over nothing")
    return site.define(element)


@raises(
    "argmax", "argmin", reads=Reads.REDUCE, notation="`argmax over k of x[i, k]`, the first of equal ones"
)
def _arg(site: Site, x: Value) -> Value:
    if len(site.params["axes"]) != 1 or is_complex(x.dtype) or x.dtype == "bool":
        raise Unraised("positions in several axes")
    (axis,) = site.params["axes"]

    def element(*i: Any) -> Expr:
        (k,) = reduce_axes([x.shape[axis]])
        index = (*i[:axis], k, *i[axis:])
        return typed(getattr(reductions, site.params["primitive"])(x[index], axis=k), site.dtype)

    return site.define(element)
