"""The words of formulas: which operators, functions and reductions text may name, and what is refused with a remedy. Nothing else is called, and nothing is evaluated."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jaxte.lang import dtypes, functions
from jaxte.lang.expr import Axis, Expr
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


_BINARY = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide", ast.FloorDiv: "floor_divide", ast.Mod: "mod",
    ast.Pow: "power", ast.LShift: "left_shift", ast.RShift: "right_shift", ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
}  # fmt: skip

_UNARY = {ast.USub: "negative", ast.Not: "logical_not", ast.Invert: "bitwise_not"}

_COMPARE = {
    ast.Lt: "less", ast.LtE: "less_equal", ast.Gt: "greater", ast.GtE: "greater_equal", ast.Eq: "equal", ast.NotEq: "not_equal",
}  # fmt: skip

_REFUSED = {
    ast.GeneratorExp: "loops are no part of formulas; a sum is written sum[k](X[k])",
    ast.ListComp: "loops are no part of formulas; a sum is written sum[k](X[k])",
    ast.Slice: "an element is read with one index for each axis, not with slices",
    ast.MatMult: "@ is no part of formulas; a product of matrices is sum[k](A[i, k] * B[k, j])",
    ast.Lambda: "functions are no part of formulas; give one as a keyword of te.define",
    ast.NamedExpr: "a definition is written with =",
}

_TRANSPOSED = "an element of the transposed is read with the indices exchanged, A[j, i]"

_SIZE = "a size is a name, which is given as a keyword of te.define: n=8"

_ATTRIBUTES = {"T": _TRANSPOSED, "mT": _TRANSPOSED, "shape": _SIZE}

_COMMON = ("exp", "log", "sqrt", "relu", "maximum", "tanh")
