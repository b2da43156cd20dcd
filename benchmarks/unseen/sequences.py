"""Layers and losses of sequences."""

# ruff: noqa: E741
from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from unseen.registry import case, integers, normal, uniform


@case(normal(4, 128, 4, 32), normal(4, 128, 4, 32), normal(4, 128, 4, 32))
def rotary_attention(q, k, v):
    f = 10000 ** (-jnp.arange(16) / 16)
    a = jnp.arange(128)[:, None] * f
    cos, sin = jnp.cos(a)[:, None], jnp.sin(a)[:, None]

    def turn(x):
        x1, x2 = x[..., :16], x[..., 16:]
        return jnp.concatenate([x1 * cos - x2 * sin, x1 * sin + x2 * cos], -1)

    s = jnp.einsum("bqhd,bkhd->bhqk", turn(q), turn(k)) / jnp.sqrt(32.0)
    s = jnp.where(jnp.tril(jnp.ones((128, 128), bool)), s, -1e9)
    return jnp.mean(jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s), v) ** 2)


@case(
    normal(4, 200, 32),
    uniform(32, 8, low=0.1, high=1.0),
    normal(4, 200, 8),
    normal(4, 200, 8),
    uniform(4, 200, 32, low=0.01, high=0.1),
)
def selective_scan(x, a, b, c, dt):
    da = jnp.exp(-dt[..., None] * a)
    db = dt[..., None] * b[:, :, None] * x[..., None]

    def combine(l, r):
        return l[0] * r[0], r[0] * l[1] + r[1]

    _, h = lax.associative_scan(combine, (da, db), axis=1)
    return jnp.mean(jnp.einsum("btdn,btn->btd", h, c) ** 2)


@case(normal(4, 128, 64), normal(64, 64, scale=0.1), normal(64, 64, scale=0.1), uniform(64), uniform(64))
def time_mixing(x, wk, wv, decay, mix):
    prev = jnp.concatenate([jnp.zeros((4, 1, 64)), x[:, :-1]], 1)
    m = mix * x + (1 - mix) * prev
    k, v = jnp.exp(jnp.tanh(m @ wk)), m @ wv

    def step(s, z):
        a, b = s
        k, v = z
        out = (a + k * v) / (b + k + 1e-3)
        d = jnp.exp(-decay)
        return (d * a + k * v, d * b + k), out

    z = jnp.zeros((4, 64))
    _, y = lax.scan(step, (z, z), (jnp.swapaxes(k, 0, 1), jnp.swapaxes(v, 0, 1)))
    return jnp.mean(y**2)


@case(normal(16, 40, 20), normal(20, 20), integers(20, 16, 40))
def label_chain(emissions, transition, tags):
    def step(a, e):
        return jax.nn.logsumexp(a[:, :, None] + transition, 1) + e, None

    a, _ = lax.scan(step, emissions[:, 0], jnp.swapaxes(emissions[:, 1:], 0, 1))
    score = jnp.sum(jnp.take_along_axis(emissions, tags[..., None], -1))
    score += jnp.sum(transition[tags[:, :-1], tags[:, 1:]])
    return (jnp.sum(jax.nn.logsumexp(a, 1)) - score) / 16


@case(normal(8, 256, 32), normal(4, 2, 32, 32, scale=0.15))
def dilated_stack(x, w):
    for layer in range(4):
        d = 2**layer
        past = jnp.pad(x, ((0, 0), (d, 0), (0, 0)))[:, : x.shape[1]]
        x = x + jax.nn.relu(past @ w[layer, 0] + x @ w[layer, 1])
    return jnp.mean(x**2)


@case(normal(2000, 48, scale=0.1), integers(2000, 16, 64), integers(2000, 16, 64))
def smoothed_entropy(table, tokens, labels):
    h = table[tokens]
    h = h / jnp.sqrt(jnp.mean(h**2, -1, keepdims=True) + 1e-6)
    logp = jax.nn.log_softmax(h @ table.T)
    hot = 0.9 * jax.nn.one_hot(labels, 2000) + 0.1 / 2000
    return -jnp.mean(jnp.sum(hot * logp, -1))


@case(normal(16, 64, 32), normal(32, 128, scale=0.2), normal(32, 128, scale=0.2), normal(128))
def gated_memory(x, w, u, b):
    def step(s, row):
        h, c = s
        i, f, g, o = jnp.split(row @ w + h @ u + b, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    z = jnp.zeros((16, 32))
    return jnp.mean(lax.scan(step, (z, z), jnp.swapaxes(x, 0, 1))[1] ** 2)


@case(normal(8, 128, 64), normal(8, 128, 64), normal(8, 128, 64))
def feature_attention(q, k, v):
    q, k = jax.nn.elu(q) + 1, jax.nn.elu(k) + 1
    kv = jnp.cumsum(k[..., :, None] * v[..., None, :], 1)
    z = jnp.cumsum(k, 1)
    return jnp.mean((jnp.einsum("btd,btde->bte", q, kv) / jnp.sum(q * z, -1, keepdims=True)) ** 2)


@case(normal(4, 8, 96, 96), normal(8, 191))
def relative_logits(s, table):
    i = jnp.arange(96)
    bias = table[:, i[None] - i[:, None] + 95]
    p = jax.nn.softmax(s + bias, -1)
    return -jnp.mean(jnp.sum(p * jnp.log(p + 1e-9), -1))


@case(normal(8, 200, 48), normal(48, 5, scale=0.2), normal(48, 48, scale=0.1))
def convolution_module(x, w, mix):
    a = x * jax.nn.sigmoid(x @ mix)
    p = jnp.pad(a, ((0, 0), (2, 2), (0, 0)))
    y = sum(p[:, k : k + 200] * w[:, k] for k in range(5))
    m, s = y.mean((0, 1)), y.var((0, 1))
    return jnp.mean(jax.nn.silu((y - m) / jnp.sqrt(s + 1e-5)) ** 2)


@case(normal(16, 100, 24), uniform(16, 100))
def halting_steps(x, p):
    keep = jnp.cumprod(jnp.concatenate([jnp.ones((16, 1)), 1 - p[:, :-1]], 1), 1)
    w = keep * p
    y = jnp.einsum("bt,btd->bd", w, jnp.cumsum(x, 1))
    return jnp.mean(y**2) + 0.01 * jnp.mean(jnp.sum(w * jnp.arange(100.0), 1))


@case(normal(32, 64, 16), normal(4, 16, 16, scale=0.3), normal(16, 4))
def mixed_experts(x, experts, router):
    gate = jax.nn.softmax(x @ router)
    y = jnp.einsum("btd,edf->btef", x, experts)
    out = jnp.sum(gate[..., None] * jnp.tanh(y), 2)
    load = jnp.mean(gate, (0, 1))
    return jnp.mean(out**2) + 4 * jnp.sum(load**2)
