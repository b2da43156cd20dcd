"""What names and expressions of a program stand for: static objects of Python, scalar expressions, variables, and blocks of elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxte.frontends.loops.program import Variable
from jaxte.frontends.text.vocabulary import FUNCTIONS
from jaxte.lang import dtypes
from jaxte.lang.errors import DefinitionError, ShapeError
from jaxte.lang.expr import Const, Expr, as_expr
from jaxte.lang.text import text
from jaxte.lang.walk import reads_of
from jaxte.sets.affine import normal
from jaxte.sets.index_forms import is_index

NUMBER = (bool, int, float, complex)
ALIASES = {
    "absolute": "abs", "fabs": "abs", "float_power": "power", "divmod": "",
    "loggamma": "lgamma", "expit": "sigmoid",
}  # fmt: skip
LIBRARIES = ("numpy", "math", "jaxte", "jax", "scipy", "cmath")
ALLOCATIONS = ("zeros", "ones", "empty", "full", "zeros_like", "ones_like", "empty_like", "full_like")
REDUCTIONS = {
    "sum": "sum",
    "prod": "prod",
    "max": "max",
    "min": "min",
    "amax": "max",
    "amin": "min",
    "mean": "sum",
}
PRODUCTS = ("dot", "matmul", "inner", "outer", "vdot")


@dataclass(frozen=True, eq=False)
class Block:
    """Elements over ``shape``, extents that may depend on counters.

    Attributes:
        of: the variable that it is a view of.
        strides: how many elements apart neighbours along each axis stand; None where they follow each other row by row.
        is_laid_out: whether that is known.
        is_read_only: whether NumPy refuses to write it.
        is_copied_at_times: whether it is a view of some layouts and a copy of others, and nothing says of which this is one.
    """

    shape: tuple[Expr, ...]
    element: Callable[[Sequence[Expr]], Expr]
    of: Variable | None = None
    strides: tuple[Expr, ...] | None = None
    is_laid_out: bool = True
    is_copied_at_times: bool = False
    is_read_only: bool = False


@dataclass(frozen=True)
class Allocation:
    """An array that is made: what it holds at first, nothing of ``np.empty``; one like another array is laid out as that."""

    shape: tuple[Any, ...]
    dtype: str | None
    fill: Any
    in_rows: bool = True


def is_number(value: Any) -> bool:
    return isinstance(value, (*NUMBER, np.number, np.bool_, Expr)) or getattr(value, "ndim", None) == 0


def is_static(value: Any) -> bool:
    """Whether ``value`` is known without any data: a number, or an expression of counters and sizes."""
    return not isinstance(value, Expr) or (is_index(value) and not reads_of(value))


def function_of(value: Any) -> Callable[..., Any] | None:
    """The function on scalar expressions that a function of a library stands for."""
    if isinstance(value, (type(np.sin), type(math.sin))) or callable(value):
        name = getattr(value, "__name__", "")
        module = getattr(value, "__module__", None) or ("numpy" if isinstance(value, np.ufunc) else "")
        if module.split(".")[0] in LIBRARIES:
            return FUNCTIONS.get(ALIASES.get(name, name))
    return None


def broadcast(blocks: Sequence[Any]) -> tuple[Expr, ...]:
    """The shape that operands broadcast to, as NumPy broadcasts."""
    shapes = [b.shape for b in blocks if isinstance(b, Block)]
    rank = max(map(len, shapes))
    found: list[Expr] = []
    for n in range(rank):
        own = [s[n - rank + len(s)] for s in shapes if n - rank + len(s) >= 0]
        wide = [e for e in own if not is_one(e)] or own
        for other in wide[1:]:
            check_extents(wide[0], other)
        found.append(wide[0])
    return tuple(found)


def check_extents(extent: Expr, other: Expr) -> None:
    """That two axes are of one length.

    Raises:
        ShapeError: they are not, or it cannot be told.
    """
    if normal(extent - other) is not as_expr(0):
        raise ShapeError(f"blocks of {text(extent)} and of {text(other)} elements do not go together")


def fitted(value: Any, place: Sequence[Expr]) -> Any:
    """``value`` as NumPy broadcasts it to ``place``, where it is written: without axes of one element before those of ``place``.

    Raises:
        ShapeError: it is of another shape.
    """
    if not isinstance(value, Block):
        return value
    more = max(len(value.shape) - len(place), 0)
    own = value.shape[more:]
    for extent, wide in zip(own[::-1], place[::-1], strict=False):
        if not is_one(extent):
            check_extents(wide, extent)
    if not more:
        return value
    for extent in value.shape[:more]:
        check_extents(as_expr(1), extent)
    return Block(own, lambda at: value.element([as_expr(0)] * more + list(at)))


def place_of(axis: Any, rank: int) -> int:
    """An axis of an array of ``rank`` axes, counted from the first one.

    Raises:
        DefinitionError: there is no such axis.
    """
    if not isinstance(axis, int) or not -rank <= axis < rank:
        raise DefinitionError(f"axis {axis} of an array of {rank} axes; give one from {-rank} to {rank - 1}")
    return range(rank)[axis]


def is_one(extent: Expr) -> bool:
    return isinstance(extent, Const) and extent.value == 1


def element_of(value: Any, indices: Sequence[Expr]) -> Any:
    """The element of an operand at a position of what it was broadcast to."""
    if not isinstance(value, Block):
        return value
    own = indices[len(indices) - len(value.shape) :]
    return value.element([as_expr(0) if is_one(e) else i for e, i in zip(value.shape, own, strict=True)])


def as_precise(dtype: str, default: str) -> str:
    """``dtype``, of what has no width of its own as Python's numbers, in that of ``default``, a float: integers beside doubles are as wide as NumPy's."""
    if dtypes.is_complex(dtype):
        return dtypes.complex_dtype(default)
    if dtypes.is_integer(dtype):
        return "int64" if default == "float64" else dtype
    return default if dtypes.is_float(dtype) else dtype


def dtype_of(value: Any, default: str) -> str:
    """The dtype that an object of a program names; ``float``, ``complex`` and ``int`` are as wide as ``default``."""
    if value is float or value is complex:
        return as_precise("float32" if value is float else "complex64", default)
    if value is int:
        return as_precise("int32", default)
    if value is bool:
        return "bool"
    return dtypes.dtype_name(value)


def product(extents: Sequence[Expr]) -> Expr:
    found: Expr = as_expr(1)
    for extent in extents:
        found = normal(found * extent)
    return found
