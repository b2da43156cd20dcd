"""Cases of the grid: operators on images, beside lax or NumPy's loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxte import ops
from tests.ops_registry import Make, case, distinct, normal, positive, uniform

IMAGE = normal(1, 2, 5, 4)

# --- convolutions: what the cases of ops_cases_networks leave out


def _pads(padding: Any, nd: int) -> Any:
    if isinstance(padding, str):
        return padding
    return (
        [(p, p) if isinstance(p, int) else p for p in np.broadcast_to(padding, nd).tolist()]
        if isinstance(padding, int)
        else [(p, p) if isinstance(p, int) else tuple(p) for p in padding]
    )


def transposed(
    layout: str, strides: Any, padding: Any, more: Any, dilation: int, groups: int
) -> Callable[..., Any]:
    """The gradient of lax's convolution in its image, at an image of zeros."""

    def reference(x: Any, w: Any) -> Any:
        first = layout == "NCHW"
        kernel = "OIHW" if first else "HWIO"
        taps = w.shape[2:] if first else w.shape[:2]
        spatial = x.shape[2:] if first else x.shape[1:3]
        spans = [(t - 1) * dilation + 1 for t in taps]
        if padding == "SAME":
            sizes = [e * s for e, s in zip(spatial, strides, strict=True)]
        else:
            sizes = [
                (e - 1) * s - sum(p) + span + m
                for e, s, p, span, m in zip(spatial, strides, _pads(padding, 2), spans, more, strict=True)
            ]
        channels = (w.shape[1] if first else w.shape[2]) * groups
        shape = (x.shape[0], channels, *sizes) if first else (x.shape[0], *sizes, channels)

        def forward(image: Any) -> Any:
            return lax.conv_general_dilated(
                image,
                w,
                strides,
                _pads(padding, 2),
                rhs_dilation=(dilation, dilation),
                feature_group_count=groups,
                dimension_numbers=(layout, kernel, layout),
            )

        return jax.linear_transpose(forward, jax.ShapeDtypeStruct(shape, x.dtype))(x)[0]

    return reference


def transposed_case(
    label: str,
    x: Make,
    w: Make,
    strides: Sequence[int] = (1, 1),
    padding: Any = 0,
    more: Sequence[int] = (0, 0),
    dilation: int = 1,
    groups: int = 1,
    layout: str = "NCHW",
    light: bool = True,
) -> None:
    case(
        f"conv2d_transpose{label}",
        lambda x, w: ops.conv2d_transpose(x, w, strides, padding, more, dilation, groups, layout),
        transposed(layout, strides, padding, more, dilation, groups),
        x,
        w,
        light=light,
    )


X, W = normal(1, 2, 3, 4), normal(2, 3, 3, 2)
transposed_case("", X, W, light=False)
transposed_case(".stride", X, W, (2, 3), ((1, 0), (0, 1)), (1, 0))
transposed_case(".same", X, W, (2, 2), "SAME")
transposed_case(".far", X, W, (4, 3), 0, (3, 1))
transposed_case(".dilation", X, W, (2, 1), 1, dilation=2)
transposed_case(".groups", X, normal(2, 1, 2, 3), (2, 2), 1, groups=2)
transposed_case(".nhwc", normal(1, 3, 4, 2), normal(3, 2, 3, 2), (2, 2), ((1, 0), (0, 0)), layout="NHWC")
transposed_case(".empty", normal(0, 2, 3, 4), W)


def _conv(padding: Any, layout: str = "NCHW", strides: Any = (1, 1), groups: int = 1) -> Callable[..., Any]:
    return lambda x, w: lax.conv_general_dilated(
        x,
        w,
        strides,
        _pads(padding, 2),
        feature_group_count=groups,
        dimension_numbers=(layout, "OIHW" if layout == "NCHW" else "HWIO", layout),
    )


for _tag, _x, _w, _how in (
    ("nhwc.stride", normal(1, 5, 6, 2), normal(3, 2, 2, 3), dict(strides=(3, 2), padding=((2, 0), (0, 1)))),
    ("nhwc.groups", normal(1, 4, 4, 4), normal(2, 2, 2, 4), dict(padding="SAME", groups=2)),
):
    case(
        f"conv2d.{_tag}",
        lambda x, w, how=_how: ops.conv2d(x, w, layout="NHWC", **how),
        _conv(layout="NHWC", **_how),
        _x,
        _w,
        light=True,
    )
for _tag, _x in (("one", normal(1, 1, 1, 1)), ("empty", normal(0, 1, 3, 3))):
    case(f"conv2d.{_tag}", lambda x, w: ops.conv2d(x, w), _conv(0), _x, normal(2, 1, 1, 1), light=True)
case(
    "depthwise_conv2d.nhwc",
    lambda x, w: ops.depthwise_conv2d(x, w, 2, ((0, 1), (1, 0)), layout="NHWC"),
    _conv(((0, 1), (1, 0)), "NHWC", (2, 2), 3),
    normal(1, 5, 4, 3),
    normal(3, 2, 1, 3),
    light=True,
)

# --- Winograd


def _three_by_three(tile: int, label: str, image: Make, padding: Any) -> None:
    def run(x: Any, w: Any) -> Any:
        u = ops.conv2d_winograd_weight_transform(w, tile)
        return ops.conv2d_winograd_without_weight_transform(x, u, tile, padding)

    name = f"conv2d_winograd_without_weight_transform.{tile}{label}"
    case(name, run, _conv(padding), image, normal(2, 2, 3, 3), light=bool(label))


_three_by_three(2, "", normal(1, 2, 4, 4), 0)
_three_by_three(2, ".padded", normal(1, 2, 3, 4), ((1, 0), (0, 2)))
_three_by_three(4, ".same", normal(1, 2, 5, 6), "SAME")


def _winograd_weights(w: Any) -> Any:
    g = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]]).astype(w.dtype)
    return jnp.einsum("ap,bq,ocpq->aboc", g, g, w)


case(
    "conv2d_winograd_weight_transform",
    lambda w: ops.conv2d_winograd_weight_transform(w, 2),
    _winograd_weights,
    normal(2, 1, 3, 3),
)

# --- pooling: layouts, dilation, asymmetric padding, ceil_mode


def _pool(
    x: Any, op: Any, start: float, layout: str, size: Any, stride: Any, pads: Any, dilation: int = 1
) -> Any:
    def full(spatial: Any, other: Any) -> tuple[Any, ...]:
        return (other, other, *spatial) if layout == "NCHW" else (other, *spatial, other)

    return lax.reduce_window(
        x,
        np.array(start, x.dtype),
        op,
        full(size, 1),
        full(stride, 1),
        full(pads, (0, 0)),
        window_dilation=full((dilation, dilation), 1),
    )


def _counted(x: Any, layout: str, size: Any, stride: Any, pads: Any, dilation: int, counted: Any) -> Any:
    """Sums over the number of elements within ``counted`` around the image."""
    total = _pool(x, lax.add, 0.0, layout, size, stride, pads, dilation)
    own = ((0, 0), (0, 0), *counted) if layout == "NCHW" else ((0, 0), *counted, (0, 0))
    ones = jnp.pad(jnp.ones(x.shape), own, constant_values=1)
    rest = [(p[0] - c[0], p[1] - c[1]) for p, c in zip(pads, counted, strict=True)]
    return total / _pool(ones, lax.add, 0.0, layout, size, stride, rest, dilation).astype(x.dtype)


NHWC = distinct(1, 5, 6, 2)
case(
    "max_pool2d.nhwc",
    lambda x: ops.max_pool2d(x, (3, 2), (2, 3), ((1, 0), (0, 1)), layout="NHWC"),
    lambda x: _pool(x, lax.max, -np.inf, "NHWC", (3, 2), (2, 3), ((1, 0), (0, 1))),
    NHWC,
    smooth=False,
    light=True,
)
case(
    "max_pool2d.same",
    lambda x: ops.max_pool2d(x, 2, 2, "SAME"),
    lambda x: _pool(x, lax.max, -np.inf, "NCHW", (2, 2), (2, 2), ((0, 1), (0, 0))),
    distinct(1, 1, 5, 4),
    smooth=False,
    light=True,
)
case(
    "max_pool2d.ceil.dilation",
    lambda x: ops.max_pool2d(x, 2, 3, 0, ceil_mode=True, dilation=2),
    # lax has no gradient of dilated windows
    lambda x: jnp.stack(
        [
            jnp.pad(x, ((0, 0), (0, 0), (0, 1), (0, 0)), constant_values=-np.inf)[
                :, :, p : p + 4 : 3, q : q + 4 : 3
            ]
            for p in (0, 2)
            for q in (0, 2)
        ]
    ).max(0),
    distinct(1, 1, 5, 6),
    smooth=False,
    light=True,
)
case(
    "avg_pool2d.nhwc",
    lambda x: ops.avg_pool2d(x, (3, 2), 2, ((1, 0), (0, 1)), layout="NHWC"),
    lambda x: _pool(x, lax.add, 0.0, "NHWC", (3, 2), (2, 2), ((1, 0), (0, 1))) / 6,
    NHWC,
    light=True,
)
for _inside in (True, False):
    case(
        f"avg_pool2d.ceil.{_inside}",
        lambda x, inside=_inside: ops.avg_pool2d(x, 2, 3, 1, inside, ceil_mode=True, dilation=2),
        lambda x, inside=_inside: _counted(
            x, "NCHW", (2, 2), (3, 3), ((1, 1), (1, 2)), 2, ((1, 1), (1, 1)) if inside else ((0, 0), (0, 0))
        ),
        distinct(1, 1, 4, 6),
        light=True,
    )
case(
    "avg_pool2d.empty",
    lambda x: ops.avg_pool2d(x, 2),
    lambda x: x[:, :, :1, :1],
    normal(0, 2, 3, 2),
    light=True,
)
case(
    "global_avg_pool2d.nhwc",
    lambda x: ops.global_avg_pool2d(x, "NHWC"),
    lambda x: x.mean((1, 2), keepdims=True),
    NHWC,
    light=True,
)
case(
    "global_max_pool2d.nhwc",
    lambda x: ops.global_max_pool2d(x, "NHWC"),
    lambda x: x.max((1, 2), keepdims=True),
    NHWC,
    smooth=False,
    light=True,
)

# --- resize


def _taps(old: int, new: int, method: str, align: str) -> np.ndarray:
    """The matrix of a resize along one axis, one row for each new element, in Python's fractions and floats."""
    rows = np.zeros((new, old))
    for i in range(new):
        at = {
            "half_pixel": (i + 0.5) * old / new - 0.5,
            "align_corners": i * (old - 1) / max(new - 1, 1),
            "asymmetric": i * old / new,
        }[align]
        if method == "nearest":
            shift = {"half_pixel": 0.5, "align_corners": 0.5, "asymmetric": 0.0}[align]
            rows[i, min(max(int(np.floor(at + shift + 1e-9)), 0), old - 1)] = 1
            continue
        low = int(np.floor(at + 1e-9))
        for tap in range(-1, 3):
            d = abs(at - low - tap)
            if method == "bilinear":
                rows[i, min(max(low + tap, 0), old - 1)] += max(1 - d, 0)
            elif 0 <= low + tap < old:
                rows[i, low + tap] += (
                    (1.5 * d - 2.5) * d * d + 1 if d <= 1 else ((-0.5 * d + 2.5) * d - 4) * d + 2
                )
        rows[i] /= rows[i].sum()
    return rows


def _resized(x: Any, size: Any, method: str, align: str) -> Any:
    rows, columns = (
        jnp.asarray(_taps(old, new, method, align), x.dtype)
        for old, new in zip(x.shape[2:], size, strict=True)
    )
    return jnp.einsum("ai,bj,ncij->ncab", rows, columns, x, precision="highest")


for _method in ("nearest", "bilinear", "bicubic"):
    for _align in ("half_pixel", "align_corners", "asymmetric"):
        case(
            f"resize.{_method}.{_align}",
            lambda x, m=_method, a=_align: ops.resize(x, (7, 3), m, a),
            lambda x, m=_method, a=_align: _resized(x, (7, 3), m, a),
            normal(1, 1, 3, 5),
            light=(_method, _align) != ("bilinear", "half_pixel"),
        )
for _method in ("nearest", "bilinear", "cubic"):
    case(
        f"resize.jax.{_method}",
        lambda x, m=_method: ops.resize(x, (4, 6), m.replace("cubic", "bicubic"), layout="NHWC"),
        lambda x, m=_method: jax.image.resize(x, (1, 4, 6, 2), m, antialias=False),
        normal(1, 2, 3, 2),
        light=True,
    )
case(
    "resize.one",
    lambda x: ops.resize(x, 1),
    lambda x: x.mean((2, 3), keepdims=True),
    normal(1, 1, 2, 2),
    light=True,
)
case(
    "resize.from_one",
    lambda x: ops.resize(x, (3, 2), "bicubic", "align_corners"),
    lambda x: jnp.broadcast_to(x, (2, 1, 3, 2)),
    normal(2, 1, 1, 1),
    light=True,
)
case(
    "upsampling.bilinear",
    lambda x: ops.upsampling(x, (2, 3), method="bilinear"),
    lambda x: jax.image.resize(x, (1, 1, 4, 9), "bilinear"),
    normal(1, 1, 2, 3),
    light=True,
)
case(
    "upsampling.nhwc",
    lambda x: ops.upsampling(x, 2, "NHWC"),
    lambda x: jnp.repeat(jnp.repeat(x, 2, 1), 2, 2),
    normal(1, 2, 3, 2),
    light=True,
)

# --- patches


def _patches(x: Any, size: Any, stride: Any, padding: Any, dilation: int) -> Any:
    found = lax.conv_general_dilated_patches(x, size, stride, padding, rhs_dilation=(dilation, dilation))
    return found.reshape(*found.shape[:2], -1)


def _folded(x: Any, channels: int, image: Any, *how: Any) -> Any:
    struct = jax.ShapeDtypeStruct((x.shape[0], channels, *image), x.dtype)
    return jax.linear_transpose(lambda i: _patches(i, *how), struct)(x)[0]


case("unfold", lambda x: ops.unfold(x, 2), lambda x: _patches(x, (2, 2), (1, 1), "VALID", 1), IMAGE)
case(
    "unfold.stride",
    lambda x: ops.unfold(x, (2, 3), (2, 1), ((1, 0), (0, 2)), 2),
    lambda x: _patches(x, (2, 3), (2, 1), ((1, 0), (0, 2)), 2),
    IMAGE,
    light=True,
)
case(
    "fold",
    lambda x: ops.fold(x, (5, 4), 2, 2, ((1, 0), (0, 0))),
    lambda x: _folded(x, 2, (5, 4), (2, 2), (2, 2), ((1, 0), (0, 0)), 1),
    normal(1, 8, 6),
)
case(
    "fold.dilation",
    lambda x: ops.fold(x, (5, 4), (2, 3), (3, 1), 1, (2, 1)),
    lambda x: jax.linear_transpose(
        lambda i: lax.conv_general_dilated_patches(
            i, (2, 3), (3, 1), ((1, 1), (1, 1)), rhs_dilation=(2, 1)
        ).reshape(1, 6, 8),
        jax.ShapeDtypeStruct((1, 1, 5, 4), x.dtype),
    )(x)[0],
    normal(1, 6, 8),
    light=True,
)

# --- at places that are data


def _at(x: Any, row: Any, column: Any, border: bool) -> Any:
    """Four clipped reads of each image, weighted, and zeros outside by weight."""
    height, width = x.shape[2:]
    if border:
        row, column = jnp.clip(row, 0, height - 1), jnp.clip(column, 0, width - 1)
    top, left = jnp.floor(row), jnp.floor(column)
    total: Any = 0
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


def _grid(x: Any, grid: Any, border: bool = False, corners: bool = False) -> Any:
    height, width = x.shape[2:]
    column, row = grid[..., 0], grid[..., 1]
    if corners:
        return _at(x, (row + 1) * (height - 1) / 2, (column + 1) * (width - 1) / 2, border)
    return _at(x, ((row + 1) * height - 1) / 2, ((column + 1) * width - 1) / 2, border)


SMALL, GRID = normal(1, 2, 3, 4), uniform(-1.4, 1.4, 1, 2, 3, 2)
case("grid_sample", ops.grid_sample, _grid, SMALL, GRID)
case(
    "grid_sample.border",
    lambda x, g: ops.grid_sample(x, g, "bilinear", "border", True),
    lambda x, g: _grid(x, g, True, True),
    SMALL,
    GRID,
    light=True,
)
case(
    "grid_sample.nearest",
    lambda x, g: ops.grid_sample(x, g, "nearest"),
    lambda x, g: _grid(
        x,
        (2 * jnp.round(((g + 1) * jnp.asarray((4, 3), g.dtype) - 1) / 2) + 1) / jnp.asarray((4, 3), g.dtype)
        - 1,
    ),
    SMALL,
    GRID,
    smooth=False,
    light=True,
)
case(
    "bilinear",
    ops.bilinear,
    lambda x, p: _at(x, p[..., 0], p[..., 1], False),
    SMALL,
    uniform(-0.9, 3.4, 1, 2, 2, 2),
    light=True,
)


def _warped(x: Any, flow: Any) -> Any:
    i, j = (jnp.arange(e, dtype=flow.dtype) for e in x.shape[2:])
    return _at(x, i[:, None] + flow[:, 0], j + flow[:, 1], False)


case("warp", ops.warp, _warped, SMALL, normal(1, 2, 3, 4), light=True)

# --- one image beside another


def _shifted(b: Any, y: int, z: int) -> Any:
    """``b[..., i + y, j + z]``, 0 outside."""
    h, w = b.shape[2:]
    wide = jnp.pad(b, ((0, 0), (0, 0), (h, h), (w, w)))
    y, z = min(max(y, -h), h), min(max(z, -w), w)
    return wide[:, :, h + y : 2 * h + y, w + z : 2 * w + z]


def _correlation(a: Any, b: Any, reach: int, step: int) -> Any:
    shifts = [(step * p, step * q) for p in range(-reach, reach + 1) for q in range(-reach, reach + 1)]
    return jnp.stack([(a * _shifted(b, *s)).mean(1) for s in shifts], 1)


case(
    "correlation",
    lambda a, b: ops.correlation(a, b, 1),
    lambda a, b: _correlation(a, b, 1, 1),
    normal(1, 2, 3, 4),
    normal(1, 2, 3, 4),
)
case(
    "correlation.stride",
    lambda a, b: ops.correlation(a, b, 1, 2),
    lambda a, b: _correlation(a, b, 1, 2),
    normal(1, 3, 1, 5),
    normal(1, 3, 1, 5),
    light=True,
)
case(
    "cost_volume",
    lambda a, b: ops.cost_volume(a, b, 3),
    lambda a, b: jnp.stack([(a * _shifted(b, 0, -d)).mean(1) for d in range(3)], 1),
    normal(1, 2, 2, 4),
    normal(1, 2, 2, 4),
)

# --- boxes


def _prior(x: Any) -> Any:
    h, w = x.shape[2:]
    rows = []
    for i in range(h):
        for j in range(w):
            for size, ratio in ((0.4, 1), (0.8, 1), (0.4, 2), (0.4, 0.5)):
                wide, high = size * h / w * ratio**0.5 / 2, size / ratio**0.5 / 2
                x0, y0 = (j + 0.5) / w, (i + 0.5) / h
                rows.append([x0 - wide, y0 - high, x0 + wide, y0 + high])
    return jnp.clip(jnp.asarray([rows], x.dtype), 0, 1)


case(
    "multibox_prior",
    lambda x: ops.multibox_prior(x, (0.4, 0.8), (1, 2, 0.5), clip=True),
    _prior,
    normal(1, 2, 2, 3),
    smooth=False,
)


def _anchors(rng: np.random.Generator) -> np.ndarray:
    low = rng.uniform(0.2, 0.4, (1, 3, 2))
    return np.concatenate([low, low + rng.uniform(0.1, 0.3, (1, 3, 2))], 2).astype(np.float32)


def _decoded(cls: Any, loc: Any, anchor: Any) -> Any:
    loc = loc.reshape(loc.shape[0], -1, 4)
    size, centre = anchor[..., 2:] - anchor[..., :2], (anchor[..., 2:] + anchor[..., :2]) / 2
    middle = loc[..., :2] * 0.1 * size + centre
    half = jnp.exp(loc[..., 2:] * 0.2) * size / 2
    scores = cls[:, 1:]
    best = jnp.where(scores.max(1) > 0.9, jnp.argmax(scores, 1).astype(loc.dtype), -1)
    parts = [best[..., None], scores.max(1)[..., None], middle - half, middle + half]
    return jnp.concatenate([parts[0], parts[1], jnp.clip(jnp.concatenate(parts[2:], -1), 0, 1)], -1)


case(
    "multibox_transform_loc",
    lambda c, loc, a: ops.multibox_transform_loc(c, loc, a, threshold=0.9),
    _decoded,
    positive(2, 3, 3),
    normal(2, 12),
    _anchors,
    smooth=False,
)


def _boxes(rng: np.random.Generator) -> np.ndarray:
    low = rng.uniform(0, 1, (6, 2))
    return np.concatenate([low, low + rng.uniform(0.3, 1, (6, 2))], 1).astype(np.float32)


def _kept(boxes: Any, scores: Any) -> Any:
    """Greedy suppression in NumPy, at run time; the survivors by indexing."""

    def loop(boxes: np.ndarray, scores: np.ndarray) -> np.ndarray:
        boxes, kept = np.asarray(boxes, np.float64), []
        for i in np.argsort(-np.asarray(scores, np.float64), kind="stable"):
            if all(_iou(boxes[i], boxes[j]) <= 0.3 for j in kept) and scores[i] > 0.6:
                kept.append(int(i))
        return np.array((kept + [-1] * 4)[:4], np.int32)

    at = jax.pure_callback(
        loop,
        jax.ShapeDtypeStruct((4,), "int32"),
        lax.stop_gradient(boxes),
        lax.stop_gradient(scores),
        vmap_method="sequential",
    )
    return at, jnp.where(at[:, None] >= 0, boxes[at], -1), jnp.where(at >= 0, scores[at], -1)


def _iou(a: np.ndarray, b: np.ndarray) -> float:
    both = np.prod(np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0))
    return float(both / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - both))


case("nms", lambda b, s: ops.nms(b, s, 0.3, 0.6, 4), _kept, _boxes, positive(6), smooth=False)
