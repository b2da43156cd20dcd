"""Elements that are repeated along the rows of registers: one sum over windows of what has zeros between its elements, in place of a copy in another shape.

    jnp.repeat(jnp.repeat(x, 2, axis=1), 2, axis=2)    is    lax.reduce_window(x, 0.0, lax.add, (1, 2, 2), (1, 1, 1), ..., base_dilation=(1, 2, 2))

Each window has one element, and zeros that nothing is read for. XLA for TPUs makes an array for each repeat, broadcasts it to a shape with one more axis, whose
tiles are mostly padding, and copies that into the shape that is wanted.
"""

from __future__ import annotations

from math import prod

from jaxte.lang.dtypes import is_float
from jaxte.lang.expr import ZERO, as_expr
from jaxte.lang.limits import MOST_TERMS
from jaxte.lower.arrays.elementwise import Typed, number
from jaxte.lower.arrays.node import Node, rewritten
from jaxte.lower.arrays.products import ReduceWindow
from jaxte.lower.arrays.steps import Repeat
from jaxte.lower.arrays.views import View
from jaxte.sets.intervals import known

_ROWS = 2  # the last axes, which lie in registers


def with_repeats_as_windows(source: Node) -> Node:
    """``source`` in which elements are repeated along the last axes by sums over windows."""
    return rewritten(source, lambda node: _windows(node) or node)


def _windows(node: Node) -> ReduceWindow | None:
    """``node`` as sums over windows, if it repeats elements along rows; what it repeats may be repeated itself."""
    if not isinstance(node, View) or not isinstance(node.step, Repeat) or not is_float(node.dtype):
        return None
    ndim = len(node.shape)
    sizes = [1] * ndim
    array: Node = node
    while isinstance(array, View) and isinstance(array.step, Repeat):
        sizes[array.step.axis] *= known(array.step.times) or 0
        array = array.array
    if isinstance(array, ReduceWindow) and _repeats(array):
        sizes, array = [a * b for a, b in zip(sizes, array.sizes, strict=True)], array.array
    if (
        None in map(known, node.shape)
        or all(s == 1 for s in sizes[-_ROWS:])
        or not 0 < prod(sizes) <= MOST_TERMS
    ):
        return None
    plain = node.dtype in ("float32", "float64")
    return ReduceWindow(
        "sum",
        array,
        number(0.0) if plain else Typed(number(0.0), node.dtype),
        sizes=tuple(sizes),
        strides=(1,) * ndim,
        padding=tuple((as_expr(s - 1), as_expr(s - 1)) if s > 1 else (ZERO, ZERO) for s in sizes),
        spacing=tuple(sizes),
        dilation=(1,) * ndim,
    )


def _repeats(windows: ReduceWindow) -> bool:
    return windows.function == "sum" and windows.spacing == windows.sizes and prod(windows.strides) == 1
