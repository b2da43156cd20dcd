"""Cases of the grid: elementwise operators, reductions, shapes, joining and indexing."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from jaxte import ops
from tests.ops_registry import booleans, case, distinct, integers, normal, positive

# --- elementwise

A, B = normal(3, 4), normal(3, 4)
for _name in [
    "exp",
    "expm1",
    "sin",
    "cos",
    "tanh",
    "sigmoid",
    "softplus",
    "gelu",
    "silu",
    "square",
    "erf",
    "log_sigmoid",
]:
    _reference = {"erf": jax.scipy.special.erf}.get(_name) or getattr(
        jax.nn if hasattr(jax.nn, _name) else jnp, _name
    )
    case(_name, getattr(ops, _name), _reference, A)
for _name in ["log", "log1p", "sqrt", "rsqrt"]:
    case(_name, getattr(ops, _name), lax.rsqrt if _name == "rsqrt" else getattr(jnp, _name), positive(3, 4))
for _name in ["abs", "sign", "floor", "ceil", "trunc", "round", "negative", "relu", "relu6"]:
    _module = jax.nn if "relu" in _name else jnp
    case(_name, getattr(ops, _name), getattr(_module, _name), distinct(3, 4), smooth=False)
for _name in ["add", "subtract", "multiply", "logaddexp"]:
    case(_name, getattr(ops, _name), getattr(jnp, _name), A, normal(4))
for _name in ["maximum", "minimum"]:
    case(_name, getattr(ops, _name), getattr(jnp, _name), A, normal(3, 1), smooth=False)
case("add.scalar", lambda x: ops.add(x, 2), lambda x: x + 2, A)
case("subtract.scalar", lambda x: ops.subtract(1.5, x), lambda x: 1.5 - x, A)
case("divide", ops.divide, jnp.divide, A, positive(3, 1))
case("floor_divide", ops.floor_divide, jnp.floor_divide, A, positive(4), smooth=False)
case("mod", ops.mod, jnp.mod, A, positive(4), smooth=False)
case("power", ops.power, jnp.power, positive(3, 4), normal(4))
for _name in ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]:
    case(_name, getattr(ops, _name), getattr(jnp, _name), integers(0, 3, 3, 4), integers(0, 3, 4))
for _name in ["logical_and", "logical_or"]:
    case(_name, getattr(ops, _name), getattr(jnp, _name), booleans(3, 4), booleans(4))
case("logical_not", ops.logical_not, jnp.logical_not, booleans(3, 4))
case("left_shift", ops.left_shift, jnp.left_shift, integers(-9, 9, 3, 4), integers(0, 4, 4))
case("right_shift", ops.right_shift, jnp.right_shift, integers(-9, 9, 3, 4), integers(0, 4, 4))
case("isnan", ops.isnan, jnp.isnan, A)
case("isfinite", ops.isfinite, jnp.isfinite, A)
case("leaky_relu", lambda x: ops.leaky_relu(x, 0.2), lambda x: jax.nn.leaky_relu(x, 0.2), distinct(3, 4))
case("elu", ops.elu, jax.nn.elu, distinct(3, 4))
case("prelu", ops.prelu, lambda x, s: jnp.where(x >= 0, x, s[:, None] * x), distinct(2, 3, 4), normal(3))
case("clip", lambda x: ops.clip(x, -0.5, 0.5), lambda x: jnp.clip(x, -0.5, 0.5), distinct(3, 4), smooth=False)
case("where", ops.where, jnp.where, booleans(3, 4), A, normal(4), smooth=False)
case("cast", lambda x: ops.cast(x, "float16"), lambda x: x.astype("float16"), A)
case("copy", ops.copy, lambda x: x, A)
case("bias_add", ops.bias_add, lambda x, b: x + b[:, None], normal(2, 3, 4), normal(3))

# --- creation

case("full", lambda v: ops.full((2, 3), v), lambda v: jnp.full((2, 3), v), normal())
case("full_like", lambda x: ops.full_like(x, 2.5), lambda x: jnp.full_like(x, 2.5), A)
case("zeros_like", ops.zeros_like, jnp.zeros_like, A)
case("ones_like", ops.ones_like, jnp.ones_like, A)

# --- reductions

C = normal(2, 3, 4)
for _name in ["sum", "prod", "mean"]:
    case(_name, getattr(ops, _name), getattr(jnp, _name), C)
    case(
        f"{_name}.axis",
        lambda x, n=_name: getattr(ops, n)(x, axis=(0, -1)),
        lambda x, n=_name: getattr(jnp, n)(x, axis=(0, -1)),
        C,
    )
    case(
        f"{_name}.keepdims",
        lambda x, n=_name: getattr(ops, n)(x, axis=1, keepdims=True),
        lambda x, n=_name: getattr(jnp, n)(x, axis=1, keepdims=True),
        C,
    )
for _name in ["max", "min"]:
    case(
        _name,
        lambda x, n=_name: getattr(ops, n)(x, axis=1),
        lambda x, n=_name: getattr(jnp, n)(x, axis=1),
        distinct(2, 3, 4),
        smooth=False,
    )
case("sum.exclude", lambda x: ops.sum(x, axis=1, exclude=True), lambda x: jnp.sum(x, (0, 2)), C)
case("max.all", ops.max, jnp.max, distinct(2, 3, 4), smooth=False)
case("any", lambda x: ops.any(x, axis=1), lambda x: jnp.any(x, axis=1), booleans(3, 4))
case("all", lambda x: ops.all(x, axis=1), lambda x: jnp.all(x, axis=1), booleans(3, 4))
for _name in ("argmax", "argmin"):  # positions are int32, in 64-bit mode too
    case(_name, getattr(ops, _name), lambda x, n=_name: getattr(jnp, n)(x).astype("int32"), C)
    case(
        f"{_name}.axis",
        lambda x, n=_name: getattr(ops, n)(x, axis=1),
        lambda x, n=_name: getattr(jnp, n)(x, axis=1).astype("int32"),
        C,
    )
case("variance", lambda x: ops.variance(x, axis=1), lambda x: jnp.var(x, axis=1), C)
case("std", lambda x: ops.std(x, axis=1, ddof=1), lambda x: jnp.std(x, axis=1, ddof=1), C)
case("logsumexp", lambda x: ops.logsumexp(x, 1), lambda x: jax.nn.logsumexp(x, 1), C)
case("cumsum", lambda x: ops.cumsum(x, 1), lambda x: jnp.cumsum(x, 1), C)
case("cumprod", lambda x: ops.cumprod(x, 2), lambda x: jnp.cumprod(x, 2), C)
case("cummax", lambda x: ops.cummax(x, 2), lambda x: lax.cummax(x, 2), distinct(2, 3, 4), smooth=False)

# --- shapes

case(
    "broadcast_to",
    lambda x: ops.broadcast_to(x, (5, 2, 3)),
    lambda x: jnp.broadcast_to(x, (5, 2, 3)),
    normal(2, 1),
)
for _shape in ((6, 4), (24,), (4, 3, 2), (2, 12), (-1, 2), (3, 1, 8), (2, 2, 3, 2)):
    case(f"reshape.{_shape}", lambda x, s=_shape: ops.reshape(x, s), lambda x, s=_shape: jnp.reshape(x, s), C)
case("reshape.scalar", lambda x: ops.reshape(x, (1, 1)), lambda x: jnp.reshape(x, (1, 1)), normal())
case(
    "reshape.ones",
    lambda x: ops.reshape(x, (3, 2, 1)),
    lambda x: jnp.reshape(x, (3, 2, 1)),
    normal(1, 2, 1, 3),
)
case("reshape_like", ops.reshape_like, lambda x, y: jnp.reshape(x, y.shape), C, normal(4, 6))
case("flatten", ops.flatten, lambda x: x.reshape(2, 12), C)
case("flatten.all", lambda x: ops.flatten(x, 0), lambda x: x.reshape(-1), C)
case("transpose", ops.transpose, jnp.transpose, C)
case("transpose.axes", lambda x: ops.transpose(x, (1, 2, 0)), lambda x: jnp.transpose(x, (1, 2, 0)), C)
case("expand_dims", lambda x: ops.expand_dims(x, (0, -1)), lambda x: jnp.expand_dims(x, (0, -1)), A)
case("squeeze", ops.squeeze, jnp.squeeze, normal(1, 3, 1))
case("squeeze.axis", lambda x: ops.squeeze(x, -1), lambda x: jnp.squeeze(x, -1), normal(1, 3, 1))

# --- joining

case(
    "concatenate",
    lambda x, y, z: ops.concatenate([x, y, z], axis=1),
    lambda x, y, z: jnp.concatenate([x, y, z], axis=1),
    A,
    normal(3, 1),
    normal(3, 2),
)
case("stack", lambda x, y, z: ops.stack([x, y, z], 1), lambda x, y, z: jnp.stack([x, y, z], 1), A, B, A)
case("split", lambda x: ops.split(x, 2, axis=1), lambda x: tuple(jnp.split(x, 2, axis=1)), A)
case("split.indices", lambda x: ops.split(x, (1, -1)), lambda x: (x[:1], x[1:-1], x[-1:]), normal(5, 2))
case(
    "strided_slice",
    lambda x: ops.strided_slice(x, (1, 0), (5, -1), (2, 1)),
    lambda x: x[1:5:2, 0:-1],
    normal(7, 4),
)
case(
    "strided_slice.back",
    lambda x: ops.strided_slice(x, (5,), (None,), (-2,)),
    lambda x: x[5::-2],
    normal(7, 4),
)
case("flip", ops.flip, jnp.flip, A)
case("flip.axis", lambda x: ops.flip(x, 1), lambda x: jnp.flip(x, 1), A)
case("roll", lambda x: ops.roll(x, 5), lambda x: jnp.roll(x, 5), A)
case("roll.axes", lambda x: ops.roll(x, (1, -2), (1, 0)), lambda x: jnp.roll(x, (1, -2), (1, 0)), A)
case("roll.twice", lambda x: ops.roll(x, 1, (1, 1)), lambda x: jnp.roll(x, 2, 1), A)
case("tile", lambda x: ops.tile(x, (2, 1, 3)), lambda x: jnp.tile(x, (2, 1, 3)), A)
case("repeat", lambda x: ops.repeat(x, 3, 0), lambda x: jnp.repeat(x, 3, 0), A)
case("pad", lambda x: ops.pad(x, ((1, 2), (0, 3))), lambda x: jnp.pad(x, ((1, 2), (0, 3))), A)
for _mode in ("edge", "reflect", "wrap"):
    case(
        f"pad.{_mode}",
        lambda x, m=_mode: ops.pad(x, ((2, 1), (0, 3)), m),
        lambda x, m=_mode: jnp.pad(x, ((2, 1), (0, 3)), m),
        A,
    )
case(
    "upsampling",
    lambda x: ops.upsampling(x, 2),
    lambda x: jnp.repeat(jnp.repeat(x, 2, 2), 2, 3),
    normal(1, 2, 3, 3),
)

# --- indexing

INDICES = integers(-9, 9, 2, 5)
for _mode in ("fill", "clip", "wrap"):
    case(
        f"take.{_mode}",
        lambda x, i, m=_mode: ops.take(x, i, 1, m),
        lambda x, i, m=_mode: jnp.take(x, i, 1, mode=m),
        normal(3, 9, 2),
        INDICES,
        smooth=False,
    )
case("take", ops.take, jnp.take, C, integers(0, 24, 5), smooth=False)
case("take.number", lambda x: ops.take(x, -1, 1), lambda x: jnp.take(x, -1, 1), C)
for _axis in (1, -1):
    case(
        f"take_along_axis.{_axis}",
        lambda x, i, a=_axis: ops.take_along_axis(x, i, a),
        lambda x, i, a=_axis: jnp.take_along_axis(x, i, a, mode="fill"),
        normal(2, 5, 4),
        integers(-4, 4, 2, 3, 4) if _axis == 1 else integers(-4, 4, 1, 5, 3),
        smooth=False,
    )
case(
    "take_along_axis.flat",
    lambda x, i: ops.take_along_axis(x, i, None),
    lambda x, i: x.ravel()[i],
    C,
    integers(0, 24, 5),
)
case("top_k", lambda x: ops.top_k(x, 2), lambda x: lax.top_k(x, 2), distinct(3, 5), smooth=False)
case(
    "top_k.axis",
    lambda x: ops.top_k(x, 2, 0),
    lambda x: tuple(r.T for r in lax.top_k(x.T, 2)),
    distinct(5, 3),
    smooth=False,
)
case("embedding", ops.embedding, lambda i, t: jnp.take(t, i, 0), integers(0, 7, 2, 3), normal(7, 4))
case("gather_nd", ops.gather_nd, lambda x, i: x[i[0], i[1]], C, integers(0, 2, 2, 5))
case(
    "one_hot",
    lambda i: ops.one_hot(i, 4),
    lambda i: jax.nn.one_hot(i, 4, dtype="float32"),
    integers(0, 5, 2, 3),
)
