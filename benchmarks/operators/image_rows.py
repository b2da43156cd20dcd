"""Rows of the levels 2 and 5: images."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from harness.inputs import Input, normal, uniform
from jaxte import ops
from operators.row import row

IMAGE = normal(8, 32, 28, 28)
LAYOUT = ("NCHW", "OIHW", "NCHW")


def conv(strides=(1, 1), padding="SAME", dilation=1, groups=1, layout=LAYOUT):
    return lambda x, w: lax.conv_general_dilated(
        x,
        w,
        strides,
        padding,
        rhs_dilation=(dilation,) * len(strides),
        feature_group_count=groups,
        dimension_numbers=layout,
    )


row("2", "conv2d", lambda x, w: ops.conv2d(x, w, padding="SAME"), conv(), IMAGE, normal(32, 32, 3, 3))
row("2", "conv2d.stride", lambda x, w: ops.conv2d(x, w, 2, "SAME"), conv((2, 2)), IMAGE, normal(32, 32, 3, 3))
row(
    "2",
    "conv2d.nhwc",
    lambda x, w: ops.conv2d(x, w, 1, ((2, 0), (0, 1)), layout="NHWC"),
    conv((1, 1), ((2, 0), (0, 1)), layout=("NHWC", "HWIO", "NHWC")),
    normal(8, 28, 28, 32),
    normal(3, 3, 32, 32),
)
row(
    "2",
    "conv2d.dilation",
    lambda x, w: ops.conv2d(x, w, 1, "SAME", 2),
    conv(dilation=2),
    IMAGE,
    normal(32, 32, 3, 3),
)
row(
    "2",
    "conv2d.groups",
    lambda x, w: ops.conv2d(x, w, 1, "SAME", groups=8),
    conv(groups=8),
    IMAGE,
    normal(32, 4, 3, 3),
    target=3.0,
)
row(
    "2",
    "depthwise_conv2d",
    lambda x, w: ops.depthwise_conv2d(x, w, 1, "SAME"),
    conv(groups=32),
    IMAGE,
    normal(32, 1, 3, 3),
    target=3.0,
)
row(
    "2",
    "depthwise_conv2d.stride",
    lambda x, w: ops.depthwise_conv2d(x, w, 2, "SAME"),
    conv((2, 2), groups=32),
    IMAGE,
    normal(32, 1, 3, 3),
    target=3.0,
)
row(
    "2",
    "conv1d",
    lambda x, w: ops.conv1d(x, w, 1, "SAME"),
    conv((1,), layout=("NCH", "OIH", "NCH")),
    normal(8, 32, 512),
    normal(32, 32, 7),
)
row(
    "2",
    "conv3d",
    lambda x, w: ops.conv3d(x, w, 1, "SAME"),
    conv((1, 1, 1), layout=("NCDHW", "OIDHW", "NCDHW")),
    normal(1, 8, 8, 14, 14),
    normal(8, 8, 3, 3, 3),
)
row(
    "2",
    "conv2d_transpose",
    lambda x, w: ops.conv2d_transpose(x, w, 2, "SAME"),
    lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=LAYOUT, transpose_kernel=True),
    normal(4, 32, 14, 14),
    normal(32, 32, 4, 4),
)
row("2", "dense", ops.dense, lambda x, w, b: x @ w.T + b, normal(256, 512), normal(256, 512), normal(256))


def pool(op, start, size, stride, pads=(0, 0)):
    own = ((0, 0), (0, 0), pads, pads)
    return lambda x: lax.reduce_window(x, start, op, (1, 1, size, size), (1, 1, stride, stride), own)


def mean_inside(x):
    add = pool(lax.add, 0.0, 3, 2, (1, 1))
    return add(x) / add(jnp.ones((1, 1, 28, 28)))


row("2", "max_pool2d", lambda x: ops.max_pool2d(x, 2), pool(lax.max, -np.inf, 2, 2), IMAGE, target=3.0)
row(
    "2",
    "max_pool2d.overlapping",
    lambda x: ops.max_pool2d(x, 3, 2, 1),
    pool(lax.max, -np.inf, 3, 2, (1, 1)),
    IMAGE,
    target=3.0,
)
row(
    "2",
    "max_pool2d.ceil_mode",
    lambda x: ops.max_pool2d(x, 3, 2, ceil_mode=True),
    pool(lax.max, -np.inf, 3, 2, (0, 1)),
    IMAGE,
    target=3.0,
)
row(
    "2",
    "avg_pool2d",
    lambda x: ops.avg_pool2d(x, 2),
    lambda x: pool(lax.add, 0.0, 2, 2)(x) / 4,
    IMAGE,
    target=3.0,
)
row(
    "2", "avg_pool2d.overlapping", lambda x: ops.avg_pool2d(x, 3, 2, 1, False), mean_inside, IMAGE, target=3.0
)
row(
    "2",
    "avg_pool2d.blur",
    lambda x: ops.avg_pool2d(x, 5, 1, 2),
    lambda x: pool(lax.add, 0.0, 5, 1, (2, 2))(x) / 25,
    IMAGE,
    target=3.0,
)
row("2", "global_max_pool2d", ops.global_max_pool2d, pool(lax.max, -np.inf, 28, 28), IMAGE)
row("2", "global_avg_pool2d", ops.global_avg_pool2d, lambda x: x.mean((2, 3), keepdims=True), IMAGE)


def resized(h, w, method):
    return lambda x: jax.image.resize(x, (*x.shape[:2], h, w), method, antialias=False)


SMALL = normal(4, 16, 28, 28)
row("2", "upsampling", lambda x: ops.upsampling(x, 2), resized(56, 56, "nearest"), SMALL, target=3.0)
row(
    "2",
    "upsampling.bilinear",
    lambda x: ops.upsampling(x, 2, method="bilinear"),
    resized(56, 56, "bilinear"),
    SMALL,
    target=3.0,
)
row("2", "flatten", ops.flatten, lambda x: x.reshape(8, -1), IMAGE)
row("2", "batch_flatten", ops.batch_flatten, lambda x: x.reshape(8, -1), IMAGE)
WIDTHS = ((0, 0), (0, 0), (2, 3), (1, 4))
for _mode in ("constant", "edge", "reflect", "symmetric", "wrap"):
    row(
        "2",
        "pad" if _mode == "constant" else f"pad.{_mode}",
        lambda x, m=_mode: ops.pad(x, WIDTHS, m),
        lambda x, m=_mode: jnp.pad(x, WIDTHS, m),
        IMAGE,
    )


def _lrn(x):
    total = lax.reduce_window(
        x * x, 0.0, lax.add, (1, 5, 1, 1), (1, 1, 1, 1), ((0, 0), (2, 2), (0, 0), (0, 0))
    )
    return x / (2.0 + 1e-4 / 5 * total) ** 0.75


row("2", "lrn", ops.lrn, _lrn, IMAGE, target=3.0)
row(
    "2",
    "l2_normalize",
    lambda x: ops.l2_normalize(x, 1),
    lambda x: x * lax.rsqrt(jnp.maximum((x * x).sum(1, keepdims=True), 1e-12)),
    IMAGE,
)

# --- Winograd

G = np.array(
    [
        [1 / 4, 0, 0],
        [-1 / 6, -1 / 6, -1 / 6],
        [-1 / 6, 1 / 6, -1 / 6],
        [1 / 24, 1 / 12, 1 / 6],
        [1 / 24, -1 / 12, 1 / 6],
        [0, 0, 1],
    ],
    "float32",
)
BT = np.array(
    [
        [4, 0, -5, 0, 1, 0],
        [0, -4, -4, 1, 1, 0],
        [0, 4, -4, -1, 1, 0],
        [0, -2, -1, 2, 1, 0],
        [0, 2, -1, -2, 1, 0],
        [0, 4, 0, -5, 0, 1],
    ],
    "float32",
)
AT = np.array([[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]], "float32")


def _winograd(x, u):
    """Tiles by two gathers of rows and columns, three products with constant matrices, one for each place in a tile."""
    n, _, h, w = x.shape
    x = jnp.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    rows, columns = (np.arange(0, e, 4)[:, None] + np.arange(6) for e in (h, w))
    tiles = x[:, :, rows][:, :, :, :, columns]
    seen = jnp.einsum("ap,bq,ncipjq->abcnij", BT, BT, tiles)
    product = jnp.einsum("aboc,abcnij->abonij", u, seen)
    return jnp.einsum("pa,qb,abonij->noipjq", AT, AT, product).reshape(n, -1, h, w)


row(
    "2",
    "conv2d_winograd_weight_transform",
    ops.conv2d_winograd_weight_transform,
    lambda w: jnp.einsum("ap,bq,ocpq->aboc", G, G, w),
    normal(64, 64, 3, 3),
)
row(
    "2",
    "conv2d_winograd_without_weight_transform",
    lambda x, u: ops.conv2d_winograd_without_weight_transform(x, u, 4, 1),
    _winograd,
    normal(4, 32, 28, 28),
    normal(6, 6, 32, 32),
)

# --- level 5

row("5", "resize", lambda x: ops.resize(x, (56, 56)), resized(56, 56, "bilinear"), SMALL, target=3.0)
row(
    "5",
    "resize.nearest",
    lambda x: ops.resize(x, (42, 56), "nearest"),
    resized(42, 56, "nearest"),
    SMALL,
    target=3.0,
)
row(
    "5",
    "resize.bicubic",
    lambda x: ops.resize(x, (56, 56), "bicubic"),
    resized(56, 56, "cubic"),
    SMALL,
    target=3.0,
    note="the products with two small matrices that JAX makes of it take 0.1 ms at this size; four taps for each parity are no less work",
)
row(
    "5",
    "resize.larger",
    lambda x: ops.resize(x, (224, 224)),
    resized(224, 224, "bilinear"),
    normal(1, 16, 112, 112),
    target=3.0,
)
row("5", "resize.smaller", lambda x: ops.resize(x, (21, 17)), resized(21, 17, "bilinear"), SMALL, target=3.0)


def _prior(x):
    h, w = x.shape[2:]
    halves = [(s * h / w * r**0.5 / 2, s / r**0.5 / 2) for s, r in ((0.2, 1), (0.4, 1), (0.2, 2), (0.2, 0.5))]
    y, x = (jnp.arange(h) + 0.5) / h, (jnp.arange(w) + 0.5) / w
    wide, high = (jnp.asarray(v, "float32") for v in zip(*halves, strict=True))
    y, x = jnp.broadcast_arrays(y[:, None, None], x[None, :, None] + 0 * wide)
    return jnp.stack([x - wide, y - high, x + wide, y + high], -1).reshape(1, -1, 4)


row(
    "5",
    "multibox_prior",
    lambda x: ops.multibox_prior(x, (0.2, 0.4), (1, 2, 0.5)),
    _prior,
    normal(1, 8, 38, 38),
)


def _anchors(rng):
    low = rng.uniform(0.1, 0.5, (1, 1444, 2))
    return np.concatenate([low, low + rng.uniform(0.1, 0.4, (1, 1444, 2))], 2).astype("float32")


def _decoded(cls, loc, anchor):
    loc = loc.reshape(loc.shape[0], -1, 4)
    size, centre = anchor[..., 2:] - anchor[..., :2], (anchor[..., 2:] + anchor[..., :2]) / 2
    middle, half = loc[..., :2] * 0.1 * size + centre, jnp.exp(loc[..., 2:] * 0.2) * size / 2
    score = cls[:, 1:].max(1)
    best = jnp.where(score > 0.01, jnp.argmax(cls[:, 1:], 1).astype("float32"), -1)
    corners = jnp.clip(jnp.concatenate([middle - half, middle + half], -1), 0, 1)
    return jnp.concatenate([best[..., None], score[..., None], corners], -1)


row(
    "5",
    "multibox_transform_loc",
    ops.multibox_transform_loc,
    _decoded,
    uniform(4, 21, 1444),
    normal(4, 5776),
    Input(_anchors),
)


def _boxes(rng):
    low = rng.uniform(0, 1, (200, 2))
    return np.concatenate([low, low + rng.uniform(0.05, 0.3, (200, 2))], 1).astype("float32")


def _nms(boxes, scores):
    """The same loop over boxes by falling score, on rows of overlaps computed in it."""
    fixed, order = lax.stop_gradient(boxes), jnp.argsort(-scores, stable=True)
    area = jnp.prod(fixed[:, 2:] - fixed[:, :2], 1)

    def step(n, state):
        kept, alive, count = state
        i = order[n]
        low, high = jnp.maximum(fixed[i, :2], fixed[:, :2]), jnp.minimum(fixed[i, 2:], fixed[:, 2:])
        both = jnp.prod(jnp.maximum(high - low, 0), 1)
        over = both > 0.5 * (area[i] + area - both)
        kept = jnp.where(alive[i] & (jnp.arange(len(kept)) == count), i.astype("int32"), kept)
        return kept, jnp.where(alive[i], alive & ~over, alive), count + alive[i]

    start = jnp.full(len(scores), -1, "int32"), jnp.ones(len(scores), bool), 0
    kept = lax.fori_loop(0, len(scores), step, start)[0]
    return kept, jnp.where(kept[:, None] >= 0, boxes[kept], -1), jnp.where(kept >= 0, scores[kept], -1)


row("5", "nms", lambda b, s: ops.nms(b, s)[1:], lambda b, s: _nms(b, s)[1:], Input(_boxes), uniform(200))
