"""Functions of images in jax.image and by hand."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from raised.registry import example


@example("image", (8, 64, 64, 16))
def resize_nearest(x):
    return jax.image.resize(x, (8, 128, 128, 16), "nearest")


@example("image", (4, 64, 64, 8))
def resize_bilinear(x):
    return jax.image.resize(x, (4, 128, 128, 8), "bilinear")


@example("image", (8, 96, 96, 16))
def upsample_repeat(x):
    return x.repeat(2, axis=1).repeat(2, axis=2)


@example("image", (8, 64, 64, 32))
def space_to_depth(x):
    n, h, w, c = x.shape
    x = x.reshape(n, h // 2, 2, w // 2, 2, c)
    return x.transpose(0, 1, 3, 2, 4, 5).reshape(n, h // 2, w // 2, 4 * c)


@example("image", (8, 32, 32, 64))
def pixel_shuffle(x):
    n, h, w, c = x.shape
    x = x.reshape(n, h, w, 2, 2, c // 4)
    return x.transpose(0, 1, 3, 2, 4, 5).reshape(n, 2 * h, 2 * w, c // 4)


@example("image", (8, 96, 96, 3), (768, 64))
def patches(x, w):
    n = x.shape[0]
    x = x.reshape(n, 6, 16, 6, 16, 3).transpose(0, 1, 3, 2, 4, 5).reshape(n, 36, 768)
    return x @ w


@example("image", (256, 256), (1024, 2))
def map_coordinates(x, c):
    return jax.scipy.ndimage.map_coordinates(x, (100 * jnp.abs(c)).T, order=1, mode="nearest")


@example("image", (8, 128, 128, 8))
def flip_and_crop(x):
    return x[:, 16:-16, 16:-16][:, ::-1, :, :] * x[:, 8:-24, 24:-8]


@example("image", (4, 128, 128, 3), (4, 128, 128, 3))
def cost_volume(a, b):
    shifts = [jnp.abs(a - jnp.roll(b, d, axis=2)).sum(-1) for d in range(8)]
    return jax.nn.softmax(-jnp.stack(shifts, -1))
