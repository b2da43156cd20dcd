"""Rows of level 10 and of what stands in no table: shapes of other tensors, layouts, losses, sequences, sampling."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from harness.inputs import Input, integers, normal, one_hot, uniform
from jaxte import ops
from operators.row import row

A, C = normal(256, 512), normal(32, 64, 64)
IMAGE, SMALL = normal(8, 32, 28, 28), normal(4, 16, 28, 28)

# --- level 10

row(
    "10",
    "broadcast_to_like",
    ops.broadcast_to_like,
    lambda x, y: jnp.broadcast_to(x, y.shape),
    normal(64, 1),
    C,
    with_respect_to=(0,),
)
row(
    "10",
    "collapse_sum_like",
    ops.collapse_sum_like,
    lambda x, y: x.sum((0, 2))[:, None],
    C,
    normal(64, 1),
    with_respect_to=(0,),
)
row("10", "slice_like", ops.slice_like, lambda x, y: x[:200, :300], A, normal(200, 300), with_respect_to=(0,))
row(
    "10",
    "layout_transform",
    lambda x: ops.layout_transform(x, "NCHW", "NCHW16c"),
    lambda x: x.reshape(8, 2, 16, 28, 28).transpose(0, 1, 3, 4, 2),
    IMAGE,
)
for _name in ("device_copy", "on_device"):
    row(
        "10",
        _name,
        lambda x, n=_name: getattr(ops, n)(x, "cpu"),
        lambda x: jax.device_put(x, jax.devices("cpu")[0]),
        A,
    )
row(
    "10",
    "cross_entropy",
    ops.cross_entropy,
    lambda p, t: -(t * jnp.log(p)).sum() / 256,
    uniform(256, 512, low=0.1),
    one_hot(256, 512),
)
row(
    "10",
    "cross_entropy_with_logits",
    ops.cross_entropy_with_logits,
    lambda x, t: -(t * jax.nn.log_softmax(x)).sum() / 256,
    A,
    one_hot(256, 512),
)
row("10", "reverse_reshape", lambda x: ops.reverse_reshape(x, (-1, 0)), lambda x: x.reshape(-1, 64), C)

# --- beyond the table: elementwise

for _name, _module in (
    *((n, jnp) for n in ("expm1", "sin", "cos", "square")),
    *((n, jax.nn) for n in ("gelu", "silu", "softplus", "elu", "relu6", "log_sigmoid")),
):
    row("+", _name, getattr(ops, _name), getattr(_module, _name), A)
row("+", "erf", ops.erf, jax.scipy.special.erf, A)
row("+", "log1p", ops.log1p, jnp.log1p, uniform(256, 512))
row("+", "rsqrt", ops.rsqrt, lax.rsqrt, uniform(256, 512, low=0.5))
row("+", "sign", ops.sign, jnp.sign, A)
row("+", "logaddexp", ops.logaddexp, jnp.logaddexp, A, normal(512))
row("+", "floor_divide", ops.floor_divide, jnp.floor_divide, A, uniform(512, low=0.5))
for _name in ("logical_and", "logical_or"):
    _bits = Input(lambda rng: rng.random((256, 512)) < 0.5)
    row("+", _name, getattr(ops, _name), getattr(jnp, _name), _bits, _bits)
row("+", "logical_not", ops.logical_not, jnp.logical_not, Input(lambda rng: rng.random((256, 512)) < 0.5))
for _name in ("isnan", "isfinite"):
    row("+", _name, getattr(ops, _name), getattr(jnp, _name), A)

# --- products and sequences

row(
    "+",
    "einsum",
    lambda x, y: ops.einsum("bij,bjk->bki", x, y),
    lambda x, y: jnp.einsum("bij,bjk->bki", x, y),
    C,
    C,
)
row("+", "matmul", ops.matmul, jnp.matmul, A, normal(512, 256))
row("+", "batch_matmul", ops.batch_matmul, jnp.matmul, C, C)
row("+", "tensordot", ops.tensordot, jnp.tensordot, C, normal(64, 64, 32))
for _name in ("cumsum", "cumprod"):
    _x = uniform(256, 512, low=0.99, high=1.01)
    row("+", _name, lambda x, n=_name: getattr(ops, n)(x, 1), lambda x, n=_name: getattr(jnp, n)(x, 1), _x)
row("+", "cummax", lambda x: ops.cummax(x, 1), lambda x: lax.cummax(x, 1), A)
row("+", "roll", lambda x: ops.roll(x, (3, -5), (0, 1)), lambda x: jnp.roll(x, (3, -5), (0, 1)), A)
row(
    "+",
    "take_along_axis",
    lambda x, i: ops.take_along_axis(x, i, 1),
    lambda x, i: jnp.take_along_axis(x, i, 1),
    A,
    integers(256, 40, below=512),
)
row("+", "top_k", lambda x: ops.top_k(x, 8), lambda x: lax.top_k(x, 8), A)
row(
    "+",
    "embedding",
    ops.embedding,
    lambda i, t: jnp.take(t, i, 0),
    integers(2048, below=1000),
    normal(1000, 64),
)


def _layer_norm(x, g, b):
    m = x.mean(-1, keepdims=True)
    return (x - m) * lax.rsqrt(jnp.var(x, -1, keepdims=True) + 1e-5) * g + b


def _group_norm(x, g, b):
    z = x.reshape(x.shape[0], 8, -1)
    z = (z - z.mean(-1, keepdims=True)) * lax.rsqrt(z.var(-1, keepdims=True) + 1e-5)
    return z.reshape(x.shape) * g[:, None, None] + b[:, None, None]


row("+", "layer_norm", ops.layer_norm, _layer_norm, A, normal(512), normal(512))
row(
    "+",
    "rms_norm",
    ops.rms_norm,
    lambda x, g: x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * g,
    A,
    normal(512),
)
row("+", "group_norm", lambda x, g, b: ops.group_norm(x, 8, g, b), _group_norm, IMAGE, normal(32), normal(32))


def _attention(q, k, v, near=None):
    scores = jnp.einsum("htd,hsd->hts", q, k) / q.shape[-1] ** 0.5
    scores = scores if near is None else jnp.where(near, scores, -jnp.inf)
    return jnp.einsum("hts,hse->hte", jax.nn.softmax(scores, -1), v)


def _windowed(q, k, v):
    apart = jnp.arange(q.shape[1]) - jnp.arange(q.shape[1])[:, None]
    return _attention(q, k, v, (apart >= -32) & (apart <= 0))


Q, LONG = normal(8, 256, 32), normal(4, 1024, 32)
row("+", "attention", ops.attention, _attention, Q, Q, Q)
row(
    "+",
    "attention.window",
    lambda q, k, v: ops.attention(q, k, v, window=(32, 0)),
    _windowed,
    LONG,
    LONG,
    LONG,
)

# --- patches, layouts, places that are data

PATCHES = dict(filter_shape=(3, 3), window_strides=(1, 1), padding=((1, 1), (1, 1)))


def _unfolded(x):
    found = lax.conv_general_dilated_patches(x, **PATCHES)
    return found.reshape(*found.shape[:2], -1)


def _folded(x):
    struct = jax.ShapeDtypeStruct((4, 16, 28, 28), x.dtype)
    return jax.linear_transpose(_unfolded, struct)(x)[0]


row("+", "unfold", lambda x: ops.unfold(x, 3, 1, 1), _unfolded, SMALL)
row("+", "fold", lambda x: ops.fold(x, (28, 28), 3, 1, 1), _folded, normal(4, 144, 784))
row(
    "+",
    "depth_to_space",
    lambda x: ops.depth_to_space(x, 2),
    lambda x: x.reshape(8, 2, 2, 8, 28, 28).transpose(0, 3, 4, 1, 5, 2).reshape(8, 8, 56, 56),
    IMAGE,
)
row(
    "+",
    "space_to_depth",
    lambda x: ops.space_to_depth(x, 2),
    lambda x: x.reshape(8, 32, 14, 2, 14, 2).transpose(0, 3, 5, 1, 2, 4).reshape(8, 128, 14, 14),
    IMAGE,
)


def _sampled(x, row, column):
    """Bilinear values by four gathers, 0 outside."""
    height, width = x.shape[2:]
    top, left = jnp.floor(row), jnp.floor(column)
    total = 0.0
    for p in (0, 1):
        for q in (0, 1):
            i, j = (top + p).astype("int32"), (left + q).astype("int32")
            weight = (1 - abs(row - (top + p))) * (1 - abs(column - (left + q)))
            inside = (i >= 0) & (i < height) & (j >= 0) & (j < width)
            read = jax.vmap(lambda x, i, j: x[:, i, j])(
                x, jnp.clip(i, 0, height - 1), jnp.clip(j, 0, width - 1)
            )
            total = total + jnp.where(inside, weight, 0)[:, None] * read
    return total


def _warped(x, flow):
    i, j = (jnp.arange(e, dtype="float32") for e in x.shape[2:])
    return _sampled(x, i[:, None] + flow[:, 0], j + flow[:, 1])


row(
    "+",
    "grid_sample",
    ops.grid_sample,
    lambda x, g: _sampled(x, ((g[..., 1] + 1) * 28 - 1) / 2, ((g[..., 0] + 1) * 28 - 1) / 2),
    SMALL,
    uniform(4, 28, 28, 2, low=-1.0),
)
row(
    "+",
    "bilinear",
    ops.bilinear,
    lambda x, p: _sampled(x, p[..., 0], p[..., 1]),
    SMALL,
    uniform(4, 28, 28, 2, high=27.0),
)
row("+", "warp", ops.warp, _warped, SMALL, normal(4, 2, 28, 28))


def _correlation(a, b):
    h, w = a.shape[2:]
    wide = jnp.pad(b, ((0, 0), (0, 0), (4, 4), (4, 4)))
    return jnp.stack([(a * wide[:, :, p : p + h, q : q + w]).mean(1) for p in range(9) for q in range(9)], 1)


def _cost_volume(a, b):
    w = a.shape[3]
    wide = jnp.pad(b, ((0, 0), (0, 0), (0, 0), (15, 0)))
    return jnp.stack([(a * wide[..., 15 - d : 15 - d + w]).mean(1) for d in range(16)], 1)


row("+", "correlation", ops.correlation, _correlation, SMALL, SMALL)
row("+", "cost_volume", lambda a, b: ops.cost_volume(a, b, 16), _cost_volume, SMALL, SMALL)
