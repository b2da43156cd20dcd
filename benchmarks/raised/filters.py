"""Filters and losses of images and signals."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from raised.registry import example


@example("filter", (8, 128, 128), (8, 128, 128), positive=True)
def ssim(x, y):
    def blur(a):
        return lax.reduce_window(a, 0.0, lax.add, (1, 7, 7), (1, 1, 1), "VALID") / 49

    mx, my = blur(x), blur(y)
    vx, vy, c = blur(x * x) - mx**2, blur(y * y) - my**2, blur(x * y) - mx * my
    return (2 * mx * my + 1e-4) * (2 * c + 9e-4) / ((mx**2 + my**2 + 1e-4) * (vx + vy + 9e-4))


@example("filter", (8, 256, 256))
def total_variation(x):
    dx = x[:, 1:, :] - x[:, :-1, :]
    dy = x[:, :, 1:] - x[:, :, :-1]
    return jnp.abs(dx).sum() + jnp.abs(dy).sum()


@example("filter", (8, 256, 256))
def total_variation_isotropic(x):
    dx = jnp.diff(x, axis=1, append=x[:, -1:])
    dy = jnp.diff(x, axis=2, append=x[:, :, -1:])
    return jnp.sqrt(dx**2 + dy**2 + 1e-6)


@example("filter", (4, 256, 256))
def sobel(x):
    p = jnp.pad(x, ((0, 0), (1, 1), (1, 1)), mode="edge")
    gx = (p[:, :-2, 2:] + 2 * p[:, 1:-1, 2:] + p[:, 2:, 2:]) - (
        p[:, :-2, :-2] + 2 * p[:, 1:-1, :-2] + p[:, 2:, :-2]
    )
    gy = (p[:, 2:, :-2] + 2 * p[:, 2:, 1:-1] + p[:, 2:, 2:]) - (
        p[:, :-2, :-2] + 2 * p[:, :-2, 1:-1] + p[:, :-2, 2:]
    )
    return jnp.sqrt(gx**2 + gy**2 + 1e-6)


@example("filter", (4, 3, 192, 192))
def gaussian_blur(x):
    k = jnp.exp(-0.5 * (jnp.arange(-3, 4) / 1.5) ** 2)
    k = k / k.sum()
    kernel = jnp.outer(k, k)[None, None].repeat(3, 0)
    return lax.conv_general_dilated(x, kernel, (1, 1), "SAME", feature_group_count=3)


@example("filter", (4, 3, 256, 256))
def box_blur(x):
    return lax.reduce_window(x, 0.0, lax.add, (1, 1, 5, 5), (1, 1, 1, 1), "SAME") / 25


@example("filter", (4, 256, 256))
def morphological_gradient(x):
    dilated = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3), (1, 1, 1), "SAME")
    eroded = lax.reduce_window(x, jnp.inf, lax.min, (1, 3, 3), (1, 1, 1), "SAME")
    return dilated - eroded


@example("filter", (4, 3, 128, 128))
def laplacian_pyramid(x):
    total = []
    for _ in range(3):
        small = lax.reduce_window(x, 0.0, lax.add, (1, 1, 2, 2), (1, 1, 2, 2), "VALID") / 4
        up = jnp.repeat(jnp.repeat(small, 2, 2), 2, 3)
        total.append((x - up) ** 2)
        x = small
    return [*total, x]


@example("filter", (128, 128))
def bilateral(x):
    num, den = jnp.zeros_like(x), jnp.zeros_like(x)
    for i in range(-2, 3):
        for j in range(-2, 3):
            shifted = jnp.roll(x, (i, j), (0, 1))
            w = jnp.exp(-(i * i + j * j) / 8 - (x - shifted) ** 2)
            num, den = num + w * shifted, den + w
    return num / den


@example("filter", (65536,), (31,))
def convolve_1d(x, k):
    return jnp.convolve(x, k, mode="same")


@example("filter", (192, 192), (7, 7))
def convolve_2d(x, k):
    return jax.scipy.signal.convolve2d(x, k, mode="same")


@example("filter", (32, 4096))
def moving_average(x):
    c = jnp.cumsum(x, axis=1)
    return (c[:, 16:] - c[:, :-16]) / 16


@example("filter", (16, 8192))
def exponential_smoothing(x):
    def step(s, v):
        s = 0.9 * s + 0.1 * v
        return s, s

    return lax.scan(step, x[:, 0], x.T)[1]


@example("filter", (16, 4096))
def framing(x):
    index = jnp.arange(0, 4096 - 64, 16)[:, None] + jnp.arange(64)[None]
    frames = x[:, index] * jnp.hanning(64)
    return (frames**2).mean(-1)


@example("filter", (4, 192, 192))
def harris_corners(x):
    gx = jnp.gradient(x, axis=1)
    gy = jnp.gradient(x, axis=2)
    window = lambda a: lax.reduce_window(a, 0.0, lax.add, (1, 5, 5), (1, 1, 1), "SAME")  # noqa: E731
    a, b, c = window(gx * gx), window(gy * gy), window(gx * gy)
    return a * b - c * c - 0.05 * (a + b) ** 2


@example("filter", (16, 16384))
def haar_wavelet(x):
    out = []
    for _ in range(4):
        even, odd = x[:, ::2], x[:, 1::2]
        out.append((even - odd) * 0.7071)
        x = (even + odd) * 0.7071
    return [*out, x]


@example("filter", (4, 3, 128, 128), (4, 3, 128, 128))
def pyramid_loss(a, b):
    """Differences of images and of their slopes at three sizes."""
    loss = 0.0
    for level in range(3):
        size = (4, 3, 128 >> level, 128 >> level)
        a, b = jax.image.resize(a, size, "bilinear"), jax.image.resize(b, size, "bilinear")
        d = a - b
        loss += jnp.abs(jnp.diff(d, axis=2)).mean() + jnp.abs(jnp.diff(d, axis=3)).mean() + (d**2).mean()
    return loss
