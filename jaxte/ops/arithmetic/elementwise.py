"""Operators on single elements, broadcast as NumPy does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxte.bridge.calls.lifted import Lifted
from jaxte.lang import functions as f
from jaxte.lang.dtypes import DtypeLike
from jaxte.ops._operator import P, check_channels_of, normal_axis, operator, pointwise
from jaxte.tensors.compute import compute
from jaxte.tensors.tensor import Tensor

# what differs in the documentation of the operators that are made from the table of scalar functions
_DTYPES = {
    **dict.fromkeys(("logical_and", "logical_or", "logical_not", "equal", "not_equal"), "bool"),
    **dict.fromkeys(("left_shift", "right_shift"), "int32"),
}


def _unary(fn: Any) -> Lifted[[Tensor], Tensor]:
    """The elementwise operator of a scalar function."""

    def build(x: Tensor) -> Tensor:
        return pointwise(fn.__name__, fn, x)

    return _named(build, fn, "x")


def _binary(fn: Any) -> Lifted[[Tensor | float, Tensor | float], Tensor]:
    def build(a: Tensor | float, b: Tensor | float) -> Tensor:
        return pointwise(fn.__name__, fn, a, b)

    return _named(build, fn, "a", "b")


def _named(build: Callable[P, Tensor], fn: Any, *operands: str) -> Lifted[P, Tensor]:
    name = build.__name__ = build.__qualname__ = fn.__name__
    row = f.TABLE[name]
    path, written = f"jnp.{name}", row.jnp.format(*(f"{x}[i]" for x in operands))
    if not row.code.slots:  # a function, whose name in JAX may be in another module
        path, written = (row.jnp.partition("(")[0], written.removeprefix(row.jnp.rpartition(".")[0] + "."))
    given = ", ".join([f'te.placeholder((2, 3), "{_DTYPES.get(name, "float32")}")'] * len(operands))
    build.__doc__ = f"""Elementwise: {(fn.__doc__ or "").partition(chr(10))[0]}

    Formula: ``y[i] = {written}``

    Raises:
        ShapeError: shapes that do not broadcast.
        DtypeError: dtypes that the function does not take.

    Source: ``{path}``.

    Example:
        >>> te.ops.{name}({given}).shape
        (2, 3)
    """
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
    """``x`` for ``x >= 0``, else ``negative_slope * x``.

    Formula: ``y[i] = x[i] if x[i] >= 0 else negative_slope * x[i]``

    Raises:
        DtypeError: complex numbers.

    Source: ``jax.nn.leaky_relu``.

    Example:
        >>> te.ops.leaky_relu(np.float32([-2, 2]), 0.5).tolist()
        [-1.0, 2.0]
    """
    return pointwise("leaky_relu", lambda e: f.leaky_relu(e, negative_slope), x)


@operator
def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """``x`` for ``x > 0``, else ``alpha * expm1(x)``.

    Formula: ``y[i] = x[i] if x[i] > 0 else alpha * (exp(x[i]) - 1)``

    Raises:
        DtypeError: complex numbers.

    Source: ``jax.nn.elu``.

    Example:
        >>> te.ops.elu(np.float32([0, 2])).tolist()
        [0.0, 2.0]
    """
    return pointwise("elu", lambda e: f.elu(e, alpha), x)


@operator
def prelu(x: Tensor, slope: Tensor, axis: int = 1) -> Tensor:
    """``x`` for ``x >= 0``, else ``slope[c] * x`` with the channel ``c`` on ``axis``.

    Formula: ``y[n, c, i] = x[n, c, i] if x[n, c, i] >= 0 else slope[c] * x[n, c, i]``

    Raises:
        ShapeError: an axis out of range, another number of slopes than of channels.

    Source: ``torch.nn.PReLU``.

    Example:
        >>> te.ops.prelu(np.float32([[-2, -2]]), np.float32([1, 0.5])).tolist()
        [[-2.0, -1.0]]
    """
    channel = normal_axis(axis, x.ndim, "prelu")
    check_channels_of(slope, x, channel, "prelu")
    return compute(x.shape, lambda *i: f.select(x[i] >= 0, x[i], slope[i[channel]] * x[i]), "prelu")


@operator
def clip(x: Tensor, lo: Tensor | float, hi: Tensor | float) -> Tensor:
    """``minimum(maximum(x, lo), hi)``.

    Formula: ``y[i] = minimum(maximum(x[i], lo), hi)``

    Raises:
        ShapeError: shapes that do not broadcast.

    Source: ``jnp.clip``.

    Example:
        >>> te.ops.clip(np.float32([-2, 0, 2]), -1.0, 1.0).tolist()
        [-1.0, 0.0, 1.0]
    """
    return pointwise("clip", f.clip, x, lo, hi)


@operator
def where(cond: Tensor, a: Tensor | float, b: Tensor | float) -> Tensor:
    """``a`` where ``cond`` holds, else ``b``.

    Formula: ``y[i] = a[i] if cond[i] else b[i]``

    Raises:
        ShapeError: shapes that do not broadcast.

    Source: ``jnp.where``.

    Example:
        >>> te.ops.where(np.array([True, False]), np.float32([1, 2]), 0.0).tolist()
        [1.0, 0.0]
    """
    return pointwise("where", f.select, cond, a, b)


@operator
def cast(x: Tensor, dtype: DtypeLike) -> Tensor:
    """``x`` as another dtype; between floating dtypes the gradient passes.

    Formula: ``y[i] = dtype(x[i])``

    Raises:
        DtypeError: an unknown dtype.

    Source: ``jnp.astype``.

    Example:
        >>> te.ops.cast(np.float32([1.5]), "int32").tolist()
        [1]
    """
    return pointwise("cast", lambda e: f.cast(e, dtype), x)


@operator
def copy(x: Tensor) -> Tensor:
    """``x`` itself, as a tensor of its own.

    Formula: ``y[i] = x[i]``

    Raises:
        ArgumentError: what is neither a Tensor nor an array.

    Source: ``jnp.copy``.

    Example:
        >>> te.ops.copy(np.float32([1.5])).tolist()
        [1.5]
    """
    return pointwise("copy", lambda e: e, x)


@operator
def bias_add(x: Tensor, b: Tensor, axis: int = 1) -> Tensor:
    """``x`` with ``b[c]`` added at the channel ``c`` on ``axis``.

    Formula: ``y[n, c, i] = x[n, c, i] + b[c]``

    Raises:
        ShapeError: an axis out of range, another number of biases than of channels.

    Source: relay ``bias_add``.

    Example:
        >>> te.ops.bias_add(np.float32([[1, 2]]), np.float32([10, 20])).tolist()
        [[11.0, 22.0]]
    """
    channel = normal_axis(axis, x.ndim, "bias_add")
    check_channels_of(b, x, channel, "bias_add")
    return compute(x.shape, lambda *i: x[i] + b[i[channel]], "bias_add")
