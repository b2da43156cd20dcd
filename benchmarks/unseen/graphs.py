"""Layers and losses of graphs."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from unseen.registry import case, integers, normal, uniform


@case(uniform(200, 200), normal(200, 32), normal(32, 32, scale=0.2))
def normalized_convolution(adjacency, x, w):
    a = 0.5 * (adjacency + adjacency.T) + jnp.eye(200)
    d = jnp.sum(a, 1)
    a = a / jnp.sqrt(d[:, None] * d[None])
    h = jax.nn.relu(a @ x @ w)
    return jnp.mean((a @ h) ** 2)


@case(
    normal(1000, 32),
    normal(32, 4, 8, scale=0.2),
    normal(4, 8),
    normal(4, 8),
    integers(1000, 6000),
    integers(1000, 6000),
)
def edge_attention(x, w, left, right, source, target):
    h = jnp.einsum("nd,dhk->nhk", x, w)
    e = jax.nn.leaky_relu(jnp.sum(h * left, -1)[source] + jnp.sum(h * right, -1)[target], 0.2)
    top = jax.ops.segment_max(e, target, 1000)
    p = jnp.exp(e - top[target])
    p = p / (jax.ops.segment_sum(p, target, 1000)[target] + 1e-9)
    out = jax.ops.segment_sum(p[..., None] * h[source], target, 1000)
    return jnp.mean(jax.nn.elu(out) ** 2)


@case(
    normal(800, 3),
    integers(800, 5000),
    integers(800, 5000),
    normal(17, 32, scale=0.2),
    normal(32, 1, scale=0.2),
)
def message_energy(pos, source, target, w, v):
    d = pos[source] - pos[target]
    r = jnp.sqrt(jnp.sum(d**2, -1, keepdims=True) + 1e-6)
    basis = jnp.exp(-((r - jnp.linspace(0, 4, 16)) ** 2))
    m = jax.nn.silu(jnp.concatenate([basis, r], -1) @ w) @ v
    forces = jax.ops.segment_sum(m * d / r, target, 800)
    return jnp.mean(forces**2)


@case(uniform(150, 150), normal(150, 8))
def spread_labels(weights, labels):
    w = 0.5 * (weights + weights.T)
    p = w / w.sum(1, keepdims=True)
    f = labels
    for _ in range(10):
        f = 0.8 * p @ f + 0.2 * labels
    return jnp.mean(jax.nn.logsumexp(f, 1))


@case(uniform(96, 96))
def triangles(a):
    a = 0.5 * (a + a.T) * (1 - jnp.eye(96))
    tri = jnp.einsum("ij,jk,ki->i", a, a, a)
    deg = a.sum(1)
    return jnp.mean(tri / (deg * (deg - 1) + 1e-3))


@case(
    normal(3000, 32, scale=0.1),
    normal(3000, 32, scale=0.1),
    integers(3000, 2048),
    integers(3000, 2048),
    integers(3000, 2048, 5),
)
def walks_with_negatives(center, context, i, j, negatives):
    c = center[i]
    positive = jax.nn.log_sigmoid(jnp.sum(c * context[j], -1))
    negative = jax.nn.log_sigmoid(-jnp.einsum("bd,bkd->bk", c, context[negatives]))
    return -jnp.mean(positive + jnp.sum(negative, 1))


@case(normal(160, 24), normal(24, 24, scale=0.2), normal(24))
def pair_updates(h, w, v):
    a = h @ w
    m = jax.nn.relu(a[:, None] + h[None]) @ v
    p = jax.nn.softmax(m, 1)
    return jnp.mean((p @ h) ** 2)


@case(normal(220, 16), uniform(220, 220))
def smoothness_and_learning(x, w):
    d = jnp.sum((x[:, None] - x[None]) ** 2, -1)
    s = jax.nn.softplus(w + w.T)
    return jnp.sum(s * d) / 2 - jnp.sum(jnp.log(s.sum(1))) + 0.1 * jnp.sum(s**2)


@case(normal(64, 64, 16), normal(16, 16, scale=0.2), normal(16, 16, scale=0.2))
def triangle_updates(z, a, b):
    left, right = jax.nn.sigmoid(z @ a) * z, jax.nn.sigmoid(z @ b) * z
    out = jnp.einsum("ikc,jkc->ijc", left, right)
    out = (out - out.mean(-1, keepdims=True)) / jnp.sqrt(out.var(-1, keepdims=True) + 1e-5)
    return jnp.mean((z + out) ** 2)


@case(normal(120, 120, scale=0.05))
def acyclic_penalty(w):
    a = w * w
    p = jnp.eye(120) + a / 120
    for _ in range(6):
        p = p @ p
    return jnp.trace(p) + 0.1 * jnp.sum(jnp.abs(w))


@case(normal(30, 40, 40), normal(40, 8))
def spectral_pooling(a, s):
    s = jax.nn.softmax(s, -1)
    a = jax.nn.sigmoid(a + jnp.swapaxes(a, 1, 2))
    pooled = jnp.einsum("nk,bnm,ml->bkl", s, a, s)
    cut = jnp.trace(pooled, axis1=1, axis2=2) / jnp.sum(pooled, (1, 2))
    ss = s.T @ s
    return -jnp.mean(cut) + jnp.linalg.norm(ss / jnp.linalg.norm(ss) - jnp.eye(8) / jnp.sqrt(8.0))
