"""Attention, recurrences and other layers of sequences."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from raised.registry import example


@example("sequence", (4, 8, 128, 32), (4, 8, 128, 32), (4, 8, 128, 32))
def attention(q, k, v):
    s = jnp.einsum("bhqd,bhkd->bhqk", q, k) / 32**0.5
    s = jnp.where(jnp.tril(jnp.ones((128, 128), bool)), s, -1e9)
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(s), v)


@example("sequence", (2, 4, 256, 32), (2, 4, 256, 32), (2, 4, 256, 32))
def attention_rope(q, k, v):
    def rotate(x):
        half = x.shape[-1] // 2
        angle = jnp.arange(256)[:, None] * 10000 ** (-jnp.arange(half) / half)
        a, b = x[..., :half], x[..., half:]
        return jnp.concatenate(
            [a * jnp.cos(angle) - b * jnp.sin(angle), a * jnp.sin(angle) + b * jnp.cos(angle)], -1
        )

    s = jnp.einsum("bhqd,bhkd->bhqk", rotate(q), rotate(k)) / 32**0.5
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(s), v)


@example("sequence", (4, 4, 128, 32), (4, 4, 128, 32), (255, 32))
def relative_positions(q, k, r):
    rel = jnp.einsum("bhqd,rd->bhqr", q, r)
    i = jnp.arange(128)
    rel = rel[:, :, i[:, None], i[None, :] - i[:, None] + 127]
    return jax.nn.softmax(jnp.einsum("bhqd,bhkd->bhqk", q, k) + rel)


@example("sequence", (2, 4, 512, 32), (2, 4, 512, 32), (2, 4, 512, 32))
def local_attention(q, k, v):
    w = 33
    kp = jnp.pad(k, ((0, 0), (0, 0), (16, 16), (0, 0)))
    vp = jnp.pad(v, ((0, 0), (0, 0), (16, 16), (0, 0)))
    index = jnp.arange(512)[:, None] + jnp.arange(w)
    s = jnp.einsum("bhqd,bhqwd->bhqw", q, kp[:, :, index]) / 32**0.5
    return jnp.einsum("bhqw,bhqwd->bhqd", jax.nn.softmax(s), vp[:, :, index])


@example("sequence", (4, 256, 64), [(64, 64), (64, 64), (64,)], scale=0.1)
def rnn(x, p):
    def step(h, v):
        h = jnp.tanh(v @ p[0] + h @ p[1] + p[2])
        return h, h

    return lax.scan(step, jnp.zeros((4, 64)), x.swapaxes(0, 1))[1]


@example("sequence", (8, 64, 32), [(32, 256), (64, 256), (256,)], scale=0.1)
def lstm(x, p):
    def step(state, v):
        h, c = state
        i, f, g, o = jnp.split(v @ p[0] + h @ p[1] + p[2], 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zeros = jnp.zeros((8, 64))
    return lax.scan(step, (zeros, zeros), x.swapaxes(0, 1))[1]


@example("sequence", (4, 256, 64), [(4, 64), (64,), (64, 64)], scale=0.2)
def mamba_like(x, p):
    kernel, a, w = p
    padded = jnp.pad(x, ((0, 0), (3, 0), (0, 0)))
    y = jax.nn.silu(sum(padded[:, i : i + 256] * kernel[i] for i in range(4)))
    gate = jax.nn.sigmoid(y @ w)

    def combine(left, right):
        return left[0] * right[0], left[1] * right[0] + right[1]

    decay = jnp.exp(-jnp.exp(a)) * gate
    return lax.associative_scan(combine, (decay, y * (1 - gate)), axis=1)[1]


@example("sequence", (64, 32), (32, 32), scale=0.5)
def hidden_markov_model(obs, transition):
    log_a = jax.nn.log_softmax(transition)

    def step(alpha, o):
        return jax.nn.logsumexp(alpha[:, None] + log_a, axis=0) + o, None

    alpha, _ = lax.scan(step, jnp.zeros(32), obs)
    return jax.nn.logsumexp(alpha)


@example("sequence", (8, 512, 64), (5, 1, 64))
def depthwise_conv1d(x, w):
    return lax.conv_general_dilated(
        x, w, (1,), [(4, 0)], feature_group_count=64, dimension_numbers=("NWC", "WIO", "NWC")
    )


@example("sequence", (32, 2048))
def returns(r):
    """Discounted returns of rewards."""

    def step(g, v):
        g = v + 0.99 * g
        return g, g

    return lax.scan(step, jnp.zeros(32), r.T, reverse=True)[1]


@example("sequence", (64, 1024))
def cumulative(x):
    return jnp.cumsum(x, axis=1) / jnp.arange(1, 1025)


@example("sequence", (8, 512, 64))
def token_shift(x):
    shifted = jnp.concatenate([jnp.zeros_like(x[:, :1]), x[:, :-1]], 1)
    return 0.3 * x + 0.7 * shifted


@example("sequence", (512, 64), [(64, 64), (64, 64)])
def gru(x, p):
    def step(h, v):
        z = jax.nn.sigmoid(0.1 * (v @ p[0] + h @ p[1]))
        new = jnp.tanh(0.1 * (v @ p[1] + (z * h) @ p[0]))
        h = (1 - z) * h + z * new
        return h, h[:8]

    return lax.scan(step, jnp.zeros(64), x)


@example("sequence", (8, 128, 64), [(64, 128), (128, 64), (64, 1000)], scale=0.1)
def last_logits(x, p):
    """The scores of what comes next, after one layer."""
    x = x + jax.nn.gelu(x @ p[0]) @ p[1]
    return jax.nn.log_softmax((x @ p[2])[:, -1])
