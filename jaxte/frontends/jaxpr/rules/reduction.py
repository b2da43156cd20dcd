"""Reductions: over whole axes, over windows, and over the positions up to one's own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

from jaxte.frontends.jaxpr.equations.table import Reads, Site, Unraised, raises
from jaxte.frontends.jaxpr.gains.parts import along_diagonal
from jaxte.frontends.jaxpr.values.positions import decided, quotient
from jaxte.frontends.jaxpr.values.value import Value, typed
from jaxte.lang import operators as ops
from jaxte.lang.dtypes import is_complex
from jaxte.lang.expr import TRUE, Axis, Call, Const, Expr, Read, Reduce, Reducer, Symbol, as_expr, call
from jaxte.lang.scalars.table import TABLE
from jaxte.lang.walk import postorder
from jaxte.tensors import reducers, reductions

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
    return Reduce(reducers.builtin_reducer(name, x.dtype, ties), (x,), axes, where) if axes else x


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


_WINDOWS = {"reduce_window_sum": "sum", "reduce_window_max": "max", "reduce_window_min": "min"}


@raises(
    *_WINDOWS,
    reads=Reads.WINDOW,
    notation="`max over k of x[s * i + d * k - low]` inside of x, the first of equal ones",
)
def _reduce_window(site: Site, x: Value) -> Value:
    name, p = _WINDOWS[site.params["primitive"]], site.params
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


_PREFIXES = {"cumsum": "sum", "cumprod": "prod", "cummax": "max", "cummin": "min"}


@raises(*_PREFIXES, reads=Reads.WINDOW, notation="`sum over k <= i of x[k]`")
def _cumulative(site: Site, x: Value) -> Value:
    if is_complex(site.dtype) or site.dtype == "bool":
        raise Unraised(f"cumulative reductions of {site.dtype}")
    name = _PREFIXES[site.params["primitive"]]
    return _prefix(site, x, reducers.builtin_reducer(name, site.dtype, "even"))


@raises("cumlogsumexp", reads=Reads.WINDOW, notation="`log(sum over k <= i of exp(x[k]))`")
def _log_sums(site: Site, x: Value) -> Value:
    return _prefix(site, x, _added_exponentials(site.dtype))


@cache
def _added_exponentials(dtype: str) -> Reducer:
    """The logarithm of a sum of exponentials, begun with minus infinity, beside which the other one is all of it, with its slope."""
    x, y, nothing = Symbol("x0", dtype), Symbol("y0", dtype), Const(-math.inf, dtype)
    both = call(TABLE["logaddexp"].op, x, y)
    result = call(ops.SELECT, call(ops.EQUAL, x, nothing), y, both)
    return Reducer("custom", "logaddexp", "even", (x,), (y,), (result,), (nothing,))


def _prefix(site: Site, x: Value, reducer: Reducer) -> Value:
    """A reduction up to each position, or from it on."""
    axis, reverse = site.params["axis"], site.params["reverse"]

    def element(*i: Any) -> Expr:
        (k,) = reduce_axes([x.shape[axis]])
        where = k >= i[axis] if reverse else k <= i[axis]
        return Reduce(reducer, (typed(x[(*i[:axis], k, *i[axis + 1 :])], site.dtype),), [k], where)

    if x.shape[axis] <= 1:
        return site.define(lambda *i: x[i])
    return site.define(element)


def unmasked(product: Expr) -> tuple[Expr, Expr] | None:
    """Where a product is not 0, and what it is there: of a factor that is 0 or 1 by a condition on positions, and another one."""
    if not (isinstance(product, Call) and product.op is ops.MULTIPLY):
        return None
    for factor, other in (product.args, product.args[::-1]):
        match factor:
            case Call(op, (condition, Expr() as chosen, Const(0 | 0.0))) if op is ops.SELECT and not _reads(
                condition
            ):
                one = isinstance(chosen, Const) and chosen.value == 1
                return condition, other if one else call(ops.MULTIPLY, chosen, other)
            case Call(op, (condition,)) if (
                op.name == "cast" and condition.dtype == "bool" and not _reads(condition)
            ):
                return condition, other
    return None


def _reads(condition: Expr) -> bool:
    return any(isinstance(n, (Read, Reduce)) for n in postorder(condition))


def is_equality(condition: Expr) -> bool:
    return isinstance(condition, Call) and condition.op is ops.EQUAL
