"""Primitives that move elements: each is one read at other indices."""

from __future__ import annotations

from math import prod
from typing import Any

from jaxte.frontends.jaxpr.equations.table import Reads, Site, Unraised, raises
from jaxte.frontends.jaxpr.values.joining import joined, stacked
from jaxte.frontends.jaxpr.values.positions import quotient, remainder
from jaxte.frontends.jaxpr.values.value import Value
from jaxte.lang import operators as ops
from jaxte.lang.expr import TRUE, ZERO, Expr, as_expr, call


@raises(
    "broadcast_in_dim",
    reads=Reads.VIEW,
    notation="`x[i_d, ...]` at the dimensions `d` it goes to, 0 where it has one point",
)
def _broadcast(site: Site, x: Value, *dynamic: Value) -> Value:
    if dynamic:
        raise Unraised("a shape that is data")
    into = site.params["broadcast_dimensions"]
    return site.define(
        lambda *i: x[tuple(ZERO if e == 1 else i[d] for d, e in zip(into, x.shape, strict=True))]
    )


@raises("transpose", reads=Reads.VIEW, notation="`x[i in another order]`")
def _transpose(site: Site, x: Value) -> Value:
    order = site.params["permutation"]
    return site.define(lambda *i: x[tuple(i[order.index(d)] for d in range(x.ndim))])


@raises("reshape", reads=Reads.VIEW, notation="`x[f // n, f % n]` with `f = m * i + j`")
def _reshape(site: Site, x: Value, *dynamic: Value) -> Value:
    if dynamic or site.params.get("dimensions") is not None:
        raise Unraised("a reshape of transposed dimensions")
    if 0 in x.shape:  # no element is read
        return site.define(lambda *i: as_expr(0))
    groups = runs_of_equal_size(x.shape, site.shape)

    def element(*i: Any) -> Expr:
        index: list[Expr] = []
        for own, new in groups:
            flat = as_expr(0)
            for d in new:
                flat = flat * site.shape[d] + i[d]
            index += _digits(flat, [x.shape[d] for d in own])
        return x[tuple(index)]

    return site.define(element)


def _digits(flat: Expr, extents: list[int]) -> list[Expr]:
    """``flat`` in the mixed radix of ``extents``."""
    found: list[Expr] = []
    for n, extent in enumerate(extents):
        stride = prod(extents[n + 1 :])
        digit = quotient(flat, stride) if stride > 1 else flat
        found.append(ZERO if extent == 1 else remainder(digit, extent) if n else digit)
    return found


def runs_of_equal_size(old: tuple[int, ...], new: tuple[int, ...]) -> list[tuple[list[int], list[int]]]:
    """The dimensions of ``old`` and of ``new`` in the smallest runs of equal size."""
    groups: list[tuple[list[int], list[int]]] = []
    a = b = 0
    while a < len(old) or b < len(new):
        own, other, m, n = [], [], 1, 1
        if a < len(old):
            own, m, a = [a], old[a], a + 1
        if b < len(new) and not (m == 1 and new[b] != 1):
            other, n, b = [b], new[b], b + 1
        while m != n:
            if m < n:
                own, m, a = [*own, a], m * old[a], a + 1
            else:
                other, n, b = [*other, b], n * new[b], b + 1
        groups.append((own, other))
    return groups


@raises("squeeze", reads=Reads.VIEW, notation="`x[0, i]`")
def _squeeze(site: Site, x: Value) -> Value:
    gone = {d % x.ndim for d in site.params["dimensions"]}

    def element(*i: Any) -> Expr:
        rest = iter(i)
        return x[tuple(ZERO if d in gone else next(rest) for d in range(x.ndim))]

    return site.define(element)


@raises("expand_dims", reads=Reads.VIEW, notation="`x[i]` without the new dimensions")
def _expand_dims(site: Site, x: Value) -> Value:
    new = {d % len(site.shape) for d in site.params["dimensions"]}
    return site.define(lambda *i: x[tuple(k for d, k in enumerate(i) if d not in new)])


@raises("slice", reads=Reads.VIEW, notation="`x[start + step * i]`")
def _slice(site: Site, x: Value) -> Value:
    start, steps = site.params["start_indices"], site.params["strides"] or (1,) * x.ndim
    return site.define(lambda *i: x[tuple(a + s * k for a, s, k in zip(start, steps, i, strict=True))])


@raises("rev", reads=Reads.VIEW, notation="`x[n - 1 - i]`")
def _rev(site: Site, x: Value) -> Value:
    turned = site.params["dimensions"]
    return site.define(lambda *i: x[tuple(x.shape[d] - 1 - k if d in turned else k for d, k in enumerate(i))])


@raises(
    "pad", reads=Reads.VIEW, notation="`select(0 <= f < n, x[f], p)` with `f = (i - low) // (interior + 1)`"
)
def _pad(site: Site, x: Value, padding: Value) -> Value:
    config = site.params["padding_config"]

    def element(*i: Any) -> Expr:
        inside: Expr = TRUE
        index: list[Expr] = []
        for k, (low, high, interior), extent, out in zip(i, config, x.shape, site.shape, strict=True):
            low, step = int(low), int(interior) + 1
            if (low, int(high), interior) == (0, 0, 0):
                index.append(k)
                continue
            last = low + step * (extent - 1)
            if low > 0:
                inside = call(ops.AND, inside, as_expr(k) >= low)
            if last < out - 1:
                inside = call(ops.AND, inside, as_expr(k) <= last)
            if step > 1:
                inside = call(ops.AND, inside, (as_expr(k) - low) % step == 0)
            index.append(quotient(as_expr(k) - low, step) if step > 1 else as_expr(k) - low)
        return call(ops.SELECT, inside, x[tuple(index)], padding[()])

    if 0 in x.shape:
        return site.define(lambda *i: padding[()])
    return site.define(element)


@raises(
    "concatenate",
    reads=Reads.VIEW,
    notation="`x[i]` where `i < n`, else `y[i - n]`; slices of one array that go around it are `x[(i + s) % n]`",
)
def _concatenate(site: Site, *parts: Value) -> Value:
    axis = site.params["dimension"]
    if 0 in site.shape:
        return site.define(lambda *i: 0)
    return site.define(lambda *i: joined([p for p in parts if p.shape[axis]], axis, i))


@raises(
    "stack",
    reads=Reads.VIEW,
    notation="`x[i]` where `s == 0`, `y[i]` where `s == 1`, ...; shifts of one array are `x[i + s]`",
)
def _stack(site: Site, *parts: Value) -> Value:
    axis = site.params["axis"] % len(site.shape)
    return site.define(lambda *i: stacked([p[(*i[:axis], *i[axis + 1 :])] for p in parts], i[axis]))


@raises("split", reads=Reads.VIEW, notation="`x[start + i]`, a result for each part")
def _split(site: Site, x: Value) -> list[Value]:
    axis, start, parts = site.params["axis"], 0, []
    for number, size in enumerate(site.params["sizes"]):
        parts.append(site.define(lambda *i, s=start: x[(*i[:axis], s + i[axis], *i[axis + 1 :])], number))
        start += size
    return parts


@raises("unstack", reads=Reads.VIEW, notation="`x[n, i]`, a result for each `n`")
def _unstack(site: Site, x: Value) -> list[Value]:
    axis = site.params["axis"] % x.ndim
    return [
        site.define(lambda *i, n=number: x[(*i[:axis], n, *i[axis:])], number)
        for number in range(x.shape[axis])
    ]


@raises("tile", reads=Reads.VIEW, notation="`x[i % n]`")
def _tile(site: Site, x: Value) -> Value:
    if 0 in x.shape:
        raise Unraised("tiles of nothing")
    return site.define(lambda *i: x[tuple(remainder(as_expr(k), n) for k, n in zip(i, x.shape, strict=True))])


@raises("iota", reads=Reads.VIEW, notation="`i_d`")
def _iota(site: Site) -> Value:
    axis = site.params["dimension"]
    return site.define(lambda *i: i[axis])
