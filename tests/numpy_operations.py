"""JAX's operations in NumPy, one row each: what the references of tests run by themselves, one after the other (tests/single_operations.py).

A rule gets the arrays, and the parameters of the equation by name. What it does not know it refuses, and XLA computes it.
``tests/test_single_operations.py`` holds each row beside XLA.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.special as special

from tests.numpy_positions import Rule, gathered, refuse, scattered
from tests.numpy_windows import convolved, padded, reduced_in_windows


def _elementwise(fn: Callable[..., Any]) -> Rule:
    return lambda *arrays, **_: fn(*arrays)


def _reduced(fn: Callable[..., Any]) -> Rule:
    return lambda x, axes, **_: fn(x, axis=axes)


def _accumulated(fn: np.ufunc) -> Rule:
    def rule(x: np.ndarray, axis: int, reverse: bool) -> np.ndarray:
        turned = np.flip(x, axis) if reverse else x
        out = fn.accumulate(turned, axis, dtype=x.dtype)
        return np.flip(out, axis) if reverse else out

    return rule


def _quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Integers are cut off towards zero; what has no value is XLA's own."""
    if a.dtype.kind not in "iu":
        return np.divide(a, b)
    refuse(not np.all(b))
    return np.where(np.sign(a) * np.sign(b) < 0, -(np.abs(a) // np.abs(b)), np.abs(a) // np.abs(b))


def _remainder(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    refuse(a.dtype.kind in "iu" and not np.all(b))
    return np.fmod(a, b)


def _special(fn: Callable[..., Any], above: float = -np.inf) -> Rule:
    """At its poles, XLA's values of a function are its own."""

    def rule(x: np.ndarray, **_: Any) -> np.ndarray:
        refuse(not np.all(x > above))
        return fn(x)

    return rule


def _converted(x: np.ndarray, new_dtype: Any, **_: Any) -> np.ndarray:
    dtype = np.dtype(new_dtype)
    if x.dtype.kind == "f" and dtype.kind in "iu":
        # XLA takes the nearest integer that there is, and 0 for NaN.
        refuse(dtype.kind == "u" and np.any(x < 0))
        info = np.iinfo(dtype)
        low, high = x.dtype.type(info.min), x.dtype.type(info.max)
        inside = np.where((x > low) & (x < high), x, 0).astype(dtype)
        return np.where(x >= high, dtype.type(info.max), np.where(x <= low, dtype.type(info.min), inside))
    return x.astype(dtype)


def _rounded(x: np.ndarray, rounding_method: Any) -> np.ndarray:
    refuse(int(rounding_method) != 1)  # halves to even numbers
    return np.rint(x)


def _integer_power(x: np.ndarray, y: int) -> np.ndarray:
    refuse(y < 0 and x.dtype.kind in "iu")
    return np.power(x, x.dtype.type(y))


def _selected(which: np.ndarray, *cases: np.ndarray) -> np.ndarray:
    return np.choose(which.astype(int), cases, mode="clip")


def _spread(x: np.ndarray, shape: Sequence[int], broadcast_dimensions: Sequence[int], **_: Any) -> np.ndarray:
    own = [1] * len(shape)
    for axis, size in zip(broadcast_dimensions, x.shape, strict=True):
        own[axis] = size
    return np.broadcast_to(x.reshape(own), shape)


def _reshaped(x: np.ndarray, new_sizes: Sequence[int], dimensions: Any, **_: Any) -> np.ndarray:
    return (x if dimensions is None else x.transpose(dimensions)).reshape(new_sizes)


def _sliced(x: np.ndarray, start_indices: Any, limit_indices: Any, strides: Any) -> np.ndarray:
    return x[tuple(map(slice, start_indices, limit_indices, strides or [1] * x.ndim))]


def _counted(dtype: Any, shape: Sequence[int], dimension: int, **_: Any) -> np.ndarray:
    own = [1] * len(shape)
    own[dimension] = shape[dimension]
    return np.broadcast_to(np.arange(shape[dimension], dtype=dtype).reshape(own), shape)


def _place_of(fn: Callable[..., Any]) -> Rule:
    return lambda x, axes, index_dtype: fn(x, axis=axes[0]).astype(index_dtype)


def _product(
    a: np.ndarray, b: np.ndarray, dimension_numbers: Any, preferred_element_type: Any, **_: Any
) -> Any:
    (of_a, of_b), (batch_a, batch_b) = dimension_numbers
    free = [
        [n for n in range(x.ndim) if n not in (*c, *s)]
        for x, c, s in ((a, of_a, batch_a), (b, of_b, batch_b))
    ]
    left = np.transpose(a, (*batch_a, *free[0], *of_a))
    right = np.transpose(b, (*batch_b, *of_b, *free[1]))
    batch, summed = [a.shape[n] for n in batch_a], int(np.prod([a.shape[n] for n in of_a], dtype=int))
    rows, columns = ([x.shape[n] for n in own] for x, own in zip((a, b), free, strict=True))
    flat = [int(np.prod(sizes, dtype=int)) for sizes in (rows, columns)]
    dtype = preferred_element_type or a.dtype
    left, right = left.astype(dtype, copy=False), right.astype(dtype, copy=False)
    out = left.reshape((*batch, flat[0], summed)) @ right.reshape(*batch, summed, flat[1])
    return out.reshape((*batch, *rows, *columns))


def _sorted(*arrays: np.ndarray, dimension: int, num_keys: int, **_: Any) -> list[np.ndarray]:
    refuse(num_keys != 1)
    order = np.argsort(arrays[0], axis=dimension, kind="stable")
    return [np.take_along_axis(x, order, dimension) for x in arrays]


def _starts(x: np.ndarray, sizes: Sequence[int], starts: Sequence[np.ndarray]) -> tuple[slice, ...]:
    """The window nearest to where it was asked for."""
    firsts = [
        min(max(int(s), 0), extent - size) for s, extent, size in zip(starts, x.shape, sizes, strict=True)
    ]
    return tuple(slice(first, first + size) for first, size in zip(firsts, sizes, strict=True))


def _cut_out(x: np.ndarray, *starts: np.ndarray, slice_sizes: Sequence[int]) -> np.ndarray:
    return x[_starts(x, slice_sizes, starts)]


def _written_over(x: np.ndarray, new: np.ndarray, *starts: np.ndarray) -> np.ndarray:
    out = x.copy()
    out[_starts(x, new.shape, starts)] = new
    return out


def _in_own_precision(x: np.ndarray, exponent_bits: int, mantissa_bits: int) -> np.ndarray:
    info = np.finfo(x.dtype)
    refuse((exponent_bits, mantissa_bits) != (info.nexp, info.nmant))
    return x


def _shifted(fn: np.ufunc, kind: str) -> Rule:
    """By fewer bits than there are; by more, XLA fills with the sign or with zeros."""

    def rule(x: np.ndarray, by: np.ndarray) -> np.ndarray:
        refuse(np.any((by < 0) | (by >= 8 * x.dtype.itemsize)))
        own = np.dtype(f"{kind}{x.dtype.itemsize}")
        return fn(x.view(own), by.astype(own)).view(x.dtype)  # type: ignore[no-any-return]

    return rule


def _lowest(dtype: np.dtype) -> Any:
    refuse(dtype.kind != "f")
    return -np.inf


def _split(x: np.ndarray, sizes: Sequence[int], axis: int) -> list[np.ndarray]:
    return np.split(x, np.cumsum(sizes)[:-1], axis)


ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "abs": np.abs, "acos": np.arccos, "acosh": np.arccosh, "add": np.add, "add_any": np.add, "and": np.bitwise_and, "asin": np.arcsin,
    "asinh": np.arcsinh, "atan": np.arctan, "atan2": np.arctan2, "atanh": np.arctanh, "cbrt": np.cbrt, "ceil": np.ceil,
    "clamp": lambda low, x, high: np.minimum(np.maximum(x, low), high), "copy": np.array, "cos": np.cos, "cosh": np.cosh, "div": _quotient,
    "eq": np.equal, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "floor": np.floor, "ge": np.greater_equal, "gt": np.greater,
    "is_finite": np.isfinite, "le": np.less_equal, "log": np.log, "log1p": np.log1p, "lt": np.less, "max": np.maximum, "min": np.minimum,
    "mul": np.multiply, "ne": np.not_equal, "neg": np.negative, "nextafter": np.nextafter, "not": np.bitwise_not,
    "optimization_barrier": lambda *x: list(x), "or": np.bitwise_or, "pow": np.power, "rem": _remainder, "rsqrt": lambda x: 1 / np.sqrt(x),
    "select_n": _selected, "sign": np.sign, "sin": np.sin, "sinh": np.sinh, "sqrt": np.sqrt, "square": np.square,
    "stop_gradient": lambda x: x, "sub": np.subtract, "tan": np.tan, "tanh": np.tanh, "xor": np.bitwise_xor,
}  # fmt: skip
RULES: dict[str, Rule] = {name: _elementwise(fn) for name, fn in ELEMENTWISE.items()} | {
    "digamma": _special(special.digamma, above=0),
    "erf": _special(special.erf),
    "erfc": _special(special.erfc),
    "erf_inv": _special(special.erfinv),
    "lgamma": _special(special.gammaln, above=0),
    "logistic": _special(special.expit),
    "argmax": _place_of(np.argmax),
    "argmin": _place_of(np.argmin),
    "broadcast_in_dim": _spread,
    "concatenate": lambda *arrays, dimension: np.concatenate(arrays, dimension),
    "convert_element_type": _converted,
    "conv_general_dilated": convolved,
    "cummax": _accumulated(np.maximum),
    "cummin": _accumulated(np.minimum),
    "cumprod": _accumulated(np.multiply),
    "cumsum": _accumulated(np.add),
    "dot_general": _product,
    "dynamic_slice": _cut_out,
    "dynamic_update_slice": _written_over,
    "gather": gathered,
    "integer_pow": _integer_power,
    "iota": _counted,
    "pad": lambda x, value, padding_config: padded(x, value, padding_config),
    "reduce_and": _reduced(np.bitwise_and.reduce),
    "reduce_max": _reduced(np.max),
    "reduce_min": _reduced(np.min),
    "reduce_or": _reduced(np.bitwise_or.reduce),
    "reduce_precision": _in_own_precision,
    "reduce_prod": _reduced(np.multiply.reduce),
    "reduce_sum": _reduced(np.add.reduce),
    "reduce_window_max": reduced_in_windows(np.maximum, _lowest),
    "reduce_window_min": reduced_in_windows(np.minimum, lambda dtype: -_lowest(dtype)),
    "reduce_window_sum": reduced_in_windows(np.add, lambda dtype: 0),
    "reshape": _reshaped,
    "rev": lambda x, dimensions: np.flip(x, dimensions),
    "round": _rounded,
    "scatter": scattered(None),
    "scatter-add": scattered(np.add),
    "scatter-max": scattered(np.maximum),
    "scatter-min": scattered(np.minimum),
    "scatter-mul": scattered(np.multiply),
    "shift_left": _shifted(np.left_shift, "u"),
    "shift_right_arithmetic": _shifted(np.right_shift, "i"),
    "shift_right_logical": _shifted(np.right_shift, "u"),
    "slice": _sliced,
    "sort": _sorted,
    "split": _split,
    "squeeze": lambda x, dimensions: np.squeeze(x, dimensions),
    "stack": lambda *arrays, axis: np.stack(arrays, axis),
    "tile": lambda x, reps: np.tile(x, reps),
    "unstack": lambda x, axis: list(np.moveaxis(x, axis, 0)),
    "transpose": lambda x, permutation: np.transpose(x, permutation),
}
