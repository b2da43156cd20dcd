"""Layers and blocks of networks for images."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from raised.registry import example

_NHWC = ("NHWC", "HWIO", "NHWC")


def conv(x, w, stride=1, groups=1):
    return lax.conv_general_dilated(
        x, w, (stride, stride), "SAME", feature_group_count=groups, dimension_numbers=_NHWC
    )


def pool(x, size=2, stride=2):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, size, size, 1), (1, stride, stride, 1), "SAME")


@example("network", (8, 56, 56, 32))
def max_pool_2(x):
    return pool(x)


@example("network", (8, 56, 56, 32))
def max_pool_3(x):
    return pool(x, 3)


@example("network", (8, 56, 56, 32))
def average_pool(x):
    return lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 2, 2, 1), "VALID") / 9


@example("network", (8, 32, 32, 64), (3, 3, 1, 64))
def depthwise(x, w):
    return conv(x, w, groups=64)


@example("network", (4, 28, 28, 32), [(7, 7, 1, 32), (32,), (32,), (32, 128), (128, 32)], scale=0.2)
def convnext_block(x, p):
    w, g, b, up, down = p
    y = conv(x, w, groups=32)
    mean = y.mean(-1, keepdims=True)
    var = ((y - mean) ** 2).mean(-1, keepdims=True)
    y = (y - mean) * lax.rsqrt(var + 1e-6) * g + b
    return x + jax.nn.gelu(y @ up) @ down


@example("network", (4, 28, 28, 32), [(1, 1, 32, 96), (3, 3, 1, 96), (1, 1, 96, 32)], scale=0.2)
def inverted_residual(x, p):
    y = jax.nn.relu6(conv(x, p[0]))
    y = jax.nn.relu6(conv(y, p[1], groups=96))
    return x + conv(y, p[2])


@example("network", (16, 32, 32, 3), [(3, 3, 3, 16), (3, 3, 16, 32), (2048, 10)], scale=0.2)
def cnn(x, p):
    x = pool(jax.nn.relu(conv(x, p[0])))
    x = pool(jax.nn.relu(conv(x, p[1])))
    logits = x.reshape(x.shape[0], -1) @ p[2]
    return jax.nn.log_softmax(logits)[:, 0].mean()


@example("network", (2, 64, 64, 8), [(3, 3, 8, 8), (3, 3, 8, 16), (3, 3, 24, 8)], scale=0.2)
def unet(x, p):
    skip = jax.nn.relu(conv(x, p[0]))
    deep = jax.nn.relu(conv(pool(skip), p[1]))
    up = jnp.repeat(jnp.repeat(deep, 2, 1), 2, 2)
    return conv(jnp.concatenate([skip, up], -1), p[2])


@example("network", (8, 64, 28, 28))
def local_response_norm(x):
    squares = lax.reduce_window(x * x, 0.0, lax.add, (1, 5, 1, 1), (1, 1, 1, 1), "SAME")
    return x / (1 + 1e-4 * squares) ** 0.75


@example("network", (8, 28, 28, 64), (64,), (64,))
def group_norm(x, g, b):
    y = x.reshape(8, 28, 28, 8, 8)
    mean, var = y.mean((1, 2, 4), keepdims=True), y.var((1, 2, 4), keepdims=True)
    return ((y - mean) * lax.rsqrt(var + 1e-5)).reshape(x.shape) * g + b


@example("network", (4, 32, 32, 16), (3, 3, 16, 16), scale=0.2)
def residual_block(x, w):
    return jax.nn.relu(x + conv(jax.nn.relu(conv(x, w)), w))


@example("network", (32, 49, 128), [(49, 64), (64, 49), (128, 256), (256, 128)], scale=0.1)
def mlp_mixer(x, p):
    y = x.swapaxes(1, 2)
    x = x + (jax.nn.gelu(y @ p[0]) @ p[1]).swapaxes(1, 2)
    return x + jax.nn.gelu(x @ p[2]) @ p[3]


@example("network", (8, 16, 16, 32), (4, 4, 32, 32), scale=0.1)
def transposed_convolution(x, w):
    return lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=_NHWC)
