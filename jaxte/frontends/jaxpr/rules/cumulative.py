"""Cumulative reductions: a reduction over the positions up to one's own."""

from __future__ import annotations

from typing import Any

from jaxte.frontends.jaxpr.equations.table import Reads, Site, Unraised, raises
from jaxte.frontends.jaxpr.rules.reduction import reduce_axes, reduced
from jaxte.frontends.jaxpr.values.value import Value, typed
from jaxte.lang.dtypes import is_complex
from jaxte.lang.expr import Expr

_REDUCERS = {"cumsum": "sum", "cumprod": "prod", "cummax": "max", "cummin": "min"}


@raises(*_REDUCERS, reads=Reads.WINDOW, notation="`sum over k <= i of x[k]`")
def _cumulative(site: Site, x: Value) -> Value:
    name = _REDUCERS[site.params["primitive"]]
    if is_complex(site.dtype) or site.dtype == "bool":
        raise Unraised(f"cumulative reductions of {site.dtype}")
    axis, reverse = site.params["axis"], site.params["reverse"]

    def element(*i: Any) -> Expr:
        (k,) = reduce_axes([x.shape[axis]])
        where = k >= i[axis] if reverse else k <= i[axis]
        return reduced(name, typed(x[(*i[:axis], k, *i[axis + 1 :])], site.dtype), [k], where)

    if x.shape[axis] <= 1:
        return site.define(lambda *i: x[i])
    return site.define(element)
