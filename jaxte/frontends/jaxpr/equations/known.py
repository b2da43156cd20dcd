"""What does not depend on arguments, computed by NumPy: positions, masks, sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from jaxte.bridge.jaxprs import GROUPS, literal_array, walked

_NUMBERS = frozenset([int])
_MOST = 1 << 18  # elements that are computed when a function is traced


def is_symbolic(aval: Any) -> bool:
    """Whether a size of an array is a symbol of ``jax.export``, so that it cannot be compared with a number."""
    shape = getattr(aval, "shape", ())
    return not _NUMBERS.issuperset(map(type, shape)) and any(not isinstance(extent, int) for extent in shape)


def computed(closed: Any, given: Sequence[Any], most: int = _MOST) -> list[Any]:
    """What a jaxpr returns for ``given``, by NumPy, so that XLA compiles none of its operations; None for what an equation without a row makes."""

    def results(eqn: Any, values: Sequence[Any]) -> list[Any]:
        if any(v is None for v in values):
            return [None] * len(eqn.outvars)
        inner = eqn.params.get(GROUPS.get(eqn.primitive.name, ""))
        return folded(eqn, values, most) if inner is None else computed(inner, values, most)

    return walked(closed.jaxpr, [*map(np.asarray, closed.consts), *given], results, literal_array)


def folded(eqn: Any, values: Sequence[Any], most: int = _MOST) -> list[Any]:
    """The results of an equation on known operands, up to ``most`` numbers; None for each where there is no row for it."""
    unknown = [None] * len(eqn.outvars)
    row = _ROWS.get(eqn.primitive.name)
    if row is None or any(is_symbolic(v.aval) for v in eqn.outvars):
        return unknown
    if any(prod(v.aval.shape) > most for v in eqn.outvars):
        return unknown
    if eqn.primitive.name == "split":
        return list(row(eqn.params, *values))
    (out,) = eqn.outvars
    dtype = np.dtype(out.aval.dtype)
    if dtype.kind not in "biuf":
        return unknown
    with np.errstate(all="ignore"):
        try:
            once = eqn.primitive.name in _ONE_BY_ONE
            result = np.asarray(row(eqn.params, *(map(at_once, values) if once else values)))
        except (TypeError, ValueError, IndexError, OverflowError):
            return unknown
        if once and result.ndim == len(out.aval.shape):
            result = np.broadcast_to(result.astype(dtype, copy=False), out.aval.shape)
        if tuple(result.shape) != tuple(out.aval.shape):
            return unknown
        return [result.astype(dtype, copy=False)]


def at_once(x: np.ndarray) -> np.ndarray:
    """One of the positions that are views of the same element, along each dimension."""
    if 0 not in x.strides:
        return x
    return x[tuple(slice(0, 1) if step == 0 else slice(None) for step in x.strides)]


def _iota(p: Any) -> Any:
    shape, d = p["shape"], p["dimension"]
    own = np.arange(shape[d]).reshape([-1 if n == d else 1 for n in range(len(shape))])
    return np.broadcast_to(own, shape)


def _broadcast(p: Any, x: Any) -> Any:
    shape, into = p["shape"], p["broadcast_dimensions"]
    return np.broadcast_to(
        x.reshape([x.shape[into.index(d)] if d in into else 1 for d in range(len(shape))]), shape
    )


def _slice(p: Any, x: Any) -> Any:
    steps = p["strides"] or (1,) * x.ndim
    return x[
        tuple(slice(a, b, s) for a, b, s in zip(p["start_indices"], p["limit_indices"], steps, strict=True))
    ]


def _split(p: Any, x: Any) -> Any:
    return np.split(x, np.cumsum(p["sizes"])[:-1], p["axis"])


def _rev(p: Any, x: Any) -> Any:
    return np.flip(x, p["dimensions"])


def _div(p: Any, x: Any, y: Any) -> Any:
    if x.dtype.kind == "f":
        return x / y
    if np.any(y == 0):
        raise ValueError
    return (
        np.trunc(x.astype(np.float64) / y)
        if x.dtype.itemsize < 8
        else np.sign(x) * np.sign(y) * (np.abs(x) // np.abs(y))
    )


def _rem(p: Any, x: Any, y: Any) -> Any:
    if x.dtype.kind != "f" and np.any(y == 0):
        raise ValueError
    return np.fmod(x, y)


def _select(p: Any, which: Any, *cases: Any) -> Any:
    if len(cases) == 2:
        return np.where(which, cases[1], cases[0])
    return (
        np.choose(np.broadcast_to(which.astype(np.int64), cases[0].shape), np.stack(cases))
        if len(cases) < 32
        else None
    )


def _reduced(fn: Callable[..., Any]) -> Callable[..., Any]:
    return lambda p, x: fn(x, axis=tuple(p["axes"]))


def _convert(p: Any, x: Any) -> Any:
    dtype = np.dtype(p["new_dtype"])
    if x.dtype.kind == "f" and dtype.kind in "iu" and not np.all(np.abs(x) < 2**31):
        raise ValueError
    return x.astype(dtype)


def _elementwise(fn: Callable[..., Any]) -> Callable[..., Any]:
    return lambda p, *values: fn(*values)


_FUNCTIONS = {
    **dict(
        add="add", sub="subtract", mul="multiply", neg="negative", sign="sign", abs="abs", square="square"
    ),
    **dict(sin="sin", cos="cos", tan="tan", tanh="tanh", log="log", log1p="log1p", expm1="expm1"),
    **dict(exp2="exp2", pow="power", atan2="arctan2", atan="arctan"),
    **dict(floor="floor", ceil="ceil", max="maximum", min="minimum", sqrt="sqrt", exp="exp"),
    **dict(eq="equal", ne="not_equal", lt="less", le="less_equal", gt="greater", ge="greater_equal"),
    **{"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "not": "invert"},
}
_ROWS: dict[str, Callable[..., Any]] = {
    "iota": _iota,
    "broadcast_in_dim": _broadcast,
    "reshape": lambda p, x: x.reshape(p["new_sizes"]),
    "transpose": lambda p, x: x.transpose(p["permutation"]),
    "squeeze": lambda p, x: np.squeeze(x, tuple(p["dimensions"])),
    "expand_dims": lambda p, x: np.expand_dims(x, tuple(p["dimensions"])),
    "slice": _slice,
    "split": _split,
    "rev": _rev,
    "concatenate": lambda p, *parts: np.concatenate(parts, p["dimension"]),
    "stack": lambda p, *parts: np.stack(parts, p["axis"]),
    "convert_element_type": _convert,
    "select_n": _select,
    "div": _div,
    "rem": _rem,
    "copy": lambda p, x: x,
    "stop_gradient": lambda p, x: x,
    "reduce_sum": _reduced(np.sum),
    "reduce_prod": _reduced(np.prod),
    "reduce_max": _reduced(np.max),
    "reduce_min": _reduced(np.min),
    "reduce_and": _reduced(np.all),
    "reduce_or": _reduced(np.any),
    "rsqrt": lambda p, x: 1 / np.sqrt(x),
    "clamp": _elementwise(lambda low, x, high: np.minimum(np.maximum(x, low), high)),
    "integer_pow": lambda p, x: x ** p["y"] if p["y"] >= 0 else 1 / x ** -p["y"],
    **{name: _elementwise(getattr(np, function)) for name, function in _FUNCTIONS.items()},
}
_ONE_BY_ONE = frozenset([*_FUNCTIONS, "convert_element_type", "select_n"])
