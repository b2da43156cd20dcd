"""Cases of the grid: shapes of other tensors, layouts, Einstein's sums, attention, dropout, and options of the first ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxte import ops
from tests.ops_registry import booleans, case, distinct, integers, normal, positive

C = normal(2, 3, 4)

# --- shapes of other tensors

case("broadcast_to_like", ops.broadcast_to_like, lambda x, y: jnp.broadcast_to(x, y.shape), normal(3, 1), C)
case("collapse_sum_like", ops.collapse_sum_like, lambda x, y: x.sum((0, 2))[:, None], C, normal(3, 1))
case("collapse_sum_like.all", ops.collapse_sum_like, lambda x, y: x.sum(), C, normal(), light=True)
case("collapse_sum_like.same", ops.collapse_sum_like, lambda x, y: x, C, C, light=True)
case("slice_like", ops.slice_like, lambda x, y: x[:1, :2, :4], C, normal(1, 2, 4))
case(
    "slice_like.axes",
    lambda x, y: ops.slice_like(x, y, (-1,)),
    lambda x, y: x[..., :1],
    C,
    normal(5, 5, 1),
    light=True,
)
case("reverse_reshape", lambda x: ops.reverse_reshape(x, (-1, 0)), lambda x: x.reshape(6, 4), C)
case("batch_flatten", ops.batch_flatten, lambda x: x.reshape(2, 12), C, light=True)
for _name in ("device_copy", "on_device"):
    case(_name, lambda x, n=_name: getattr(ops, n)(x, "cpu"), lambda x: x, normal(3, 2))

# --- layouts


def _blocked(x: Any) -> Any:
    return x.reshape(2, 3, 2, 1, 3).transpose(0, 1, 3, 4, 2)


case(
    "layout_transform",
    lambda x: ops.layout_transform(x, "NCHW", "NCHW2c"),
    _blocked,
    normal(2, 6, 1, 3),
)
case(
    "layout_transform.back",
    lambda x: ops.layout_transform(x, "NCHW2c", "NHWC"),
    lambda x: x.transpose(0, 2, 3, 1, 4).reshape(2, 1, 3, 6),
    normal(2, 3, 1, 3, 2),
    light=True,
)
case(
    "layout_transform.kernels",
    lambda x: ops.layout_transform(x, "OIHW", "OIHW2i3o"),
    lambda x: x.reshape(2, 3, 2, 2, 1, 2).transpose(0, 2, 4, 5, 3, 1),
    normal(6, 4, 1, 2),
    light=True,
)
case(
    "layout_transform.regroup",
    lambda x: ops.layout_transform(x, "NC4c", "NC2c"),
    lambda x: x.reshape(2, 6, 2),
    normal(2, 3, 4),
    light=True,
)
case(
    "depth_to_space",
    lambda x: ops.depth_to_space(x, 2),
    lambda x: x.reshape(1, 2, 2, 3, 2, 1).transpose(0, 3, 4, 1, 5, 2).reshape(1, 3, 4, 2),
    normal(1, 12, 2, 1),
)
case(
    "depth_to_space.crd",
    lambda x: ops.depth_to_space(x, 2, "CRD", "NHWC"),
    lambda x: x.reshape(1, 2, 1, 3, 2, 2).transpose(0, 1, 4, 2, 5, 3).reshape(1, 4, 2, 3),
    normal(1, 2, 1, 12),
    light=True,
)
case(
    "space_to_depth",
    lambda x: ops.space_to_depth(x, 2),
    lambda x: x.reshape(1, 3, 2, 2, 1, 2).transpose(0, 3, 5, 1, 2, 4).reshape(1, 12, 2, 1),
    normal(1, 3, 4, 2),
)
case(
    "space_to_depth.crd",
    lambda x: ops.space_to_depth(x, 2, "CRD", "NHWC"),
    lambda x: x.reshape(1, 2, 2, 1, 2, 3).transpose(0, 1, 3, 5, 2, 4).reshape(1, 2, 1, 12),
    normal(1, 4, 2, 3),
    light=True,
)

# --- Einstein's sums

for _text, _makers in (
    ("ij,jk->ik", (normal(2, 3), normal(3, 4))),
    ("ii->i", (normal(3, 3),)),
    ("ij", (normal(2, 3),)),
    ("ba,b", (normal(2, 3), normal(2))),
    ("...ij,...jk->...ik", (normal(2, 1, 2, 3), normal(2, 3, 2))),
    ("bi,bj,ijk->bk", (normal(2, 2), normal(2, 3), normal(2, 3, 2))),
    ("ij->", (normal(2, 0),)),
):
    case(
        "einsum" if _text == "ij,jk->ik" else f"einsum.{_text}",
        lambda *x, t=_text: ops.einsum(t, *x),
        lambda *x, t=_text: jnp.einsum(t, *x),
        *_makers,
        light=_text != "ij,jk->ik",
    )

# --- attention


def _attended(q: Any, k: Any, v: Any, allowed: Any = None, bias: Any = None) -> Any:
    scores = jnp.einsum("...td,...sd->...ts", q, k) / jnp.sqrt(q.shape[-1]).astype(q.dtype)
    scores = scores if bias is None else scores + bias
    scores = scores if allowed is None else jnp.where(allowed, scores, -jnp.inf)
    return jax.nn.softmax(scores, -1) @ v


def _near(length: int, before: int, after: int) -> Any:
    apart = jnp.arange(length) - jnp.arange(length)[:, None]
    return (apart >= -before) & (apart <= after)


Q = normal(2, 5, 3)
case("attention", ops.attention, _attended, Q, normal(2, 4, 3), normal(2, 4, 2))
case(
    "attention.mask",
    ops.attention,
    _attended,
    Q,
    normal(2, 4, 3),
    normal(2, 4, 2),
    lambda rng: (rng.random((5, 4)) < 0.5) | (np.arange(4) == 0),
    light=True,
)
case(
    "attention.bias",
    lambda q, k, v, b: ops.attention(q, k, v, b),
    lambda q, k, v, b: _attended(q, k, v, bias=b),
    Q,
    normal(1, 4, 3),
    normal(2, 4, 2),
    normal(5, 1),
    light=True,
)
for _window in ((1, 2), (2, 0), (9, 9)):
    case(
        f"attention.window.{_window}",
        lambda q, k, v, w=_window: ops.attention(q, k, v, window=w),
        lambda q, k, v, w=_window: _attended(q, k, v, _near(5, *w)),
        Q,
        Q,
        normal(2, 5, 2),
        light=_window != (1, 2),
    )
case(
    "attention.window.mask",
    lambda q, k, v, m: ops.attention(q, k, v, m, 1),
    lambda q, k, v, m: _attended(q, k, v, m & _near(5, 1, 1)),
    Q,
    Q,
    normal(2, 5, 2),
    lambda rng: (rng.random((5, 5)) < 0.5) | np.eye(5, dtype=bool),
    light=True,
)

# --- dropout: the mask of a key is that of jax.random

case(
    "dropout",
    lambda x, m: ops.dropout(x, 0.25, mask=m),
    lambda x, m: jnp.where(m, x / 0.75, 0),
    normal(3, 4),
    booleans(3, 4),
    smooth=False,
)
case(
    "dropout.key",
    lambda x, k: ops.dropout(x, 0.25, k),
    lambda x, k: jnp.where(jax.random.bernoulli(jax.random.wrap_key_data(k), 0.75, x.shape), x / 0.75, 0),
    normal(3, 4),
    lambda rng: rng.integers(0, 2**32, 2, dtype=np.uint32),
    smooth=False,
    light=True,
)

# --- normalisation


def _group_norm(x: Any, g: Any, b: Any, groups: int) -> Any:
    z = x.reshape(x.shape[0], groups, -1)
    z = (z - z.mean(-1, keepdims=True)) * lax.rsqrt(z.var(-1, keepdims=True) + 1e-5)
    return z.reshape(x.shape) * g[:, None, None] + b[:, None, None]


case(
    "group_norm",
    lambda x, g, b: ops.group_norm(x, 2, g, b),
    lambda x, g, b: _group_norm(x, g, b, 2),
    normal(2, 4, 3, 1),
    normal(4),
    normal(4),
)
case(
    "group_norm.last",
    lambda x: ops.group_norm(x, 3, axis=-1),
    lambda x: _group_norm(x.transpose(0, 2, 1)[..., None], jnp.ones(3, x.dtype), jnp.zeros(3, x.dtype), 3)[
        ..., 0
    ].transpose(0, 2, 1),
    normal(1, 5, 3),
    light=True,
)

# --- options of the first ones


def _option(name: str, **how: Any) -> Callable[..., Any]:
    return lambda x: getattr(ops, name)(x, axis=1, exclude=True, **how)


for _name, _reference in (
    ("mean", jnp.mean),
    ("prod", jnp.prod),
    ("variance", jnp.var),
    ("std", jnp.std),
    ("logsumexp", jax.nn.logsumexp),
    ("min", jnp.min),
    ("any", jnp.any),
    ("all", jnp.all),
):
    case(
        f"{_name}.exclude",
        _option(_name, keepdims=True),
        lambda x, r=_reference: r(x, axis=(0, 2), keepdims=True),
        booleans(2, 3, 4) if _name in ("any", "all") else distinct(2, 3, 4),
        smooth=False,
        light=True,
    )
for _name in ("argmax", "argmin"):
    case(
        f"{_name}.exclude",
        _option(_name),
        lambda x, n=_name: getattr(jnp, n)(x.transpose(1, 0, 2).reshape(3, -1), 1).astype("int32"),
        C,
        light=True,
    )
for _mode in ("reflect", "symmetric", "edge", "wrap"):
    case(
        f"pad.{_mode}.far",
        lambda x, m=_mode: ops.pad(x, ((5, 4), (0, 2)), m),
        lambda x, m=_mode: jnp.pad(x, ((5, 4), (0, 2)), m),
        normal(3, 1),
        light=True,
    )
case("pad.value", lambda x: ops.pad(x, (1, 0), constant_values=2.5), lambda x: jnp.pad(x, (1, 0), constant_values=2.5), normal(2, 3), light=True)  # fmt: skip
for _mode in ("fill", "clip", "wrap"):
    case(
        f"gather_nd.{_mode}",
        lambda x, i, m=_mode: ops.gather_nd(x, i, m),
        lambda x, i, m=_mode: jnp.take(jnp.take(x, i[0], 0, mode=m), i[1], 1, mode=m)[
            jnp.arange(5), jnp.arange(5)
        ],
        C,
        integers(-5, 5, 2, 5),
        smooth=False,
        light=True,
    )
case(
    "strided_slice.negative",
    lambda x: ops.strided_slice(x, (-1, None), (-6, 0), (-2, -3), axes=(1, 0)),
    lambda x: x[:0:-3, -1:-6:-2],
    normal(5, 7),
    light=True,
)


def _lrn_of_three(x: Any) -> Any:
    total = lax.reduce_window(
        x * x, np.array(0, x.dtype), lax.add, (1, 1, 1, 3), (1, 1, 1, 1), ((0, 0),) * 3 + ((1, 1),)
    )
    return x / (2 + 1e-4 / 3 * total) ** 0.75


case("lrn.even", lambda x: ops.lrn(x, 2, axis=-1), lambda x: x / (2 + 5e-5 * (x**2 + jnp.pad(x, ((0, 0), (1, 0)))[:, :-1] ** 2)) ** 0.75, normal(2, 5), light=True)  # fmt: skip
case("lrn.nhwc", lambda x: ops.lrn(x, 3, axis=3), _lrn_of_three, normal(1, 2, 1, 4), light=True)


case(
    "batch_norm.last",
    lambda x: ops.batch_norm(x, None, None, axis=-1, training=True),
    lambda x: ((x - x.mean((0, 1))) / jnp.sqrt(x.var((0, 1)) + 1e-5), x.mean((0, 1)), x.var((0, 1))),
    C,
    light=True,
)
# ties and kinks


def tied(rng: np.random.Generator) -> np.ndarray:
    return rng.integers(-1, 2, (3, 4)).astype(np.float32)


for _name, _reference in (
    ("max", jnp.max),
    ("min", jnp.min),
    ("relu", jax.nn.relu),
    ("abs", jnp.abs),
    ("relu6", jax.nn.relu6),
    ("leaky_relu", jax.nn.leaky_relu),
    ("elu", jax.nn.elu),
):
    case(
        f"{_name}.tied",
        lambda x, n=_name: getattr(ops, n)(x),
        _reference,
        tied,
        smooth=False,
        light=True,
    )
for _name in ("maximum", "minimum"):
    case(
        f"{_name}.tied",
        getattr(ops, _name),
        getattr(jnp, _name),
        tied,
        tied,
        smooth=False,
        light=True,
    )
case(
    "prod.zeros",
    lambda x: ops.prod(x, 1),
    lambda x: jnp.prod(x, 1),
    lambda rng: np.float32([[1, 0, 3], [0, 0, 2], [2, 3, 4]]),
    light=True,
)
case("clip.bounds", lambda x: ops.clip(x, 0.0, 1.0), lambda x: jnp.clip(x, 0.0, 1.0), lambda rng: np.float32([-1, 0, 0.5, 1, 2]), smooth=False, light=True)  # fmt: skip
case("power.integer", lambda x: ops.power(x, 3), lambda x: x**3, normal(4), light=True)
case("variance.one", lambda x: ops.variance(x, 0), lambda x: jnp.var(x, 0), normal(1, 3), light=True)
case("softmax.one", lambda x: ops.softmax(x, 0), lambda x: jax.nn.softmax(x, 0), positive(1, 3), light=True)
