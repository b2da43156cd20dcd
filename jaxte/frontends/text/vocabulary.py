"""The words of formulas: which functions and reductions text may name. Nothing else is called, and nothing is evaluated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jaxte.lang import dtypes, functions
from jaxte.lang.expr import TRUE, Axis, Expr, cast
from jaxte.tensors import reductions

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


def _again(axes: Sequence[Axis]) -> list[Axis]:
    """Other axes of the same ranges, for a second reduction inside of the first."""
    return [Axis(a.name, a.lo, a.hi, reduction=True) for a in axes]


def _mean(axes: Sequence[Axis], values: Values, options: Mapping[str, Any]) -> Expr:
    (value,), where = values(axes)
    if where is not TRUE:
        _, other = values(own := _again(axes))
        number: Any = reductions.sum(1, axis=own, where=other)
    else:
        number = 1
        for axis in axes:
            number = number * axis.extent
    dtype = value.dtype if dtypes.is_inexact(value.dtype) else "float32"
    return reductions.sum(cast(value, dtype), axis=list(axes), where=where) / number


def _logsumexp(axes: Sequence[Axis], values: Values, options: Mapping[str, Any]) -> Expr:
    (value,), where = values(axes)
    (other,), there = values(own := _again(axes))
    largest = reductions.max(other, axis=own, where=there)
    shift = functions.stop_gradient(functions.select(functions.isfinite(largest), largest, 0))
    total = reductions.sum(functions.exp(value - shift), axis=list(axes), where=where)
    return functions.log(total) + shift


COMPOSED: Mapping[str, Callable[..., Any]] = {"mean": _mean, "logsumexp": _logsumexp}
_BUILT_IN = ("sum", "prod", "max", "min", "any", "all", "argmax", "argmin")
REDUCERS: Mapping[str, Callable[..., Any]] = {
    **{name: _plain(getattr(reductions, name)) for name in _BUILT_IN},
    **COMPOSED,
}


def reducers_with(given: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """The reductions of the language, and those that a user made with ``te.comm_reducer``."""
    return {**REDUCERS, **{name: _plain(reducer) for name, reducer in given.items()}}
