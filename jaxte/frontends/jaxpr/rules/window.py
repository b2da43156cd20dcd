"""Reductions over windows: pooling and what is like it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxte.frontends.jaxpr.equations.table import Reads, Site, Unraised, raises
from jaxte.frontends.jaxpr.rules.reduction import reduce_axes, reduced
from jaxte.frontends.jaxpr.values.positions import decided, quotient
from jaxte.frontends.jaxpr.values.value import Value, typed
from jaxte.lang import operators as ops
from jaxte.lang.dtypes import is_complex
from jaxte.lang.expr import TRUE, Axis, Expr, as_expr, call

_REDUCERS = {"reduce_window_sum": "sum", "reduce_window_max": "max", "reduce_window_min": "min"}


@raises(
    *_REDUCERS,
    reads=Reads.WINDOW,
    notation="`max over k of x[s * i + d * k - low]` inside of x, the first of equal ones",
)
def _reduce_window(site: Site, x: Value) -> Value:
    name, p = _REDUCERS[site.params["primitive"]], site.params
    if is_complex(site.dtype) or site.dtype == "bool":
        raise Unraised(f"windows of {site.dtype}")
    if 0 in (*site.shape, *x.shape):
        raise Unraised("windows of nothing")
    rows = list(
        zip(
            p["window_dimensions"],
            p["window_strides"],
            p["padding"],
            p["base_dilation"],
            p["window_dilation"],
            x.shape,
            strict=True,
        )
    )

    def element(*i: Any) -> Expr:
        sizes = [d for d, row in enumerate(rows) if row[0] > 1]
        taps: dict[int, Axis] = dict(zip(sizes, reduce_axes([rows[d][0] for d in sizes]), strict=True))
        inside: Expr = TRUE
        index: list[Expr] = []
        for d, (_, stride, (low, _), base, dilation, extent) in enumerate(rows):
            tap = taps[d] * dilation if d in taps else 0
            position, condition = tap_position(as_expr(i[d]) * stride + tap, int(low), base, extent)
            index.append(position)
            inside = call(ops.AND, inside, condition)
        if not taps and name == "sum":
            return call(ops.SELECT, inside, x[tuple(index)], typed(as_expr(0), site.dtype))
        return reduced(name, x[tuple(index)], list(taps.values()), inside, ties="first")

    if name == "sum" or not _all_padding(rows, site.shape):
        return site.define(element)
    raise Unraised("windows that lie in the padding as a whole")


def _all_padding(rows: Sequence[Any], shape: tuple[int, ...]) -> bool:
    """Whether some window meets no element; the rule for maxima is about windows that meet one."""
    for (size, stride, (low, _), base, dilation, extent), out in zip(rows, shape, strict=True):
        last = base * (extent - 1)
        starts = [stride * n - int(low) for n in (0, out - 1)]
        if base > 1 or starts[0] + dilation * (size - 1) < 0 or starts[1] > last:
            return True
        if size == 1 and (starts[0] < 0 or starts[1] > last):
            return True
    return False


def tap_position(position: Expr, low: int, base: int, extent: int) -> tuple[Expr, Expr]:
    """The index into an array with ``low`` zeros before it and ``base - 1`` between its elements, and where there is one."""
    place = position - low
    inside = call(ops.AND, decided(place >= 0), decided(place <= base * (extent - 1)))
    if base > 1:
        inside = call(ops.AND, inside, decided(place % base == 0))
        place = quotient(place, base)
    return place, inside
