"""Losses of images, masks, boxes and depths."""

# ruff: noqa: E731
from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from unseen.registry import case, integers, normal, uniform


@case(normal(4, 3, 96, 96), integers(3, 4, 96, 96))
def dice_with_boundary(logits, labels):
    p = jax.nn.softmax(logits, 1)
    t = jax.nn.one_hot(labels, 3, axis=1)
    dice = 1 - (2 * jnp.sum(p * t, (2, 3)) + 1) / (jnp.sum(p, (2, 3)) + jnp.sum(t, (2, 3)) + 1)
    pool = lambda a, op, init: lax.reduce_window(a, init, op, (1, 1, 3, 3), (1, 1, 1, 1), "SAME")
    edge = pool(p, lax.max, -jnp.inf) + pool(-p, lax.max, -jnp.inf)
    wanted = pool(t, lax.max, -jnp.inf) + pool(-t, lax.max, -jnp.inf)
    return jnp.mean(dice) + jnp.mean((edge - wanted) ** 2)


@case(uniform(4, 128, 128, 3), uniform(4, 128, 128, 3))
def laplacian_pyramid(a, b):
    taps = jnp.array([1.0, 4, 6, 4, 1]) / 16

    def blur(x):
        for axis in (1, 2):
            width = [(0, 0)] * 4
            width[axis] = (2, 2)
            p = jnp.pad(x, width, mode="edge")
            n = x.shape[axis]
            x = sum(taps[k] * lax.slice_in_dim(p, k, k + n, axis=axis) for k in range(5))
        return x

    loss = 0.0
    for level in range(3):
        low_a, low_b = blur(a), blur(b)
        loss += 2.0**level * jnp.mean(jnp.abs((a - low_a) - (b - low_b)))
        a, b = low_a[:, ::2, ::2], low_b[:, ::2, ::2]
    return loss + jnp.mean(jnp.abs(a - b))


@case(uniform(4, 96, 128), uniform(4, 96, 128, 3))
def edge_aware_depth(depth, image):
    d = depth / jnp.mean(depth, (1, 2), keepdims=True)
    dx, dy = jnp.abs(d[:, :, 1:] - d[:, :, :-1]), jnp.abs(d[:, 1:] - d[:, :-1])
    ix = jnp.mean(jnp.abs(image[:, :, 1:] - image[:, :, :-1]), -1)
    iy = jnp.mean(jnp.abs(image[:, 1:] - image[:, :-1]), -1)
    return jnp.mean(dx * jnp.exp(-10 * ix)) + jnp.mean(dy * jnp.exp(-10 * iy))


@case(uniform(400, 4), uniform(100, 4))
def box_overlaps(anchors, truth):
    lo, size = anchors[:, :2], anchors[:, 2:]
    tlo, tsize = truth[:, :2], truth[:, 2:]
    hi, thi = lo + size, tlo + tsize
    both = jnp.clip(jnp.minimum(hi[:, None], thi) - jnp.maximum(lo[:, None], tlo), 0)
    inter = both[..., 0] * both[..., 1]
    union = jnp.prod(size, -1)[:, None] + jnp.prod(tsize, -1) - inter
    hull = jnp.maximum(hi[:, None], thi) - jnp.minimum(lo[:, None], tlo)
    area = hull[..., 0] * hull[..., 1]
    giou = inter / union - (area - union) / area
    return jnp.mean(jax.nn.logsumexp(5 * giou, 1))


@case(uniform(2, 64, 80), uniform(2, 64, 80, low=1.0, high=3.0), normal(2, 6, scale=0.02))
def reprojection(image, depth, pose):
    def one(im, z, p):
        h, w = im.shape
        v, u = jnp.meshgrid(jnp.arange(h, dtype="float32"), jnp.arange(w, dtype="float32"), indexing="ij")
        rays = jnp.stack([(u - w / 2) / 60, (v - h / 2) / 60, jnp.ones_like(u)], -1) * z[..., None]
        moved = rays + jnp.cross(jnp.broadcast_to(p[:3], rays.shape), rays) + p[3:]
        x = moved[..., 0] / moved[..., 2] * 60 + w / 2
        y = moved[..., 1] / moved[..., 2] * 60 + h / 2
        back = jax.scipy.ndimage.map_coordinates(im, [y, x], order=1, mode="nearest")
        return jnp.mean(jnp.sqrt((back - im) ** 2 + 1e-4))

    return jnp.mean(jax.vmap(one)(image, depth, pose))


@case(normal(8, 64, 64, 3), normal(192, 96, scale=0.1), normal(64, 96, scale=0.1), normal(96, 192, scale=0.1))
def masked_patches(images, embed, position, decode):
    x = images.reshape(8, 8, 8, 8, 8, 3).transpose(0, 1, 3, 2, 4, 5).reshape(8, 64, 192)
    h = x @ embed + position
    h = (h - h.mean(-1, keepdims=True)) / jnp.sqrt(h.var(-1, keepdims=True) + 1e-6)
    y = jax.nn.gelu(h) @ decode
    mask = (jnp.arange(64) * 7 % 4 != 0)[None, :, None]
    return jnp.sum(mask * (y - x) ** 2) / jnp.sum(mask)


@case(
    normal(4, 64, 64, 16), normal(3, 3, 16, scale=0.3), normal(16, 32, scale=0.2), normal(32, 16, scale=0.2)
)
def inverted_bottleneck(x, depth, up, down):
    y = lax.conv_general_dilated(
        x,
        depth[:, :, None],
        (1, 1),
        "SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=16,
    )
    y = jax.nn.silu(y @ up) @ down
    gate = jax.nn.sigmoid(jnp.mean(y, (1, 2), keepdims=True))
    return jnp.mean((x + gate * y) ** 2)


@case(uniform(4, 80, 80), uniform(4, 80, 80))
def local_correlation(a, b):
    box = lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 9, 9), (1, 1, 1), "VALID") / 81
    ma, mb = box(a), box(b)
    va, vb, cab = box(a * a) - ma**2, box(b * b) - mb**2, box(a * b) - ma * mb
    return -jnp.mean(cab**2 / (va * vb + 1e-4))


@case(normal(2, 24, 32, 16), normal(2, 24, 32, 16))
def cost_volume(left, right):
    shifts = []
    for d in range(12):
        moved = jnp.pad(right, ((0, 0), (0, 0), (d, 0), (0, 0)))[:, :, : right.shape[2]]
        shifts.append(jnp.sum(left * moved, -1))
    p = jax.nn.softmax(jnp.stack(shifts, -1), -1)
    disparity = jnp.sum(p * jnp.arange(12.0), -1)
    return jnp.mean(jnp.abs(disparity - 5.0))


@case(normal(64, 64, 2), uniform(64, 64))
def flow_divergence_warp(flow, mask):
    fx, fy = flow[..., 0], flow[..., 1]
    div = jnp.gradient(fx, axis=1) + jnp.gradient(fy, axis=0)
    curl = jnp.gradient(fy, axis=1) - jnp.gradient(fx, axis=0)
    second = jnp.gradient(jnp.gradient(fx, axis=0), axis=0) + jnp.gradient(jnp.gradient(fy, axis=1), axis=1)
    return jnp.sum(mask * (div**2 + jnp.sqrt(curl**2 + 1e-3))) + jnp.sum(second**2)
