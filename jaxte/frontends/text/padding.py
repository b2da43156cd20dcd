"""Reads outside of a tensor: zero, the nearest element, the other end again, or mirrored at the last element."""

from __future__ import annotations

from jaxte.lang.errors import IndexExpressionError, ShapeError
from jaxte.lang.expr import TRUE, ZERO, Expr, Read, as_expr, call
from jaxte.lang.functions import abs, maximum, minimum, select
from jaxte.lang.operators import AND
from jaxte.sets.affine import linear
from jaxte.sets.intervals import constant, highest, lowest, nonnegative

MODES = ("zero", "edge", "wrap", "reflect")


def padded_read(read: Read, mode: str) -> Expr:
    """``read`` with indices that may be outside of the tensor as ``mode`` has them."""
    indices = list(read.indices)
    inside: Expr = TRUE
    for n, (index, size) in enumerate(zip(read.indices, read.tensor.shape, strict=True)):
        extent = as_expr(size)
        if _stays_inside(index, extent):
            continue
        match mode:
            case "zero":
                inside = call(AND, inside, call(AND, index >= ZERO, index < extent))
            case "edge":
                indices[n] = minimum(maximum(index, 0), extent - 1)
            case "wrap":
                indices[n] = index % extent
            case _:
                if size == 1:
                    raise ShapeError(
                        "pad='reflect' mirrors an axis at its last element, and an axis of one element has no other to show; "
                        "pad='edge' repeats it"
                    )
                indices[n] = (extent - 1) - abs((extent - 1) - abs(index))
    result = read.tensor[tuple(indices)]
    return result if inside is TRUE else as_expr(select(inside, result, 0))


def _stays_inside(index: Expr, extent: Expr) -> bool:
    try:
        form = linear(index)
    except IndexExpressionError:
        return True  # data: what is out of range is said at the call
    low, high = lowest(form), highest(form)
    if low is None or high is None:
        return False
    return nonnegative(low) and nonnegative(linear(extent) - constant(1) - high)
