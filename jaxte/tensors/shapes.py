"""Shapes: extents that are integers or expressions of sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from jaxte.lang.checks import described
from jaxte.lang.dtypes import INTEGER_LIMITS
from jaxte.lang.errors import ShapeError
from jaxte.lang.expr import Axis, Const, Expr, Read, as_expr
from jaxte.lang.text import text
from jaxte.lang.walk import postorder
from jaxte.sets.affine import normal

Extent = int | Expr
Shape = tuple[Extent, ...]

MAX_EXTENT = INTEGER_LIMITS["int32"][1]  # axes are int32 values in the emitted code
MAX_ELEMENTS = INTEGER_LIMITS["int64"][1]


def check_shape(shape: Any, name: str) -> Shape:
    """``shape`` as a tuple of integers and size expressions, or an error that names the extent."""
    if isinstance(shape, (int, Expr)):
        shape = (shape,)
    if (
        isinstance(shape, (str, bytes, Mapping, AbstractSet))
        or not isinstance(shape, Iterable)
        or getattr(shape, "ndim", None) == 0
    ):
        order = " first, and the function behind it" if callable(shape) else ""
        raise ShapeError(
            f"the shape of {name} is {described(shape)}; give a tuple of integers or te.var sizes{order}"
        )
    if getattr(shape, "shape", None) and "int" not in str(getattr(shape, "dtype", "")):
        raise ShapeError(f"the shape of {name} is given as {described(shape)}; give its .shape")
    extents = tuple(_extent(extent, axis, name) for axis, extent in enumerate(shape))
    elements = 1
    for extent in extents:
        elements *= max(extent, 1) if isinstance(extent, int) else 1
    if elements > MAX_ELEMENTS:
        raise ShapeError(f"{name} {shape_text(extents)} has {elements} elements, more than fit in 64 bits")
    return extents


def _extent(extent: Any, axis: int, name: str) -> Extent:
    where = f"extent of axis {axis} of {name}"
    if isinstance(extent, Expr):
        for node in postorder(extent):
            if isinstance(node, (Axis, Read)):
                raise ShapeError(
                    f"{where} is `{text(extent)}`; an extent is made of integers and te.var sizes only"
                )
        extent = as_extent(normal(extent))
    if isinstance(extent, Expr):
        return extent
    if (
        isinstance(extent, (bool, type))
        or not hasattr(extent, "__index__")
        or hasattr(extent, "aval")
        or getattr(extent, "ndim", None)
    ):
        raise ShapeError(
            f"{where} is {extent!r}, a {type(extent).__name__}; give a Python integer or a te.var "
            "(inside jax.jit make the size a static argument, or take it from an array's .shape)"
        )
    value = int(extent)
    if value < 0:
        raise ShapeError(f"{where} is {value}; extents are not negative")
    if value > MAX_EXTENT:
        raise ShapeError(f"{where} is {value}, which overflows the int32 of an axis (at most {MAX_EXTENT})")
    return value


def as_extent(expr: Expr) -> Extent:
    """An extent as an integer where it is known now."""
    return int(expr.value) if isinstance(expr, Const) else expr  # type: ignore[arg-type]


def shape_text(shape: Shape) -> str:
    entries = [text(e) if isinstance(e, Expr) else str(e) for e in shape]
    return f"({', '.join(entries)}{',' if len(entries) == 1 else ''})"


def broadcast_shapes(shapes: Sequence[Shape], what: str) -> Shape:
    """The shape that ``shapes`` broadcast to, as NumPy broadcasts."""
    ndim = max(map(len, shapes))
    result: list[Extent] = []
    for axis in range(ndim):
        extent: Extent = 1
        for shape in shapes:
            position = axis - ndim + len(shape)
            own = shape[position] if position >= 0 else 1
            if same_extent(extent, 1):
                extent = own
            elif not same_extent(own, 1) and not same_extent(own, extent):
                listed = " and ".join(map(shape_text, shapes))
                raise ShapeError(
                    f"{what}: shapes {listed} do not broadcast: axis {axis - ndim} has extents "
                    f"{shape_text((extent,))[1:-2]} and {shape_text((own,))[1:-2]}; they must be equal, or one of them 1"
                )
        result.append(extent)
    return tuple(result)


def same_extent(a: Extent, b: Extent) -> bool:
    return as_expr(a) is as_expr(b)


def inserted(items: Sequence[Any], position: int, item: Any) -> tuple[Any, ...]:
    """``items`` with ``item`` among them, at ``position``."""
    return (*items[:position], item, *items[position:])
