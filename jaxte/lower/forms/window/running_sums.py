"""Sums over windows as differences of cumulative sums.

With ``C[j]`` the sum of the first ``j`` elements, the window of ``K`` elements that begins at ``s * i`` has the sum
``C[s * i + K] - C[s * i]``, however long it is. In several dimensions ``C`` is a summed-area table, and the sum over a box takes its
corners with alternating signs. Windows whose elements are ``d`` apart are cumulative sums of every ``d``-th element.

For integers this is exact: differences are, modulo a power of two, whatever the sums overflow to. For floating point numbers it is
not: a window of small elements is the difference of two large sums, with their rounding errors, and an infinity or NaN makes
every later window NaN. So for these the form is never taken unless it is asked for.
"""

from __future__ import annotations

from itertools import product

from jaxte.lang.expr import ZERO, Axis, Const, Expr, as_expr, call, conjunction
from jaxte.lang.operators import ADD, SELECT, SUBTRACT
from jaxte.lang.walk import substitute
from jaxte.lower.arrays.elementwise import Apply
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.steps import ALL, Index, Range, Reshape
from jaxte.lower.code.broadcasting import apply_steps
from jaxte.lower.code.spec import Array, Refusal
from jaxte.lower.forms.scan.recognise import Scan, ScanSpec
from jaxte.lower.forms.window.recognise import WindowDim, WindowSpec
from jaxte.sets.affine import normal


def cumulative_sums(spec: WindowSpec) -> ScanSpec | Refusal:
    """The cumulative sums, with one element of zero in front (``d`` of them where windows have gaps)."""
    if spec.reducer.name != "sum":
        return Refusal(f"{spec.reducer.label} is no sum")
    gaps = [d for d in spec.dims if d.dilation > 1 or d.spacing > 1]
    extents = [e for d in gaps for e in (*d.padding, d.length, spec.array.shape[d.axis])]
    if not all(isinstance(e, Const) for e in extents):
        return Refusal("extents depend on sizes")
    array, places = _by_remainders(spec)
    scans = [Scan(places[d.axis], (ZERO, ZERO), None, d.length, False, False) for d in spec.dims]
    return ScanSpec((array,), spec.reducer, 0, tuple(scans), None, None, None, None)


def _by_remainders(spec: WindowSpec) -> tuple[Array, dict[int, int]]:
    """The array among zeros, with ``d`` elements side by side of windows that have ``d - 1`` between theirs.

    Returns:
        It, and the dimension along which the window of each dimension runs.
    """
    axes: list[Axis] = []
    places: dict[int, int] = {}
    table: dict[Axis, Expr] = {}
    inside: list[Expr] = []
    by_axis = {d.axis: d for d in spec.dims}
    for n, axis in enumerate(spec.array.axes):
        d = by_axis.get(n)
        if d is None:
            axes.append(axis)
            continue
        quotient = Axis(axis.name, 0, _rows_of(d))
        rest = Axis(f"{axis.name}_{d.dilation}", 0, d.dilation)
        places[n] = len(axes)
        axes += [quotient, rest] if d.dilation > 1 else [quotient]
        at = d.dilation * quotient + (rest if d.dilation > 1 else ZERO) - d.padding[0] - d.dilation
        inside += [at >= 0, at <= d.spacing * (axis.extent - 1)]
        if d.spacing > 1:
            inside.append(at % d.spacing == 0)
        table[axis] = normal(at // d.spacing) if d.spacing > 1 else normal(at)
    body = substitute(spec.array.body, table)
    guarded = call(SELECT, conjunction(inside), body, as_expr(0))
    return Array(tuple(axes), guarded), places


def _rows_of(d: WindowDim) -> Expr:
    """How many elements the cumulative sums have, the zeros in front included; rows of ``d.dilation`` of them."""
    line = normal(d.dilation + d.stride * (d.length - 1) + d.dilation * (d.size - 1) + 1)
    return line if d.dilation == 1 else as_expr(-(-int(line) // d.dilation))


def flattened(spec: WindowSpec, sums: Node) -> Node:
    """The cumulative sums with one dimension for each of the array."""
    if all(d.dilation == 1 for d in spec.dims):
        return sums
    by_axis = {d.axis: d for d in spec.dims}
    shape = [
        normal(_rows_of(d) * d.dilation) if (d := by_axis.get(n)) else axis.hi
        for n, axis in enumerate(spec.array.axes)
    ]
    return apply_steps(sums, [Reshape(tuple(shape))])


def differences(spec: WindowSpec, sums: Node) -> Node:
    """The sums over windows on the cumulative sums."""
    total: Node | None = None
    for corner in product((True, False), repeat=len(spec.dims)):
        entries = [ALL] * (max(d.axis for d in spec.dims) + 1)
        for d, far in zip(spec.dims, corner, strict=True):
            entries[d.axis] = _slice(d, d.dilation * d.size if far else 0)
        part = apply_steps(sums, [Index(tuple(entries))])
        op = SUBTRACT if corner.count(False) % 2 else ADD
        total = part if total is None else Apply(op, (total, part))
    assert total is not None
    return total


def _slice(d: WindowDim, start: int) -> Range:
    stop = normal(start + d.stride * (d.length - 1) + 1)
    return Range(as_expr(start) if start else None, stop, d.stride)
