"""Operators on single elements, broadcast as NumPy does."""

from __future__ import annotations

from typing import Any

from jaxte.lang import functions as f
from jaxte.ops._operator import Build, normal_axis, operator, pointwise
from jaxte.tensors.compute import compute
from jaxte.tensors.tensor import Tensor


def _unary(fn: Build) -> Build:
    """The elementwise operator of a scalar function."""

    def build(x: Tensor) -> Tensor:
        return pointwise(fn.__name__, fn, x)

    return _named(build, fn)


def _binary(fn: Build) -> Build:
    def build(a: Tensor | float, b: Tensor | float) -> Tensor:
        return pointwise(fn.__name__, fn, a, b)

    return _named(build, fn)


def _named(build: Build, fn: Build) -> Build:
    build.__name__ = build.__qualname__ = fn.__name__
    first = (fn.__doc__ or "").partition("\n")[0]
    build.__doc__ = f"Elementwise: {first}"
    return operator(build)


add = _binary(f.add)
subtract = _binary(f.subtract)
multiply = _binary(f.multiply)
divide = _binary(f.divide)
floor_divide = _binary(f.floor_divide)
mod = _binary(f.mod)
power = _binary(f.power)
maximum = _binary(f.maximum)
minimum = _binary(f.minimum)
logaddexp = _binary(f.logaddexp)

equal = _binary(f.equal)
not_equal = _binary(f.not_equal)
less = _binary(f.less)
less_equal = _binary(f.less_equal)
greater = _binary(f.greater)
greater_equal = _binary(f.greater_equal)
logical_and = _binary(f.logical_and)
logical_or = _binary(f.logical_or)
logical_not = _unary(f.logical_not)
left_shift = _binary(f.left_shift)
right_shift = _binary(f.right_shift)

negative = _unary(f.negative)
abs = _unary(f.abs)
sign = _unary(f.sign)
floor = _unary(f.floor)
ceil = _unary(f.ceil)
trunc = _unary(f.trunc)
round = _unary(f.round)
isnan = _unary(f.isnan)
isfinite = _unary(f.isfinite)

exp = _unary(f.exp)
expm1 = _unary(f.expm1)
log = _unary(f.log)
log1p = _unary(f.log1p)
sqrt = _unary(f.sqrt)
rsqrt = _unary(f.rsqrt)
square = _unary(f.square)
sin = _unary(f.sin)
cos = _unary(f.cos)
tanh = _unary(f.tanh)
erf = _unary(f.erf)
sigmoid = _unary(f.sigmoid)
log_sigmoid = _unary(f.log_sigmoid)
softplus = _unary(f.softplus)
relu = _unary(f.relu)
relu6 = _unary(f.relu6)
gelu = _unary(f.gelu)
silu = _unary(f.silu)


@operator
def leaky_relu(x: Tensor, negative_slope: float = 0.01) -> Tensor:
    """``x`` for ``x >= 0``, else ``negative_slope * x``."""
    return pointwise("leaky_relu", lambda e: f.leaky_relu(e, negative_slope), x)


@operator
def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """``x`` for ``x > 0``, else ``alpha * expm1(x)``."""
    return pointwise("elu", lambda e: f.elu(e, alpha), x)


@operator
def prelu(x: Tensor, slope: Tensor, axis: int = 1) -> Tensor:
    """``x`` for ``x >= 0``, else ``slope[c] * x`` with the channel ``c`` on ``axis``."""
    channel = normal_axis(axis, x.ndim, "prelu")
    return compute(x.shape, lambda *i: f.select(x[i] >= 0, x[i], slope[i[channel]] * x[i]), "prelu")


@operator
def clip(x: Tensor, lo: Tensor | float, hi: Tensor | float) -> Tensor:
    """``minimum(maximum(x, lo), hi)``."""
    return pointwise("clip", f.clip, x, lo, hi)


@operator
def where(cond: Tensor, a: Tensor | float, b: Tensor | float) -> Tensor:
    """``a`` where ``cond`` holds, else ``b``."""
    return pointwise("where", f.select, cond, a, b)


@operator
def cast(x: Tensor, dtype: Any) -> Tensor:
    """``x`` as another dtype; between floating dtypes the gradient passes."""
    return pointwise("cast", lambda e: f.cast(e, dtype), x)


@operator
def copy(x: Tensor) -> Tensor:
    """``x`` itself, as a tensor of its own."""
    return pointwise("copy", lambda e: e, x)


@operator
def bias_add(x: Tensor, b: Tensor, axis: int = 1) -> Tensor:
    """``x`` with ``b[c]`` added at the channel ``c`` on ``axis``."""
    channel = normal_axis(axis, x.ndim, "bias_add")
    return compute(x.shape, lambda *i: x[i] + b[i[channel]], "bias_add")
