"""The words of formulas: which operators, functions and reductions text may name, and what is refused with a remedy. Nothing else is called, and nothing is evaluated.

Reads outside of a tensor: zero, the nearest element, the other end again, or mirrored at the last element.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jaxte.lang import dtypes, functions
from jaxte.lang.errors import IndexExpressionError, ShapeError
from jaxte.lang.expr import TRUE, ZERO, Axis, Expr, Read, as_expr, call
from jaxte.lang.functions import abs, maximum, minimum, select
from jaxte.lang.operators import AND
from jaxte.sets.affine import linear
from jaxte.sets.intervals import constant, highest, lowest, nonnegative
from jaxte.tensors import composed, reductions

_NO_SCALARS = ("TABLE", "Form", "Function", "const", "cast", "choose")
DTYPES = (
    "bool",
    *dtypes.INTEGER_LIMITS,
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
)
END = "end"  # in an index, the last position along its axis
NUMBERS = {"inf": float("inf"), "nan": float("nan"), "pi": 3.141592653589793}

Values = Callable[[Sequence[Axis]], tuple[Sequence[Expr], Expr]]
"""What is reduced, and where, at other axes of the same ranges."""


def _as(dtype: str) -> Callable[..., Any]:
    return lambda value: functions.cast(value, dtype)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **{name: getattr(functions, name) for name in functions.__all__ if name not in _NO_SCALARS},
    **{dtype: _as(dtype) for dtype in DTYPES},
}


def _plain(reducer: Callable[..., Any]) -> Callable[..., Any]:
    def reduce(axes: Sequence[Axis], values: Values, options: Mapping[str, Any]) -> Any:
        exprs, where = values(axes)
        return reducer(exprs[0] if len(exprs) == 1 else tuple(exprs), axis=list(axes), where=where, **options)

    return reduce


_BUILT_IN = ("sum", "prod", "max", "min", "any", "all", "argmax", "argmin")
KEEPING = ("softmax",)  # reductions that keep their axes, which are axes of what stands around them
REDUCERS: Mapping[str, Callable[..., Any]] = {
    **{name: _plain(getattr(reductions, name)) for name in _BUILT_IN},
    **{
        name: _plain(getattr(composed, name))
        for name in ("mean", "variance", "std", "logsumexp", "norm", *KEEPING)
    },
    "var": _plain(composed.variance),  # as numpy has it; te.var is a size
}


def reducers_with(given: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """The reductions of the language, and those that a user made with ``te.comm_reducer``."""
    return {**REDUCERS, **{name: _plain(reducer) for name, reducer in given.items()}}


def least_arity(function: str) -> int:
    """How many scalars a function takes at least."""
    parameters = inspect.signature(FUNCTIONS[function]).parameters.values()
    return len([p for p in parameters if p.default is p.empty and p.kind is not p.VAR_POSITIONAL])


BINARY = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide", ast.FloorDiv: "floor_divide", ast.Mod: "mod",
    ast.Pow: "power", ast.LShift: "left_shift", ast.RShift: "right_shift", ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
}  # fmt: skip

UNARY = {ast.USub: "negative", ast.Not: "logical_not", ast.Invert: "bitwise_not"}

COMPARE = {
    ast.Lt: "less", ast.LtE: "less_equal", ast.Gt: "greater", ast.GtE: "greater_equal", ast.Eq: "equal", ast.NotEq: "not_equal",
}  # fmt: skip

REFUSED = {
    ast.GeneratorExp: "loops are no part of formulas; a sum is written sum[k](X[k])",
    ast.ListComp: "loops are no part of formulas; a sum is written sum[k](X[k])",
    ast.Slice: "an element is read with one index for each axis, not with slices",
    ast.MatMult: "@ is no part of formulas; a product of matrices is sum[k](A[i, k] * B[k, j])",
    ast.Lambda: "functions are no part of formulas; give one as a keyword of te.define",
    ast.NamedExpr: "a definition is written with =",
}

_TRANSPOSED = "an element of the transposed is read with the indices exchanged, A[j, i]"

SIZE = "a size is a name, which is given as a keyword of te.define: n=8"

ATTRIBUTES = {"T": _TRANSPOSED, "mT": _TRANSPOSED, "shape": SIZE}

COMMON = ("exp", "log", "sqrt", "relu", "maximum", "tanh")
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
