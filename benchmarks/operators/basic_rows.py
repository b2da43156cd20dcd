"""Rows of the levels 1, 3 and 4: elementwise functions, shapes, reductions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from harness.inputs import Input, integers, normal, uniform
from jaxte import ops
from operators.row import row

A, B, C = normal(256, 512), normal(256, 512), normal(32, 64, 64)
POSITIVE = uniform(256, 512, low=0.5, high=2.0)
TRUE = Input(lambda rng: rng.random((256, 512)) < 0.6)

# --- level 1

for _name in ("log", "sqrt"):
    row("1", _name, getattr(ops, _name), getattr(jnp, _name), POSITIVE)
for _name, _reference in (
    ("exp", jnp.exp),
    ("sigmoid", jax.nn.sigmoid),
    ("tanh", jnp.tanh),
    ("relu", jax.nn.relu),
):
    row("1", _name, getattr(ops, _name), _reference, A)
for _name in ("add", "subtract", "multiply"):
    row("1", _name, getattr(ops, _name), getattr(jnp, _name), A, normal(512))
for _name in ("divide", "mod"):
    row("1", _name, getattr(ops, _name), getattr(jnp, _name), A, uniform(512, low=0.5, high=2.0))
row(
    "1", "concatenate", lambda x, y: ops.concatenate([x, y], 1), lambda x, y: jnp.concatenate([x, y], 1), A, B
)
row("1", "expand_dims", lambda x: ops.expand_dims(x, 1), lambda x: jnp.expand_dims(x, 1), A)
row("1", "softmax", ops.softmax, jax.nn.softmax, A)
row("1", "log_softmax", ops.log_softmax, jax.nn.log_softmax, A)
row("1", "bias_add", ops.bias_add, lambda x, b: x + b, A, normal(512))
row(
    "1",
    "dropout",
    lambda x, m: ops.dropout(x, 0.4, mask=m),
    lambda x, m: jnp.where(m, x / 0.6, 0),
    A,
    TRUE,
)


def _batch_norm(x, g, b):
    m, v = x.mean((0, 2, 3)), x.var((0, 2, 3))
    own = (slice(None), None, None)
    return (x - m[own]) * lax.rsqrt(v[own] + 1e-5) * g[own] + b[own], m, v


row(
    "1",
    "batch_norm",
    lambda x, g, b: ops.batch_norm(x, g, b, training=True),
    _batch_norm,
    normal(16, 32, 28, 28),
    normal(32),
    normal(32),
)

# --- level 3

for _name in ("leaky_relu", "floor", "ceil", "trunc", "round", "abs", "negative", "copy"):
    _module = jax.nn if _name == "leaky_relu" else jnp
    row("3", _name, getattr(ops, _name), getattr(_module, _name), A)
row("3", "prelu", ops.prelu, lambda x, s: jnp.where(x >= 0, x, s * x), A, normal(512))
row("3", "reshape", lambda x: ops.reshape(x, (512, 256)), lambda x: jnp.reshape(x, (512, 256)), A)
row(
    "3",
    "reshape_like",
    ops.reshape_like,
    lambda x, y: jnp.reshape(x, y.shape),
    A,
    normal(512, 256),
    with_respect_to=(0,),
)
row("3", "transpose", ops.transpose, jnp.transpose, A)
row("3", "squeeze", ops.squeeze, jnp.squeeze, normal(256, 1, 512))
row("3", "clip", lambda x: ops.clip(x, -0.5, 0.5), lambda x: jnp.clip(x, -0.5, 0.5), A)
row("3", "take", lambda x, i: ops.take(x, i, 0), lambda x, i: jnp.take(x, i, 0), A, integers(400, below=256))
row("3", "zeros", lambda: ops.zeros((256, 512)), lambda: jnp.zeros((256, 512)))
row("3", "ones", lambda: ops.ones((256, 512)), lambda: jnp.ones((256, 512)))
row("3", "arange", lambda: ops.arange(5, 100000, 3), lambda: jnp.arange(5, 100000, 3))
row("3", "full", lambda v: ops.full((256, 512), v), lambda v: jnp.full((256, 512), v), normal())
row("3", "full_like", lambda x: ops.full_like(x, 2.5), lambda x: jnp.full_like(x, 2.5), A)
for _name in ("zeros_like", "ones_like"):
    row("3", _name, getattr(ops, _name), getattr(jnp, _name), A)
row("3", "cast", lambda x: ops.cast(x, "bfloat16"), lambda x: x.astype("bfloat16"), A)
row("3", "split", lambda x: ops.split(x, 4, 1), lambda x: tuple(jnp.split(x, 4, 1)), A)
row("3", "stack", lambda x, y: ops.stack([x, y], 1), lambda x, y: jnp.stack([x, y], 1), A, B)
row(
    "3",
    "gather_nd",
    ops.gather_nd,
    lambda x, i: x.at[i[0], i[1]].get(mode="fill"),
    C,
    integers(2, 500, below=32),
)
row(
    "3",
    "one_hot",
    lambda i: ops.one_hot(i, 512),
    lambda i: jax.nn.one_hot(i, 512, dtype="float32"),
    integers(256, below=512),
)
row("3", "repeat", lambda x: ops.repeat(x, 3, 0), lambda x: jnp.repeat(x, 3, 0), A)
row("3", "tile", lambda x: ops.tile(x, (2, 3)), lambda x: jnp.tile(x, (2, 3)), A)
row("3", "flip", lambda x: ops.flip(x, 1), lambda x: jnp.flip(x, 1), A)

# --- level 4

INTS = integers(256, 512, below=9)
for _name in ("right_shift", "left_shift"):
    row("4", _name, getattr(ops, _name), getattr(jnp, _name), INTS, integers(512, below=4))
for _name in ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal"):
    row("4", _name, getattr(ops, _name), getattr(jnp, _name), A, normal(512))
for _name in ("maximum", "minimum"):
    row("4", _name, getattr(ops, _name), getattr(jnp, _name), A, normal(512))
row("4", "power", ops.power, jnp.power, POSITIVE, normal(512))
row("4", "where", ops.where, jnp.where, TRUE, A, B)
for _name in ("argmax", "argmin"):
    row(
        "4",
        _name,
        lambda x, n=_name: getattr(ops, n)(x, 1),
        lambda x, n=_name: getattr(jnp, n)(x, 1).astype("int32"),
        A,
    )
for _name in ("sum", "max", "min", "mean", "prod"):
    _x = uniform(256, 512, low=0.99, high=1.01) if _name == "prod" else A
    row("4", _name, lambda x, n=_name: getattr(ops, n)(x, 1), lambda x, n=_name: getattr(jnp, n)(x, 1), _x)
row("4", "sum.exclude", lambda x: ops.sum(x, 1, exclude=True), lambda x: jnp.sum(x, (0, 2)), C)
row(
    "4",
    "prod.first",
    lambda x: ops.prod(x, 0),
    lambda x: jnp.prod(x, 0),
    uniform(128, 512, low=0.99, high=1.01),
    note="products before and after each element of columns, in blocks of four strided rows; JAX's halving tree reads less",
)
row(
    "4",
    "strided_slice",
    lambda x: ops.strided_slice(x, (255, 3), (0, 500), (-2, 3)),
    lambda x: x[255:0:-2, 3:500:3],
    A,
)
row(
    "4",
    "broadcast_to",
    lambda x: ops.broadcast_to(x, (256, 512)),
    lambda x: jnp.broadcast_to(x, (256, 512)),
    normal(512),
)
row("4", "variance", lambda x: ops.variance(x, 1), lambda x: jnp.var(x, 1), A)
row("4", "std", lambda x: ops.std(x, 1), lambda x: jnp.std(x, 1), A)
row("4", "logsumexp", lambda x: ops.logsumexp(x, 1), lambda x: jax.nn.logsumexp(x, 1), A)
for _name in ("any", "all"):
    row("4", _name, lambda x, n=_name: getattr(ops, n)(x, 1), lambda x, n=_name: getattr(jnp, n)(x, 1), TRUE)
