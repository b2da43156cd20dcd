"""Reductions over windows as nodes, in each of their forms.

Slices of one array are combined in one pass, or one dimension after the other (a window of ``a * b`` is then one of ``a`` and one of
``b``), or by doubling: windows of 1, 2, 4, 8, ... positions, each of them two of the one before, and the whole as two or more of
these side by side, one of which may cover what another one covers where that makes no difference (a maximum). What is
sliced is kept apart from what made it, which XLA would otherwise compute again for each slice. What lies around the array is
put there for one dimension at a time: rows of their natural length are several times as fast as padded ones.

Where the first of several passes runs over a few positions there need not be a padded copy on the CPU: each shifted array is padded,
or cut, by itself, ``sum(lax.pad(x, 0.0, ((1 - i, i - 1, 0), (0, 0, 0))) for i in range(3))``. XLA makes one loop of them, in which a whole
row is inside or outside. What they are shifts of has to exist, or it would be computed for each of them: no barrier
of ``lax`` keeps XLA on the CPU from that, but a call does that may not be inlined (``APART``).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from itertools import product

from jaxte.lang.expr import ZERO, Expr, Read, as_expr
from jaxte.lang.graphs import identical
from jaxte.lang.limits import FEW, FEW_POSITIONS
from jaxte.lower.arrays.elementwise import Kept, Name, Typed
from jaxte.lower.arrays.loops import Each, Folded, Loop, Total, loop
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.products import OPS, ReduceWindow, combined, filled, identity_of
from jaxte.lower.arrays.views import ALL, Index, Range, Spread, View
from jaxte.lower.code.lettered_array import moving
from jaxte.lower.forms.window.recognise import WindowDim, WindowSpec
from jaxte.sets.affine import normal

Step = Callable[..., Name]  # of a node, and the name that it is to have

SLICES = "shifted slices"
SEPARABLE = "separable slices"
DOUBLING = "doubling slices"
PADDED_APART = "separable slices without a copy"
REDUCE_WINDOW = "reduce_window"
WINDOW_FUNCTIONS = frozenset(OPS)  # that lax.reduce_window knows
_IDEMPOTENT = ("max", "min", "any", "all")  # combining a value with itself changes nothing


def window_source(spec: WindowSpec, operands: Sequence[Node], target: str, step: Step, form: str) -> Name:
    """``spec`` on the nodes of ``spec.operands``, in statements the last of which assigns it to ``target``.

    ``step`` gives a node a name, by default a new one.
    """
    if form == REDUCE_WINDOW:
        return step(window_result(spec, _reduce_window(spec, operands[0]), operands), target)
    value, current = operands[0], None
    for dims in [spec.dims] if form == SLICES else [(d,) for d in spec.dims]:
        value = value if current is None else step(_kept(current), target)
        if form == PADDED_APART and dims[0] is spec.dims[0]:
            # what reads it makes the array that the next pass pads, so no array of its shape
            current = _padded_apart(spec, step(Kept(value, "first"), target), dims[0])
            continue
        padded = _padded(spec, value, dims)
        computed = value is operands[0] and not isinstance(spec.array.body, Read)
        if padded is not None or computed or not isinstance(value, Name):
            value = step(_kept(padded or value), target)
        current = _doubled(spec, value, step, dims[0]) if form == DOUBLING else _slices(spec, value, dims)
    assert current is not None
    return step(window_result(spec, current, operands), target)


def _kept(node: Node) -> Node:
    return node if isinstance(node, Kept) else Kept(node)


def _doubled(spec: WindowSpec, value: Node, step: Step, d: WindowDim) -> Node:
    """The windows of ``d`` made of windows of 2, 4, 8, ... positions, each of which is a statement."""
    powers = [1 << n for n in range(d.size.bit_length())]
    extent = normal(d.stride * (d.length - 1) + d.dilation * (d.size - 1) + 1)
    made = {1: value}
    for half, size in itertools.pairwise(powers):
        reach = normal(extent - d.dilation * (size - 1))
        parts = [_cut(made[half], d.axis, start, reach) for start in (0, half * d.dilation)]
        made[size] = step(_kept(combined(spec.reducer, parts)))
    pieces = [(powers[-1], 0)]
    if d.size > powers[-1] and spec.reducer.name in _IDEMPOTENT:
        pieces.append((powers[-1], d.size - powers[-1]))
    else:
        start = powers[-1]
        for size in reversed(powers[:-1]):
            if d.size & size:
                pieces.append((size, start))
                start += size
    return combined(spec.reducer, [_at(made[p], {d.axis: _shifted(d, at)}) for p, at in pieces])


def _cut(value: Node, axis: int, start: int, reach: Expr) -> Node:
    return _at(value, {axis: Range(as_expr(start) if start else None, normal(reach + start))})


def _at(value: Node, moving: Mapping[int, Range]) -> Node:
    entries = tuple(moving.get(n, ALL) for n in range(max(moving) + 1))
    return View(value, Index(entries))


def _padded(spec: WindowSpec, value: Node, dims: Sequence[WindowDim]) -> Node | None:
    """The array among identities in the dimensions ``dims``; None where the windows do not leave it."""
    if not any(map(_is_wider, dims)):
        return None
    widths: list[tuple[Expr, Expr]] = [(ZERO, ZERO)] * len(spec.array.axes)
    gaps = [0] * len(widths)
    for d in dims:
        widths[d.axis], gaps[d.axis] = d.padding, d.spacing - 1
    fill = identity_of(spec.reducer)
    if not any(gaps):
        return filled(value, widths, fill)
    spread = tuple((*pair, gap) for pair, gap in zip(widths, gaps, strict=True))
    return Spread(value, Typed(fill, spec.array.dtype), spread)


def is_padded_apart(spec: WindowSpec) -> bool:
    """Whether the first pass may pad each shifted array by itself instead of what it reads, and saves a copy by that.

    The padding of the next pass ends the loop. Without it XLA would fuse the sum into what slices it next, but not what it is
    a sum of, and keep all of the padded arrays.
    """
    if len(spec.dims) < 2 or not _is_wider(spec.dims[1]) or not isinstance(spec.array.body, Read):
        return False
    d = spec.dims[0]
    # Slices with pads in one loop, which XLA takes apart by which of them are inside.
    return not identical(d.padding, (ZERO, ZERO)) and d.size <= FEW_POSITIONS and d.spacing == 1


def _is_wider(d: WindowDim) -> bool:
    """Whether an array has to be made wider for the windows of ``d``."""
    return not identical(d.padding, (ZERO, ZERO)) or d.spacing > 1


def _padded_apart(spec: WindowSpec, value: Node, d: WindowDim) -> Node:
    """The shifted arrays of a pass over ``d`` combined, each padded where it lacks elements and cut where it has too many."""
    (turns,) = _loops([d])
    before, _ = d.padding
    after = normal(_reach(d) - before - spec.array.axes[d.axis].extent)
    own = normal(before - turns.axis), normal(turns.axis + after), 0
    widths = tuple(own if n == d.axis else (ZERO, ZERO, 0) for n in range(len(spec.array.axes)))
    element: Node = Spread(value, Typed(identity_of(spec.reducer), spec.array.dtype), widths)
    if d.stride > 1:
        element = _at(element, {d.axis: Range(step=d.stride)})
    return _over(spec, Each(element, (turns,)))


def _slices(spec: WindowSpec, value: Node, dims: Sequence[WindowDim]) -> Node:
    """The shifted slices of ``value``, combined."""
    taps = list(product(*(range(d.size) for d in dims)))
    # More slices are written as a loop.
    if len(taps) <= FEW:
        parts = [_at(value, {d.axis: _shifted(d, n) for d, n in zip(dims, tap, strict=True)}) for tap in taps]
        return combined(spec.reducer, parts)
    turns = _loops(dims)
    entries = {d.axis: moving(own.axis, _reach(d), d.stride) for d, own in zip(dims, turns, strict=True)}
    return _over(spec, Each(_at(value, entries), turns))


def _over(spec: WindowSpec, elements: Each) -> Node:
    """What a loop makes, combined."""
    return Total(elements) if spec.reducer.is_sum else Folded(spec.reducer, (elements,))


def _loops(dims: Sequence[WindowDim]) -> tuple[Loop, ...]:
    return tuple(loop(name, d.size, d.dilation) for name, d in zip("ijklmn", dims, strict=False))


def _reach(d: WindowDim) -> Expr:
    """The positions from the first window's to the last window's same element."""
    return normal(d.stride * (d.length - 1) + 1)


def _shifted(d: WindowDim, tap: int) -> Range:
    start = tap * d.dilation
    return Range(as_expr(start) if start else None, normal(start + _reach(d)), d.stride)


def _reduce_window(spec: WindowSpec, value: Node) -> Node:
    by_axis = {d.axis: d for d in spec.dims}
    dims = [by_axis.get(n) for n in range(len(spec.array.axes))]
    return ReduceWindow(
        spec.reducer.name,
        value,
        _start(spec),
        sizes=tuple(d.size if d else 1 for d in dims),
        strides=tuple(d.stride if d else 1 for d in dims),
        padding=tuple(d.padding if d else (ZERO, ZERO) for d in dims),
        spacing=tuple(d.spacing if d else 1 for d in dims),
        dilation=tuple(d.dilation if d else 1 for d in dims),
    )


def _start(spec: WindowSpec) -> Node:
    """The identity, as a plain number where it has the right dtype: JAX then knows the derivative, under jit as well."""
    identity = identity_of(spec.reducer)
    return identity if spec.array.dtype in ("float32", "float64") else Typed(identity, spec.array.dtype)


def window_result(spec: WindowSpec, result: Node, operands: Sequence[Node]) -> Node:
    """``result``, the reduction itself, brought to the output axes."""
    return spec.finish.of(result, operands[1:])
