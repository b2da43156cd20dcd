"""Cases of the grid: products, convolutions, pooling and normalisation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxte import ops
from tests.ops_registry import Make, case, distinct, normal, positive

A, C = normal(3, 4), normal(2, 3, 4)

# --- products

case("tensordot", ops.tensordot, jnp.tensordot, C, normal(3, 4, 5))
case(
    "tensordot.axes",
    lambda x, y: ops.tensordot(x, y, ((0, 2), (1, 0))),
    lambda x, y: jnp.tensordot(x, y, ((0, 2), (1, 0))),
    C,
    normal(4, 2, 5),
)
case(
    "tensordot.outer", lambda x, y: ops.tensordot(x, y, 0), lambda x, y: jnp.tensordot(x, y, 0), normal(2), A
)
case("matmul", ops.matmul, jnp.matmul, A, normal(4, 2))
case("matmul.batch", ops.matmul, jnp.matmul, normal(5, 1, 3, 4), normal(2, 4, 2))
case("matmul.vectors", ops.matmul, jnp.matmul, normal(4), normal(4))
case("batch_matmul", ops.batch_matmul, jnp.matmul, normal(2, 3, 4), normal(2, 4, 5))
case(
    "batch_matmul.transposed",
    lambda x, y: ops.batch_matmul(x, y, True, True),
    lambda x, y: jnp.einsum("bki,bjk->bij", x, y),
    normal(2, 4, 3),
    normal(2, 5, 4),
)
case("dense", ops.dense, lambda x, w: x @ w.T, A, normal(5, 4))
case("dense.bias", ops.dense, lambda x, w, b: x @ w.T + b, normal(2, 3, 4), normal(5, 4), normal(5))


# --- convolutions


def _conv(nd: int = 2, layout: str = "NCHW", **how: Any) -> Callable[..., Any]:
    """The same convolution by lax."""
    kernel = {"NCHW": "OIHW", "NHWC": "HWIO", "NCW": "OIW", "NCDHW": "OIDHW"}[layout]
    padding = how.get("padding", 0)
    if isinstance(padding, int):
        padding = [(padding, padding)] * nd
    return lambda x, w: lax.conv_general_dilated(
        x,
        w,
        np.broadcast_to(how.get("strides", 1), nd).tolist(),
        padding,
        rhs_dilation=np.broadcast_to(how.get("dilation", 1), nd).tolist(),
        feature_group_count=how.get("groups", 1),
        dimension_numbers=(layout, kernel, layout),
    )


def conv_case(label: str, x: Make, w: Make, **how: Any) -> None:
    case(f"conv2d{label}", lambda x, w: ops.conv2d(x, w, **how), _conv(**how), x, w)


conv_case("", normal(2, 3, 6, 7), normal(4, 3, 3, 2))
conv_case(".stride", normal(2, 3, 8, 7), normal(4, 3, 3, 3), strides=2, padding=1)
conv_case(".strides", normal(1, 2, 9, 8), normal(3, 2, 3, 2), strides=(3, 2), padding=((2, 0), (1, 1)))
conv_case(".dilation", normal(1, 2, 9, 8), normal(3, 2, 3, 2), dilation=(2, 3), padding=1)
conv_case(".same", normal(1, 2, 7, 8), normal(3, 2, 3, 4), strides=2, padding="SAME")
conv_case(".valid", normal(1, 2, 7, 8), normal(3, 2, 3, 4), padding="VALID")
conv_case(".groups", normal(2, 4, 6, 6), normal(6, 2, 3, 3), groups=2, padding=1)
conv_case(".nhwc", normal(2, 6, 6, 3), normal(3, 3, 3, 4), layout="NHWC", padding=1)
case(
    "depthwise_conv2d",
    lambda x, w: ops.depthwise_conv2d(x, w, padding=1),
    _conv(padding=1, groups=3),
    normal(2, 3, 5, 5),
    normal(3, 1, 3, 3),
)
case("conv1d", lambda x, w: ops.conv1d(x, w, 2, 1), _conv(1, "NCW", strides=2, padding=1), C, normal(5, 3, 3))
case("conv3d", ops.conv3d, _conv(3, "NCDHW"), normal(1, 2, 4, 4, 5), normal(2, 2, 2, 3, 2))


# --- pooling


def _pool(op: Callable[..., Any], start: float, size: int, stride: int, padding: int) -> Callable[..., Any]:
    pads = ((0, 0), (0, 0), (padding, padding), (padding, padding))
    return lambda x: lax.reduce_window(x, start, op, (1, 1, size, size), (1, 1, stride, stride), pads)


def _mean_pool(x: Any, size: int, stride: int, padding: int) -> Any:
    add = _pool(lax.add, 0.0, size, stride, padding)
    return add(x) / add(jnp.ones_like(x))


IMAGE = distinct(2, 2, 7, 8)
for _size, _stride, _padding in ((2, 2, 0), (3, 2, 1), (3, 1, 1), (2, 3, 0)):
    _tag = f"{_size}.{_stride}.{_padding}"
    case(
        f"max_pool2d.{_tag}",
        lambda x, a=(_size, _stride, _padding): ops.max_pool2d(x, *a),
        _pool(lax.max, -np.inf, _size, _stride, _padding),
        IMAGE,
        smooth=False,
    )
    case(
        f"avg_pool2d.{_tag}",
        lambda x, a=(_size, _stride, _padding): ops.avg_pool2d(x, *a),
        lambda x, a=(_size, _stride, _padding): _pool(lax.add, 0.0, *a)(x) / a[0] ** 2,
        IMAGE,
    )
    case(
        f"avg_pool2d.{_tag}.inside",
        lambda x, a=(_size, _stride, _padding): ops.avg_pool2d(x, *a, count_include_pad=False),
        lambda x, a=(_size, _stride, _padding): _mean_pool(x, *a),
        IMAGE,
    )
case("max_pool2d", lambda x: ops.max_pool2d(x, 2), _pool(lax.max, -np.inf, 2, 2, 0), IMAGE, smooth=False)
case(
    "max_pool2d.ties",
    lambda x: ops.max_pool2d(x, 3, 2),
    _pool(lax.max, -np.inf, 3, 2, 0),
    lambda rng: rng.integers(0, 3, (1, 2, 7, 7)).astype(np.float32),
    smooth=False,
)
case("global_max_pool2d", ops.global_max_pool2d, lambda x: x.max((2, 3), keepdims=True), IMAGE, smooth=False)
case("global_avg_pool2d", ops.global_avg_pool2d, lambda x: x.mean((2, 3), keepdims=True), IMAGE)

# --- normalization


def _layer_norm(x: Any, axis: Sequence[int] = (-1,), eps: float = 1e-5) -> Any:
    centred = x - x.mean(axis, keepdims=True)
    return centred / jnp.sqrt((centred**2).mean(axis, keepdims=True) + eps)


def _batch_norm(x: Any, g: Any, b: Any) -> Any:
    mean, var = x.mean((0, 2)), x.var((0, 2))
    y = (x - mean[:, None]) / jnp.sqrt(var[:, None] + 1e-5) * g[:, None] + b[:, None]
    return y, mean, var


def _lrn(x: Any) -> Any:
    total = lax.reduce_window(x * x, 0.0, lax.add, (1, 5, 1), (1, 1, 1), ((0, 0), (2, 2), (0, 0)))
    return x / (2.0 + 1e-4 / 5 * total) ** 0.75


case("softmax", ops.softmax, jax.nn.softmax, C)
case("softmax.axis", lambda x: ops.softmax(x, 1), lambda x: jax.nn.softmax(x, 1), C)
case("log_softmax", ops.log_softmax, jax.nn.log_softmax, C)
case("layer_norm", ops.layer_norm, lambda x, g, b: _layer_norm(x) * g + b, C, normal(4), normal(4))
case("layer_norm.axis", lambda x: ops.layer_norm(x, axis=(1, 2)), lambda x: _layer_norm(x, (1, 2)), C)
case(
    "rms_norm",
    ops.rms_norm,
    lambda x, g: x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * g,
    C,
    normal(4),
)
case("l2_normalize", ops.l2_normalize, lambda x: x / jnp.linalg.norm(x, axis=-1, keepdims=True), C)
case(
    "batch_norm",
    ops.batch_norm,
    lambda x, g, b, m, v: (x - m[:, None]) / jnp.sqrt(v[:, None] + 1e-5) * g[:, None] + b[:, None],
    C,
    normal(3),
    normal(3),
    normal(3),
    positive(3),
)
case(
    "batch_norm.training",
    lambda x, g, b: ops.batch_norm(x, g, b, training=True),
    _batch_norm,
    C,
    normal(3),
    normal(3),
)
case("lrn", ops.lrn, _lrn, normal(2, 7, 3))
case(
    "cross_entropy",
    ops.cross_entropy,
    lambda p, t: -(t * jnp.log(p)).sum() / 3,
    positive(3, 4),
    positive(3, 4),
)
case(
    "cross_entropy_with_logits",
    ops.cross_entropy_with_logits,
    lambda x, t: -(t * jax.nn.log_softmax(x)).sum() / 3,
    A,
    positive(3, 4),
)
