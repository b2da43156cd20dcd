"""Products summed over axes: matrix products and convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxte.frontends.jaxpr.equations.table import Reads, Site, Unraised, raises
from jaxte.frontends.jaxpr.gains.parts import (
    Band,
    Selection,
    along_rows,
    band_of,
    kernel_selection,
    selection_of,
)
from jaxte.frontends.jaxpr.rules.reduction import reduce_axes, reduced, summed, tap_position
from jaxte.frontends.jaxpr.values.positions import positions_in, quotient
from jaxte.frontends.jaxpr.values.value import Value, typed
from jaxte.lang import operators as ops
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.expr import TRUE, Expr, Read, as_expr, call
from jaxte.tensors.inputs import constant


@raises(
    "dot_general",
    reads=Reads.PRODUCT,
    notation="`sum over k of x[i, k] * y[k, j]`; a known band matrix is a few taps",
)
def _dot(site: Site, x: Value, y: Value) -> Value:
    (cx, cy), (bx, by) = site.params["dimension_numbers"]
    if not is_inexact(site.dtype) or x.dtype != site.dtype or y.dtype != site.dtype:
        raise Unraised("products in another dtype than their operands'")

    def element(*i: Any) -> Expr:
        taps = reduce_axes([x.shape[d] for d in cx])
        batch, rest = i[: len(bx)], iter(i[len(bx) :])
        left = {**dict(zip(bx, batch, strict=True)), **dict(zip(cx, taps, strict=True))}
        right = {**dict(zip(by, batch, strict=True)), **dict(zip(cy, taps, strict=True))}
        a = x[tuple(left[d] if d in left else next(rest) for d in range(x.ndim))]
        b = y[tuple(right[d] if d in right else next(rest) for d in range(y.ndim))]
        return summed(call(ops.MULTIPLY, a, b), taps)

    if 0 in (*x.shape, *y.shape):
        raise Unraised("products of nothing")
    if not bx and len(cx) == 1:
        for n, (matrix, other, contracted, along) in enumerate(((x, y, cx[0], cy[0]), (y, x, cy[0], cx[0]))):
            if matrix.known is None or matrix.ndim != 2 or other.known is not None:
                continue
            rows = along_rows(np.asarray(matrix.known), contracted)
            chosen, band = selection_of(rows), band_of(rows)
            row = 0 if n == 0 else len(site.shape) - 1
            if chosen is not None and band is None:
                return _selected(site, chosen, other, along, row)
            if band is not None:
                return _banded(site, band, other, along, row)
    return site.define(element)


def _selected(site: Site, chosen: Selection, x: Value, along: int, row: int) -> Value:
    """Dimension ``along`` of ``x`` at the positions that a matrix selects, whose rows are dimension ``row`` of the result."""
    (positions,) = chosen.positions

    def element(*i: Any) -> Expr:
        rest = iter((*i[:row], *i[row + 1 :]))
        place = position_of(positions, i[row], x.shape[along])
        return scaled(chosen.number, x[tuple(place if d == along else next(rest) for d in range(x.ndim))])

    return site.define(element)


def position_of(positions: np.ndarray, i: Any, extent: int) -> Expr:
    """The index expression of ``i`` that ``positions`` follow."""
    found = positions_in(positions, [i], extent)
    assert found is not None
    return found


def scaled(number: Any, element: Expr) -> Expr:
    return element if number == 1 else call(ops.MULTIPLY, number, element)


def _banded(site: Site, band: Band, x: Value, along: int, row: int) -> Value:
    """Dimension ``along`` of ``x`` multiplied by a matrix with a band, whose rows are dimension ``row`` of the result."""
    extent, count = x.shape[along], band.taps.shape[1]
    weights = constant(band.taps, "band", site.dtype)

    def element(*i: Any) -> Expr:
        (tap,) = reduce_axes([count])
        place = quotient(band.slope.numerator * as_expr(i[row]) + band.shift, band.slope.denominator) + tap
        rest = iter((*i[:row], *i[row + 1 :]))
        index = tuple(place if d == along else next(rest) for d in range(x.ndim))
        product = call(ops.MULTIPLY, Read(weights, (as_expr(i[row]), tap)), x[index])
        ends = band.starts[0], band.starts[-1] + count - 1
        inside = call(ops.LESS_EQUAL, 0, place) if ends[0] < 0 else TRUE
        if ends[1] >= extent:
            inside = call(ops.AND, inside, call(ops.LESS, place, extent))
        return reduced("sum", product, [tap], inside)

    return site.define(element)


@raises(
    "conv_general_dilated",
    reads=Reads.PRODUCT,
    notation="`sum over k, c of x[b, s * i + d * k - low, c] * w[k, c, o]`, groups by `o // n`",
)
def _conv(site: Site, x: Value, w: Value) -> Value:
    p = site.params
    numbers = p["dimension_numbers"]
    groups = p["feature_group_count"]
    if p["batch_group_count"] != 1:
        raise Unraised("convolutions in groups of the batch")
    if not is_inexact(site.dtype) or x.dtype != site.dtype or w.dtype != site.dtype:
        raise Unraised("convolutions in another dtype than their operands'")
    if 0 in (*x.shape, *w.shape, *site.shape):
        raise Unraised("convolutions of nothing")
    (batch_x, feature_x, *space_x), (out_w, in_w, *space_w) = numbers.lhs_spec, numbers.rhs_spec
    batch_o, feature_o, *space_o = numbers.out_spec
    per_group, features = w.shape[out_w] // groups, w.shape[in_w]
    chosen = kernel_selection(w.known, numbers.rhs_spec)
    if chosen is not None:
        return _windows(site, chosen, x, [features, *(w.shape[d] for d in space_w)], per_group)

    def element(*i: Any) -> Expr:
        inside: Expr = TRUE
        left: list[Any] = [0] * x.ndim
        right: list[Any] = [0] * w.ndim
        counts = {d: w.shape[d] for d in (*space_w, in_w) if w.shape[d] > 1}
        taps = dict(zip(counts, reduce_axes(list(counts.values())), strict=True))
        output = i[feature_o]
        group = 0 if groups == 1 else output if per_group == 1 else output // per_group
        left[batch_x], right[out_w], right[in_w] = i[batch_o], output, taps.get(in_w, 0)
        left[feature_x] = group * features + right[in_w] if groups > 1 else right[in_w]
        rows = zip(space_x, space_w, space_o, p["window_strides"], p["padding"], strict=True)
        for n, (dx, dw, do, stride, (low, _)) in enumerate(rows):
            right[dw] = taps.get(dw, 0)
            place = as_expr(i[do]) * stride + as_expr(right[dw]) * p["rhs_dilation"][n]
            left[dx], condition = tap_position(place, int(low), p["lhs_dilation"][n], x.shape[dx])
            inside = call(ops.AND, inside, condition)
        product = call(ops.MULTIPLY, x[tuple(left)], w[tuple(right)])
        if not taps:
            return call(ops.SELECT, inside, product, typed(as_expr(0), site.dtype))
        return reduced("sum", product, list(taps.values()), inside)

    return site.define(element)


def _windows(site: Site, chosen: Selection, x: Value, extents: Sequence[int], per_group: int) -> Value:
    """A convolution whose kernel, of input features and positions, chooses one element for each output feature."""
    p, numbers = site.params, site.params["dimension_numbers"]
    (batch_x, feature_x, *space_x), (batch_o, feature_o, *space_o) = numbers.lhs_spec, numbers.out_spec

    def element(*i: Any) -> Expr:
        inside: Expr = TRUE
        index: list[Any] = [0] * x.ndim
        output = as_expr(i[feature_o])
        own, *taps = (position_of(at, output, e) for at, e in zip(chosen.positions, extents, strict=True))
        index[batch_x] = i[batch_o]
        group = quotient(output, per_group) if p["feature_group_count"] > 1 else 0
        index[feature_x] = group * extents[0] + own
        rows = zip(space_x, space_o, p["window_strides"], p["padding"], taps, strict=True)
        for n, (dx, do, stride, (low, _), tap) in enumerate(rows):
            place = as_expr(i[do]) * stride + tap * p["rhs_dilation"][n]
            index[dx], condition = tap_position(place, int(low), p["lhs_dilation"][n], x.shape[dx])
            inside = call(ops.AND, inside, condition)
        taken = scaled(chosen.number, x[tuple(index)])
        return call(ops.SELECT, inside, taken, typed(as_expr(0), site.dtype))

    return site.define(element)
